package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
)

// chunk is one message of an answer, of any of the servers: what a server does not send stays zero.
type chunk struct {
	Choices []choice `json:"choices"` // OpenAI
	Usage   *usage   `json:"usage"`
	Timings *timings `json:"timings"` // llama.cpp
	Metrics *struct {
		Queue float64 `json:"queue_time_ms"`
		First float64 `json:"time_to_first_token_ms"` // since it was scheduled
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
	IDs    []int32 `json:"token_ids"` // vLLM
}

type message struct {
	Content  string `json:"content"`
	Thinking string `json:"thinking"`          // Ollama
	Reason   string `json:"reasoning_content"` // llama.cpp, SGLang
	Reason2  string `json:"reasoning"`         // vLLM
	Calls    []struct {
		Function struct {
			Name      string `json:"name"`
			Arguments any    `json:"arguments"` // a string, or an object of Ollama's
		} `json:"function"`
	} `json:"tool_calls"`
}

type usage struct {
	Prompt    int `json:"prompt_tokens"`
	Generated int `json:"completion_tokens"`
	Details   *struct {
		Cached int `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
}

// timings are llama.cpp's own, in ms.
type timings struct {
	Cached    int     `json:"cache_n"`
	Prompt    int     `json:"prompt_n"` // computed, without the cached ones
	PromptMS  float64 `json:"prompt_ms"`
	Generated int     `json:"predicted_n"`
}

// ollamaTimes are in ns. Prompt tokens include those from the cache, of which the duration knows nothing.
type ollamaTimes struct {
	Load      int64 `json:"load_duration"`
	Prompt    int   `json:"prompt_eval_count"`
	PromptNS  int64 `json:"prompt_eval_duration"`
	Generated int   `json:"eval_count"`
}

// content is what a chunk holds of the generated text.
type content struct {
	text    string // of any kind
	output  bool   // there is text that is no reasoning
	choices bool   // it has choices, which may hold no text; of Ollama always
	ids     []int32
	finish  string
}

// read parses one message.
func (c *chunk) read(value []byte) error {
	*c = chunk{}
	if err := json.Unmarshal(value, c); err != nil {
		return fmt.Errorf("the server sent what cannot be read: %w", plain(err))
	}
	return nil
}

// plain is an error of encoding/json in words that say nothing of Go.
func plain(err error) error {
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return fmt.Errorf("field %q holds a %s", wrong.Field, wrong.Value)
	}
	return err
}

// content finds the text in a chunk.
func (c *chunk) content(a API) content {
	switch a {
	case Ollama:
		return content{text: c.Thinking + c.Response, output: c.Response != "", choices: true, finish: c.end()}
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
		out = content{text: first.Text, output: first.Text != ""}
	}
	out.choices, out.ids, out.finish = true, first.IDs, first.Finish
	return out
}

// end is why an answer of Ollama's ended, "" before it has, or if it does not say.
func (c *chunk) end() string {
	if !c.Done {
		return ""
	}
	return c.DoneWhy
}

func (m *message) content() content {
	calls := m.calls()
	return content{text: m.Reason + m.Reason2 + m.Thinking + m.Content + calls, output: m.Content != "" || calls != ""}
}

// calls is the text of the tool calls.
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

// total is how many tokens have been generated so far, as far as the chunk tells; 0: it does not.
func (c *chunk) total() int {
	switch {
	case c.Usage != nil && c.Usage.Generated > 0:
		return count(c.Usage.Generated)
	case c.Timings != nil:
		return count(c.Timings.Generated)
	}
	return count(c.Generated)
}

// count is a number of tokens as a server tells it, within what makes sense.
func count(n int) int { return min(max(n, 0), math.MaxInt32) }

var null = []byte("null")

// failure is the error that a chunk tells, nil if it tells none.
func (c *chunk) failure(failed bool, value []byte, key secret) error {
	switch {
	case len(c.Error) > 0 && !bytes.Equal(c.Error, null):
		return errors.New(words(key.hide(c.Error)))
	case failed:
		return errors.New(words(key.hide(value)))
	}
	return nil
}
