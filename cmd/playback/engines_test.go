package playback

import (
	"io"
	"path/filepath"
	"testing"

	"github.com/llmtop/llmtop/cmd/session"
	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/recording"
	"github.com/llmtop/llmtop/profiler/report"
)

// A report of a recording has every event of every engine, however short the queues of their stores are.
func TestReportLosesNothing(t *testing.T) {
	const tokens = 3 * session.ServerQueue
	for _, several := range []bool{false, true} {
		file := filepath.Join(t.TempDir(), "session.llmtop")
		recorder, err := recording.Record(file, recording.RecordOptions{
			Now: func() event.Time { return 1 }, Program: "test", MultiEngine: several,
		})
		if err != nil {
			t.Fatal(err)
		}
		sinks := []event.Sink{recorder}
		if several {
			sinks = []event.Sink{recorder.AddEngine(recording.EngineEntry{Name: "a"}), recorder.AddEngine(recording.EngineEntry{Name: "b"})}
		}
		for _, s := range sinks {
			s.Emit(event.Event{Kind: event.KindRequest, At: 1, Req: 1, Layer: -1, State: event.StateQueued})
		}
		for i := range tokens {
			for _, s := range sinks {
				s.Emit(event.Event{Kind: event.KindToken, At: event.Time(1 + i), Req: 1, Layer: -1, N: 1, Index: int32(i)})
			}
		}
		if err := recorder.Close(); err != nil {
			t.Fatal(err)
		}
		if dropped := recorder.Status().Dropped; dropped != (event.Drops{}) {
			t.Fatalf("the recording misses %v", dropped)
		}
		built, err := ReadReport(t.Context(), file, nil, io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		engines := []*report.Report{built}
		if several {
			engines = nil
			for _, name := range []string{"a", "b"} {
				engines = append(engines, built.Fleet.Find(name))
			}
		}
		for _, r := range engines {
			if lost, got := r.Dropped["token"], r.Totals.GeneratedTokens.V; lost != 0 || got != tokens {
				t.Errorf("several engines %v: lost %d events, %v of %d tokens", several, lost, got, tokens)
			}
		}
	}
}
