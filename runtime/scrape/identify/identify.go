// Package identify finds out which inference engine answers at an address, by the shape of what it answers. It only reads, asks nothing that
// makes an engine generate, and leaves alone what is gone once it was read.
package identify

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/scrape/fetch"
)

// Kind is the program that answers, by its name.
type Kind string

// The programs. OpenAI is anything else that lists models as OpenAI does; Exporter is metrics of a known engine without the engine itself, for
// example on a port of their own.
const (
	Unknown   Kind = ""
	Llama     Kind = "llama.cpp"
	Ollama    Kind = "Ollama"
	VLLM      Kind = "vLLM"
	SGLang    Kind = "SGLang"
	TGI       Kind = "TGI"
	TensorRT  Kind = "TensorRT-LLM"
	LMDeploy  Kind = "LMDeploy"
	LMStudio  Kind = "LM Studio"
	MLX       Kind = "mlx-lm"
	Triton    Kind = "Triton"
	Dynamo    Kind = "Dynamo"
	LlamaSwap Kind = "llama-swap"
	OpenAI    Kind = "OpenAI-compatible"
)

// Info is what an engine has told while it was identified.
type Info struct {
	Version  string
	Models   []Model // those that it serves, or could
	NeedsKey bool    // it wants a key, or another one, for at least one of the questions
	Metrics  string  // path of its metrics for Prometheus; "" if there are none, or none were found yet
	List     string  // path of its own list of models, where it has one that is asked for again: LM Studio
	Slots    bool    // it lets its slots be seen: llama.cpp
	Router   bool    // it runs models in processes of their own: llama.cpp
	Server   string  // what it calls itself in its headers
}

// Model is one of the models of a server.
type Model struct {
	event.Model
	Loaded bool // it is in memory; of servers that load on demand, true for others
}

// ErrNothing is the error of an address where something answers that is no inference engine as far as can be seen.
var ErrNothing = errors.New("no inference engine was recognised there")

// within is how long all questions together may take: a server that answers only some of them is not waited for again and again.
const within = 3 * fetch.DefaultWithin

// Identify finds out what answers: in one question for engines that name themselves in their list of models and one for their details, in a
// few more for others. Errors: nothing answers; ErrNothing; a *fetch.Status that NeedsKey where without a key not even the kind can be told. Info
// holds what was seen also with an error.
func Identify(ctx context.Context, c *fetch.Client) (Kind, Info, error) {
	ctx, enough := context.WithTimeout(ctx, within)
	defer enough()
	p := probe{client: c}
	err := p.list(ctx)
	if refused := (*fetch.Status)(nil); err != nil && !errors.Is(err, errShape) && (!errors.As(err, &refused) || refused.Code >= 500 && p.kind == Unknown) {
		return Unknown, p.info, err // nobody is there, or not well
	}
	if p.kind == Unknown || p.kind == OpenAI {
		p.guess(ctx)
	}
	p.details(ctx)
	switch {
	case p.kind != Unknown:
		return p.kind, p.info, nil
	case p.info.NeedsKey:
		return Unknown, p.info, &fetch.Status{Code: http.StatusUnauthorized}
	}
	return Unknown, p.info, ErrNothing
}

// Again asks a server whose kind is known which models it has by now, by as few questions as its kind allows. same is false where another kind answers.
func Again(ctx context.Context, c *fetch.Client, kind Kind, info *Info) (models []Model, same bool, err error) {
	p := probe{client: c}
	if info.List != "" {
		if p.info.Models, err = studioList(ctx, c, info.List); errors.Is(err, errShape) {
			return nil, false, nil
		}
		return p.info.Models, true, err
	}
	if err := p.list(ctx); errors.Is(err, errShape) {
		return nil, false, nil
	} else if err != nil {
		return nil, false, err
	}
	if p.kind == LlamaSwap {
		p.running(ctx)
	}
	return p.info.Models, p.kind == kind, nil
}

// probe is one identification.
type probe struct {
	client *fetch.Client
	kind   Kind
	info   Info
	studio bool // its models are owned as LM Studio's are
}

// errShape is the error of an answer that has not the form that was asked for.
var errShape = errors.New("another form of answer")

// ask asks for JSON, and notes whether a key is missing. Errors: *fetch.Status; errShape; that no answer came, or not all of it.
func (p *probe) ask(ctx context.Context, path string, into any) error {
	a, err := p.client.Get(ctx, path)
	if err != nil {
		return err
	}
	defer a.Close()
	p.note(a)
	err = a.JSON(into)
	if form := fetch.Form(""); errors.As(err, &form) || errors.Is(err, fetch.ErrTooLarge) {
		return errShape
	}
	return err
}

// note takes what the head of an answer tells.
func (p *probe) note(a *fetch.Answer) {
	if a.Status == http.StatusUnauthorized || a.Status == http.StatusForbidden {
		p.info.NeedsKey = true
	}
	if server := a.Header.Get("Server"); p.info.Server == "" && len(server) < 64 {
		p.info.Server = server
	}
	if p.kind == Unknown && p.info.Server == "llama.cpp" {
		p.kind = Llama
	}
}

// owners are the kinds by what their lists of models have as owner.
var owners = map[string]Kind{
	"llamacpp": Llama, "library": Ollama, "vllm": VLLM, "sglang": SGLang, "lmdeploy": LMDeploy, "tensorrt_llm": TensorRT,
	"llama-swap": LlamaSwap, "nvidia": Dynamo,
}

// maxModels bounds the models that are kept of a list.
const maxModels = 256

// list reads the list of models, in the form of OpenAI with what each engine adds.
func (p *probe) list(ctx context.Context) error {
	var list struct {
		Object string `json:"object"`
		Data   []struct {
			ID     string `json:"id"`
			Object string `json:"object"`
			Owner  string `json:"owned_by"`
			Max    int    `json:"max_model_len"` // vLLM, SGLang
			Status *struct {
				Value string `json:"value"`
			} `json:"status"` // llama.cpp that routes
			Meta struct {
				Parameters int64  `json:"n_params"`
				Size       int64  `json:"size"`
				Type       string `json:"ftype"`
				Context    int    `json:"n_ctx"`
				Train      int    `json:"n_ctx_train"`
				Width      int    `json:"n_embd"`
				Vocab      int    `json:"n_vocab"`
			} `json:"meta"` // llama.cpp
		} `json:"data"`
	}
	if err := p.ask(ctx, "/v1/models", &list); err != nil {
		return err
	}
	if list.Object != "list" && len(list.Data) == 0 {
		return errShape
	}
	p.kind = OpenAI
	p.info.Models = nil
	for _, m := range list.Data[:min(len(list.Data), maxModels)] {
		if k, ok := owners[m.Owner]; ok {
			p.kind = k
		}
		p.studio = p.studio || m.Owner == "organization_owner"
		p.info.Router = p.info.Router || m.Status != nil && p.kind == Llama
		p.info.Models = append(p.info.Models, Model{
			Loaded: m.Status == nil || m.Status.Value == "loaded",
			Model: event.Model{
				Name: m.ID, Context: max(m.Meta.Context, m.Max, 0), TrainContext: max(m.Meta.Train, 0), Parameters: max(m.Meta.Parameters, 0),
				Bytes: max(m.Meta.Size, 0), Width: max(m.Meta.Width, 0), Vocab: max(m.Meta.Vocab, 0), Quantisation: m.Meta.Type,
			},
		})
	}
	if p.kind == OpenAI && strings.HasPrefix(p.info.Server, "BaseHTTP/") && len(list.Data) > 0 && list.Data[0].Owner == "" {
		p.kind = MLX // Python's own server, and nobody owns the models
	}
	return nil
}
