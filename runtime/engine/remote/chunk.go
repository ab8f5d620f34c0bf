package remote

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/llmtop/llmtop/profiler/clean"
	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/source/streamed"
)

// chunk is one message of an answer, with the fields of all servers. Fields that a server does not send stay zero.
type chunk struct {
	ID      mark     `json:"id"`
	Object  mark     `json:"object"`
	Created mark     `json:"created"`
	Model   mark     `json:"model"`
	Choices []choice `json:"choices"` // OpenAI
	Usage   *usage   `json:"usage"`
	Timings *timings `json:"timings"` // llama.cpp
	Metrics *struct {
		Queue float64 `json:"queue_time_ms"`
		First float64 `json:"time_to_first_token_ms"` // measured from when the request was scheduled
	} `json:"metrics"` // vLLM
	Error json.RawMessage `json:"error"`

	Response string  `json:"response"` // Ollama, generate
	Thinking string  `json:"thinking"`
	Message  message `json:"message"` // Ollama, chat
	Done     bool    `json:"done"`
	DoneWhy  string  `json:"done_reason"`
	ollamaTimes
}

type choice struct {
	Text   string  `json:"text"`  // completions
	Delta  message `json:"delta"` // chat
	Finish string  `json:"finish_reason"`
	Logs   logs    `json:"logprobs"`
	IDs    []int64 `json:"token_ids"` // vLLM
}

// mark is whether a field has a value.
type mark bool

// UnmarshalJSON implements json.Unmarshaler.
func (m *mark) UnmarshalJSON(v []byte) error {
	*m = string(v) != "null" && string(v) != `""`
	return nil
}

// logs is the number of tokens in log probabilities, 0 in an unknown form.
type logs int

// UnmarshalJSON implements json.Unmarshaler.
func (l *logs) UnmarshalJSON(v []byte) error {
	var of struct{ Content, Tokens []json.RawMessage }
	if *l = 0; json.Unmarshal(v, &of) == nil {
		*l = logs(max(len(of.Content), len(of.Tokens)))
	}
	return nil
}

type message struct {
	Content  string `json:"content"`
	Thinking string `json:"thinking"`          // Ollama
	Reason   string `json:"reasoning_content"` // llama.cpp, SGLang
	Reason2  string `json:"reasoning"`         // vLLM
	Calls    []struct {
		Function struct {
			Name      string `json:"name"`
			Arguments any    `json:"arguments"` // a string, or an object from Ollama
		} `json:"function"`
	} `json:"tool_calls"`
}

type usage struct {
	Prompt    int `json:"prompt_tokens"`
	Generated int `json:"completion_tokens"`
	Total     int `json:"total_tokens"`
	Reasoning int `json:"reasoning_tokens"` // SGLang
	Details   *struct {
		Cached *int `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
	Generation struct {
		Reasoning int `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`
}

// streamed returns the counts of generated tokens.
func (u *usage) streamed() streamed.Usage {
	return streamed.NewUsage(count(u.Prompt), count(u.Generated), count(max(u.Reasoning, u.Generation.Reasoning)), count(u.Total))
}

// timings are llama.cpp's durations, in ms.
type timings struct {
	Cached    int     `json:"cache_n"`
	Prompt    int     `json:"prompt_n"` // computed tokens, excluding cached ones
	PromptMS  float64 `json:"prompt_ms"`
	Generated int     `json:"predicted_n"`
}

// ollamaTimes are in ns. Prompt counts cached tokens too; PromptNS does not include them.
type ollamaTimes struct {
	Load      int64 `json:"load_duration"`
	Prompt    int   `json:"prompt_eval_count"`
	PromptNS  int64 `json:"prompt_eval_duration"`
	Generated int   `json:"eval_count"`
}

// content is the generated text of a chunk.
type content struct {
	text              string // of any kind
	answer, reasoning int    // its pieces, see streamed.Pieces
	choices           bool   // the message has choices, possibly without text; always true for Ollama
	ids               []int64
	logs              int // tokens with log probabilities
	finish            string
}

// read parses one message.
func (c *chunk) read(value []byte) error {
	*c = chunk{}
	if err := json.Unmarshal(value, c); err != nil {
		return fmt.Errorf("read answer: %w", plain(err))
	}
	return nil
}

// plain formats an error of encoding/json without Go types.
func plain(err error) error {
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return fmt.Errorf("field %s holds a %s", clean.Quote(wrong.Field), clean.Name(wrong.Value))
	}
	return err
}

// content returns the text in a chunk.
func (c *chunk) content(a API) content {
	switch a {
	case Ollama:
		out := newContent(c.Thinking, c.Response)
		out.choices, out.finish = true, c.end()
		return out
	case OllamaChat:
		out := c.Message.content()
		out.choices, out.finish = true, c.end()
		return out
	}
	if len(c.Choices) == 0 {
		return content{}
	}
	first := &c.Choices[0]
	out := first.Delta.content()
	if a == OpenAI {
		out = newContent("", first.Text)
	}
	out.choices, out.ids, out.logs, out.finish = true, first.IDs, int(first.Logs), first.Finish
	return out
}

// end returns the reason why an answer of Ollama's ended, "" if it has not, or the reason is not reported.
func (c *chunk) end() string {
	if !c.Done {
		return ""
	}
	return c.DoneWhy
}

func (m *message) content() content {
	return newContent(m.Reason+m.Reason2+m.Thinking, m.Content+m.calls())
}

func newContent(reasoning, answer string) content {
	return content{text: reasoning + answer, reasoning: streamed.Pieces(reasoning), answer: streamed.Pieces(answer)}
}

// named reports whether the chunk names its response; Ollama's always do.
func (c *chunk) named(a API) bool { return a.lines() || bool(c.ID || c.Object || c.Created || c.Model) }

// calls returns the text of the tool calls.
func (m *message) calls() (text string) {
	for _, call := range m.Calls {
		text += call.Function.Name
		switch arguments := call.Function.Arguments.(type) {
		case nil:
		case string:
			text += arguments
		default:
			written, err := json.Marshal(arguments)
			if err == nil {
				text += string(written)
			}
		}
	}
	return text
}

// total returns how many tokens were generated so far, 0 if the chunk does not report it.
func (c *chunk) total() int {
	switch {
	case c.Usage != nil && c.Usage.Generated > 0:
		return count(c.Usage.streamed().Generated)
	case c.Timings != nil:
		return count(c.Timings.Generated)
	}
	return count(c.Generated)
}

// count limits a server's token count to the valid range.
func count(n int) int { return min(max(n, 0), event.MaxTokens) }

var null = []byte("null")

// failure returns the error that a chunk reports, or nil.
func (c *chunk) failure(failed bool, value []byte, key secret) error {
	switch {
	case len(c.Error) > 0 && !bytes.Equal(c.Error, null):
		return errors.New(cmp.Or(words(key.hide(c.Error)), "an error without a message"))
	case failed:
		return errors.New(cmp.Or(words(key.hide(value)), "an error without a message"))
	}
	return nil
}
