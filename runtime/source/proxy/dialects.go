package proxy

import (
	"strings"
	"time"

	"github.com/llmtop/llmtop/runtime/source/streamed"
)

// modelOutput is the output of a model in one message, in the field names of all supported servers.
type modelOutput struct {
	Content   text `json:"content"`
	Refusal   text `json:"refusal"`
	Thinking  text `json:"thinking"`          // Ollama
	Reasoning text `json:"reasoning"`         // vLLM
	Reason    text `json:"reasoning_content"` // llama.cpp, SGLang
	Calls     []struct {
		Function call `json:"function"`
	} `json:"tool_calls"`
	Call call `json:"function_call"` // the deprecated form of tool_calls
}

type call struct {
	Name      text `json:"name"`
	Arguments text `json:"arguments"`
}

func (s *modelOutput) part() streamed.Part {
	answer := s.Content + s.Refusal + s.Call.Name + s.Call.Arguments
	for _, c := range s.Calls {
		answer += c.Function.Name + c.Function.Arguments
	}
	return streamed.Part{Answer: int(answer), Reasoning: int(s.Thinking + s.Reasoning + s.Reason)}
}

// logprobs has an entry for each token in Content (chats), or in Tokens.
type logprobs struct {
	Content []present `json:"content"`
	Tokens  []present `json:"tokens"`
}

// openAI is a message of /v1/chat/completions or /v1/completions: a chunk of a stream or the full answer.
type openAI struct {
	ID      filled `json:"id"`
	Object  filled `json:"object"`
	Created filled `json:"created"`
	Model   word   `json:"model"`
	System  word   `json:"system_fingerprint"`
	Choices []struct {
		Index   count       `json:"index"`
		Text    text        `json:"text"`
		Delta   modelOutput `json:"delta"`
		Message modelOutput `json:"message"`
		Finish  word        `json:"finish_reason"`
		Logs    logprobs    `json:"logprobs"`
		IDs     list        `json:"token_ids"`      // vLLM
		Routed  blob        `json:"routed_experts"` // vLLM
		Matched present     `json:"matched_stop"`   // SGLang
		Stop    present     `json:"stop_reason"`    // vLLM
	} `json:"choices"`
	Usage   *usage `json:"usage"`
	Metrics *struct {
		Queue millis `json:"queue_time_ms"`
		First millis `json:"time_to_first_token_ms"` // measured from when the request was scheduled
	} `json:"metrics"` // vLLM
	Timings *struct {
		Cached    count  `json:"cache_n"`
		Prompt    count  `json:"prompt_n"` // computed tokens, excluding cached ones
		PromptMS  millis `json:"prompt_ms"`
		Generated count  `json:"predicted_n"`
	} `json:"timings"` // llama.cpp
	SGLang struct {
		Routed blob `json:"routed_experts"`
	} `json:"sglext"`
	Error failure `json:"error"`

	Content   text  `json:"content"` // llama.cpp's own /completion
	Index     count `json:"index"`
	Stopped   word  `json:"stop_type"`
	Evaluated count `json:"tokens_evaluated"`
	Predicted count `json:"tokens_predicted"`
}

type usage struct {
	Prompt    count `json:"prompt_tokens"`
	Generated count `json:"completion_tokens"`
	Total     count `json:"total_tokens"`
	Reasoning count `json:"reasoning_tokens"` // SGLang
	Details   struct {
		Cached *count `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
	Generation reasoningDetails `json:"completion_tokens_details"`
}

// reasoningDetails are details of the generated tokens.
type reasoningDetails struct {
	Reasoning count `json:"reasoning_tokens"`
	Thinking  count `json:"thinking_tokens"` // Anthropic
}

func readOpenAI(f *fact, value []byte) error {
	var m openAI
	if err := f.parse(value, &m); err != nil {
		return err
	}
	f.model = string(m.Model)
	f.named = bool(m.ID || m.Object || m.Created) || m.Model != "" || m.Content > 0
	f.write(streamed.Part{Choice: int(m.Index), Answer: int(m.Content)})
	if m.System == "fp_ollama" {
		f.provider = "Ollama"
	}
	f.fail(m.Error)
	f.route(m.SGLang.Routed, 1)
	for i := range m.Choices {
		c := &m.Choices[i]
		p, whole := c.Delta.part(), c.Message.part()
		p.Choice, p.Tokens = int(c.Index), max(int(c.IDs), len(c.Logs.Content), len(c.Logs.Tokens))
		p.Answer, p.Reasoning = p.Answer+int(c.Text)+whole.Answer, p.Reasoning+whole.Reasoning
		f.write(p)
		switch {
		case bool(c.Matched):
			f.provider = "SGLang"
		case bool(c.Stop):
			f.provider = "vLLM"
		}
		f.route(c.Routed, len(m.Choices))
		if c.Finish != "" {
			f.why = reason(c.Finish)
		}
	}
	if t := m.Timings; t != nil {
		f.prompt, f.cached, f.generated = int(t.Cached+t.Prompt), int(t.Cached), int(t.Generated)
		f.cachedKnown, f.prefill = true, time.Duration(t.PromptMS)
	}
	if u := m.Usage; u != nil {
		f.prompt = int(u.Prompt)
		f.count(u.Generated, max(u.Reasoning, u.Generation.Reasoning), u.Total)
		f.knowCached(u.Details.Cached)
	}
	if m.Metrics != nil {
		f.queue, f.prefill = time.Duration(m.Metrics.Queue), time.Duration(m.Metrics.First)
	}
	if m.Stopped != "" && m.Stopped != "none" {
		f.why, f.done = reason(m.Stopped), true
		f.prompt, f.generated = max(f.prompt, int(m.Evaluated)), max(f.generated, int(m.Predicted))
	}
	return nil
}

// response is an object of /v1/responses.
type response struct {
	Object     word `json:"object"`
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
func readResponses(f *fact, value []byte) error {
	var m struct {
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
	if err := f.parse(value, &m); err != nil {
		return err
	}
	switch {
	case strings.HasPrefix(string(m.Type), "response.reasoning") && strings.HasSuffix(string(m.Type), ".delta"):
		f.write(streamed.Part{Reasoning: int(m.Delta)})
	case strings.HasSuffix(string(m.Type), ".delta"):
		f.write(streamed.Part{Answer: int(m.Delta), Tokens: len(m.Logs)})
	case m.Type == "response.output_item.added": // a tool call starts with its name
		f.write(streamed.Part{Answer: int(m.Item.Name)})
	case m.Type == "error":
		f.failed, f.kind = true, identifier(string(m.Code))
	}
	r := m.Response
	if r == nil {
		r = &m.response
	}
	f.model, f.named = string(r.Model), true
	f.fail(r.Error)
	f.prompt = int(r.Usage.Input)
	f.count(r.Usage.Output, r.Usage.Generation.Reasoning, r.Usage.Total)
	f.knowCached(r.Usage.Details.Cached)
	switch r.Status {
	case "completed":
		f.why, f.done = reason(r.Status), true
	case "incomplete":
		f.why, f.done = reason(r.Incomplete.Reason), true
	case "failed", "cancelled":
		f.failed, f.done = true, true
	case "queued":
		f.why = "queued" // runs in the background, without a client
	}
	return nil
}

// readOllama reads a message of /api/chat or /api/generate. The last message has counts and durations.
func readOllama(f *fact, value []byte) error {
	var m struct {
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
		Output   count       `json:"eval_count"`
		Error    failure     `json:"error"`
	}
	if err := f.parse(value, &m); err != nil {
		return err
	}
	f.model, f.provider, f.named = string(m.Model), "Ollama", true
	p := m.Message.part()
	p.Answer, p.Reasoning, p.Tokens = p.Answer+int(m.Response), p.Reasoning+int(m.Thinking), len(m.Logs)
	f.write(p)
	f.fail(m.Error)
	if !m.Done {
		return nil
	}
	f.done, f.why = true, "stop"
	if m.Why != "" {
		f.why = reason(m.Why)
	}
	f.prompt, f.generated = int(m.Prompt), int(m.Output)
	f.load, f.prefill = time.Duration(m.Load), time.Duration(m.Prefill)
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

func (f *fact) anthropic(u *anthropicUsage) {
	if u != nil {
		f.knowCached(u.Read)
		f.prompt = max(f.prompt, int(u.Input+u.Written)+f.cached)
		f.count(u.Output, max(u.Details.Thinking, u.Details.Reasoning), 0)
	}
}

// readAnthropic reads an event of /v1/messages, or the complete message object.
func readAnthropic(f *fact, value []byte) error {
	var m struct {
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
	if err := f.parse(value, &m); err != nil {
		return err
	}
	f.model, f.named = string(m.Model+m.Message.Model), true
	f.write(streamed.Part{
		Answer:    int(m.Block.Text + m.Block.Name + m.Delta.Text + m.Delta.JSON),
		Reasoning: int(m.Block.Thinking + m.Delta.Thinking),
	})
	f.anthropic(m.Message.Usage)
	f.anthropic(m.Usage)
	f.fail(m.Error)
	if why := m.Why + m.Delta.Why; why != "" {
		f.why = reason(why)
	}
	f.done = m.Type == "message_stop"
	if m.Type == "message_start" {
		f.generated, f.reasoning = 0, 0 // message_start has only an estimate
	}
	return nil
}
