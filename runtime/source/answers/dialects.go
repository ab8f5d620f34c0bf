package answers

import (
	"bytes"
	"encoding/json"
	"strings"
	"sync"
	"time"
)

// Dialect is one HTTP interface for generation.
type Dialect struct {
	Name  string // label of its requests
	Path  string // suffix of its request paths
	Lines bool   // streams one JSON value per line instead of server-sent events
	Chat  bool   // takes a conversation

	read func(*Message, []byte) error
}

// Dialects are all interfaces, in the order in which they are matched.
var Dialects = []Dialect{
	{Name: "chat", Path: "/chat/completions", read: readOpenAI, Chat: true},
	{Name: "completions", Path: "/completions", read: readOpenAI},
	{Name: "completion", Path: "/completion", read: readOpenAI}, // llama.cpp's own
	{Name: "infill", Path: "/infill", read: readOpenAI},         // llama.cpp's
	{Name: "responses", Path: "/responses", read: readResponses, Chat: true},
	{Name: "messages", Path: "/v1/messages", read: readAnthropic, Chat: true},
	{Name: "ollama chat", Path: "/api/chat", read: readOllama, Lines: true, Chat: true},
	{Name: "ollama generate", Path: "/api/generate", read: readOllama, Lines: true},
	{Name: "lm studio", Path: "/api/v1/chat", read: readLMStudio, Chat: true},
	{Name: "generate", Path: "/generate", read: readGenerate}, // SGLang's and TGI's own
	{Name: "generate", Path: "/generate_stream", read: readGenerate},
}

// Of returns the dialect of a POST to path, or nil if the request does not generate.
func Of(path string) *Dialect {
	for i := range Dialects {
		if strings.HasSuffix(path, Dialects[i].Path) {
			return &Dialects[i]
		}
	}
	return nil
}

// Recognise returns the dialect of a message of a stream whose request is unknown; nil: of none that is known.
func Recognise(message []byte) *Dialect {
	var v struct {
		Object  word    `json:"object"`
		Type    word    `json:"type"`
		Created present `json:"created_at"`
		Message present `json:"message"`
		Reply   present `json:"response"`
		Meta    present `json:"meta_info"`
		Token   present `json:"token"`
		Slot    present `json:"id_slot"`
	}
	if json.Unmarshal(message, &v) != nil {
		return nil
	}
	kind := string(v.Type)
	switch {
	case v.Object == "chat.completion.chunk":
		return Of("/chat/completions")
	case v.Object == "text_completion":
		return Of("/v1/completions")
	case bool(v.Slot):
		return Of("/completion")
	case strings.HasPrefix(kind, "response."):
		return Of("/responses")
	case strings.HasPrefix(kind, "content_block_"), kind == "message_start", kind == "message_delta", kind == "message_stop":
		return Of("/v1/messages")
	case bool(v.Created && v.Message):
		return Of("/api/chat")
	case bool(v.Created && v.Reply):
		return Of("/api/generate")
	case bool(v.Meta || v.Token):
		return Of("/generate")
	case kind == "message.delta", kind == "reasoning.delta", kind == "chat.end", kind == "chat.start":
		return Of("/api/v1/chat")
	}
	return nil
}

// modelOutput is the output of a model in one message, in the field names of all supported servers.
type modelOutput struct {
	Content   text `json:"content"`
	Refusal   text `json:"refusal"`
	Thinking  text `json:"thinking"`          // Ollama
	Reasoning text `json:"reasoning"`         // vLLM
	Reason    text `json:"reasoning_content"` // llama.cpp, SGLang
	Details   []struct {
		Text    text `json:"text"`
		Summary text `json:"summary"`
	} `json:"reasoning_details"` // gateways; most repeat in it what reasoning has
	Calls []struct {
		Function call `json:"function"`
	} `json:"tool_calls"`
	Call call `json:"function_call"` // the deprecated form of tool_calls
}

type call struct {
	Name      text `json:"name"`
	Arguments text `json:"arguments"`
}

// into adds the output to a part.
func (o *modelOutput) into(p *Part) {
	before := p.Reasoning
	p.reason(o.Reason, o.Reasoning, o.Thinking)
	for i := 0; i < len(o.Details) && p.Reasoning == before; i++ {
		p.reason(o.Details[i].Text, o.Details[i].Summary)
	}
	p.say(o.Content, o.Refusal, o.Call.Name, o.Call.Arguments)
	for i := range o.Calls {
		p.say(o.Calls[i].Function.Name, o.Calls[i].Function.Arguments)
	}
}

// openAI is a message of /v1/chat/completions or /v1/completions: a chunk of a stream or the full answer.
type openAI struct {
	ID      filled   `json:"id"`
	Object  word     `json:"object"` // "error": the message is one
	Created filled   `json:"created"`
	Model   word     `json:"model"`
	System  word     `json:"system_fingerprint"`
	Choices []choice `json:"choices"`
	Usage   *usage   `json:"usage"`
	Groq    struct {
		Usage *usage  `json:"usage"`
		Error failure `json:"error"`
	} `json:"x_groq"`
	Metrics *struct {
		Queue millis `json:"queue_time_ms"`
		First millis `json:"time_to_first_token_ms"` // measured from when the request was scheduled
	} `json:"metrics"` // vLLM
	Timings *struct {
		Cached    count  `json:"cache_n"`
		Prompt    count  `json:"prompt_n"` // computed tokens, excluding cached ones
		PromptMS  millis `json:"prompt_ms"`
		Generated count  `json:"predicted_n"`
		Drafted   count  `json:"draft_n"`
		Accepted  count  `json:"draft_n_accepted"`
	} `json:"timings"` // llama.cpp
	SGLang struct {
		Routed blob `json:"routed_experts"`
	} `json:"sglext"`
	Error failure `json:"error"`
	named         // of a message that is an error

	Content   text  `json:"content"` // llama.cpp's own /completion
	Index     count `json:"index"`
	Stopped   word  `json:"stop_type"`
	Evaluated count `json:"tokens_evaluated"`
	Predicted count `json:"tokens_predicted"`
}

// choice is one of the answers of an OpenAI interface.
type choice struct {
	Index   count       `json:"index"`
	Text    text        `json:"text"`
	Delta   modelOutput `json:"delta"`
	Message modelOutput `json:"message"`
	Finish  word        `json:"finish_reason"`
	Logs    logs        `json:"logprobs"`
	IDs     tokens      `json:"token_ids"`      // vLLM
	Routed  blob        `json:"routed_experts"` // vLLM
	Matched present     `json:"matched_stop"`   // SGLang
	Stop    present     `json:"stop_reason"`    // vLLM
	Usage   *usage      `json:"usage"`          // Moonshot
	Error   failure     `json:"error"`          // gateways
}

type usage struct {
	Prompt    count `json:"prompt_tokens"`
	Generated count `json:"completion_tokens"`
	Total     count `json:"total_tokens"`
	Reasoning count `json:"reasoning_tokens"` // SGLang
	Details   struct {
		Cached *count `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
	Cached     *count           `json:"cached_tokens"`           // Moonshot
	Hit        *count           `json:"prompt_cache_hit_tokens"` // DeepSeek
	Generation reasoningDetails `json:"completion_tokens_details"`
}

// use records the usage of an answer; nil: the message has none there.
func (m *Message) use(u *usage) {
	if u == nil {
		return
	}
	m.Prompt = max(m.Prompt, int(u.Prompt))
	m.count(u.Generated, max(u.Reasoning, u.Generation.Reasoning), u.Total)
	m.knowCached(u.Details.Cached)
	m.knowCached(u.Cached)
	m.knowCached(u.Hit)
}

// reasoningDetails are details of the generated tokens.
type reasoningDetails struct {
	Reasoning count `json:"reasoning_tokens"`
	Thinking  count `json:"thinking_tokens"` // Anthropic
}

// openAIs are reused: most messages are of this kind.
var openAIs = sync.Pool{New: func() any { return new(openAI) }}

func readOpenAI(m *Message, value []byte) error {
	v := openAIs.Get().(*openAI)
	defer func() {
		clear(v.Choices)
		*v = openAI{Choices: v.Choices[:0]}
		openAIs.Put(v)
	}()
	if err := m.parse(value, v); err != nil {
		return err
	}
	m.Model = string(v.Model)
	failed := v.Object == "error"
	m.Named = bool(v.ID || v.Created) || v.Object+v.Model != "" && !failed || v.Content.text != ""
	p := m.part(int(v.Index), 0)
	p.say(v.Content)
	m.write(p)
	if v.System == "fp_ollama" {
		m.Provider = "Ollama"
	}
	m.fail(v.Error)
	m.fail(v.Groq.Error)
	if failed {
		m.fail(failure{some: true, kind: v.kind(), json: bytes.Clone(value)})
	}
	m.route(string(v.SGLang.Routed), 1)
	for i := range v.Choices {
		v.Choices[i].read(m, len(v.Choices))
	}
	if t := v.Timings; t != nil {
		m.Prompt, m.Cached, m.Generated = int(t.Cached+t.Prompt), int(t.Cached), int(t.Generated)
		m.CachedKnown, m.Prefill = true, time.Duration(t.PromptMS)
		m.Drafted, m.Accepted = int(t.Drafted), int(t.Accepted)
	}
	m.use(v.Usage)
	m.use(v.Groq.Usage)
	if v.Metrics != nil {
		m.Queue, m.Prefill = time.Duration(v.Metrics.Queue), time.Duration(v.Metrics.First)
	}
	if v.Stopped != "" && v.Stopped != "none" {
		m.end(v.Stopped)
		m.Done = true
		m.Prompt, m.Generated = max(m.Prompt, int(v.Evaluated)), max(m.Generated, int(v.Predicted))
	}
	return nil
}

// read reads one of the given number of choices.
func (c *choice) read(m *Message, choices int) {
	m.expect("choices.text", c.Text)
	m.expect("choices.delta.content", c.Delta.Content)
	p := m.part(int(c.Index), max(len(c.IDs), int(c.Logs)))
	if m.texts {
		p.IDs = c.IDs
	}
	c.Delta.into(&p)
	p.say(c.Text)
	c.Message.into(&p)
	m.write(p)
	switch {
	case bool(c.Matched):
		m.Provider = "SGLang"
	case bool(c.Stop):
		m.Provider = "vLLM"
	}
	m.route(string(c.Routed), choices)
	m.use(c.Usage)
	m.end(c.Finish)
	m.fail(c.Error)
}

// response is an object of /v1/responses.
type response struct {
	Model      word `json:"model"`
	Status     word `json:"status"`
	Incomplete struct {
		Reason word `json:"reason"`
	} `json:"incomplete_details"`
	Usage struct {
		Input   count `json:"input_tokens"`
		Details struct {
			Cached *count `json:"cached_tokens"`
		} `json:"input_tokens_details"`
		Output     count            `json:"output_tokens"`
		Generation reasoningDetails `json:"output_tokens_details"`
		Total      count            `json:"total_tokens"`
	} `json:"usage"`
	Error failure `json:"error"`
}

// readResponses reads an event of /v1/responses, or the complete response object.
func readResponses(m *Message, value []byte) error {
	var v struct {
		Type  word      `json:"type"`
		Delta text      `json:"delta"`
		Logs  []present `json:"logprobs"`
		Item  struct {
			Name text `json:"name"`
		} `json:"item"`
		Response *response `json:"response"`
		Code     word      `json:"code"`
		response           // an answer that is not streamed
	}
	if err := m.parse(value, &v); err != nil {
		return err
	}
	p := m.part(0, 0)
	switch {
	case strings.HasPrefix(string(v.Type), "response.reasoning") && strings.HasSuffix(string(v.Type), ".delta"):
		p.reason(v.Delta)
	case strings.HasSuffix(string(v.Type), ".delta"):
		p.Tokens = len(v.Logs)
		p.say(v.Delta)
	case v.Type == "response.output_item.added": // a tool call starts with its name
		p.say(v.Item.Name)
	case v.Type == "error":
		m.Failed, m.Kind = true, identifier(string(v.Code))
	}
	m.write(p)
	r := v.Response
	if r == nil {
		r = &v.response
	}
	m.Model, m.Named = string(r.Model), true
	m.fail(r.Error)
	m.Prompt = int(r.Usage.Input)
	m.count(r.Usage.Output, r.Usage.Generation.Reasoning, r.Usage.Total)
	m.knowCached(r.Usage.Details.Cached)
	switch r.Status {
	case "completed":
		m.end(r.Status)
		m.Done = true
	case "incomplete":
		m.end(r.Incomplete.Reason)
		m.Done = true
	case "failed":
		m.Failed, m.Done = true, true
	case "cancelled":
		m.end(r.Status)
		m.Done = true
	case "queued":
		m.Why = "queued" // runs in the background, without a client
	}
	return nil
}

// readOllama reads a message of /api/chat or /api/generate. The last message has counts and durations.
func readOllama(m *Message, value []byte) error {
	var v struct {
		Model    word        `json:"model"`
		Response text        `json:"response"`
		Thinking text        `json:"thinking"`
		Message  modelOutput `json:"message"`
		Logs     []present   `json:"logprobs"`
		Done     filled      `json:"done"`
		Why      word        `json:"done_reason"`
		Load     ns          `json:"load_duration"`
		Prefill  ns          `json:"prompt_eval_duration"`
		Prompt   count       `json:"prompt_eval_count"`
		Cached   *count      `json:"prompt_eval_cached_count"` // of Prompt
		Output   count       `json:"eval_count"`
		Error    failure     `json:"error"`
	}
	if err := m.parse(value, &v); err != nil {
		return err
	}
	m.Model, m.Provider, m.Named = string(v.Model), "Ollama", true
	m.expect("response", v.Response)
	m.expect("message.content", v.Message.Content)
	p := m.part(0, len(v.Logs))
	p.reason(v.Thinking)
	v.Message.into(&p)
	p.say(v.Response)
	m.write(p)
	m.fail(v.Error)
	if !v.Done {
		return nil
	}
	m.Done = true
	m.end(v.Why)
	m.Prompt, m.Generated = int(v.Prompt), int(v.Output)
	m.knowCached(v.Cached)
	m.Load, m.Prefill = time.Duration(v.Load), time.Duration(v.Prefill)
	return nil
}

// anthropicUsage is the token usage of a message. The three input counts do not overlap.
type anthropicUsage struct {
	Input   count            `json:"input_tokens"`
	Read    *count           `json:"cache_read_input_tokens"`
	Written count            `json:"cache_creation_input_tokens"`
	Output  count            `json:"output_tokens"`
	Details reasoningDetails `json:"output_tokens_details"`
}

func (m *Message) anthropic(u *anthropicUsage) {
	if u != nil {
		m.knowCached(u.Read)
		m.Prompt = max(m.Prompt, int(u.Input+u.Written)+m.Cached)
		m.count(u.Output, max(u.Details.Thinking, u.Details.Reasoning), 0)
	}
}

// readAnthropic reads an event of /v1/messages, or the complete message object.
func readAnthropic(m *Message, value []byte) error {
	var v struct {
		Type    word `json:"type"`
		Model   word `json:"model"`
		Message struct {
			Model word            `json:"model"`
			Usage *anthropicUsage `json:"usage"`
		} `json:"message"` // message_start
		Block struct {
			Text     text `json:"text"`
			Thinking text `json:"thinking"`
			Name     text `json:"name"` // the name of a tool
		} `json:"content_block"` // content_block_start
		Delta struct {
			Text     text `json:"text"`
			Thinking text `json:"thinking"`
			JSON     text `json:"partial_json"`
			Why      word `json:"stop_reason"`
		} `json:"delta"` // content_block_delta, message_delta
		Why   word            `json:"stop_reason"` // an answer that is not streamed
		Usage *anthropicUsage `json:"usage"`
		Error failure         `json:"error"`
	}
	if err := m.parse(value, &v); err != nil {
		return err
	}
	m.Model, m.Named = string(v.Model+v.Message.Model), true
	p := m.part(0, 0)
	p.reason(v.Block.Thinking, v.Delta.Thinking)
	p.say(v.Block.Text, v.Block.Name, v.Delta.Text, v.Delta.JSON)
	m.write(p)
	m.anthropic(v.Message.Usage)
	m.anthropic(v.Usage)
	m.fail(v.Error)
	m.end(v.Why + v.Delta.Why)
	m.Done = v.Type == "message_stop"
	if v.Type == "message_start" {
		m.Generated, m.Reasoning = 0, 0 // message_start has only an estimate
	}
	return nil
}
