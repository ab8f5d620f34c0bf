//go:build unix

package program_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"strconv"
	"testing"

	"github.com/llmtop/llmtop/runtime/source/peer"
)

// Limits of TestGreedyLikeLlamaServer.
const (
	greedyTokens = 160
	nearTie      = 0.3 // logprob; two builds of llama.cpp itself round as differently
)

// TestGreedyLikeLlamaServer checks that --temp 0 generates the text of llama-server with its default sampler. They round
// differently, so each may take either of two tokens that are almost equally likely; the server then goes on with ours.
func TestGreedyLikeLlamaServer(t *testing.T) {
	t.Parallel()
	server := peer.LlamaServer(t, "", "--parallel", "1", "--ctx-size", "1024", "--threads", "1")
	prompts := []string{"Call me Ishmael.", "Once upon a time", "The sea was", "func main() {\n", "And God said"}
	engines := []string{"native"}
	if os.Getenv("LLMTOP_LLAMA_DIR") != "" {
		engines = append(engines, "llamacpp")
	}
	for _, name := range engines {
		args := []string{builtIn, "-n", strconv.Itoa(greedyTokens), "--engine", name, "--threads", "1"}
		for _, p := range prompts {
			args = append(args, "-p", p)
		}
		for i, r := range reported(t, args...).Requests {
			var tokenized struct{ Tokens []int32 }
			ask(t, server.URL+"/tokenize", map[string]any{"content": prompts[i], "add_special": true}, &tokenized)
			all := tokenized.Tokens
			if len(all) != r.Prompt || len(r.Tokens) != greedyTokens {
				t.Fatalf("%s, %q: %d tokens of %d, %d generated", name, prompts[i], r.Prompt, len(all), len(r.Tokens))
			}
			for _, token := range r.Tokens {
				all = append(all, token.ID)
			}
			ties := 0
			for at := r.Prompt; at < len(all); ties++ {
				at = follow(t, server.URL, all, at)
			}
			t.Logf("%s, %q: %d tokens, %d near ties", name, prompts[i], greedyTokens, ties-1)
		}
	}
}

// follow lets a server continue the first at tokens and returns the index after the first token that differs. It must
// be nearly as likely as the server's.
func follow(t *testing.T, server string, tokens []int32, at int) int {
	t.Helper()
	type candidate struct {
		ID      int32
		LogProb float64
	}
	var answer struct {
		Steps []struct {
			candidate
			Top []candidate `json:"top_logprobs"`
		} `json:"completion_probabilities"`
	}
	ask(t, server+"/completion", map[string]any{
		"prompt": tokens[:at], "n_predict": len(tokens) - at, "temperature": 0, "n_probs": 10, "cache_prompt": false, "ignore_eos": true,
	}, &answer)
	for _, step := range answer.Steps {
		if step.ID != tokens[at] {
			behind := 0.
			for _, c := range step.Top {
				if c.ID == tokens[at] {
					behind = step.Top[0].LogProb - c.LogProb
				}
			}
			if behind == 0 || behind > nearTie {
				t.Fatalf("token %d is %d, of the server %+v", at, tokens[at], step)
			}
			return at + 1
		}
		at++
	}
	if at < len(tokens) {
		t.Fatalf("the server has stopped before token %d of %d", at, len(tokens))
	}
	return at
}

// ask posts JSON to a server and reads its answer.
func ask(t *testing.T, url string, question, answer any) {
	t.Helper()
	body, err := json.Marshal(question)
	if err != nil {
		t.Fatal(err)
	}
	got, err := http.Post(url, "application/json", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer got.Body.Close()
	if err := json.NewDecoder(got.Body).Decode(answer); err != nil || got.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s, %v", url, got.Status, err)
	}
}
