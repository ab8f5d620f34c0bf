package remote

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"

	"github.com/llmtop/llmtop/runtime/engine"
	scrape "github.com/llmtop/llmtop/runtime/source/scrape/engine"
)

// ids reports whether the server accepts token ids as a prompt.
func (s *server) ids() bool {
	return s.api == OpenAI && s.isExtended()
}

// Extended reports whether requests can make the server continue after the end-of-text token, and bypass its prompt cache:
// the same servers can.
func (c *Client) Extended() bool { return c.server.isExtended() }

// body returns the request in the server's format. fresh asks the server to bypass its prompt cache, if it can.
func (s *server) body(r *engine.Request, fresh bool) ([]byte, error) {
	out := map[string]any{"model": s.model.Name, "stream": true}
	if r.Group != "" && s.kind == scrape.VLLM {
		out["model"] = r.Group // vLLM names adapters like models
	}
	switch s.api {
	case OpenAIChat, OllamaChat:
		out["messages"] = []map[string]any{{"role": "user", "content": r.Text}}
	default:
		out["prompt"] = r.Text
		if len(r.IDs) > 0 {
			out["prompt"] = r.IDs
		}
	}
	if s.api.dialect().Lines {
		out["options"] = s.options(r)
	} else {
		s.openAI(out, r, fresh)
	}
	return json.Marshal(out)
}

// options returns the sampling options in Ollama's format.
func (s *server) options(r *engine.Request) map[string]any {
	p := &r.Params
	out := map[string]any{
		"temperature": p.Temperature, "top_k": p.TopK, "top_p": open(p.TopP), "min_p": p.MinP, "repeat_penalty": open(p.RepeatPenalty),
		"seed": p.Seed & 0x7fffffff, "num_predict": -1, // until the model ends
	}
	if r.MaxTokens > 0 {
		out["num_predict"] = r.MaxTokens
	}
	return out
}

// open returns 1 for 0, since both turn a parameter off, but servers expect 1.
func open(v float64) float64 {
	if v == 0 {
		return 1
	}
	return v
}

// openAI adds the fields of OpenAI's interfaces, and extensions only if the server supports them: some servers refuse
// requests with unknown fields.
func (s *server) openAI(out map[string]any, r *engine.Request, fresh bool) {
	p := &r.Params
	options := map[string]any{"include_usage": true}
	out["stream_options"], out["temperature"], out["top_p"], out["seed"] = options, p.Temperature, open(p.TopP), p.Seed&0x7fffffff
	if r.MaxTokens > 0 {
		out["max_tokens"] = r.MaxTokens
	}
	if !s.isExtended() {
		return
	}
	if p.TopK > 0 {
		out["top_k"] = p.TopK
	}
	out["min_p"] = p.MinP
	if r.IgnoreEOS {
		out["ignore_eos"] = true
	}
	if s.kind == scrape.Llama {
		out["repeat_penalty"], out["cache_prompt"], out["timings_per_token"] = open(p.RepeatPenalty), !fresh, true
		return
	}
	out["repetition_penalty"] = open(p.RepeatPenalty)
	options["continuous_usage_stats"] = true
	if s.kind == scrape.VLLM {
		out["return_token_ids"] = true
	}
	if fresh {
		out["cache_salt"] = rand.Text() // entries cached under another salt are not used
	}
}

// Encode returns the token ids of a text, from the server's tokenizer. Errors: engine.ErrNoTokenizer, those of the server.
func (c *Client) Encode(ctx context.Context, text string) ([]int32, error) {
	if !c.server.ids() {
		return nil, engine.ErrNoTokenizer
	}
	question := map[string]any{"model": c.server.model.Name, "prompt": text, "add_special_tokens": true}
	if c.server.kind == scrape.Llama {
		question = map[string]any{"content": text, "add_special": true}
	}
	body, err := json.Marshal(question)
	if err != nil {
		return nil, err
	}
	var answer struct {
		Tokens []int64 `json:"tokens"`
	}
	if err := c.call(ctx, http.MethodPost, "/tokenize", body, &answer); err != nil {
		if refused := (*Status)(nil); errors.As(err, &refused) && (refused.Code == http.StatusNotFound || refused.Code == http.StatusMethodNotAllowed) {
			return nil, engine.ErrNoTokenizer
		}
		return nil, fmt.Errorf("tokenize at %s: %w", c.base, err)
	}
	ids, ok := tokenIDs(answer.Tokens)
	if !ok {
		return nil, fmt.Errorf("%w: it reports token ids above %d", engine.ErrNoTokenizer, math.MaxInt32)
	}
	return ids, nil
}

// tokenIDs converts token ids of a server; false if one is out of range.
func tokenIDs(list []int64) ([]int32, bool) {
	ids := make([]int32, len(list))
	for i, id := range list {
		if id < 0 || id > math.MaxInt32 {
			return nil, false
		}
		ids[i] = int32(id)
	}
	return ids, true
}
