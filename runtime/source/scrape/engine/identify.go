package engine

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/source/scrape/fetch"
	"github.com/llmtop/llmtop/runtime/source/scrape/gather"
)

// Info holds what was found while identifying an engine.
type Info struct {
	Kind        Kind
	Version     string
	Models      []Model         // served or available models
	NeedsKey    bool            // the server requires a key, or another one, for at least one endpoint
	MetricsPath string          // Prometheus metrics; "": none, or not found yet
	ModelsPath  string          // the engine's own list of models, if it is polled instead of /v1/models: LM Studio
	Slots       bool            // slots can be read: llama.cpp
	SlotCount   int             // 0: unknown: llama.cpp
	Sleeps      bool            // an idle model may fall asleep; reading slots wakes it, or keeps it awake: llama.cpp
	MetricsWake bool            // so does reading metrics
	Router      bool            // it runs each model in a process of its own: llama.cpp
	Server      string          // the Server header
	Others      string          // what its metrics are of, if of no known engine; "": it has none
	bare        bool            // only its metrics show the kind: the engine's other endpoints may not be at this address
	rejected    bool            // it did not say what it is, because it was loading: llama.cpp
	startup     json.RawMessage // durations of its start: SGLang
}

// Model is a model of a server.
type Model struct {
	event.Model
	Loaded bool // in memory; always true for servers that do not load on demand
	Asleep bool // it keeps its counters, and is loaded again with the next request: llama.cpp as a router
}

// ErrNoEngine means that the server at the address is not a supported inference engine.
var ErrNoEngine = errors.New("no supported inference engine found at this address")

// identifyTimeout limits all requests together, so that a server that answers only some of them does not cost one
// timeout each.
const identifyTimeout = 3 * fetch.DefaultTimeout

// Identify determines the engine at an address. It sends only GET requests that do not make an engine generate, and does
// not read data that a server returns only once. It needs one request for the list of models and one for details if the
// list names the engine, and a few more otherwise. Errors: no response; ErrNoEngine; a *fetch.StatusError for which NeedsKey holds
// if not even the kind can be determined without a key. Info is filled as far as known, also with an error.
func Identify(ctx context.Context, c *fetch.Client) (Info, error) {
	ctx, enough := context.WithTimeout(ctx, identifyTimeout)
	defer enough()
	p := &identification{client: c}
	err := readModels(ctx, p)
	if refused, ok := errors.AsType[*fetch.StatusError](err); err != nil && !errors.Is(err, errFormat) && (!ok || refused.Code >= 500 && p.info.Kind == Unknown) {
		p.info.Kind = Unknown
		return p.info, err // unreachable, or failing
	}
	if p.info.Kind == Unknown || p.info.Kind == OpenAI {
		p.guess(ctx)
	}
	p.details(ctx)
	switch {
	case p.info.Kind != Unknown:
		return p.info, nil
	case p.info.NeedsKey:
		return p.info, &fetch.StatusError{Code: http.StatusUnauthorized}
	case p.info.Others != "":
		return p.info, fmt.Errorf("%w: %s", ErrNoEngine, p.info.Others)
	}
	return p.info, ErrNoEngine
}

// listModels reads the current models of a server of known kind, with as few requests as possible. same is false if
// another kind of server responds.
func listModels(ctx context.Context, c *fetch.Client, info *Info) (models []Model, same bool, err error) {
	p := &identification{client: c}
	p.info.ModelsPath = info.ModelsPath
	list := Of(info.Kind).list
	if list == nil {
		list = readModels
	}
	switch err := list(ctx, p); {
	case errors.Is(err, errFormat):
		return nil, false, nil
	case err != nil:
		return nil, false, err
	}
	return p.info.Models, p.info.Kind == info.Kind, nil
}

// identification is the state of one call of Identify.
type identification struct {
	client *fetch.Client
	get    func(ctx context.Context, path string, into any) error // replaces client; nil: client
	info   Info
	hint   Kind // what the list of models, or another answer, hints at
}

// errFormat means that a response does not have the requested format.
var errFormat = errors.New("unexpected response format")

// getJSON requests JSON and records whether a key is required. Errors: *fetch.StatusError; errFormat; no complete
// response.
func (p *identification) getJSON(ctx context.Context, path string, into any) error {
	if p.get != nil {
		return p.get(ctx, path, into)
	}
	a, err := p.client.Get(ctx, path)
	if err != nil {
		return err
	}
	defer a.Close()
	p.readHeaders(a)
	err = a.JSON(into)
	if form := fetch.FormatError(""); errors.As(err, &form) || errors.Is(err, fetch.ErrTooLarge) {
		return errFormat
	}
	return err
}

// readHeaders reads the headers of a response.
func (p *identification) readHeaders(a *fetch.Response) {
	if a.Status == http.StatusUnauthorized || a.Status == http.StatusForbidden {
		p.info.NeedsKey = true
	}
	if server := a.Header.Get("Server"); p.info.Server == "" && len(server) < 64 {
		p.info.Server = server
	}
	if e := first(func(e *Engine) bool { return e.server != "" && e.server == p.info.Server }); e != nil && p.info.Kind == Unknown {
		p.info.Kind = e.Kind
	}
}

// maxModels limits the models kept of a list.
const maxModels = 256

// ModelList is the list of models at /v1/models: OpenAI's format with the additions of each engine.
type ModelList struct {
	Object string `json:"object"`
	Data   []struct {
		ID     string `json:"id"`
		Owner  string `json:"owned_by"`
		Max    int    `json:"max_model_len"` // vLLM, SGLang
		Status *struct {
			Value string `json:"value"`
		} `json:"status"` // llama.cpp as a router
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

// Kind returns the engine that the models' owner names; OpenAI if none does.
func (l *ModelList) Kind() Kind {
	kind := OpenAI
	for _, m := range l.Data {
		if e := first(func(e *Engine) bool { return slices.Contains(e.owners, m.Owner) }); e != nil {
			kind = e.Kind
		}
	}
	return kind
}

// Models returns at most maxModels of the models.
func (l *ModelList) Models() (out []Model) {
	for _, m := range l.Data[:min(len(l.Data), maxModels)] {
		out = append(out, Model{
			Loaded: m.Status == nil || m.Status.Value == "loaded", Asleep: m.Status != nil && m.Status.Value == "sleeping",
			Model: event.Model{
				Name: m.ID, Context: max(m.Meta.Context, m.Max, 0), TrainContext: max(m.Meta.Train, 0), Parameters: max(m.Meta.Parameters, 0),
				Bytes: max(m.Meta.Size, 0), Width: max(m.Meta.Width, 0), Vocab: max(m.Meta.Vocab, 0), Quantisation: m.Meta.Type,
			},
		})
	}
	return out
}

// readModels reads the list of models.
func readModels(ctx context.Context, p *identification) error {
	var list ModelList
	if err := p.getJSON(ctx, "/v1/models", &list); err != nil {
		return err
	}
	if list.Object != "list" && len(list.Data) == 0 {
		return errFormat
	}
	p.info.Kind, p.info.Models = list.Kind(), list.Models()
	for _, m := range list.Data {
		if e := first(func(e *Engine) bool { return slices.Contains(e.hints, m.Owner) }); e != nil {
			p.hint = e.Kind
		}
		p.info.Router = p.info.Router || m.Status != nil && p.info.Kind == Llama
	}
	if e := first(func(e *Engine) bool { return e.listed != nil && e.listed(p.info.Server, &list) }); e != nil && p.info.Kind == OpenAI {
		p.info.Kind = e.Kind
	}
	return nil
}

// guess tries endpoints that only one kind of engine has. Metrics come last, and /metrics after /prometheus/metrics:
// TensorRT-LLM returns each iteration at /metrics only once, to the first reader.
func (p *identification) guess(ctx context.Context) {
	if e := Of(p.hint); e.answers != nil && e.answers(ctx, p) {
		p.info.Kind = e.Kind
		return
	}
	for _, e := range Engines {
		if ctx.Err() != nil {
			return
		}
		if e.answers != nil && e.answers(ctx, p) {
			p.info.Kind = e.Kind
			return
		}
	}
	for _, path := range slices.Concat(metricsPaths, p.client.Above("/metrics")) {
		if ctx.Err() != nil || p.sniff(ctx, path) {
			return
		}
	}
}

// metricsPaths are where servers have metrics: TensorRT-LLM, most, NIM, and SGLang's router those of its workers.
var metricsPaths = []string{"/prometheus/metrics", "/metrics", "/v1/metrics", "/engine_metrics"}

// Describe reads what only an engine of info's kind reports of itself and its models. get requests JSON.
func Describe(ctx context.Context, get func(ctx context.Context, path string, into any) error, info *Info) {
	p := identification{get: get, info: *info}
	p.details(ctx)
	*info = p.info
}

// details reads what only this kind of engine reports.
func (p *identification) details(ctx context.Context) {
	e := Of(p.info.Kind)
	if e.versionPath != "" && p.info.Version == "" {
		p.info.Version = readVersion(ctx, p, e.versionPath)
	}
	if e.details != nil {
		e.details(ctx, p)
	}
	p.info.MetricsPath = cmp.Or(p.info.MetricsPath, e.metricsPath)
}

// readVersion returns the version in the response of a path; "" if there is none.
func readVersion(ctx context.Context, p *identification, path string) string {
	var response struct {
		Version string `json:"version"`
		Error   string `json:"error"`
	}
	if p.getJSON(ctx, path, &response) != nil {
		return ""
	}
	if strings.HasPrefix(response.Error, studioErrorPrefix) {
		p.hint = LMStudio
	}
	return response.Version
}

// maxSniffBytes limits how much of the metrics is read: an engine's metrics come after those of its language's runtime.
const maxSniffBytes = 256 << 10

// readMetrics returns the start of the metrics at a path; nil if there are none.
func (p *identification) readMetrics(ctx context.Context, path string) []byte {
	a, err := p.client.Get(ctx, path)
	if err != nil {
		return nil
	}
	defer a.Close()
	p.readHeaders(a)
	if a.Status != http.StatusOK || a.Is("text/html") {
		return nil
	}
	r, err := a.Text()
	if err != nil {
		return nil
	}
	text, _ := io.ReadAll(io.LimitReader(r, maxSniffBytes)) // on an error, use what was read
	return text
}

// sniff searches a path for metrics of a known engine. It reports whether it found any.
func (p *identification) sniff(ctx context.Context, path string) bool {
	text := p.readMetrics(ctx, path)
	e, _ := withMetrics(func(t *gather.Table) *gather.Table { return t.In(text) })
	if e != nil {
		p.info.Kind, p.info.MetricsPath, p.info.bare = e.Kind, path, true
	} else if families := gather.Families(text); families != "" && p.info.Others == "" {
		p.info.Others = "metrics of no known engine at " + shownPath(path) + ": " + families
	}
	return e != nil
}
