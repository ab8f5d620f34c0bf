package recording

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/event/wire"
)

// recordEngines records several engines in turns. Each has one request, with id 7, of the given number of tokens.
func recordEngines(t *testing.T, opt RecordOptions, engines, tokens int) *tape {
	t.Helper()
	opt.MultiEngine = true
	tp := record(t, opt)
	sinks := make([]event.Sink, engines)
	emit := func(i int, e event.Event) {
		e.At, e.Req, e.Layer = event.Time(tp.now.Add(int64(time.Millisecond))), 7, -1
		sinks[i].Emit(e)
	}
	for i := range sinks {
		sinks[i] = tp.AddEngine(EngineEntry{Name: fmt.Sprint("engine ", i), Fleet: i == 0})
		emit(i, event.Event{Kind: event.KindEngine, Data: &event.EngineInfo{Name: fmt.Sprint(i)}})
		emit(i, event.Event{Kind: event.KindRequest, State: event.StateQueued})
	}
	written := uint64(2 * engines)
	tp.settle(t, written)
	for n := range tokens {
		for i := range sinks {
			emit(i, event.Event{Kind: event.KindToken, ID: int32(i), N: 1, Index: int32(n)})
		}
		if written += uint64(engines); n%100 == 99 {
			tp.settle(t, written)
		}
	}
	return tp
}

// byEngine returns the tokens of each engine, and the name in its engine event.
func byEngine(t *testing.T, path string) (r *Recording, tokens map[int]int, names map[int]string) {
	t.Helper()
	r, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	tokens, names = map[int]int{}, map[int]string{}
	for c := r.Cursor(0); ; {
		e, err := c.Next()
		if err != nil {
			return r, tokens, names
		}
		if e.Note != nil {
			continue
		}
		if _, err := new(wire.Decoder).Decode(e.Line, func(got event.Event) {
			switch p := got.Data.(type) {
			case *event.EngineInfo:
				names[e.Engine] = p.Name
			default:
				if got.Kind == event.KindToken {
					tokens[e.Engine] += int(got.N)
					if int(got.ID) != e.Engine && got.ID >= 0 {
						t.Errorf("a token of engine %d was read as one of %d", got.ID, e.Engine)
					}
				}
			}
		}); err != nil {
			t.Fatal(err)
		}
	}
}

var threeEngines = []EngineEntry{{Name: "engine 0", Fleet: true}, {Name: "engine 1"}, {Name: "engine 2"}}

func TestEnginesOfARecordingAreSeparate(t *testing.T) {
	tp := recordEngines(t, RecordOptions{Flush: time.Millisecond}, 3, 40)
	tp.end(t)
	r, tokens, names := byEngine(t, tp.path)
	if d := cmp.Diff(threeEngines, r.Engines); d != "" || !r.MultiEngine {
		t.Errorf("sources (-want +got):\n%s", d)
	}
	if d := cmp.Diff(map[int]int{0: 40, 1: 40, 2: 40}, tokens); d != "" {
		t.Errorf("tokens (-want +got):\n%s", d)
	}
	if d := cmp.Diff(map[int]string{0: "0", 1: "1", 2: "2"}, names); d != "" {
		t.Errorf("names (-want +got):\n%s", d)
	}
	for i := range 3 { // the same id, a different time for each engine
		if at, err := r.FindRequest(i, 7); err != nil || at != event.Time(2*i+2)*ms {
			t.Errorf("request 7 of engine %d is found at %v, %v", i, at, err)
		}
	}
	if _, err := r.FindRequest(3, 7); err == nil {
		t.Error("a request of a missing engine was found")
	}
}

// TestSegmentOfSeveralEnginesIsSelfContained checks that each segment has the names and the state of the engines, so
// that it can be read alone.
func TestSegmentOfSeveralEnginesIsSelfContained(t *testing.T) {
	tp := recordEngines(t, RecordOptions{Flush: time.Millisecond, SegmentBytes: 4 << 10}, 3, 2000)
	tp.end(t)
	more, err := segments(tp.path)
	if err != nil || len(more) == 0 {
		t.Fatalf("segments %v, %v", more, err)
	}
	for _, n := range more {
		r, tokens, names := byEngine(t, segmentName(tp.path, n))
		if d := cmp.Diff(threeEngines, r.Engines); d != "" {
			t.Errorf("segment %d: sources (-want +got):\n%s", n, d)
		}
		if len(names) != 3 || tokens[0] == 0 || tokens[0] != tokens[1] && tokens[0]-tokens[1] > 1 {
			t.Errorf("segment %d: engines %v, tokens %v", n, names, tokens)
		}
	}
}

// TestACutRecordingOfSeveralEngines checks that a truncated file has the engines up to the cut.
func TestACutRecordingOfSeveralEngines(t *testing.T) {
	tp := recordEngines(t, RecordOptions{Flush: time.Millisecond}, 3, 200)
	tp.end(t)
	whole, err := os.ReadFile(tp.path)
	if err != nil {
		t.Fatal(err)
	}
	list := frames(t, whole)
	for i := 1; i < len(list); i++ {
		path := filepath.Join(t.TempDir(), "cut.llmtop")
		if err := os.WriteFile(path, whole[:list[i].off+5], fileMode); err != nil {
			t.Fatal(err)
		}
		r, tokens, _ := byEngine(t, path)
		if len(r.Engines) == 0 || r.Damage().Torn == 0 {
			t.Errorf("cut in frame %d of %d: sources %v, tokens %v, damage %+v", i, len(list), r.Engines, tokens, r.Damage())
		}
	}
}

// TestPlayerRoutesEventsByEngine checks that each engine's events go to its own sink.
func TestPlayerRoutesEventsByEngine(t *testing.T) {
	tp := recordEngines(t, RecordOptions{}, 3, 10)
	tp.end(t)
	rec, err := Open(tp.path)
	if err != nil {
		t.Fatal(err)
	}
	defer rec.Close()
	got := map[int]int{}
	p, err := NewPlayer(rec, PlayOptions{
		Speed: Unpaced, StopAtEnd: true,
		SinkFor: func(source int) event.Sink {
			return sinkFunc(func(event.Event) { got[source]++ })
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Run(context.Background(), nil); err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(map[int]int{0: 12, 1: 12, 2: 12}, got); d != "" {
		t.Errorf("events (-want +got):\n%s", d)
	}
}

type sinkFunc func(event.Event)

func (f sinkFunc) Emit(e event.Event) { f(e) }

func TestEnginesBeyondTheLimitCountAsDropped(t *testing.T) {
	tp := record(t, RecordOptions{MultiEngine: true})
	for range MaxEngines {
		tp.AddEngine(EngineEntry{Name: strings.Repeat("é", maxName)})
	}
	tp.AddEngine(EngineEntry{Name: "one too many"}).Emit(event.Event{Kind: event.KindLog})
	tp.AddEngine(EngineEntry{Name: "another"}).Emit(event.Event{Kind: event.KindLog})
	tp.end(t)
	if drops := tp.Status().Dropped; drops[event.KindLog] != 2 {
		t.Errorf("dropped %v", drops)
	}
}
