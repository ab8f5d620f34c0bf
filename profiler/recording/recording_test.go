package recording

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/event/eventtest"
)

// frames returns the frames of a segment after the header's.
func frames(t testing.TB, file []byte) []frame {
	t.Helper()
	r, err := recordingOf(bytes.NewReader(file), int64(len(file)))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	return r.segments[0].frames
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
		if len(frames(t, file)) == n+1 {
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
	at := frames(t, file)
	last, end := at[len(at)-2].off, at[len(at)-1].off // the note at the end
	for cut := last; cut < int64(len(file)); cut += int64(eventtest.Step(13)) {
		got, d, err := ids(t, file[:cut])
		if err != nil {
			t.Fatal(err)
		}
		want, torn := []event.RequestID{1, 2, 3}, cut-end
		if torn < 0 {
			want, torn = want[:2], cut-last
		}
		if !slices.Equal(got, want) || d != (Damage{Torn: torn}) {
			t.Fatalf("cut at %d of %d: requests %v, damage %+v; want %v and %d torn", cut, len(file), got, d, want, torn)
		}
	}
}

func TestChangedBytesLoseOnlyTheirFrame(t *testing.T) {
	file := manyFrames(t, 3)
	f, ignored := frames(t, file)[1], 0
	for off := f.off; off < f.end; off += int64(eventtest.Step(13)) {
		for _, bit := range []byte{0x01, 0x08, 0x10, 0x80} {
			bad := slices.Clone(file)
			bad[off] ^= bit
			got, d, err := ids(t, bad)
			if err != nil {
				t.Fatal(err)
			}
			if slices.Equal(got, []event.RequestID{1, 2, 3}) && d == (Damage{}) {
				ignored++ // a reserved bit: the lines are the same
			} else if !slices.Equal(got, []event.RequestID{1, 3}) || d != (Damage{Frames: 1}) && d != (Damage{Bytes: f.end - f.off}) {
				t.Fatalf("bit %#x of byte %d of the frame at %d: requests %v, damage %+v", bit, off-f.off, f.off, got, d)
			}
		}
	}
	if ignored > 8 {
		t.Errorf("%d of the changes were not noticed", ignored)
	}
}

// TestForeignBytesLoseNoFrame checks that every frame around bytes that are none is read, also if the bytes start like
// a frame.
func TestForeignBytesLoseNoFrame(t *testing.T) {
	file := manyFrames(t, 3)
	at := frames(t, file)[1].off
	for _, foreign := range []string{"x", strings.Repeat("foreign ", 10_000), string(magic), string(file[at : at+20])} {
		got, d, err := ids(t, slices.Concat(file[:at], []byte(foreign), file[at:]))
		if err != nil || !slices.Equal(got, []event.RequestID{1, 2, 3}) || d != (Damage{Bytes: int64(len(foreign))}) {
			t.Errorf("after %.10q: requests %v, damage %+v, %v", foreign, got, d, err)
		}
	}
}

func TestDamagedHeadersAreRefused(t *testing.T) {
	file := manyFrames(t, 1)
	first := frames(t, file)[0].off
	for off := range first {
		bad := slices.Clone(file)
		bad[off] ^= 0x08
		if _, _, err := ids(t, bad); err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("byte %d of the header: %v", off, err)
		}
	}
	for cut := range first {
		if _, _, err := ids(t, file[:cut]); err == nil {
			t.Errorf("a file of %d bytes is accepted", cut)
		}
	}
	for name, other := range map[string][]byte{"text": []byte("{\"schema\": \"something else\"}\n"), "nothing": nil, "another frame": file[first:]} {
		if _, _, err := ids(t, other); !errors.Is(err, ErrNotRecording) {
			t.Errorf("a file of %s: %v", name, err)
		}
	}
}

func TestNewerVersionIsRefused(t *testing.T) {
	w, file := inMemory(t, Header{})
	w.off = 0
	if err := w.frame([]byte(`{"recording":"start","version":2,"future":true}` + "\n")); err != nil {
		t.Fatal(err)
	}
	const want = "read recording: its format has version 2, this llmtop reads up to 1: use a newer llmtop"
	if _, _, err := ids(t, file.b); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// TestLinesAreJSON checks that a recording is one JSON object a line for every tool that reads zstd.
func TestLinesAreJSON(t *testing.T) {
	tp := record(t, RecordOptions{MultiEngine: true, Flush: time.Millisecond})
	for i := range 3 {
		sink := tp.AddEngine(EngineEntry{Name: "\xff a \"name\"\n"})
		for _, e := range session() {
			sink.Emit(e)
		}
		tp.settle(t, uint64((i+1)*len(session())))
	}
	tp.end(t)
	file, err := os.Open(tp.path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	r, err := zstd.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	events := 0
	for lines := bufio.NewScanner(r); lines.Scan(); {
		var line struct {
			Recording, T string
			At           int64
			From         int
		}
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil || (line.Recording == "") == (line.T == "") {
			t.Errorf("%s: %v", lines.Bytes(), err)
		}
		if line.T != "" {
			if events++; line.From != (events-1)/len(session()) {
				t.Errorf("line %d is of engine %d", events, line.From)
			}
		}
	}
	if events != 3*len(session()) {
		t.Errorf("%d lines of events", events)
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
	if len(got) != len(want) {
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
