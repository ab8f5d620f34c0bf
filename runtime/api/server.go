package api

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

// server is what is known of a server.
type server struct {
	kind    kind
	name    string
	version string
	api     API
	model   event.Model
	slots   int // requests that it works on together; 0 unknown
	caps    event.Caps
}

// kind is which program a server is, as far as that matters.
type kind uint8

const (
	other kind = iota
	llamaServer
	ollama
	vllm
	sglang
)

var kindNames = [...]string{other: "OpenAI-compatible", llamaServer: "llama.cpp", ollama: "Ollama", vllm: "vLLM", sglang: "SGLang"}

// owners are the kinds by what their lists of models have as owner.
var owners = map[string]kind{"llamacpp": llamaServer, "library": ollama, "vllm": vllm, "sglang": sglang}

// lookWithin bounds each question about the server.
const lookWithin = 15 * time.Second

// listed is one of the models of a server.
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

// look asks the server what it is, by its list of models and one question that is its kind's own. Only the list must be answered.
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

// choose finds the model that is asked for. A name that is not listed is taken as it is, since servers have aliases and adapters.
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
		return listed{}, errors.New("the server has no models, or does not tell them: name one")
	case len(names) > shown:
		names = append(names[:shown], "…")
	}
	return listed{}, fmt.Errorf("the server has several models, name one of them: %s", clean(strings.Join(names, ", ")))
}

// ask asks what only servers of this kind know. What they do not tell stays unknown.
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

// show asks Ollama about the model.
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

// settle decides on the API: the one that was asked for, or that by which the server tells and takes the most.
func (s *server) settle(want API) error {
	s.api = want
	if want == Auto {
		s.api = map[kind]API{llamaServer: OpenAI, vllm: OpenAI, sglang: OpenAI, ollama: Ollama}[s.kind]
	}
	if s.api == Auto {
		s.api = OpenAIChat
	}
	if s.api.lines() && s.kind != ollama {
		return fmt.Errorf("%s is no API of this server, which is not Ollama", s.api)
	}
	s.caps = event.CapTokens | event.CapText | event.CapPrompt | event.CapCancel
	if s.kind == llamaServer || s.api.lines() {
		s.caps |= event.CapStages
	}
	return nil
}

// get asks a question that a server answers with JSON.
func (c *Client) get(ctx context.Context, path string, into any) error {
	return c.call(ctx, http.MethodGet, path, nil, into)
}

// maxAnswer bounds the answer to a question, in bytes: the ids of a long text.
const maxAnswer = 64 << 20

func (c *Client) call(ctx context.Context, method, path string, body []byte, into any) error {
	ctx, done := context.WithTimeout(ctx, lookWithin)
	defer done()
	x := exchange{written: func() {}}
	if err := c.send(ctx, &x, method, path, body); err != nil {
		if errors.Is(err, context.DeadlineExceeded) {
			return fmt.Errorf("it does not answer within %v", lookWithin)
		}
		return err
	}
	defer x.Body.Close()
	if x.StatusCode != http.StatusOK {
		return refusal(x.Response, secret(c.opt.Key))
	}
	answer, err := io.ReadAll(io.LimitReader(x.Body, maxAnswer))
	if err != nil {
		return broken(err)
	}
	if err := json.Unmarshal(answer, into); err != nil {
		return fmt.Errorf("it answers %s with what cannot be read: %w", strconv.Quote(path), plain(err))
	}
	return nil
}

// Address is where the server is.
func (c *Client) Address() string { return c.base.String() }

// Exposed reports whether a key is sent to another machine in the clear.
func (c *Client) Exposed() bool {
	return c.opt.Key != "" && c.base.Scheme == "http" && !IsLocal(c.base.String())
}

// LocalAddress is where the server at an address of this machine listens; false for one elsewhere.
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

// IsLocal reports whether the server at an address is on this machine, as far as the address tells.
func IsLocal(address string) bool {
	u, err := url.Parse(address)
	if err != nil {
		return false
	}
	host := u.Hostname()
	return host == "localhost" || net.ParseIP(host).IsLoopback()
}
