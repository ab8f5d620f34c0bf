package proxy

// anthropicUsage counts the parts of a prompt apart.
type anthropicUsage struct {
	Input   count `json:"input_tokens"`
	Read    count `json:"cache_read_input_tokens"`
	Written count `json:"cache_creation_input_tokens"`
	Output  count `json:"output_tokens"`
}

func (f *fact) anthropic(u *anthropicUsage) {
	if u != nil {
		f.prompt = max(f.prompt, int(u.Input+u.Read+u.Written))
		f.cached, f.generated = max(f.cached, int(u.Read)), max(f.generated, int(u.Output))
	}
}

// readAnthropic reads an event of /v1/messages, or the message itself.
func readAnthropic(f *fact, value []byte) error {
	var m struct {
		Type    word `json:"type"`
		Model   word `json:"model"`
		Message struct {
			Model word            `json:"model"`
			Usage *anthropicUsage `json:"usage"`
		} `json:"message"` // message_start
		Block struct {
			Text     filled `json:"text"`
			Thinking filled `json:"thinking"`
			Name     filled `json:"name"` // of a tool
		} `json:"content_block"` // content_block_start
		Delta struct {
			Text     filled `json:"text"`
			Thinking filled `json:"thinking"`
			JSON     filled `json:"partial_json"`
			Why      word   `json:"stop_reason"`
		} `json:"delta"` // content_block_delta, message_delta
		Why   word            `json:"stop_reason"` // what does not stream
		Usage *anthropicUsage `json:"usage"`
		Error failure         `json:"error"`
	}
	if err := parse(value, &m); err != nil {
		return err
	}
	f.model = string(m.Model + m.Message.Model)
	f.text = bool(m.Block.Text || m.Block.Thinking || m.Block.Name || m.Delta.Text || m.Delta.Thinking || m.Delta.JSON)
	f.anthropic(m.Message.Usage)
	f.anthropic(m.Usage)
	f.fail(m.Error)
	if why := m.Why + m.Delta.Why; why != "" {
		f.why = reason(why)
	}
	f.done = m.Type == "message_stop"
	if m.Type == "message_start" {
		f.generated = 0 // what stands there is an estimate
	}
	return nil
}
