package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/llmtop/llmtop/cmd/local"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/report"
	"github.com/llmtop/llmtop/runtime/engine"
	"github.com/llmtop/llmtop/runtime/engine/native"
	"github.com/llmtop/llmtop/runtime/engine/workload"
)

// prompts are the prompts of a group of points: texts, or a length in tokens.
type prompts struct {
	name   string
	length int // 0: texts
	texts  []workload.Prompt
}

// sources returns the groups of prompts that the flags name: texts form one group, each length forms one.
func (o *Benchmark) sources(stdin io.Reader) ([]prompts, error) {
	var out []prompts
	texts, err := o.Prompts.Read(stdin)
	if err != nil {
		return nil, err
	}
	if len(texts) > 0 {
		given := prompts{name: "prompts"}
		for i, text := range texts {
			given.texts = append(given.texts, workload.Prompt{Prompt: text, Label: "prompt " + strconv.Itoa(i+1)})
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
		out = append(out, prompts{name: filepath.Base(o.promptsFile), texts: lines})
	}
	if o.suite {
		suite := prompts{name: "suite"}
		for _, p := range native.DemoPrompts() {
			suite.texts = append(suite.texts, workload.Prompt{Prompt: p.Text, Label: p.Kind})
		}
		out = append(out, suite)
	}
	if len(out) == 0 {
		for _, n := range o.lengths {
			out = append(out, prompts{name: metric.Plural(n, "token"), length: n})
		}
	}
	return out, nil
}

// defaultRequests is the number of requests per run for prompts of a length.
const defaultRequests = 8

// workload returns the points: each group of prompts at each concurrency and each rate. Exact lengths need the
// tokenizer of the model; without one they are approximate, and the names of the points say so.
func (o *Benchmark) workload(ctx context.Context, s local.Scheduler, sources []prompts) (workload.Workload, error) {
	out := workload.Workload{Repeats: o.repeats, Warmup: o.warmup, Seed: o.Seed}
	var body *synthetic
	var err error
	sent, rng := 0, rand.New(rand.NewPCG(o.target.salt, 0x73616c74))
	for _, source := range sources {
		if source.length > 0 && body == nil {
			if body, err = newSynthetic(ctx, s); err != nil {
				return out, err
			}
		}
		if source.length > 0 && body.words != nil {
			source.name = report.ApproximateLength + source.name
		}
		requests, err := o.requestsOf(source, body)
		if err != nil {
			return out, err
		}
		var vary func(r *engine.Request)
		if source.length > 0 && o.target.isSet() && !o.target.cached {
			vary = func(r *engine.Request) {
				body.prompt(r, source.length, sent)
				body.salt(r, rng)
				sent++
			}
		}
		for _, n := range o.concurrency {
			out.Points = append(out.Points, workload.Point{
				Name: fmt.Sprintf("%s, %d at a time", source.name, n), Concurrency: n, Requests: requests, Vary: vary,
			})
		}
		for _, rate := range o.rates {
			out.Points = append(out.Points, workload.Point{
				Name: fmt.Sprintf("%s, %.6g/s", source.name, rate), Rate: rate, Burstiness: o.burstiness, Requests: requests, Vary: vary,
			})
		}
	}
	return out, nil
}

// requestsOf returns the requests of one run.
func (o *Benchmark) requestsOf(source prompts, body *synthetic) ([]engine.Request, error) {
	n := o.requests
	if n == 0 {
		n = max(len(source.texts), min(defaultRequests, defaultRequests*source.length))
	}
	weights, err := o.weights()
	if err != nil {
		return nil, err
	}
	rng := rand.New(rand.NewPCG(o.Seed, 0x67726f757073))
	out := make([]engine.Request, n)
	for i := range out {
		r := o.Request("", "")
		r.SendText, r.IgnoreEOS = false, !o.honourEOS
		r.Params.Seed = o.Seed + uint64(i) + 1
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

// draw picks a group by its share, "" if there are no groups.
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

// synthetic makes prompts of given lengths from real text: from token IDs, or from words without a tokenizer.
type synthetic struct {
	front, body []int32
	words       []string
}

func newSynthetic(ctx context.Context, s local.Scheduler) (*synthetic, error) {
	var text strings.Builder
	for _, p := range native.DemoPrompts() {
		text.WriteString(p.Text + "\n")
	}
	front, err := s.Encode(ctx, "")
	var all []int32
	if err == nil {
		all, err = s.Encode(ctx, text.String())
	}
	if errors.Is(err, engine.ErrNoTokenizer) {
		return &synthetic{words: strings.Fields(text.String())}, nil
	}
	if err != nil {
		return nil, err
	}
	if len(all) <= len(front) {
		return nil, fmt.Errorf("tokenize text for prompts: got no tokens")
	}
	return &synthetic{front: front, body: all[len(front):]}, nil
}

// stride is the distance between the starts of two prompts in the text, so that no two consecutive prompts share a
// prefix.
const stride = 37

// wordsPerToken is the approximate ratio for English text with current vocabularies.
const wordsPerToken = 0.75

// prompt sets the prompt of a request to the i-th prompt of n tokens.
func (s *synthetic) prompt(r *engine.Request, n, i int) {
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

// saltLength is how many tokens or words at the start of a prompt are random.
const saltLength = 8

// salt replaces the start of a prompt by random tokens or words of the text, so that servers find none of it in a cache
// that another benchmark has filled.
func (s *synthetic) salt(r *engine.Request, rng *rand.Rand) {
	if s.words != nil {
		words := strings.Split(r.Text, " ")
		for w := range min(saltLength, len(words)) {
			words[w] = s.words[rng.IntN(len(s.words))]
		}
		r.Text = strings.Join(words, " ")
		return
	}
	start := r.IDs[min(len(s.front), len(r.IDs)):]
	for at := range min(saltLength, len(start)) {
		start[at] = s.body[rng.IntN(len(s.body))]
	}
}
