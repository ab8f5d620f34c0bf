//go:build unix

package program_test

import (
	"context"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/google/go-cmp/cmp"
	"github.com/hinshun/vt10x"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/recording"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/profiler/store/storetest"
	"github.com/llmtop/llmtop/runtime/engine"
	scrape "github.com/llmtop/llmtop/runtime/source/scrape/engine"
	"github.com/llmtop/llmtop/runtime/source/scrape/fleet"
	"github.com/llmtop/llmtop/ui"
)

// taped holds engines that are watched and recorded together.
type taped struct {
	t        *testing.T
	clock    engine.Clock
	recorder *recording.Recorder
	file     string

	mu     sync.Mutex // guards the fields below
	names  []string
	stores []*store.Store
}

func newTaped(t *testing.T) *taped {
	w := &taped{t: t, clock: engine.NewClock(), file: filepath.Join(t.TempDir(), "session.llmtop")}
	var err error
	w.recorder, err = recording.Record(w.file, recording.RecordOptions{
		Now: w.clock.Now, Epoch: w.clock.Epoch(), Program: "test", MultiEngine: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	return w
}

func (w *taped) wall() time.Time { return time.Unix(0, w.clock.Epoch()+int64(w.clock.Now())) }

// meet adds an engine.
func (w *taped) meet(name string) event.Sink {
	w.mu.Lock()
	defer w.mu.Unlock()
	s := store.New(store.Options{Now: w.clock.Now, Wall: w.wall})
	w.names, w.stores = append(w.names, name), append(w.stores, s)
	return event.Tee{s, w.recorder.AddEngine(recording.EngineEntry{Name: name})}
}

// all returns the stores of all engines so far.
func (w *taped) all() []*store.Store {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.stores)
}

// await waits until n engines satisfy ok.
func (w *taped) await(what string, n int, ok func(*store.Snapshot) bool) {
	w.t.Helper()
	var now int
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		now = 0
		for _, s := range w.all() {
			if ok(s.Snapshot()) {
				now++
			}
		}
		if now == n {
			return
		}
	}
	w.t.Fatalf("%d of %d engines are %s, want %d", now, len(w.all()), what, n)
}

func lost(s *store.Snapshot) bool { return s.Engine.Remote.Link == event.LinkDisconnected }

// finish waits for a quiet moment, ends the recording, and checks that a replay shows the same for each engine at that
// moment. It returns the live snapshots.
func (w *taped) finish(stop func()) (live []*store.Snapshot) {
	t := w.t
	t.Helper()
	for _, s := range w.all() {
		live = append(live, settled(s))
	}
	stop()
	if err := w.recorder.Close(); err != nil {
		t.Fatal(err)
	}
	if lost := w.recorder.Status().Dropped; lost != (event.Drops{}) {
		t.Fatalf("the recording misses %v", lost)
	}
	again := w.replayed(live)
	for i, want := range live {
		want, got := *want, *again[i]
		want.Verdicts, got.Verdicts = nil, nil // they stay for a while, and so depend on earlier frames
		want.Version, got.Version = 0, 0       // depends on them, too
		want.Wall = got.Wall                   // the clock was read twice
		if want.LastActive != nil && got.LastActive != nil {
			last := *want.LastActive
			last.Wall, want.LastActive = got.LastActive.Wall, &last
		}
		if diff := storetest.Diff(&want, &got); diff != "" {
			t.Errorf("%s (-live +replayed):\n%s", w.names[i], diff)
		}
	}
	for _, size := range [][2]int{{80, 24}, {160, 45}} {
		if diff := w.drawnApart(live, again, size[0], size[1]); diff != "" {
			t.Errorf("the list of engines is drawn differently (-live +replayed):\n%s", diff)
		}
	}
	return live
}

// replayed returns what a replay shows of each engine at the time of a snapshot.
func (w *taped) replayed(at []*store.Snapshot) (out []*store.Snapshot) {
	t := w.t
	t.Helper()
	rec, err := recording.Open(w.file)
	if err != nil {
		t.Fatal(err)
	}
	defer rec.Close()
	for i, name := range w.names {
		if got := rec.Engine(i).Name; got != name {
			t.Errorf("source %d is called %q, want %q", i, got, name)
		}
	}
	var player *recording.Player
	stores := make([]*store.Store, len(at))
	reset := func() event.Sink {
		for i := range stores {
			stores[i] = store.New(store.Options{Now: player.Now, Wall: player.Wall})
		}
		return nil
	}
	now := time.Unix(0, 0)
	player, err = recording.NewPlayer(rec, recording.PlayOptions{
		Paused: true, Reset: reset, Clock: func() time.Time { return now },
		SinkFor: func(n int) event.Sink { return stores[n] },
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := player.Begin(reset()); err != nil {
		t.Fatal(err)
	}
	for i, want := range at {
		if err := errorsOf(player.SeekTime(want.Now), player.Advance()); err != nil {
			t.Fatal(err)
		}
		out = append(out, stores[i].Snapshot())
	}
	return out
}

func errorsOf(all ...error) error {
	for _, err := range all {
		if err != nil {
			return err
		}
	}
	return nil
}

// drawnApart returns the difference of two lists of engines on the screen, "" if absent. Frames may arrive in
// pieces: only a lasting difference counts.
func (w *taped) drawnApart(live, again []*store.Snapshot, cols, rows int) (diff string) {
	ours, theirs := w.draw(live, cols, rows), w.draw(again, cols, rows)
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if diff = cmp.Diff(strings.Split(ours.text(), "\n"), strings.Split(theirs.text(), "\n")); diff == "" {
			break
		}
	}
	return diff
}

// draw shows view 7 of some engines until the test ends, and waits for the last row.
func (w *taped) draw(of []*store.Snapshot, cols, rows int) *program {
	t := w.t
	t.Helper()
	ours, theirs, err := pty.Open()
	if err != nil {
		t.Fatal(err)
	}
	if err := pty.Setsize(ours, &pty.Winsize{Cols: uint16(cols), Rows: uint16(rows)}); err != nil {
		t.Fatal(err)
	}
	p := &program{tty: ours, screen: vt10x.New(vt10x.WithSize(cols, rows)), done: make(chan struct{})}
	go p.readRunes()
	var sessions []ui.Session
	for i, s := range of {
		sessions = append(sessions, ui.Session{Name: w.names[i], Snapshots: func() *store.Snapshot { return s }})
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() {
		ended <- ui.Run(ctx, ui.Config{
			Sessions: func() []ui.Session { return sessions }, Input: theirs, Output: theirs, Environ: append(os.Environ(), "TERM=xterm-256color"),
		})
	}()
	t.Cleanup(func() {
		stop()
		<-ended
		_ = theirs.Close()
		<-p.done
		_ = ours.Close()
	})
	p.waitFor(t, "llmtop", "median", "quit")
	return p
}

// TestRecordedServersAreReplayedTogether records three servers, one of which stops, and checks that a replay has the
// same state of each and draws the same table.
func TestRecordedServersAreReplayedTogether(t *testing.T) {
	t.Parallel()
	w := newTaped(t)
	ctx, cancel := context.WithCancel(context.Background())
	var sources sync.WaitGroup
	stop := func() { cancel(); sources.Wait() }
	defer stop()
	servers := []*fakeServer{newFakeServer(t), newFakeServer(t), newFakeServer(t)}
	for _, f := range servers {
		source, err := scrape.New(scrape.Options{Address: f.URL, Interval: 50 * time.Millisecond, Clock: w.clock})
		if err != nil {
			t.Fatal(err)
		}
		sink := w.meet(source.Address())
		sources.Add(1)
		go func() {
			defer sources.Done()
			if err := source.Run(ctx, sink); err != nil {
				t.Error(err)
			}
		}()
	}
	w.await("working", 3, func(s *store.Snapshot) bool { return s.Counts.GeneratedTokens > 100 })
	servers[1].set(true, 1000)
	w.await("down", 1, lost)
	stop()
	live := w.finish(func() {})
	if r := live[1].Engine.Remote; !lost(live[1]) || r.Since == 0 || r.Reason == "" {
		t.Errorf("the one that went down is %+v", r)
	}
}

// fakePrometheus scrapes replicas of vLLM. One of them is slow, and one goes down.
type fakePrometheus struct {
	*httptest.Server
	mu       sync.Mutex
	now      float64 // s since 1970
	every    float64 // s between scrapes
	replicas int
	down     int // index of the replica that is down; -1: none
}

func newFakePrometheus(t *testing.T, replicas int) *fakePrometheus {
	f := &fakePrometheus{now: 1_700_000_000, every: 15, replicas: replicas, down: -1}
	f.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f.mu.Lock()
		defer f.mu.Unlock()
		at := f.now
		if text := r.URL.Query().Get("time"); text != "" {
			_, _ = fmt.Sscan(text, &at)
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{"status":"success","data":{"resultType":"vector","result":[`+strings.Join(f.answer(r.URL.Query().Get("query"), at), ",")+`]}}`)
	}))
	t.Cleanup(f.Close)
	return f
}

func (f *fakePrometheus) later(seconds float64, down int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.now, f.down = f.now+seconds, down
}

func (f *fakePrometheus) answer(query string, at float64) (out []string) {
	add := func(labels string, v float64) {
		out = append(out, fmt.Sprintf(`{"metric":{%s},"value":[%f,"%v"]}`, labels, at, v))
	}
	scraped := math.Floor(at/f.every)*f.every + f.every/30
	if strings.HasPrefix(query, "count by(__name__)") {
		for _, name := range []string{"num_requests_running", "num_requests_waiting", "generation_tokens_total", "time_to_first_token_seconds_bucket", "time_to_first_token_seconds_sum", "time_to_first_token_seconds_count"} {
			add(`"__name__":"vllm:`+name+`"`, float64(f.replicas))
		}
		return out
	}
	for i := range f.replicas {
		of := fmt.Sprintf(`"instance":"10.0.0.%d:8000","job":"llm","pod":"vllm-%02d"`, i, i)
		up := 1.0
		if i == f.down {
			up = 0
		}
		switch {
		case strings.HasPrefix(query, "up{"):
			add(`"__name__":"up",`+of, up)
		case strings.HasPrefix(query, "timestamp(up{"):
			add(of, scraped)
		case strings.HasPrefix(query, "max_over_time(timestamp("):
			add(of, at-600)
		case strings.HasPrefix(query, `{__name__=~"vllm:`) && up == 1:
			n, slow := 10*(scraped-1.6e9), 1.0
			if i == 7 {
				slow = 0.5
			}
			of = `"model_name":"org/fake",` + of
			add(`"__name__":"vllm:num_requests_running",`+of, float64(3+i%4))
			add(`"__name__":"vllm:num_requests_waiting",`+of, float64(i%3))
			add(`"__name__":"vllm:generation_tokens_total",`+of, 20*n)
			add(`"__name__":"vllm:time_to_first_token_seconds_bucket","le":"0.25",`+of, n*slow*0.9)
			add(`"__name__":"vllm:time_to_first_token_seconds_bucket","le":"2.5",`+of, n)
			add(`"__name__":"vllm:time_to_first_token_seconds_bucket","le":"+Inf",`+of, n)
			add(`"__name__":"vllm:time_to_first_token_seconds_sum",`+of, n*0.2/slow)
			add(`"__name__":"vllm:time_to_first_token_seconds_count",`+of, n)
		}
	}
	return out
}

// TestRecordedFleetIsReplayed records 50 replicas of a Prometheus, one of which goes down.
func TestRecordedFleetIsReplayed(t *testing.T) {
	t.Parallel()
	f, w := newFakePrometheus(t, 50), newTaped(t)
	source, err := fleet.New(fleet.Options{Address: f.URL, Interval: 50 * time.Millisecond, Clock: w.clock, OnReplica: w.meet})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- source.Run(ctx, event.Tee{}) }()
	working := func(s *store.Snapshot) bool { return s.Aggregates.Running.OK() && !lost(s) }
	w.await("working", 50, working)
	f.later(15, 13)
	w.await("down", 1, lost)
	w.finish(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// TestRecordSeveral records servers without a terminal, one of which stops. The replay shows which one, and the report
// has them all.
func TestRecordSeveral(t *testing.T) {
	t.Parallel()
	servers := []*fakeServer{newFakeServer(t), newFakeServer(t), newFakeServer(t)}
	dir := t.TempDir()
	file := filepath.Join(dir, "session.llmtop")
	p := startWithKey(t, dir, "attach", "--record", file, "--interval", "100ms", servers[0].URL, servers[1].URL, servers[2].URL)
	p.waitFor(t, "3 replicas", "live", "REC")
	time.Sleep(time.Second) // several polls
	servers[1].set(true, 1000)
	p.waitFor(t, "1 DISCONNECTED", "median of 2 connected")
	time.Sleep(time.Second)
	p.keys(t, "q")
	if code := p.exit(t); code != 0 {
		t.Fatalf("exit code %d", code)
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(raw), "secret") {
		t.Error("the key is in the recording")
	}
	q := start(t, 160, 45, "replay", file)
	q.waitFor(t, "3 replicas", "REPLAY")
	q.keys(t, "\x1b[F")
	q.waitFor(t, "DISCONNECTED", "connected", "ended")
	q.keys(t, "\x1b[H ")
	q.waitFor(t, "paused", "starting") // no data yet
	q.keys(t, "\x1b[F\x1b[B\r")
	q.waitFor(t, "/3 http://127.0.0.1")
	q.keys(t, "q")
	q.exit(t)
	path := binary(t)
	for _, args := range [][]string{{"replay", file, "--headless"}, {"report", file}, {"report", file, "--json", "-"}, {"report", file, "--csv", "-"}, {"report", file, "--html", "-"}} {
		out, err := exec.Command(path, args...).Output()
		if err != nil {
			t.Errorf("%v: %v", args, err)
		}
		wants := []string{servers[0].URL, servers[1].URL, servers[2].URL, "org/fake", "disconnected"}
		if slices.Contains(args, "--csv") { // it has only numbers
			wants = []string{servers[0].URL + ",running,3,", servers[1].URL, servers[2].URL, "generated_tokens"}
		}
		for _, want := range wants {
			if !strings.Contains(string(out), want) {
				t.Errorf("%v: there is no %q in\n%s", args, want, out)
			}
		}
	}
	r := start(t, 160, 100, "report", file, "--engine", "http://127.0.0.1")
	r.waitFor(t, "must match one of", servers[0].URL)
	if code := r.exit(t); code != 2 {
		t.Errorf("exit code %d, want 2", code)
	}
}
