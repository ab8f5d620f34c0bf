package recording

import (
	"bytes"
	"math"
	"testing"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/event/catchup"
	"github.com/llmtop/llmtop/profiler/store"
)

// segmentWithTimes returns a segment with three frames of four lines each: an engine, a queued request, a token of it,
// and aggregates. The recorder received the first line at first, the last one at last, and the others in steps; their
// events are stamped with at.
func segmentWithTimes(t testing.TB, h Header, first, last, step, at int64) []byte {
	t.Helper()
	w, file := inMemory(t, h)
	for id := range event.RequestID(3) {
		var b block
		received := first
		for i, e := range []event.Event{
			{Kind: event.KindEngine, Layer: -1, Data: &event.EngineInfo{Name: "e"}},
			{Kind: event.KindRequest, Req: id + 1, State: event.StateQueued, Data: &event.Request{}},
			{Kind: event.KindToken, Req: id + 1, ID: -1, N: 1},
			{Kind: event.KindAggregates, Data: &event.Aggregates{Interval: int64(time.Second), Running: event.ReportedValue(1)}},
		} {
			if i == 3 {
				received = last
			}
			e.At = event.Time(at)
			if err := b.add(&catchup.Entry{Event: e, Arrived: event.Time(received)}); err != nil {
				t.Fatal(err)
			}
			received += step
		}
		if err := w.frame(b.lines); err != nil {
			t.Fatal(err)
		}
	}
	return file.b
}

// playWhole plays a segment as fast as possible into a store, checks the store whenever it is drained, and goes back in
// its history.
func playWhole(t testing.TB, file []byte) {
	t.Helper()
	rec, err := recordingOf(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		return // refused
	}
	defer rec.Close()
	var s *store.Store
	var p *Player
	look := func() {
		v := s.Snapshot()
		if !v.Now.Plausible() || !v.Started.Plausible() || v.Now < 0 {
			t.Fatalf("the clock of the store is at %d, started at %d", v.Now, v.Started)
		}
		points := v.Throughput.Series.Points(nil)
		for i, point := range points {
			if point.At < 0 || i > 0 && point.At <= points[i-1].At {
				t.Fatalf("seconds are out of order: %d, then %d", points[max(i-1, 0)].At, point.At)
			}
		}
	}
	fresh := func() event.Sink {
		s = store.New(store.Options{Now: p.Now, Wall: p.Wall, Past: store.NewPastBudget(0)})
		return s
	}
	p, err = NewPlayer(rec, PlayOptions{Speed: Unpaced, StopAtEnd: true, Reset: fresh, Drain: look})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Run(t.Context(), fresh()); err != nil {
		t.Fatal(err)
	}
	look()
	from, to := s.Past().Range()
	for _, at := range []event.Time{from, from/2 + to/2, to} {
		s.Past().At(at)
	}
	if st := p.Status(); st.State != Ended || !st.Now.Plausible() {
		t.Errorf("the replay is %v at %d", st.State, st.Now)
	}
}

// extremeTimes are times that a damaged or forged recording may contain.
var extremeTimes = []int64{
	0, 1, -1, 1e9, -1e9, int64(event.MaxTime), int64(event.MaxTime) - 1, -int64(event.MaxTime), int64(event.MaxTime) + 1,
	1 << 62, -1 << 62, math.MaxInt64 - 1, math.MaxInt64, math.MinInt64, math.MinInt64 + 1,
}

// TestReplayOfExtremeTimes checks that implausible times are refused and plausible ones are added without overflow.
func TestReplayOfExtremeTimes(t *testing.T) {
	for _, first := range extremeTimes {
		for _, step := range extremeTimes {
			playWhole(t, segmentWithTimes(t, headerOf(0, 0), first, first, step, 1))
		}
		playWhole(t, segmentWithTimes(t, headerOf(first, 0), 5, first, 7, 1))
		playWhole(t, segmentWithTimes(t, headerOf(0, first), first, 5, 7, 1))
		if event.Time(first).Plausible() {
			playWhole(t, segmentWithTimes(t, headerOf(0, 0), 5, 5, 7, first))
		}
	}
}

// TestImplausibleTimesAreDamage checks that a line with an implausible time counts as damage and that the lines around
// it are read.
func TestImplausibleTimesAreDamage(t *testing.T) {
	const good = `{"at":5,"t":"log"}` + "\n"
	for _, at := range []string{"4000000000000000001", "-4000000000000000001", "9223372036854775807", "99999999999999999999", "1e9", "null", `"5"`, "-", ""} {
		lines, d, err := walk(segmentOf(t, good, good+`{"at":`+at+`,"t":"log"}`+"\n"+good, good))
		if err != nil || lines != 4*len(`{"t":"log"}`) || d != (Damage{Lines: 1}) {
			t.Errorf("time %s: read %d bytes of lines with damage %+v, %v", at, lines, d, err)
		}
	}
	for name, h := range map[string]Header{"start": headerOf(math.MaxInt64, 0), "epoch": headerOf(0, math.MinInt64)} {
		_, file := inMemory(t, h)
		if _, _, err := walk(file.b); err == nil {
			t.Errorf("a header with an implausible %s is accepted", name)
		}
	}
}

func headerOf(start, epoch int64) Header {
	return Header{ID: "r", Start: event.Time(start), Epoch: epoch}
}

// FuzzPlay plays recordings with arbitrary times.
func FuzzPlay(f *testing.F) {
	for _, v := range extremeTimes {
		f.Add(int64(0), int64(0), v, v, v, v)
		f.Add(v, v, int64(5), int64(9), int64(1), v)
	}
	f.Fuzz(func(t *testing.T, start, epoch, first, last, step, at int64) {
		playWhole(t, segmentWithTimes(t, headerOf(start, epoch), first, last, step, at))
	})
}
