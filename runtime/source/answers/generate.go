package answers

// readGenerate reads a message of SGLang's /generate, or of TGI's /generate and /generate_stream. SGLang's text holds all text
// so far, which its running count of tokens divides; the last message of TGI holds all text again.
func readGenerate(m *Message, value []byte) error {
	var v struct {
		Index count `json:"index"`
		Text  text  `json:"text"`
		Meta  struct {
			Prompt    count  `json:"prompt_tokens"`
			Generated count  `json:"completion_tokens"`
			Cached    *count `json:"cached_tokens"`
			Routed    blob   `json:"routed_experts"`
			Finish    struct {
				Type word `json:"type"`
			} `json:"finish_reason"`
		} `json:"meta_info"` // SGLang
		Token *struct {
			Text    text   `json:"text"`
			Special filled `json:"special"` // not part of the text
		} `json:"token"` // TGI, a message of a stream
		All     *text `json:"generated_text"` // TGI, at the end
		Details struct {
			Finish    word  `json:"finish_reason"`
			Generated count `json:"generated_tokens"`
			Prompt    count `json:"input_length"`
		} `json:"details"`
		Error failure `json:"error"`
		Kind  word    `json:"error_type"`
	}
	if err := m.parse(value, &v); err != nil {
		return err
	}
	m.Named = true
	choice, tokens := int(v.Index), 0
	if v.Token != nil {
		choice, tokens = 0, 1 // TGI's index counts tokens
	}
	p := m.part(choice, tokens)
	p.say(v.Text)
	switch {
	case v.Token != nil && !bool(v.Token.Special):
		p.say(v.Token.Text)
	case v.Token == nil && v.All != nil:
		p.say(*v.All)
	}
	m.write(p)
	m.Prompt, m.Generated = int(max(v.Meta.Prompt, v.Details.Prompt)), int(max(v.Meta.Generated, v.Details.Generated))
	m.knowCached(v.Meta.Cached)
	m.route(string(v.Meta.Routed), 1)
	if m.fail(v.Error); m.Failed && m.Kind == "" && v.Kind != "" {
		m.Kind = identifier(string(v.Kind))
	}
	m.end(v.Meta.Finish.Type + v.Details.Finish)
	m.Done = v.All != nil
	return nil
}
