package api

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"github.com/llmtop/llmtop/runtime"
)

// ids reports whether the server takes token ids as a prompt.
func (s *server) ids() bool {
	return s.api == OpenAI && (s.kind == llamaServer || s.kind == vllm || s.kind == sglang)
}

// IgnoresEnd reports whether the server can be told to go on after the token that ends a text.
func (c *Client) IgnoresEnd() bool { return c.server.kind != other && c.server.kind != ollama }

// Fresh reports whether the server can be told not to take prompts from its cache.
func (c *Client) Fresh() bool { return c.IgnoresEnd() } // the same ones, as it happens

// object is a JSON object under construction.
type object map[string]any

// body is the request as the server wants it. fresh asks it not to take the prompt from its cache, where it can be asked.
func (s *server) body(r *runtime.Request, fresh bool) ([]byte, error) {
	out := object{"model": s.model.Name, "stream": true}
	if r.Group != "" && s.kind == vllm {
		out["model"] = r.Group // vLLM names adapters like models
	}
	switch s.api {
	case OpenAIChat, OllamaChat:
		out["messages"] = []object{{"role": "user", "content": r.Text}}
	default:
		out["prompt"] = r.Text
		if len(r.IDs) > 0 {
			out["prompt"] = r.IDs
		}
	}
	if s.api.lines() {
		out["options"] = s.options(r)
	} else {
		s.openAI(out, r, fresh)
	}
	return json.Marshal(out)
}

// options are Ollama's.
func (s *server) options(r *runtime.Request) object {
	p := &r.Params
	out := object{
		"temperature": p.Temperature, "top_k": p.TopK, "top_p": open(p.TopP), "min_p": p.MinP, "repeat_penalty": open(p.RepeatPenalty),
		"seed": p.Seed & 0x7fffffff, "num_predict": -1, // until the model ends
	}
	if r.MaxTokens > 0 {
		out["num_predict"] = r.MaxTokens
	}
	return out
}

// open is a parameter of which 0 means that it is off, as is 1.
func open(v float64) float64 {
	if v == 0 {
		return 1
	}
	return v
}

// openAI adds the fields of OpenAI's interfaces, and of those beyond them only what the server is known to understand: others refuse requests
// with fields that they do not know.
func (s *server) openAI(out object, r *runtime.Request, fresh bool) {
	p := &r.Params
	options := object{"include_usage": true}
	out["stream_options"], out["temperature"], out["top_p"], out["seed"] = options, p.Temperature, open(p.TopP), p.Seed&0x7fffffff
	if r.MaxTokens > 0 {
		out["max_tokens"] = r.MaxTokens
	}
	if s.kind == other || s.kind == ollama {
		return
	}
	if p.TopK > 0 {
		out["top_k"] = p.TopK
	}
	out["min_p"] = p.MinP
	if r.IgnoreEOS {
		out["ignore_eos"] = true
	}
	if s.kind == llamaServer {
		out["repeat_penalty"], out["cache_prompt"], out["timings_per_token"] = open(p.RepeatPenalty), !fresh, true
		return
	}
	out["repetition_penalty"] = open(p.RepeatPenalty)
	options["continuous_usage_stats"] = true
	if s.kind == vllm {
		out["return_token_ids"] = true
	}
	if fresh {
		out["cache_salt"] = rand.Text() // what is cached under another one is not taken
	}
}

// ErrNoTokenizer is the error of Encode where prompts must be text, or nobody says how the server cuts it into tokens.
var ErrNoTokenizer = errors.New("the server has no tokenizer to ask, or takes no token ids")

// Encode asks the server's tokenizer for the ids of a text.
func (c *Client) Encode(ctx context.Context, text string) ([]int32, error) {
	if !c.server.ids() {
		return nil, ErrNoTokenizer
	}
	question := object{"model": c.server.model.Name, "prompt": text, "add_special_tokens": true}
	if c.server.kind == llamaServer {
		question = object{"content": text, "add_special": true}
	}
	body, err := json.Marshal(question)
	if err != nil {
		return nil, err
	}
	var answer struct {
		Tokens []int32 `json:"tokens"`
	}
	if err := c.call(ctx, http.MethodPost, "/tokenize", body, &answer); err != nil {
		if refused := (*Status)(nil); errors.As(err, &refused) && (refused.Code == http.StatusNotFound || refused.Code == http.StatusMethodNotAllowed) {
			return nil, ErrNoTokenizer
		}
		return nil, fmt.Errorf("tokenize at %s: %w", c.base, err)
	}
	return answer.Tokens, nil
}
