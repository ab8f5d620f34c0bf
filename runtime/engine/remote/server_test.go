package remote

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/event/eventtest"
	"github.com/llmtop/llmtop/runtime/engine"
	scrape "github.com/llmtop/llmtop/runtime/source/scrape/engine"
	"github.com/llmtop/llmtop/runtime/source/scrape/fetch"
)

// fake is a server with fixed answers by path, and 404 for the rest.
func fake(t *testing.T, answers map[string]string) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if text, ok := answers[r.Method+" "+r.URL.Path]; ok {
			_, _ = io.WriteString(w, text)
			return
		}
		http.NotFound(w, r)
	}))
	t.Cleanup(s.Close)
	return s.URL
}

func TestFingerprint(t *testing.T) {
	known := event.CapTokens | event.CapText | event.CapPrompt | event.CapCancel
	for name, c := range map[string]struct {
		answers map[string]string
		opt     Options
		want    server
	}{
		"llama.cpp": {
			map[string]string{"GET /v1/models": llama, "GET /props": `{"build_info":"b10582","total_slots":4,"model_ftype":"Q8_0","default_generation_settings":{"n_ctx":32}}`},
			Options{},
			server{
				kind: scrape.Llama, version: "b10582", api: OpenAI, slots: 4, caps: known | event.CapStages,
				model: event.Model{Name: "tiny", Context: 32, TrainContext: 64, Parameters: 11, Bytes: 12, Width: 4, Vocab: 100, Quantisation: "Q8_0"},
			},
		},
		"llama.cpp without details": {
			map[string]string{"GET /v1/models": llama},
			Options{API: OpenAIChat, Model: "alias"},
			server{kind: scrape.Llama, api: OpenAIChat, caps: known | event.CapStages, model: event.Model{Name: "alias"}},
		},
		"Ollama": {
			map[string]string{
				"GET /v1/models": `{"data":[{"id":"a:1","owned_by":"library"},{"id":"b:1","owned_by":"library"}]}`, "GET /api/version": `{"version":"0.33.0"}`,
				"POST /api/show": `{"details":{"family":"qwen3moe","quantization_level":"Q4_K_M"},"model_info":{"general.architecture":"qwen3moe","general.parameter_count":30532122624,"qwen3moe.block_count":48,"qwen3moe.context_length":262144,"qwen3moe.embedding_length":2048,"qwen3moe.expert_count":128,"qwen3moe.expert_used_count":8}}`,
			},
			Options{Model: "b:1"},
			server{
				kind: scrape.Ollama, version: "0.33.0", api: Ollama, caps: known | event.CapStages,
				model: event.Model{Name: "b:1", Architecture: "qwen3moe", Quantisation: "Q4_K_M", Parameters: 30532122624, Layers: 48, Width: 2048, TrainContext: 262144, Experts: 128, ExpertsUsed: 8},
			},
		},
		"old Ollama": {
			map[string]string{"GET /api/version": `{"version":"0.1.1"}`},
			Options{Model: "m"},
			server{kind: scrape.Ollama, version: "0.1.1", api: Ollama, caps: known | event.CapStages, model: event.Model{Name: "m"}},
		},
		"vLLM": {
			map[string]string{"GET /v1/models": `{"data":[{"id":"m","owned_by":"vllm","max_model_len":4096}]}`, "GET /version": `{"version":"0.20.1"}`},
			Options{},
			server{kind: scrape.VLLM, version: "0.20.1", api: OpenAI, caps: known, model: event.Model{Name: "m", Context: 4096}},
		},
		"SGLang": {
			map[string]string{"GET /v1/models": `{"data":[{"id":"m","owned_by":"sglang"}]}`, "GET /get_server_info": `{"version":"0.6"}`},
			Options{},
			server{kind: scrape.SGLang, version: "0.6", api: OpenAI, caps: known, model: event.Model{Name: "m"}},
		},
		"another": {
			map[string]string{"GET /v1/models": `{"data":[{"id":"m","owned_by":"organization_owner"}]}`},
			Options{},
			server{kind: scrape.OpenAI, api: OpenAIChat, caps: known, model: event.Model{Name: "m"}},
		},
		"without a list": {
			nil,
			Options{Model: "m", API: OpenAI},
			server{kind: scrape.OpenAI, api: OpenAI, caps: known, model: event.Model{Name: "m"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c.opt.Address = fake(t, c.answers) + "/v1/"
			got, err := Dial(t.Context(), c.opt)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, got.server, cmp.AllowUnexported(server{})); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestDialFails(t *testing.T) {
	several := fake(t, map[string]string{"GET /v1/models": `{"data":[{"id":"a"},{"id":"b"}]}`})
	none := fake(t, map[string]string{"GET /v1/models": `{"data":[]}`})
	locked := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(401)
		_, _ = io.WriteString(w, `{"error":{"message":"Invalid API Key"}}`)
	}))
	defer locked.Close()
	gone := httptest.NewServer(http.NotFoundHandler())
	gone.Close()
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>") }))
	defer page.Close()
	for _, c := range []struct {
		opt  Options
		want string
	}{
		{Options{Address: several}, "the server has several models: set --model to one of a, b"},
		{Options{Address: none}, "the server lists no models: set --model"},
		{Options{Address: locked.URL, Model: "m"}, "the server answered 401 (Unauthorized): Invalid API Key"},
		{Options{Address: gone.URL, Model: "m"}, "refused"},
		{Options{Address: page.URL, Model: "m"}, `read answer to "/v1/models"`},
		{Options{Address: several, Model: "a", API: Ollama}, "API ollama needs Ollama, and this server is"},
		{Options{Address: "http://user:secret@host"}, "remove the user and password"},
		{Options{Address: "http://host/v1?key=secret"}, "remove the query"},
		{Options{Address: "http://"}, "write http://HOST"},
		{Options{Address: "ftp://host"}, "write http://HOST"},
		{Options{Address: "http://a b"}, "not a URL"},
		{Options{Address: "http://user:secret@host/%zz"}, "not a URL"},
		{Options{Address: "user:secret@host"}, "write http://HOST"},
	} {
		_, err := Dial(t.Context(), c.opt)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "secret") {
			t.Errorf("%+v: %v, want %s", c.opt.Address, err, c.want)
		}
	}
}

func TestEncode(t *testing.T) {
	for name, c := range map[string]struct {
		answers map[string]string
		opt     Options
		want    []int32
		err     error
	}{
		"llama.cpp":    {map[string]string{"GET /v1/models": llama, "POST /tokenize": `{"tokens":[1,2,3]}`}, Options{}, []int32{1, 2, 3}, nil},
		"large ids":    {map[string]string{"GET /v1/models": llama, "POST /tokenize": `{"tokens":[1,4194447388]}`}, Options{}, nil, engine.ErrNoTokenizer},
		"a chat":       {map[string]string{"GET /v1/models": llama, "POST /tokenize": `{"tokens":[1,2,3]}`}, Options{API: OpenAIChat}, nil, engine.ErrNoTokenizer},
		"no tokenizer": {map[string]string{"GET /v1/models": llama}, Options{}, nil, engine.ErrNoTokenizer},
		"another":      {map[string]string{"GET /v1/models": `{"data":[{"id":"m"}]}`, "POST /tokenize": `{"tokens":[1]}`}, Options{API: OpenAI}, nil, engine.ErrNoTokenizer},
	} {
		c.opt.Address = fake(t, c.answers)
		client, err := Dial(t.Context(), c.opt)
		if err != nil {
			t.Fatal(err)
		}
		got, err := client.Encode(t.Context(), "x")
		if !slices.Equal(got, c.want) || !errors.Is(err, c.err) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

// TestIntroduction: the first events describe the server, and the last reports that it stopped.
func TestIntroduction(t *testing.T) {
	c, err := Dial(t.Context(), Options{Address: fake(t, map[string]string{"GET /v1/models": llama}), Clock: engine.NewClock()})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	sink := &eventtest.Log{}
	if err := c.Run(ctx, sink); err != nil {
		t.Fatal(err)
	}
	engines := sink.OfKind(event.KindEngine)
	first, last := engines[0].Data.(*event.EngineInfo), engines[1].Data.(*event.EngineInfo)
	if first.Name != "llama.cpp" || first.State != event.EngineReady || first.Remote.Link != event.LinkConnected || first.Remote.Address != c.Address() || last.State != event.EngineStopped {
		t.Errorf("%+v, %+v", first, last)
	}
	if m := sink.OfKind(event.KindModel)[0].Data.(*event.Model); m.Name != "tiny" {
		t.Errorf("%+v", m)
	}
}

func TestLocalAddresses(t *testing.T) {
	for address, want := range map[string]string{
		"http://127.0.0.1:8080/v1": "127.0.0.1:8080", "http://localhost": "127.0.0.1:80", "https://[::1]": "[::1]:443", "http://10.0.0.1:80": "",
		"http://127.0.0.1:99999": "", "tcp://127.0.0.1": "", "": "",
	} {
		got, ok := LocalAddress(address)
		if ok != (want != "") || ok && got.String() != want {
			t.Errorf("%s is at %v, %v; want %q", address, got, ok, want)
		}
	}
}

func TestWhereKeysAreSafe(t *testing.T) {
	for address, local := range map[string]bool{
		"http://127.0.0.1:80": true, "http://localhost": true, "https://[::1]:1/v1": true, "tcp:127.0.0.1:7": false, "tcp://127.0.0.1:7": true,
		"http://10.0.0.1": false, "http://127.0.0.1.evil.org": false, "": false,
	} {
		if IsLocal(address) != local {
			t.Errorf("%s is local: %v", address, !local)
		}
		u, err := fetch.ParseAddress(address, "")
		c := &Client{opt: Options{Key: "k"}, base: u}
		if err == nil && c.Exposed() != (!local && u.Scheme == "http") {
			t.Errorf("a key for %s is exposed: %v", address, c.Exposed())
		}
	}
}

func TestParseAPI(t *testing.T) {
	for _, a := range append(APIs(), Auto) {
		if got, err := ParseAPI(string(a)); got != a || err != nil {
			t.Errorf("%q: %q, %v", a, got, err)
		}
	}
	if _, err := ParseAPI("grpc"); err == nil {
		t.Error("grpc was accepted")
	}
}
