package recording

import (
	"bytes"
	"encoding/binary"
	"math"
	"testing"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/event/wire"
	"github.com/llmtop/llmtop/profiler/store"
)

// segmentWithTimes returns a segment with frames of four entries each: an engine, a queued request, a token of it, and
// aggregates. The frame header has first and last; the entries are step apart, and their events are stamped with at.
func segmentWithTimes(t testing.TB, h Header, first, last, step, at int64) []byte {
	t.Helper()
	var c wire.Codec
	frame := func(id event.RequestID) func(f *frame) []byte {
		return func(f *frame) []byte {
			var body []byte
			for _, e := range []event.Event{
				{Kind: event.KindEngine, Layer: -1, Data: &event.EngineInfo{Name: "e"}},
				{Kind: event.KindRequest, Req: id, State: event.StateQueued, Data: &event.Request{}},
				{Kind: event.KindToken, Req: id, ID: -1, N: 1},
				{Kind: event.KindAggregates, Data: &event.Aggregates{Interval: int64(time.Second), Running: event.ReportedValue(1)}},
			} {
				e.At = event.Time(at)
				line, err := c.Append(nil, &e)
				if err != nil {
					t.Fatal(err)
				}
				body = binary.AppendVarint(body, step)
				body = binary.AppendUvarint(body, uint64(len(line)))
				body = append(body, line...)
				f.entries++
			}
			f.first, f.last = event.Time(first), event.Time(last)
			return body
		}
	}
	return segmentWith(t, h, frame(1), frame(2), frame(3))
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
		s = store.New(store.Options{Now: p.Now, Wall: p.Wall, History: 1 << 16})
		return s
	}
	p, err = NewPlayer(rec, PlayOptions{Codec: func() Codec { return &wire.Codec{} }, Speed: Unpaced, StopAtEnd: true, Reset: fresh, Drain: look})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Run(t.Context(), fresh()); err != nil {
		t.Fatal(err)
	}
	look()
	from, to := s.HistoryReader().Range()
	for _, at := range []event.Time{from, from/2 + to/2, to} {
		s.HistoryReader().At(at)
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

// TestImplausibleTimesAreDamage checks that a frame with implausible times counts as damage and that the frames around
// it are read.
func TestImplausibleTimesAreDamage(t *testing.T) {
	good := func(f *frame) []byte { f.entries = 1; return []byte{2, 1, 'a'} }
	for name, bad := range map[string]func(f *frame) []byte{
		"of a frame":  func(f *frame) []byte { f.entries, f.first = 1, math.MaxInt64; return []byte{2, 1, 'x'} },
		"of an entry": func(f *frame) []byte { f.entries = 1; return append(binary.AppendVarint(nil, 1<<62), 1, 'x') },
		"that overflow": func(f *frame) []byte {
			f.entries, f.first = 1, event.MaxTime
			return append(binary.AppendVarint(nil, math.MaxInt64), 1, 'x')
		},
		"that underflow": func(f *frame) []byte {
			f.entries, f.first = 1, -event.MaxTime
			return append(binary.AppendVarint(nil, math.MinInt64), 1, 'x')
		},
		"of a frame's last": func(f *frame) []byte { f.entries, f.last = 1, math.MinInt64; return []byte{2, 1, 'x'} },
	} {
		file := segmentOf(t, good, bad, good)
		r, err := recordingOf(bytes.NewReader(file), int64(len(file)))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		c, lines := r.Cursor(0), ""
		for {
			e, err := c.Next()
			if err != nil {
				break
			}
			lines += string(e.Line)
		}
		if d := c.Damage(); lines != "aa" || d.Frames+int(d.Bytes) == 0 {
			t.Errorf("times %s: read %q with damage %+v", name, lines, d)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
	for name, h := range map[string]Header{"start": headerOf(math.MaxInt64, 0), "epoch": headerOf(0, math.MinInt64)} {
		if _, err := walk(segmentWith(t, h)); err == nil {
			t.Errorf("a header with an implausible %s is accepted", name)
		}
	}
}

func headerOf(start, epoch int64) Header {
	return Header{Recording: "r", Codec: (*wire.Codec)(nil).Name(), Start: event.Time(start), Epoch: epoch}
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
