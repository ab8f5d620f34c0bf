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

	"github.com/llmtop/llmtop/profiler/clean"
	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/loopback"
	scrape "github.com/llmtop/llmtop/runtime/source/scrape/engine"
)

// server describes a server.
type server struct {
	kind    scrape.Kind
	version string
	api     API
	model   event.Model
	slots   int // requests processed at once; 0: unknown
	caps    event.Caps
}

// isExtended reports whether requests may have the fields that llama.cpp, vLLM and SGLang add to OpenAI's.
func (s *server) isExtended() bool {
	return s.kind == scrape.Llama || s.kind == scrape.VLLM || s.kind == scrape.SGLang
}

// lookWithin is the time limit of each query about the server.
const lookWithin = 15 * time.Second

// look identifies the server by its list of models and one query specific to its kind. Only the list is required.
func (c *Client) look(ctx context.Context) error {
	s := &c.server
	var list scrape.ModelList
	err := c.get(ctx, "/v1/models", &list)
	if refused := (*Status)(nil); err != nil && (!errors.As(err, &refused) || refused.Code == http.StatusUnauthorized || refused.Code == http.StatusForbidden) {
		return err
	}
	s.kind = list.Kind()
	if err != nil || s.kind == scrape.Ollama || len(list.Data) == 0 {
		var about struct {
			Version string `json:"version"`
		}
		if c.get(ctx, "/api/version", &about) == nil && about.Version != "" {
			s.kind, s.version = scrape.Ollama, about.Version
		} else if err != nil && c.opt.Model == "" {
			return fmt.Errorf("list its models: %w", err)
		}
	}
	if s.model, err = choose(list.Models(), c.opt.Model); err != nil {
		return err
	}
	c.ask(ctx)
	return s.settle(c.opt.API)
}

// choose returns the requested model. A name that is not listed is used as is, since servers have aliases and adapters.
func choose(list []scrape.Model, name string) (event.Model, error) {
	var names []string
	for _, m := range list {
		if m.Name == name || name == "" && len(list) == 1 {
			return m.Model, nil
		}
		names = append(names, m.Name)
	}
	const shown = 8
	switch {
	case name != "":
		return event.Model{Name: name}, nil
	case len(list) == 0:
		return event.Model{}, errors.New("the server lists no models: set --model")
	case len(names) > shown:
		names = append(names[:shown], "…")
	}
	return event.Model{}, fmt.Errorf("the server has several models: set --model to one of %s", brief(strings.Join(names, ", ")))
}

// ask queries what only servers of this kind report. Fields that they do not report stay unknown.
func (c *Client) ask(ctx context.Context) {
	s := &c.server
	if s.kind == scrape.Ollama {
		c.show(ctx)
		return
	}
	info := scrape.Info{Kind: s.kind, Models: []scrape.Model{{Model: s.model}}}
	scrape.Describe(ctx, c.get, &info)
	s.version, s.slots = info.Version, info.SlotCount
	s.model.Quantisation, s.model.Context = info.Models[0].Quantisation, info.Models[0].Context
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
		switch s.api = OpenAIChat; {
		case s.isExtended():
			s.api = OpenAI
		case s.kind == scrape.Ollama:
			s.api = Ollama
		}
	}
	if s.api.dialect().Lines && s.kind != scrape.Ollama {
		return fmt.Errorf("API %s needs Ollama, and this server is %s", s.api, s.kind)
	}
	s.caps = event.CapTokens | event.CapText | event.CapPrompt | event.CapCancel
	if s.kind == scrape.Llama || s.api.dialect().Lines {
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
	if err := clean.UnmarshalJSON(answer, into); err != nil {
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
	return err == nil && loopback.Host(u.Hostname())
}
