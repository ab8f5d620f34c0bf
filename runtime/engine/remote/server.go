package remote

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
)

// server describes a server.
type server struct {
	kind    kind
	name    string
	version string
	api     API
	model   event.Model
	slots   int // requests processed at once; 0: unknown
	caps    event.Caps
}

// kind is the server program, as far as requests depend on it.
type kind uint8

const (
	other kind = iota
	llamaServer
	ollama
	vllm
	sglang
)

var kindNames = [...]string{other: "OpenAI-compatible", llamaServer: "llama.cpp", ollama: "Ollama", vllm: "vLLM", sglang: "SGLang"}

// owners maps the owner in a list of models to the kind of server.
var owners = map[string]kind{"llamacpp": llamaServer, "library": ollama, "vllm": vllm, "sglang": sglang}

// lookWithin is the time limit of each query about the server.
const lookWithin = 15 * time.Second

// listed is an entry in a server's list of models.
type listed struct {
	ID    string `json:"id"`
	Owner string `json:"owned_by"`
	Max   int    `json:"max_model_len"` // vLLM, SGLang
	Meta  struct {
		Parameters int64 `json:"n_params"`
		Size       int64 `json:"size"`
		Context    int   `json:"n_ctx"`
		Train      int   `json:"n_ctx_train"`
		Width      int   `json:"n_embd"`
		Vocab      int   `json:"n_vocab"`
	} `json:"meta"` // llama.cpp
}

// look identifies the server by its list of models and one query specific to its kind. Only the list is required.
func (c *Client) look(ctx context.Context) error {
	s := &c.server
	var list struct {
		Data []listed `json:"data"`
	}
	err := c.get(ctx, "/v1/models", &list)
	if refused := (*Status)(nil); err != nil && (!errors.As(err, &refused) || refused.Code == http.StatusUnauthorized || refused.Code == http.StatusForbidden) {
		return err
	}
	for _, m := range list.Data {
		s.kind = cmp.Or(s.kind, owners[m.Owner])
	}
	if err != nil || s.kind == ollama || len(list.Data) == 0 {
		var about struct {
			Version string `json:"version"`
		}
		if c.get(ctx, "/api/version", &about) == nil && about.Version != "" {
			s.kind, s.version = ollama, about.Version
		} else if err != nil && c.opt.Model == "" {
			return fmt.Errorf("list its models: %w", err)
		}
	}
	s.name = kindNames[s.kind]
	m, err := choose(list.Data, c.opt.Model)
	if err != nil {
		return err
	}
	s.model = event.Model{
		Name: m.ID, Context: cmp.Or(m.Meta.Context, m.Max), TrainContext: m.Meta.Train, Parameters: m.Meta.Parameters, Bytes: m.Meta.Size,
		Width: m.Meta.Width, Vocab: m.Meta.Vocab,
	}
	c.ask(ctx)
	return s.settle(c.opt.API)
}

// choose returns the requested model. A name that is not listed is used as is, since servers have aliases and adapters.
func choose(list []listed, name string) (listed, error) {
	var names []string
	for _, m := range list {
		if m.ID == name || name == "" && len(list) == 1 {
			return m, nil
		}
		names = append(names, m.ID)
	}
	const shown = 8
	switch {
	case name != "":
		return listed{ID: name}, nil
	case len(list) == 0:
		return listed{}, errors.New("the server lists no models: set --model")
	case len(names) > shown:
		names = append(names[:shown], "…")
	}
	return listed{}, fmt.Errorf("the server has several models: set --model to one of %s", brief(strings.Join(names, ", ")))
}

// ask queries what only servers of this kind report. Fields that they do not report stay unknown.
func (c *Client) ask(ctx context.Context) {
	s := &c.server
	switch s.kind {
	case llamaServer:
		var props struct {
			Build string `json:"build_info"`
			Slots int    `json:"total_slots"`
			Type  string `json:"model_ftype"`
			Slot  struct {
				Context int `json:"n_ctx"`
			} `json:"default_generation_settings"`
		}
		if c.get(ctx, "/props", &props) == nil {
			s.version, s.slots, s.model.Quantisation = props.Build, props.Slots, props.Type
			s.model.Context = cmp.Or(props.Slot.Context, s.model.Context)
		}
	case vllm:
		var about struct {
			Version string `json:"version"`
		}
		if c.get(ctx, "/version", &about) == nil {
			s.version = about.Version
		}
	case sglang:
		var about struct {
			Version string `json:"version"`
		}
		if c.get(ctx, "/server_info", &about) == nil || c.get(ctx, "/get_server_info", &about) == nil {
			s.version = about.Version
		}
	case ollama:
		c.show(ctx)
	}
}

// show queries Ollama about the model.
func (c *Client) show(ctx context.Context) {
	var about struct {
		Details struct {
			Family string `json:"family"`
			Level  string `json:"quantization_level"`
		} `json:"details"`
		Info map[string]any `json:"model_info"`
	}
	question, err := json.Marshal(map[string]string{"model": c.server.model.Name})
	if err != nil || c.call(ctx, http.MethodPost, "/api/show", question, &about) != nil {
		return
	}
	m := &c.server.model
	m.Architecture, m.Quantisation = about.Details.Family, about.Details.Level
	number := func(name string) int64 {
		v, _ := about.Info[name].(float64)
		return int64(v)
	}
	m.Parameters = number("general.parameter_count")
	arch, _ := about.Info["general.architecture"].(string)
	m.Layers, m.Width = int(number(arch+".block_count")), int(number(arch+".embedding_length"))
	m.TrainContext = int(number(arch + ".context_length"))
	m.Experts, m.ExpertsUsed = int(number(arch+".expert_count")), int(number(arch+".expert_used_count"))
}

// settle chooses the API: the requested one, or the one for which this kind of server reports and accepts most.
func (s *server) settle(want API) error {
	s.api = want
	if want == Auto {
		s.api = map[kind]API{llamaServer: OpenAI, vllm: OpenAI, sglang: OpenAI, ollama: Ollama}[s.kind]
	}
	if s.api == Auto {
		s.api = OpenAIChat
	}
	if s.api.dialect().Lines && s.kind != ollama {
		return fmt.Errorf("API %s needs Ollama, and this server is %s", s.api, s.name)
	}
	s.caps = event.CapTokens | event.CapText | event.CapPrompt | event.CapCancel
	if s.kind == llamaServer || s.api.dialect().Lines {
		s.caps |= event.CapStages
	}
	return nil
}

// get queries a server for JSON.
func (c *Client) get(ctx context.Context, path string, into any) error {
	return c.call(ctx, http.MethodGet, path, nil, into)
}

// maxAnswer limits the answer to a query, in bytes; the ids of a long text are the largest.
const maxAnswer = 64 << 20

func (c *Client) call(ctx context.Context, method, path string, body []byte, into any) error {
	ctx, done := context.WithTimeout(ctx, lookWithin)
	defer done()
	x := exchange{written: func() {}}
	if err := c.send(ctx, &x, method, path, body); err != nil {
		if errors.Is(err, context.DeadlineExceeded) {
			return fmt.Errorf("no answer within %v", lookWithin)
		}
		return err
	}
	defer x.Body.Close()
	if x.StatusCode != http.StatusOK {
		return c.opt.refusal(x.Response)
	}
	answer, err := io.ReadAll(io.LimitReader(x.Body, maxAnswer))
	if err != nil {
		return broken(err)
	}
	if err := json.Unmarshal(answer, into); err != nil {
		return fmt.Errorf("read answer to %s: %w", strconv.Quote(path), plain(err))
	}
	return nil
}

// Address returns the server's URL.
func (c *Client) Address() string { return c.base.String() }

// Exposed reports whether the key is sent to another machine without encryption.
func (c *Client) Exposed() bool {
	return c.opt.Key != "" && c.base.Scheme == "http" && !IsLocal(c.base.String())
}

// LocalAddress returns the IP address and port of a server on this machine; ok is false for other servers.
func LocalAddress(address string) (at netip.AddrPort, ok bool) {
	u, err := url.Parse(address)
	if err != nil || !IsLocal(address) {
		return at, false
	}
	host := u.Hostname()
	if host == "localhost" {
		host = "127.0.0.1"
	}
	usual := map[string]string{"http": "80", "https": "443"}
	at, err = netip.ParseAddrPort(net.JoinHostPort(host, cmp.Or(u.Port(), usual[u.Scheme])))
	return at, err == nil
}

// IsLocal reports whether a server's address is on this machine.
func IsLocal(address string) bool {
	u, err := url.Parse(address)
	if err != nil {
		return false
	}
	host := u.Hostname()
	return host == "localhost" || net.ParseIP(host).IsLoopback()
}
