package cmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strconv"
	"strings"

	"github.com/llmtop/llmtop/runtime"
	"github.com/llmtop/llmtop/runtime/api"
	"github.com/llmtop/llmtop/runtime/bench"
	"github.com/llmtop/llmtop/runtime/native/demo"
)

// prompts are those of one kind of point: texts, or a length in tokens.
type prompts struct {
	name   string
	length int // 0: texts
	texts  []bench.Prompt
}

// sources are the prompts that the user has named: texts make one kind, each length makes one.
func (o *benchOptions) sources(stdin io.Reader) ([]prompts, error) {
	var out []prompts
	texts, err := o.prompts.read(stdin)
	if err != nil {
		return nil, err
	}
	if len(texts) > 0 {
		given := prompts{name: "prompts"}
		for i, text := range texts {
			given.texts = append(given.texts, bench.Prompt{Prompt: text, Label: "prompt " + strconv.Itoa(i+1)})
		}
		out = append(out, given)
	}
	if o.promptsFile != "" {
		lines, err := readPromptLines(o.promptsFile)
		if err != nil {
			return nil, err
		}
		for i := range lines {
			if lines[i].Label == "" {
				lines[i].Label = "line " + strconv.Itoa(i+1)
			}
		}
		out = append(out, prompts{name: o.promptsFile, texts: lines})
	}
	if o.suite {
		suite := prompts{name: "suite"}
		for _, p := range demo.Prompts() {
			suite.texts = append(suite.texts, bench.Prompt{Prompt: p.Text, Label: p.Kind})
		}
		out = append(out, suite)
	}
	if len(out) == 0 {
		for _, n := range o.lengths {
			out = append(out, prompts{name: fmt.Sprintf("%d tokens", n), length: n})
		}
	}
	return out, nil
}

// defaultRequests is how many requests of a length a run makes.
const defaultRequests = 8

// workload makes the points: each kind of prompts at each concurrency and each rate. Lengths in tokens need the model's tokenizer; without one
// they are near what was asked for, and the points say so.
func (o *benchOptions) workload(ctx context.Context, s scheduler, sources []prompts) (bench.Workload, error) {
	out := bench.Workload{Repeats: o.repeats, Warmup: o.warmup, Seed: o.seed}
	var body *synthetic
	var err error
	for _, source := range sources {
		if source.length > 0 && body == nil {
			if body, err = newSynthetic(ctx, s); err != nil {
				return out, err
			}
		}
		if source.length > 0 && body.words != nil {
			source.name = "about " + source.name
		}
		requests, err := o.requestsOf(source, body)
		if err != nil {
			return out, err
		}
		var vary func(run, i int, r *runtime.Request)
		if source.length > 0 && o.remote.is() && !o.remote.cached {
			vary = func(run, i int, r *runtime.Request) { body.prompt(r, source.length, run*len(requests)+i) }
		}
		for _, n := range o.concurrency {
			out.Points = append(out.Points, bench.Point{
				Name: fmt.Sprintf("%s, %d at a time", source.name, n), Concurrency: n, Requests: requests, Vary: vary,
			})
		}
		for _, rate := range o.rates {
			out.Points = append(out.Points, bench.Point{
				Name: fmt.Sprintf("%s, %v/s", source.name, rate), Rate: rate, Burstiness: float64(o.burstiness), Requests: requests, Vary: vary,
			})
		}
	}
	return out, nil
}

// requestsOf are the requests of one run.
func (o *benchOptions) requestsOf(source prompts, body *synthetic) ([]runtime.Request, error) {
	n := o.requests
	if n == 0 {
		n = max(len(source.texts), min(defaultRequests, defaultRequests*source.length))
	}
	weights, err := o.weights()
	if err != nil {
		return nil, err
	}
	rng := rand.New(rand.NewPCG(o.seed, 0x67726f757073))
	out := make([]runtime.Request, n)
	for i := range out {
		r := o.request("", "")
		r.SendText, r.IgnoreEOS = false, !o.honourEOS
		r.Params.Seed = o.seed + uint64(i) + 1
		if source.length > 0 {
			r.Label = source.name
			body.prompt(&r, source.length, i)
		} else {
			p := source.texts[i%len(source.texts)]
			r.Text, r.Label = p.Prompt, p.Label
			if p.Group != "" {
				r.Group = p.Group
			}
			if p.MaxTokens != nil {
				r.MaxTokens = *p.MaxTokens
			}
		}
		if g := draw(weights, rng); g != "" {
			r.Group = g
		}
		out[i] = r
	}
	return out, nil
}

// draw picks a group by its share, "" where there are none.
func draw(weights []weight, rng *rand.Rand) string {
	total := 0.0
	for _, w := range weights {
		total += w.share
	}
	at := rng.Float64() * total
	for _, w := range weights {
		if at -= w.share; at < 0 {
			return w.group
		}
	}
	return ""
}

// synthetic makes prompts of certain lengths out of real text: of token ids, or of words where there is no tokenizer.
type synthetic struct {
	front, body []int32
	words       []string
}

func newSynthetic(ctx context.Context, s scheduler) (*synthetic, error) {
	var text strings.Builder
	for _, p := range demo.Prompts() {
		text.WriteString(p.Text + "\n")
	}
	front, err := s.Encode(ctx, "")
	if errors.Is(err, api.ErrNoTokenizer) {
		return &synthetic{words: strings.Fields(text.String())}, nil
	}
	if err != nil {
		return nil, err
	}
	all, err := s.Encode(ctx, text.String())
	if err != nil {
		return nil, err
	}
	if len(all) <= len(front) {
		return nil, fmt.Errorf("tokenize text for prompts: it has no tokens")
	}
	return &synthetic{front: front, body: all[len(front):]}, nil
}

// stride is how far apart the texts of two prompts begin, so that no prompt begins like the one before it.
const stride = 37

// wordsPerToken is about what English text has in the vocabularies of today.
const wordsPerToken = 0.75

// prompt makes the i-th prompt of n tokens that of a request.
func (s *synthetic) prompt(r *runtime.Request, n, i int) {
	if s.words != nil {
		words := make([]string, max(int(float64(n)*wordsPerToken), 1))
		for w := range words {
			words[w] = s.words[(i*stride+w)%len(s.words)]
		}
		r.Text = strings.Join(words, " ")
		return
	}
	r.IDs = append(make([]int32, 0, n), s.front[:min(len(s.front), n)]...)
	for at := i * stride; len(r.IDs) < n; at++ {
		r.IDs = append(r.IDs, s.body[at%len(s.body)])
	}
}
