package recording

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/event/wire"
)

// tape is a recorder whose clock advances by a millisecond per event.
type tape struct {
	*Recorder
	path string
	now  atomic.Int64
}

func (tp *tape) time() event.Time { return event.Time(tp.now.Load()) }

// record starts a recording that is closed with the test at the latest.
func record(t testing.TB, opt RecordOptions) *tape {
	t.Helper()
	tp := &tape{path: filepath.Join(t.TempDir(), "session.llmtop")}
	opt.Now, opt.Program, opt.Epoch = tp.time, "test", 1_700_000_000_000_000_000
	r, err := Record(tp.path, opt)
	if err != nil {
		t.Fatal(err)
	}
	tp.Recorder = r
	t.Cleanup(func() { _ = r.Close() })
	return tp
}

// emit emits an event a millisecond after the previous one.
func (tp *tape) emit(e event.Event) {
	e.At = event.Time(tp.now.Add(int64(time.Millisecond)))
	tp.Emit(e)
}

func (tp *tape) token(id event.RequestID, n int) {
	for i := range n {
		tp.emit(event.Event{Kind: event.KindToken, Layer: -1, Req: id, ID: int32(i), N: 1, Index: int32(i)})
	}
}

// unwritable returns an event that no line can have: a stage without a name, or a request without an id.
func unwritable(k event.Kind) event.Event { return event.Event{Kind: k, Layer: -1} }

// settle waits until n events are written.
func (tp *tape) settle(t testing.TB, n uint64) {
	t.Helper()
	for tp.Status().Events < n {
		if err := tp.Status().Err; err != nil {
			t.Fatal(err)
		}
		runtime.Gosched()
		time.Sleep(time.Millisecond)
	}
}

func (tp *tape) end(t testing.TB) {
	t.Helper()
	if err := tp.Close(); err != nil {
		t.Fatal(err)
	}
}

// read returns all events of a recording.
func read(t testing.TB, path string) (r *Recording, events []event.Event, c *Cursor) {
	t.Helper()
	r, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	c = r.Cursor(0)
	return r, rest(t, c), c
}

func rest(t testing.TB, c *Cursor) (events []event.Event) {
	t.Helper()
	for {
		e, err := c.Next()
		if err == io.EOF {
			return events
		}
		if err != nil {
			t.Fatal(err)
		}
		if e.Note != nil {
			continue
		}
		if _, err := new(wire.Decoder).Decode(e.Line, func(e event.Event) { events = append(events, e) }); err != nil {
			t.Fatal(err)
		}
	}
}

// session returns one or more events of each kind.
func session() []event.Event {
	return []event.Event{
		{Kind: event.KindEngine, Layer: -1, Data: &event.EngineInfo{Name: "native", PID: 7, Caps: event.CapSteps}},
		{Kind: event.KindStage, Layer: -1, Stage: event.StageLoadOpen, Dur: 5},
		{Kind: event.KindModel, Layer: -1, Dur: 9, Data: &event.Model{Name: "m", Layers: 2, Experts: 4, ExpertsUsed: 2}},
		{Kind: event.KindRequest, Layer: -1, Req: 1, State: event.StateQueued, Data: &event.Request{Group: "g", Prompt: "hi", MaxTokens: 3}},
		{Kind: event.KindRequest, Layer: -1, Req: 1, State: event.StateDispatched},
		{Kind: event.KindStage, Layer: 1, Req: 1, Stage: event.StageRouter, Dur: 11, N: 4},
		{Kind: event.KindToken, Layer: -1, Req: 1, ID: 3, N: 1, Step: 1, Text: "a\xff", LogP: -.5, HasLogP: true, Top: []event.TopProb{{ID: 3, LogP: -.5, Text: "a"}}, Picks: []uint16{0, 3}, Split: event.Split{Head: 4}},
		{Kind: event.KindStep, Layer: -1, Step: 1, Dur: 20, N: 1, Prompt: 4},
		{Kind: event.KindExperts, Layer: -1, Data: &event.Experts{Layers: 1, Experts: 2, Used: 1, Prompt: []uint64{1, 2}, Decode: []uint64{3, 4}, DecodeTokens: 7}},
		{Kind: event.KindKV, Layer: -1, Data: &event.KV{Used: 5, Total: 64}},
		{Kind: event.KindHost, Layer: -1, Data: &event.Host{Interval: 3, CPU: event.MeasuredValue(.5), NoGPU: "no GPU"}},
		{Kind: event.KindLog, Layer: -1, Text: "line\n"},
		{Kind: event.KindDrops, Layer: -1, Data: &event.Drops{event.KindToken: 2}},
		{Kind: event.KindRequest, Layer: -1, Req: 1, State: event.StateFinished, Data: &event.Outcome{Reason: "stop", Prompt: 4, Generated: 1}},
	}
}

func TestRecordingHoldsWhatWasEmitted(t *testing.T) {
	tp := record(t, RecordOptions{})
	var want []event.Event
	for _, e := range session() {
		tp.emit(e)
		e.At = tp.time()
		want = append(want, e)
	}
	tp.end(t)
	r, got, c := read(t, tp.path)
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("read back (-emitted +read):\n%s", d)
	}
	if r.Begin != event.Time(time.Millisecond) || r.End != tp.time() || r.EndReason != "closed" ||
		r.Program != "test" || r.Dropped != (event.Drops{}) || c.Damage() != (Damage{}) {
		t.Errorf("recording: %+v, damage %+v", r, c.Damage())
	}
	if want := time.Unix(1_700_000_000, 5); !r.Wall(5).Equal(want) {
		t.Errorf("wall clock at 5 ns is %v, want %v", r.Wall(5), want)
	}
	info, err := os.Stat(tp.path)
	if err != nil {
		t.Fatal(err)
	}
	if runtime.GOOS != "windows" && info.Mode().Perm() != 0o600 {
		t.Errorf("mode is %v, want 0600", info.Mode())
	}
	if s := tp.Status(); s.Bytes != info.Size() || s.Events != uint64(len(want)) {
		t.Errorf("status %+v of a file of %d bytes", s, info.Size())
	}
}

func TestSecondRecorderIsRefused(t *testing.T) {
	tp := record(t, RecordOptions{})
	opt := RecordOptions{Now: tp.time}
	for _, replace := range []bool{false, true} {
		opt.Replace = replace
		if _, err := Record(tp.path, opt); err == nil || !strings.HasSuffix(err.Error(), "another recorder is writing to it") {
			t.Errorf("second recorder: %v", err)
		}
	}
	tp.token(1, 3)
	tp.end(t)
	opt.Replace = false
	if _, err := Record(tp.path, opt); err == nil || !strings.Contains(err.Error(), "it exists: choose another name") {
		t.Errorf("recording over another one: %v", err)
	}
	if _, got, _ := read(t, tp.path); len(got) != 3 {
		t.Errorf("the first recording has %d events, want 3", len(got))
	}
	opt.Replace = true
	again, err := Record(tp.path, opt)
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Close(); err != nil {
		t.Fatal(err)
	}
	if _, got, _ := read(t, tp.path); len(got) != 0 {
		t.Errorf("the new recording has %d events, want none", len(got))
	}
}

func TestUnusablePathsAreRefused(t *testing.T) {
	dir := t.TempDir()
	opt := RecordOptions{Now: func() event.Time { return 1 }}
	for _, path := range []string{dir, filepath.Join(dir, "no", "file")} {
		if r, err := Record(path, opt); err == nil {
			_ = r.Close()
			t.Errorf("%s was accepted", path)
		} else if strings.Contains(err.Error(), "\n") {
			t.Errorf("more than a line: %q", err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "f.3"), []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Record(filepath.Join(dir, "f"), opt); err == nil || !strings.Contains(err.Error(), "f.3 exists") {
		t.Errorf("recording before an old segment: %v", err)
	}
}

// smallDisk is a disk of room bytes. Truncated bytes become free again.
type smallDisk struct {
	output
	room int64
}

var errFull = errors.New("no space left on device")

func (d *smallDisk) WriteAt(b []byte, off int64) (int, error) {
	if n := d.room - off; n < int64(len(b)) {
		n, _ := d.output.WriteAt(b[:max(n, 0)], off)
		return n, errFull
	}
	return d.output.WriteAt(b, off)
}

func TestFullDiskEndsTheRecordingOnly(t *testing.T) {
	const room = 40 << 10
	tp := record(t, RecordOptions{Flush: time.Millisecond, first: func(o output) output { return &smallDisk{o, room} }})
	sent := uint64(0)
	for tp.Status().Err == nil {
		tp.token(1, 50)
		sent += 50
		time.Sleep(time.Millisecond)
	}
	tp.token(1, 10)
	sent += 10
	err := tp.Close()
	if !errors.Is(err, errFull) || !strings.HasPrefix(err.Error(), "record to "+tp.path) {
		t.Errorf("close: %v", err)
	}
	r, got, _ := read(t, tp.path)
	s := tp.Status()
	if uint64(len(got)) != s.Events || s.Events+s.Dropped[event.KindToken] != sent || len(got) == 0 {
		t.Errorf("read %d, written %d, dropped %d of %d", len(got), s.Events, s.Dropped[event.KindToken], sent)
	}
	if r.Damage() != (Damage{}) {
		t.Errorf("a frame that did not fit remains: %+v", r.Damage())
	}
}

func TestDropsAreRecorded(t *testing.T) {
	tp := record(t, RecordOptions{Flush: time.Hour})
	tp.token(1, queueSize/4)
	for range 7 {
		tp.emit(unwritable(event.KindStage))
	}
	tp.token(1, 5)
	tp.end(t)
	r, got, _ := read(t, tp.path)
	if r.Dropped != (event.Drops{event.KindStage: 7}) || tp.Status().Dropped != r.Dropped || len(got) != queueSize/4+5 {
		t.Errorf("dropped %v, status %v, read %d", r.Dropped, tp.Status().Dropped, len(got))
	}
	tp.emit(event.Event{Kind: event.KindStage})
	if dropped := tp.Status().Dropped[event.KindStage]; dropped != 8 {
		t.Errorf("dropped after the end %d, want 8", dropped)
	}
}
