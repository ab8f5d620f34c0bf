package sdk

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net"
	"slices"
	"strings"
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/event/wire"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/store"
)

// control sends a message.
func (w watcher) control(ctx context.Context, m wire.Control) error {
	_, err := w.client.Control(ctx, &m)
	return err
}

// request waits until a request satisfies a condition.
func (w watcher) request(id event.RequestID, condition func(*store.Request) bool) (found *store.Request) {
	w.t.Helper()
	w.await("the request", func(s *store.Snapshot) bool {
		i := slices.IndexFunc(s.Requests, func(r *store.Request) bool { return r.ID == id && condition(r) })
		if i >= 0 {
			found = s.Requests[i]
		}
		return found != nil
	})
	return found
}

// TestShownOfRust compares llmtop's data of an engine with its work, also after the engine is killed and restarted.
func TestShownOfRust(t *testing.T) {
	t.Parallel()
	const requests, tokens = 6, 50
	address := "ADDRESS=unix:" + Socket(t)
	p := Start(t, exampleEngine(t), address, "REQUESTS=6", "TOKENS=50", "THREADS=2")
	w := watch(t, p.Address, "")
	p.Go()
	p.Done()
	s := w.await("the end of the work", func(s *store.Snapshot) bool {
		return len(s.Log) > 0 && s.Experts != nil && s.Experts.Hits(metric.Session, metric.Decode).Tokens == requests*tokens
	})
	caps := event.CapStages | event.CapTokens | event.CapExperts | event.CapKV | event.CapSteps | event.CapQueue | event.CapCounters
	if e := s.Engine; e.Name != "example-rust" || e.Version != "1.2" || e.PID != p.PID() || e.Caps != caps || e.Slots != 4 || s.Model.Experts != 4 {
		t.Errorf("engine %+v, model %+v", e, s.Model)
	}
	if c := s.Counts; c.Finished != requests || c.PromptTokens != 4*requests || c.CachedTokens != requests || c.GeneratedTokens != requests*tokens || c.Steps != requests*tokens {
		t.Errorf("counts %+v", c)
	}
	if r := s.Engine.Remote; r.Missed != 0 || r.Malformed != 0 || s.Drops.Total() != 0 {
		t.Errorf("connection %+v, dropped %v", r, s.Drops)
	}
	if hits := s.Experts.Hits(metric.Session, metric.Decode).Counts; !slices.Equal(hits, []uint64{0, 300, 0, 300, 0, 0, 0, 0}) {
		t.Errorf("router picks %v", hits)
	}
	for _, r := range s.Requests {
		if r.Reason != "length" || r.Group != `adapter-"x"` || r.Generated != tokens || !r.TTFT.OK() || len(r.Parts) != 4 || r.Tokens[9].Step == 0 {
			t.Errorf("request %+v", r)
		}
	}
	p.Kill()
	w.await("the loss of the connection", func(s *store.Snapshot) bool { return s.Engine.Remote.Link == event.LinkDisconnected })
	next := Start(t, exampleEngine(t), address)
	s = w.await("the next run", func(s *store.Snapshot) bool {
		return s.Engine.Remote.Link == event.LinkConnected && s.Engine.PID == next.PID()
	})
	if s.Engine.Remote.Restarts != 1 {
		t.Errorf("connection %+v", s.Engine.Remote)
	}
}

// TestControlOfRust sends control messages to the engine.
func TestControlOfRust(t *testing.T) {
	t.Parallel()
	p := Start(t, exampleEngine(t), "ADDRESS=unix:"+Socket(t), "CONTROL=1", "HELD=1")
	w := watch(t, p.Address, "")
	const all = event.CapPrompt | event.CapCancel | event.CapPause | event.CapHooks | event.CapSample
	if !w.client.Offers().Has(all) {
		t.Errorf("it offers %v", w.client.Offers())
	}
	ctx := t.Context()
	other := watch(t, p.Address, "")
	id, err := w.client.Generate(ctx, wire.Generation{Prompt: "say \"it\"", MaxTokens: 7, Label: "chat", Text: true, Top: 2, Picks: true})
	if err != nil {
		t.Fatal(err)
	}
	r := w.request(id, func(r *store.Request) bool { return r.State == event.StateFinished })
	if k := r.Tokens[1]; r.Label != "chat" || r.Generated != 7 || k.Text != "\"it\"" || len(k.Top) != 2 || k.Top[1].LogP != -1.5 {
		t.Errorf("request %+v", r)
	}
	same := other.request(id, func(r *store.Request) bool { return r.State == event.StateFinished })
	if same.Generated != 7 || same.Prompt != "" || same.Text != "" || same.Tokens[1].Text != "" {
		t.Errorf("another reader gets %+v", same)
	}
	quiet, err := w.client.Generate(ctx, wire.Generation{Prompt: "quietly", MaxTokens: 3})
	if err != nil {
		t.Fatal(err)
	}
	r = w.request(quiet, func(r *store.Request) bool { return r.State == event.StateFinished })
	if r.Tokens[0].Text != "" {
		t.Errorf("unexpected text: %+v", r.Tokens[0])
	}
	for what, err := range map[string]error{
		"cancel": w.client.Cancel(ctx, 9000), "pause": w.control(ctx, wire.Control{Type: wire.Pause}), "resume": w.control(ctx, wire.Control{Type: wire.Resume}),
		"hooks": w.control(ctx, wire.Control{Type: wire.Hooks, On: wire.Measure{Stages: true, Picks: true}}), "sample": w.control(ctx, wire.Control{Type: wire.Sample, Every: 4}),
	} {
		if err != nil {
			t.Errorf("%s: %v", what, err)
		}
	}
	w.request(9000, func(r *store.Request) bool { return r.State == event.StateCancelled })
	if err := w.client.Cancel(ctx, 77); err == nil || !strings.Contains(err.Error(), "no request 77") {
		t.Errorf("cancel of an unknown request: %v", err)
	}
	if err := w.control(ctx, wire.Control{Type: wire.Sample, Every: 1000}); err == nil || !strings.Contains(err.Error(), "panicked") {
		t.Errorf("a function that panics: %v", err)
	}
	lines := Connect(t, p.Address, check)
	lines.Read("synced")
	p.Go()
	if every := lines.Read("experts").Keys["every"]; every != 4.0 {
		t.Errorf("picks are counted in one pass of %v", every)
	}
	printed := strings.Join(p.Done(), "\n")
	for _, want := range []string{"paused", "resumed", "Hooks { stages: true, experts: false, picks: true }"} {
		if !strings.Contains(printed, want) {
			t.Errorf("the engine did not receive %s: %s", want, printed)
		}
	}
}

// TestTokenOfRust: over TCP, only readers with the token are accepted and may control.
func TestTokenOfRust(t *testing.T) {
	t.Parallel()
	p := Start(t, exampleEngine(t), "ADDRESS=tcp:127.0.0.1:0", "TOKEN=sésame", "CONTROL=1")
	if w := watch(t, p.Address, "sésame"); !w.client.Offers().Has(event.CapPrompt | event.CapPause) {
		t.Errorf("it offers %v", w.client.Offers())
	}
	for line, want := range map[string]string{
		`{"t":"auth","token":"sésam"}`: "wrong token", `{"t":"auth"}`: "wrong token", `{"t":"pause","c":1}`: "wrong token", "{": "wrong token",
		strings.Repeat(" ", 2000): "a line is too long",
		"":                        "no token",
	} {
		if why := turnedAway(t, p.Address, line); why != want {
			t.Errorf("%.30q is answered with %q, not %q", line, why, want)
		}
	}
	open := Start(t, exampleEngine(t), "ADDRESS=tcp:127.0.0.1:0", "CONTROL=1")
	w := watch(t, open.Address, "")
	if o := w.client.Offers(); o&(event.CapPrompt|event.CapPause|event.CapCancel) != 0 {
		t.Errorf("without a token it offers %v over TCP", o)
	}
	for line, want := range map[string]string{`{"t":"pause","c":7}`: "reply", `{"t":"dance","c":8}`: "bye"} {
		raw, err := net.Dial("tcp", strings.TrimPrefix(open.Address, "tcp:"))
		if err != nil {
			t.Fatal(err)
		}
		defer raw.Close()
		_, _ = io.WriteString(raw, line+"\n")
		for s := bufio.NewScanner(raw); s.Scan(); {
			if strings.HasPrefix(s.Text(), `{"t":"`+want) {
				t.Log(s.Text())
				want = ""
				break
			}
		}
		if want != "" {
			t.Errorf("%s is not answered by a %s", line, want)
		}
	}
}

// turnedAway sends a line to an engine that requires a token, and returns why it hangs up.
func turnedAway(t *testing.T, address, line string) string {
	t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(address, "tcp:"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if line != "" {
		_, _ = io.WriteString(conn, line+"\n")
	}
	text, err := io.ReadAll(conn)
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	if err != nil || len(lines) != 2 || lines[0] != `{"t":"auth"}` {
		t.Fatalf("%v: %s", err, text)
	}
	var bye struct{ T, Why string }
	if err := json.Unmarshal([]byte(lines[1]), &bye); err != nil || bye.T != "bye" {
		t.Fatalf("%v: %s", err, text)
	}
	return bye.Why
}

// TestTokenizerOfRust compares the tokenizer statistics in llmtop with those of the engine.
func TestTokenizerOfRust(t *testing.T) {
	t.Parallel()
	p := Start(t, exampleEngine(t), "ADDRESS=unix:"+Socket(t), "TOKENIZER=1")
	r := Connect(t, p.Address, check)
	r.Read("synced")
	p.Go()
	r.Read("log")
	if printed := p.Done(); !slices.Equal(printed, []string{"1 3 12 4 Some(0.75)"}) {
		t.Errorf("the engine has %q", printed)
	}
	p.End()
	r.Rest()
	counts := r.Of("count", 0)
	c := counts[len(counts)-1].Keys["c"].(map[string]any)
	for name, want := range map[string]float64{
		"encode_stream_start_count": 1, "encode_stream_next_count": 3, "encode_stream_next_tokens": 12, "cache_lookup_count": 4,
		"cache_lookups": 4, "cache_hits": 3, "cache_hit_ratio": 0.75, "tokenizer_tokens": 3*4 + 16,
	} {
		if c[name] != want {
			t.Errorf("%s is %v, not %v", name, c[name], want)
		}
	}
	var sum, least, most float64
	for _, l := range r.Of("stage", 0) {
		if us := l.Keys["dur"].(float64) / 1e3; l.Keys["stage"] == "encode_stream_next" {
			sum, most = sum+us, max(most, us)
			if least == 0 || us < least {
				least = us
			}
		}
	}
	for name, want := range map[string]float64{"us": sum, "min_us": least, "max_us": most, "mean_us": sum / 3} {
		if got, ok := c["encode_stream_next_"+name].(float64); !ok || got-want > 1e-6 || want-got > 1e-6 {
			t.Errorf("encode_stream_next_%s is %v, on the wire %v", name, got, want)
		}
	}
}
