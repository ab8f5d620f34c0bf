package otlp

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	trace "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/event/eventtest"
	"github.com/llmtop/llmtop/runtime/engine"
)

// running starts a receiver for the duration of the test.
func running(t *testing.T, token string) (*Receiver, *eventtest.Log) {
	t.Helper()
	r, err := New(Options{Listen: "127.0.0.1:0", Token: token, Clock: engine.NewClockSince(time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	log := new(eventtest.Log)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx, log) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return r, log
}

// answer is the receiver's answer to a request.
type answer struct {
	status int
	kind   string
	body   string
}

func post(t *testing.T, at, kind string, body []byte, headers ...string) answer {
	t.Helper()
	return ask(t, http.MethodPost, at, append([]string{"Content-Type", kind}, headers...), body)
}

func ask(t *testing.T, method, at string, headers []string, body []byte) answer {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, at, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{res.StatusCode, res.Header.Get("Content-Type"), string(text)}
}

func packed(t testing.TB, body []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, err := w.Write(body)
	if err = errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func sample(t testing.TB, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestEncodings: the same spans give the same events in protobuf and JSON, compressed or not.
func TestEncodings(t *testing.T) {
	text := sample(t, "vllm_otlp_request.json")
	read, err := readJSON(text)
	if err != nil || len(read.spans) != 1 || read.rejected != 0 {
		t.Fatalf("%+v, %v", read, err)
	}
	s := &read.spans[0]
	if s.trace[0] != 0x5b || s.id[7] != 0xc0 || s.ttft.v != 0.2124 || s.prompt.v != 2560 || s.request != "chatcmpl-9f1c" || s.sender.service != "vllm" ||
		s.end-s.start != 3210000128 {
		t.Errorf("%+v", s)
	}
	body, err := proto.Marshal(export("vllm", vllm(1)))
	if err != nil {
		t.Fatal(err)
	}
	for name, send := range map[string]func(at string) answer{
		"JSON":             func(at string) answer { return post(t, at, "application/json; charset=utf-8", text) },
		"JSON, packed":     func(at string) answer { return post(t, at, jsonType, packed(t, text), "Content-Encoding", "gzip") },
		"protobuf":         func(at string) answer { return post(t, at, protobufType, body) },
		"protobuf, packed": func(at string) answer { return post(t, at, protobufType, packed(t, body), "Content-Encoding", "gzip") },
	} {
		r, log := running(t, "")
		got := send(r.Address())
		if want := map[bool]string{true: "{}", false: ""}[got.kind == jsonType]; got.status != http.StatusOK || got.body != want {
			t.Errorf("%s: %+v", name, got)
		}
		requests := log.OfKind(event.KindRequest)
		if len(requests) != 3 || requests[2].Data.(*event.Outcome).Generated != 180 {
			t.Errorf("%s: %+v", name, requests)
		}
	}
}

// TestSampleOfAStart reads all spans that vLLM sends at startup.
func TestSampleOfAStart(t *testing.T) {
	r, log := running(t, "")
	if got := post(t, r.Address(), jsonType, sample(t, "vllm_otlp_startup.json")); got.status != http.StatusOK {
		t.Fatalf("%+v", got)
	}
	if stages := log.OfKind(event.KindStage); len(stages) != 14 || stages[0].Stage != event.StageLoad || stages[0].Dur != 96*int64(time.Second) {
		t.Errorf("%d stages, %+v", len(stages), stages)
	}
}

func TestRefusals(t *testing.T) {
	r, log := running(t, "")
	good, at := sample(t, "vllm_otlp_request.json"), r.Address()
	base := strings.TrimSuffix(at, tracesPath)
	bomb := packed(t, make([]byte, maxBody+1))
	for name, c := range map[string]struct {
		got    answer
		status int
		kind   string
	}{
		"no JSON":          {post(t, at, jsonType, []byte(`{"resourceSpans":[`)), http.StatusBadRequest, jsonType},
		"two values":       {post(t, at, jsonType, []byte(`{} {}`)), http.StatusBadRequest, jsonType},
		"no protobuf":      {post(t, at, protobufType, []byte("\x0a\xff")), http.StatusBadRequest, protobufType},
		"not packed":       {post(t, at, jsonType, good, "Content-Encoding", "gzip"), http.StatusBadRequest, jsonType},
		"another packing":  {post(t, at, jsonType, good, "Content-Encoding", "br"), http.StatusUnsupportedMediaType, jsonType},
		"another type":     {post(t, at, "text/plain", good), http.StatusUnsupportedMediaType, "text/plain; charset=utf-8"},
		"too large":        {post(t, at, protobufType, make([]byte, maxBody+1)), http.StatusRequestEntityTooLarge, protobufType},
		"a bomb":           {post(t, at, protobufType, bomb, "Content-Encoding", "gzip"), http.StatusRequestEntityTooLarge, protobufType},
		"metrics":          {post(t, base+"/v1/metrics", protobufType, nil), http.StatusNotFound, protobufType},
		"logs":             {post(t, base+"/v1/logs", jsonType, nil), http.StatusNotFound, jsonType},
		"another method":   {ask(t, http.MethodGet, at, nil, nil), http.StatusMethodNotAllowed, "text/plain; charset=utf-8"},
		"nested too deep":  {post(t, at, jsonType, nested(`{"x":`, "[", "]", `}`)), http.StatusBadRequest, jsonType},
		"deep attributes":  {post(t, at, jsonType, deepAttribute), http.StatusBadRequest, jsonType},
		"too many objects": {post(t, at, jsonType, manySpans(maxObjects)), http.StatusRequestEntityTooLarge, jsonType},
		"what a page asks": {ask(t, http.MethodOptions, at, nil, nil), http.StatusMethodNotAllowed, "text/plain; charset=utf-8"},
	} {
		if c.got.status != c.status || c.got.kind != c.kind || c.got.body == "" {
			t.Errorf("%s: %+v", name, c.got)
		}
	}
	if n := len(log.OfKind(event.KindRequest)); n != 0 {
		t.Errorf("%d events of what was refused", n)
	}
	if got := post(t, at, protobufType, nil); got.status != http.StatusOK {
		t.Errorf("an export of nothing: %+v", got)
	}
}

// TestPartialSuccess: the answer reports spans without mandatory fields to the sender.
func TestPartialSuccess(t *testing.T) {
	r, log := running(t, "")
	data := export("vllm", vllm(1), made("llm_request", 0, 2, 0, 0, ms), made("llm_request", 7, 3, 0, ms, 0))
	body, err := proto.Marshal(data)
	if err != nil {
		t.Fatal(err)
	}
	got := post(t, r.Address(), protobufType, body)
	var rejected uint64
	err = fields([]byte(got.body), func(f field) error {
		return fields(f.bytes, func(f field) error {
			if f.num == 1 {
				rejected = f.bits
			}
			return nil
		})
	})
	if err != nil || rejected != 2 || got.status != http.StatusOK || len(log.OfKind(event.KindRequest)) != 3 {
		t.Errorf("%+v, %d rejected, %v", got, rejected, err)
	}
	text := []byte(`{"resourceSpans":[{"scopeSpans":[{"spans":[{"name":"x"}]}]}]}`)
	if got := post(t, r.Address(), jsonType, text); !strings.Contains(got.body, `"rejectedSpans":"1"`) {
		t.Errorf("%+v", got)
	}
}

func TestToken(t *testing.T) {
	if _, err := New(Options{Listen: "0.0.0.0:0"}); !errors.Is(err, ErrToken) {
		t.Errorf("listens for everybody: %v", err)
	}
	r, _ := running(t, "correct")
	for header, want := range map[string]int{"": 401, "Bearer wrong": 401, "Basic correct": 401, "Bearer correct": 200, "bearer correct": 200} {
		if got := post(t, r.Address(), jsonType, []byte("{}"), "Authorization", header); got.status != want {
			t.Errorf("%q: %+v", header, got)
		}
	}
}

func TestAddresses(t *testing.T) {
	r, _ := running(t, "")
	taken := strings.TrimSuffix(strings.TrimPrefix(r.Address(), "http://"), tracesPath)
	for _, at := range []string{"", "127.0.0.1", "127.0.0.1:x", taken} {
		if other, err := New(Options{Listen: at}); err == nil {
			t.Errorf("%q: no error", at)
			_ = other.Close()
		}
	}
}

// TestManySmallSpans: a body of empty spans takes little memory, and spans beyond the limit are rejected.
func TestManySmallSpans(t *testing.T) {
	span := protowire.AppendBytes(protowire.AppendTag(nil, 2, protowire.BytesType), nil)
	scope := protowire.AppendBytes(protowire.AppendTag(nil, 2, protowire.BytesType), bytes.Repeat(span, 1<<20))
	body := protowire.AppendBytes(protowire.AppendTag(nil, 1, protowire.BytesType), scope)
	b, err := readProtobuf(body)
	if err != nil || b.rejected != 1<<20 || len(b.spans) != 0 {
		t.Errorf("%d rejected, %v", b.rejected, err)
	}
}

func FuzzProtobuf(f *testing.F) {
	for _, data := range []*trace.TracesData{export("vllm", vllm(1)), export("sglang", front(5, 7)...)} {
		body, err := proto.Marshal(data)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(body)
	}
	f.Fuzz(func(t *testing.T, body []byte) { whatever(t, body, readProtobuf) })
}

func FuzzJSON(f *testing.F) {
	f.Add(sample(f, "vllm_otlp_request.json"))
	f.Add(sample(f, "vllm_otlp_startup.json"))
	f.Add(deepAttribute)
	f.Add([]byte(`{"resourceSpans":[{"scopeSpans":[{"spans":[{"attributes":[{"key":"rid","value":{"arrayValue":{"values":[{"stringValue":"x"}]}}}]}]}]}]}`))
	f.Add([]byte(`{"resourceSpans":[{"resource":7,"scopeSpans":[{"spans":[{"attributes":[{"key":"rid","value":{"arrayValue":{"values":[{"stringValue":"x"}]}}}]}]}]}]}`))
	f.Fuzz(func(t *testing.T, body []byte) { whatever(t, body, readJSON) })
}

// whatever checks an arbitrary body: reading it twice gives the same, and its events are consistent.
func whatever(t *testing.T, body []byte, read func([]byte) (*batch, error)) {
	b, err := read(body)
	if err != nil {
		return
	}
	if again, err := read(body); err != nil || !reflect.DeepEqual(b, again) {
		t.Fatal("read differently the second time")
	}
	log := new(eventtest.Log)
	g := newGather("", engine.NewClockSince(time.Hour), log)
	now := time.Now()
	g.take(b, "127.0.0.1", now)
	g.look(now.Add(waitFor))
	g.look(now.Add(waitFor + waitRoot))
	g.end()
	if len(g.traces) != 0 || g.spans != 0 {
		t.Fatalf("%d traces and %d spans are held on", len(g.traces), g.spans)
	}
	began, ended := 0, 0
	for _, e := range log.All() {
		if e.Dur < 0 {
			t.Fatalf("%+v", e)
		}
		switch {
		case e.State == event.StateQueued:
			began++
		case e.State.Final():
			ended++
		}
	}
	if began != ended {
		t.Fatalf("%d requests began, %d ended", began, ended)
	}
}

// TestHosts: at a loopback address no page of another site can send spans or read answers, and each refusal is logged.
func TestHosts(t *testing.T) {
	r, log := running(t, "")
	for host, want := range map[string]int{"localhost:4318": http.StatusOK, "127.0.0.1": http.StatusOK, "evil.example": http.StatusForbidden} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, r.Address(), bytes.NewReader([]byte("{}")))
		if err != nil {
			t.Fatal(err)
		}
		req.Host = host
		req.Header.Set("Content-Type", jsonType)
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(res.Body)
		_ = res.Body.Close()
		if res.StatusCode != want || (want == http.StatusForbidden) != strings.Contains(string(body), "--allow-host") {
			t.Errorf("%s: %s %s", host, res.Status, body)
		}
	}
	logged := false
	for _, e := range log.All() {
		logged = logged || strings.Contains(fmt.Sprintf("%+v %+v", e, e.Data), "evil.example")
	}
	if !logged {
		t.Error("the refusal is not logged")
	}
}
