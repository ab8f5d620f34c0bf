package socket

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	gotoken "go/token"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/event/eventtest"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/runtime/engine"
)

// slow is a connection that delivers few bytes per read.
type slow struct{ net.Conn }

func (s slow) Read(b []byte) (int, error) {
	time.Sleep(time.Millisecond)
	return s.Conn.Read(b[:min(len(b), 4<<10)])
}

// TestReadersOfDifferentSpeeds: a fast reader loses nothing, whatever the others do; each other reader gets the exact
// number of its drops.
func TestReadersOfDifferentSpeeds(t *testing.T) {
	s := server(t, path(t), Options{Buffer: 2000})
	conns := []net.Conn{connection(t, s)}
	eventtest.Wait(t, "the reader that keeps up", func() bool { return s.Readers() == 1 })
	s.mu.Lock()
	var quick *reader
	for r := range s.readers {
		quick = r
	}
	s.mu.Unlock()
	conns = append(conns, slow{connection(t, s)}, connection(t, s))
	eventtest.Wait(t, "all readers", func() bool { return s.Readers() == 3 })
	var emitted event.Drops
	tallies := make([]tally, len(conns))
	read := make(chan int)
	follow := func(i int) {
		go func() {
			tallies[i].read(t, conns[i])
			read <- i
		}()
	}
	follow(0)
	follow(1) // the last one does not read until the end
	for i := range 100_000 {
		e := event.Event{Kind: event.KindToken, Layer: -1, Req: 1, N: 1, Index: int32(i), ID: 1, Text: strings.Repeat("text ", 10)}
		if i%7 == 0 {
			e = event.Event{Kind: event.KindKV, Layer: -1, Data: &event.KV{Used: int64(i), Total: 1 << 20}}
		}
		s.Emit(e)
		emitted[e.Kind]++
		if i%500 == 0 {
			eventtest.Wait(t, "the reader that keeps up", func() bool {
				s.mu.Lock()
				defer s.mu.Unlock()
				return s.ring.head == quick.cursor.next
			})
		}
	}
	follow(2)
	for s.behind() > 0 {
		time.Sleep(time.Millisecond)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	for range conns {
		<-read
	}
	for i, y := range tallies {
		for k, n := range emitted {
			if y.came[event.Kind(k)]+y.lost[k] != n {
				t.Errorf("reader %d, %v: %d arrived and %d were dropped of %d", i, event.Kind(k), y.came[event.Kind(k)], y.lost[k], n)
			}
		}
	}
	if tallies[0].lost.Total() != 0 || tallies[2].lost.Total() == 0 {
		t.Errorf("the fast reader dropped %d, the stopped one %d", tallies[0].lost.Total(), tallies[2].lost.Total())
	}
}

// TestLateReaderSeesTheSame: of all live requests, a late joiner sees the same as an early reader.
func TestLateReaderSeesTheSame(t *testing.T) {
	s := server(t, path(t), Options{})
	clock := engine.NewClock()
	var stores [2]*store.Store
	join := func(i int) {
		c, err := Dial(s.Address(), "", clock)
		if err != nil {
			t.Fatal(err)
		}
		stores[i] = store.New(store.Options{Now: clock.Now})
		watch(t, c, stores[i])
		eventtest.Wait(t, "a reader", func() bool { return s.Readers() == i+1 && stores[i].Snapshot().Engine.Name != "" })
	}
	join(0)
	now := func(e event.Event) { e.At = s.opt.Clock.Now(); s.Emit(e) }
	now(event.Event{Kind: event.KindModel, Layer: -1, Dur: 9, Data: &event.Model{Name: "m", Layers: 2, Experts: 2}})
	for id := range event.RequestID(40) {
		now(event.Event{Kind: event.KindRequest, Req: id + 1, State: event.StateQueued, Layer: -1, Data: &event.Request{Group: "g", MaxTokens: 9}})
		if id%4 == 0 {
			continue
		}
		now(event.Event{Kind: event.KindRequest, Req: id + 1, State: event.StateDispatched, Layer: -1})
		now(event.Event{Kind: event.KindStage, Stage: event.StagePrompt, Req: id + 1, Layer: -1, Dur: 1000, N: 17})
		for i := range int(id) * 9 {
			now(event.Event{Kind: event.KindToken, Req: id + 1, Layer: -1, ID: int32(i), Index: int32(i), N: 1})
		}
		if id%4 == 1 {
			now(finished(id+1, 0, int(id)*9))
		}
	}
	now(event.Event{Kind: event.KindOps, Layer: -1, Data: &event.Ops{Passes: 3, Slowdown: event.MeasuredValue(2)}})
	now(event.Event{Kind: event.KindExperts, Layer: -1, Data: &event.Experts{Layers: 1, Experts: 2, Used: 1, Prompt: []uint64{1, 2}, Decode: []uint64{5, 6}, DecodeTokens: 11}})
	now(event.Event{Kind: event.KindKV, Layer: -1, Data: &event.KV{Used: 7, Total: 9}})
	join(1)
	now(event.Event{Kind: event.KindLog, Layer: -1, Text: "end"})
	eventtest.Wait(t, "the end", func() bool { return len(stores[0].Snapshot().Log) == 1 && len(stores[1].Snapshot().Log) == 1 })
	if diff := cmp.Diff(seen(stores[0].Snapshot()), seen(stores[1].Snapshot())); diff != "" {
		t.Errorf("-early +late\n%s", diff)
	}
}

// seen is what does not depend on when a reader joined.
func seen(v *store.Snapshot) (out []string) {
	out = append(out, fmt.Sprintf("%+v", v.Model), fmt.Sprint(v.Engine.Name, v.Engine.Caps), fmt.Sprint(v.KV.Used, v.KV.Total),
		fmt.Sprint(v.Counts.Queued, v.Counts.Running), fmt.Sprintf("%+v", v.Experts.Layers*v.Experts.Experts), fmt.Sprintf("%+v", *v.Ops))
	for _, r := range v.Requests {
		if !r.State.Final() {
			out = append(out, fmt.Sprint(r.ID, r.State, r.Group, r.MaxTokens, r.PromptTokens, r.Generated, r.Last-r.First, r.TTFT))
		}
	}
	return out
}

// TestSizeOnTheWire: 100,000 token events with all fields of the built-in engine take at most 6 MB, also with the
// smallest batches that the waiting time allows.
func TestSizeOnTheWire(t *testing.T) {
	const total, most = 100_000, 6_000_000
	for _, together := range []int{4, 10, 50} {
		r := &reader{server: server(t, path(t), Options{})}
		tokens, steps := 0, 0
		at := event.Time(81250e6)
		for i := 0; i < total; i += together {
			r.events, r.out = r.events[:0], r.out[:0]
			for k := range together {
				at += 1_000_000 + event.Time(i*7919%100_000)
				r.events = append(r.events, pass(at, i+k)...)
			}
			r.encode()
			for line := range bytes.Lines(r.out) {
				if bytes.HasPrefix(line, []byte(`{"t":"tok",`)) {
					tokens += len(line)
				} else {
					steps += len(line)
				}
			}
		}
		t.Logf("%d at a time: %.1f bytes a token, %.1f a forward pass", together, float64(tokens)/total, float64(steps)/total)
		if r.sent != 2*total || tokens > most {
			t.Errorf("%d bytes for the tokens of %d events, %d at a time", tokens, r.sent, together)
		}
	}
}

// pass is a forward pass and the token it made.
func pass(at event.Time, i int) []event.Event {
	split := event.Split{
		Embed: 1000, Attention: 800_000 + uint32(i%90_000), Router: 33_000, Experts: 2_100_000, Head: 700_000, Sample: 120_000 + uint32(i%9000),
	}
	step := event.Event{Kind: event.KindStep, At: at, Dur: 3_700_000 + int64(i%99_999), Step: uint64(i + 1), Layer: -1, N: 1, Split: split}
	split.Sample = 25_000 + uint32(i%9000)
	return []event.Event{step, {
		Kind: event.KindToken, At: at - 30_000, Req: event.RequestID(1 + i/256), Layer: -1, ID: int32(i * 7919 % 151_936), Index: int32(i % 256), N: 1,
		Step: step.Step, LogP: -float32(i%1000) / 333, HasLogP: true, Split: split,
	}}
}

// TestLineOfAReaderThatIsTooLong: it ends the connection.
func TestLineOfAReaderThatIsTooLong(t *testing.T) {
	s := server(t, path(t), Options{Controller: &desk{caps: controlCaps}})
	conn := connection(t, s)
	go func() { _, _ = conn.Write(bytes.Repeat([]byte("x"), 100<<20)) }()
	if line := find(t, conn, `"bye"`); !strings.Contains(line, "too long") {
		t.Errorf("the answer is %s", line)
	}
	eventtest.Wait(t, "its end", func() bool { return s.Readers() == 0 })
}

// TestTokensAreComparedInConstantTime: this package compares tokens in no other way, except with "" for no token.
func TestTokensAreComparedInConstantTime(t *testing.T) {
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	constant := 0
	for _, name := range names {
		if !strings.HasSuffix(name, "_test.go") {
			constant += comparesTokens(t, name)
		}
	}
	if constant == 0 {
		t.Error("no token is compared in constant time")
	}
}

// comparesTokens counts the constant-time comparisons in a file and reports other comparisons of tokens.
func comparesTokens(t *testing.T, name string) (constant int) {
	t.Helper()
	set := gotoken.NewFileSet()
	file, err := parser.ParseFile(set, name, nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.BinaryExpr:
			if literal, ok := n.Y.(*ast.BasicLit); isToken(n.X) && (!ok || literal.Value != `""`) || isToken(n.Y) {
				t.Errorf("%v: a token is compared by %v", set.Position(n.Pos()), n.Op)
			}
		case *ast.CallExpr:
			if f, ok := n.Fun.(*ast.SelectorExpr); ok && f.Sel.Name == "ConstantTimeCompare" {
				constant++
			}
		}
		return true
	})
	return constant
}

// isToken reports whether an expression is a field or variable named token.
func isToken(x ast.Expr) bool {
	switch x := x.(type) {
	case *ast.SelectorExpr:
		return strings.EqualFold(x.Sel.Name, "token")
	case *ast.Ident:
		return strings.EqualFold(x.Name, "token")
	}
	return false
}
