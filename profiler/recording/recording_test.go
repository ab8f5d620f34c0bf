package recording

import (
	"bytes"
	"errors"
	"io"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/event/eventtest"
)

// frames returns the frames of a segment and their offsets.
func frames(t testing.TB, file []byte) (list []frame, at []int64) {
	t.Helper()
	r, err := recordingOf(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	s := r.scanner(r.segments[0])
	for {
		off := s.off
		f, err := s.next()
		if err == io.EOF {
			return list, at
		}
		if err != nil {
			t.Fatal(err)
		}
		list, at = append(list, f), append(at, off)
	}
}

// manyFrames returns a segment with n frames of 10 tokens each, and the end note.
func manyFrames(t testing.TB, n int) []byte {
	t.Helper()
	for range 50 {
		tp := record(t, RecordOptions{Flush: time.Millisecond})
		for i := range n {
			tp.token(event.RequestID(i+1), 10)
			tp.settle(t, uint64(i+1)*10)
		}
		tp.end(t)
		file, err := os.ReadFile(tp.path)
		if err != nil {
			t.Fatal(err)
		}
		if list, _ := frames(t, file); len(list) == n+1 {
			return file
		} // try again: the flush tick split the tokens of a request
	}
	t.Fatal("no recording has a frame for each request")
	return nil
}

// ids returns the requests of the tokens in a segment, and its damage.
func ids(t testing.TB, file []byte) (got []event.RequestID, d Damage, err error) {
	t.Helper()
	r, err := recordingOf(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		return nil, d, err
	}
	defer r.Close()
	c := r.Cursor(0)
	for _, e := range rest(t, c) {
		got = append(got, e.Req)
	}
	return slices.Compact(got), c.Damage(), nil
}

func TestTornTailLosesOnlyTheTail(t *testing.T) {
	file := manyFrames(t, 3)
	_, at := frames(t, file)
	if len(at) < 4 {
		t.Fatalf("%d frames", len(at))
	}
	last := at[len(at)-2] // before the note at the end
	for cut := last; cut < int64(len(file)); cut += int64(eventtest.Step(13)) {
		got, d, err := ids(t, file[:cut])
		if err != nil {
			t.Fatal(err)
		}
		want := []event.RequestID{1, 2, 3}
		torn := cut - at[len(at)-1]
		if torn < 0 {
			want, torn = want[:2], cut-last
		}
		if !slices.Equal(got, want) || d.Torn != torn {
			t.Fatalf("cut at %d of %d: requests %v, damage %+v; want %v and %d torn", cut, len(file), got, d, want, torn)
		}
	}
}

func TestChangedBytesLoseOnlyTheirFrame(t *testing.T) {
	file := manyFrames(t, 3)
	_, at := frames(t, file)
	for off := at[1]; off < at[2]; off += int64(eventtest.Step(13)) {
		bad := slices.Clone(file)
		bad[off] ^= 0x10
		got, d, err := ids(t, bad)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got, []event.RequestID{1, 3}) || (d.Frames == 0 && d.Bytes != at[2]-at[1]) || d.Torn != 0 {
			t.Fatalf("byte %d of the frame at %d: requests %v, damage %+v", off-at[1], at[1], got, d)
		}
	}
}

func TestDamagedHeadersAreRefused(t *testing.T) {
	file := manyFrames(t, 1)
	_, at := frames(t, file)
	for off := range at[0] {
		bad := slices.Clone(file)
		bad[off] ^= 0x10
		if _, _, err := ids(t, bad); err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("byte %d of the header: %v", off, err)
		}
	}
	for cut := range at[0] {
		if _, _, err := ids(t, file[:cut]); err == nil {
			t.Errorf("a file of %d bytes is accepted", cut)
		}
	}
	if _, _, err := ids(t, []byte("{\"schema\": \"something else\"}\n")); !errors.Is(err, ErrNotRecording) {
		t.Errorf("a text file: %v", err)
	}
}

func TestNewerVersionIsRefused(t *testing.T) {
	file := manyFrames(t, 1)
	le.PutUint16(file[8:], severalVersion+1)
	const want = "read recording: its format has version 3, this llmtop reads up to 2: use a newer llmtop"
	if _, _, err := ids(t, file); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestFramesOfUnknownKindsAreSkipped(t *testing.T) {
	file := manyFrames(t, 3)
	list, at := frames(t, file)
	list[1].kind = 'Z'
	list[1].put(file[at[1]:])
	got, d, err := ids(t, file)
	if err != nil || !slices.Equal(got, []event.RequestID{1, 3}) || d != (Damage{}) {
		t.Errorf("requests %v, damage %+v, %v", got, d, err)
	}
}

// rotated records requests into segments of one frame each, with one request that runs throughout.
func rotated(t testing.TB, segments, keep int) (*tape, []event.Event) {
	t.Helper()
	tp := record(t, RecordOptions{Flush: time.Millisecond, SegmentBytes: 1, Segments: keep})
	var all []event.Event
	emit := func(e event.Event) {
		tp.emit(e)
		e.At = tp.time()
		all = append(all, e)
	}
	emit(event.Event{Kind: event.KindEngine, Layer: -1, Data: &event.EngineInfo{Name: "native"}})
	emit(event.Event{Kind: event.KindRequest, Layer: -1, Req: 77, State: event.StateQueued, Data: &event.Request{Group: "long"}})
	emit(event.Event{Kind: event.KindToken, Layer: -1, Req: 77, N: 1})
	for i := range segments {
		id := event.RequestID(i + 1)
		emit(event.Event{Kind: event.KindRequest, Layer: -1, Req: id, State: event.StateQueued, Data: &event.Request{}})
		emit(event.Event{Kind: event.KindToken, Layer: -1, Req: 77, N: 2, Index: int32(1 + 2*i)})
		emit(event.Event{Kind: event.KindRequest, Layer: -1, Req: id, State: event.StateFinished, Data: &event.Outcome{}})
		tp.settle(t, uint64(len(all)))
	}
	tp.end(t)
	return tp, all
}

func TestSegmentsReadAsOne(t *testing.T) {
	tp, want := rotated(t, 5, 100)
	r, got, c := read(t, tp.path)
	if r.Segments < 5 || r.MissingSegments != 0 || c.Damage() != (Damage{}) || r.EndReason != "closed" {
		t.Errorf("recording: %+v, %+v", r, c.Damage())
	}
	if len(got) != len(want) || r.Entries != uint64(len(want)) {
		t.Fatalf("%d events, want %d", len(got), len(want))
	}
	for i := range got {
		if got[i].At != want[i].At || got[i].Kind != want[i].Kind || got[i].Req != want[i].Req {
			t.Errorf("event %d is %+v, want %+v", i, got[i], want[i])
		}
	}
}

func TestEachSegmentIsReadAlone(t *testing.T) {
	tp, _ := rotated(t, 5, 100)
	_, got, _ := read(t, segmentName(tp.path, 3))
	var engine, begun bool
	tokens := int32(0)
	for _, e := range got {
		engine = engine || e.Kind == event.KindEngine
		if e.Kind == event.KindRequest && e.Req == 77 {
			begun = e.Data.(*event.Request).Group == "long"
		}
		if e.Kind == event.KindRequest && e.Req == 1 {
			t.Error("a request that had ended before is in the state")
		}
		if e.Kind == event.KindToken && e.Req == 77 {
			if e.Index != tokens {
				t.Errorf("token with index %d after %d tokens", e.Index, tokens)
			}
			tokens += e.N
		}
	}
	if !engine || !begun || tokens < 7 {
		t.Errorf("engine %v, request %v, %d tokens", engine, begun, tokens)
	}
}

func TestOldSegmentsAreRemoved(t *testing.T) {
	tp, _ := rotated(t, 6, 2)
	numbers, err := segments(tp.path)
	if err != nil {
		t.Fatal(err)
	}
	r, err := Open(tp.path)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if len(numbers) != 1 || r.Segments != 2 || r.MissingSegments != numbers[0]-1 {
		t.Errorf("segments %v, opened %d, missing %d", numbers, r.Segments, r.MissingSegments)
	}
	c, gaps := r.Cursor(0), 0
	for {
		e, err := c.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if c.Gap() {
			gaps++
			if !e.State {
				t.Error("the entry after a gap is not part of the state")
			}
		}
	}
	if gaps != 1 {
		t.Errorf("%d gaps, want 1", gaps)
	}
}

func TestSegmentOfAnotherRecordingIsSkipped(t *testing.T) {
	tp, _ := rotated(t, 2, 100)
	other, err := os.ReadFile(segmentName(tp.path, 1))
	if err != nil {
		t.Fatal(err)
	}
	mine, want := rotated(t, 1, 100)
	if err := os.WriteFile(segmentName(mine.path, 9), other, 0o600); err != nil {
		t.Fatal(err)
	}
	if r, got, _ := read(t, mine.path); len(got) != len(want) || r.MissingSegments != 0 {
		t.Errorf("%d events, want %d; %d segments missing", len(got), len(want), r.MissingSegments)
	}
}

// TestConditions checks that every segment has the conditions of the session, and that conditions that do not fit in
// the header do not prevent the recording.
func TestConditions(t *testing.T) {
	want := &Conditions{Command: "run", Settings: map[string]string{"threads": "2"}, OS: "linux", Arch: "amd64", CPU: "a CPU", Cores: 2, Local: true}
	for name, c := range map[string]struct{ given, want *Conditions }{
		"typical": {want, want}, "none": {}, "too long": {given: &Conditions{Settings: map[string]string{"attach": strings.Repeat("x", maxHeader)}}},
	} {
		tp := record(t, RecordOptions{Conditions: c.given})
		tp.token(1, 10)
		tp.end(t)
		r, err := Open(tp.path)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if !reflect.DeepEqual(r.Conditions, c.want) {
			t.Errorf("%s: %+v, want %+v", name, r.Conditions, c.want)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}
