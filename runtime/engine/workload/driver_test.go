package workload

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/engine"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// runner ends each request one second after its submission, in virtual time, and accepts at most room requests at a
// time.
type runner struct {
	mu       sync.Mutex
	last     event.RequestID
	open     int
	most     int
	sent     []time.Time
	room     int
	refuse   error
	failing  event.RequestID
	labelled []string
}

func (r *runner) Submit(q engine.Request) (*engine.Handle, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.room > 0 && r.open >= r.room {
		return nil, engine.ErrQueueFull
	}
	if r.refuse != nil {
		return nil, r.refuse
	}
	r.last++
	r.open++
	r.most = max(r.most, r.open)
	r.sent, r.labelled = append(r.sent, time.Now()), append(r.labelled, q.Label)
	var timer *time.Timer
	h, end := engine.NewHandle(r.last, func() { timer.Reset(0) })
	result := engine.Result{State: event.StateFinished}
	if r.last == r.failing {
		result = engine.Result{State: event.StateFailed, Err: errors.New("request failed")}
	}
	timer = time.AfterFunc(time.Second, func() {
		r.mu.Lock()
		r.open--
		r.mu.Unlock()
		end(result)
	})
	return h, nil
}

func (r *runner) Cancel(event.RequestID) {}
func (r *runner) SetPace(float64)        {}

func requests(n int) []engine.Request {
	out := make([]engine.Request, n)
	for i := range out {
		out[i] = engine.Request{Text: "x", Label: string(rune('a' + i))}
	}
	return out
}

func TestClosedLoop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, clock := &runner{}, engine.NewClock()
		var reports []Progress
		d := Driver{Runner: r, Clock: clock, Progress: func(p Progress) { reports = append(reports, p) }}
		w := Workload{Points: []Point{
			{Name: "one", Requests: requests(3), Concurrency: 1},
			{Name: "three", Requests: requests(6), Concurrency: 3},
		}, Repeats: 2, Warmup: 1}
		log, err := d.Run(t.Context(), w)
		if err != nil {
			t.Fatal(err)
		}
		if r.most != 3 {
			t.Errorf("at most %d requests ran concurrently, want 3", r.most)
		}
		if order := strings.Join(r.labelled, ""); order != "aabc"+"aabcdef"+"abc"+"abcdef" {
			t.Errorf("sent %s", order)
		}
		if got := []event.RequestID{2, 3, 4}; !slices.Equal(log.Points[0].Runs[0].Requests, got) {
			t.Errorf("first run: %v, want %v: the warm-up is not part of it", log.Points[0].Runs[0].Requests, got)
		}
		for i, want := range []time.Duration{3 * time.Second, 2 * time.Second} {
			for _, run := range log.Points[i].Runs {
				if took := time.Duration(run.End - run.Start); took != want {
					t.Errorf("%s took %v, want %v", log.Points[i].Point.Name, took, want)
				}
			}
		}
		if last := reports[len(reports)-1]; len(reports) != w.Total() || last.Done != last.Total || last.Repeat != 2 {
			t.Errorf("%d of %d requests were reported, last %+v", len(reports), w.Total(), last)
		}
	})
}

// TestVary: each request is changed in the order of sending, not those of the workload.
func TestVary(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &runner{}
		sent := 0
		p := Point{Name: "one", Requests: requests(2), Concurrency: 1, Vary: func(q *engine.Request) {
			q.Label += strconv.Itoa(sent)
			sent++
		}}
		if _, err := (&Driver{Runner: r, Clock: engine.NewClock()}).Run(t.Context(), Workload{Points: []Point{p}, Repeats: 2, Warmup: 1}); err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(r.labelled, " "); got != "a0 a1 b2 a3 b4" {
			t.Errorf("sent %s", got)
		}
	})
}

func TestOpenLoopDoesNotWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, clock := &runner{}, engine.NewClock()
		d := Driver{Runner: r, Clock: clock}
		began := time.Now()
		log, err := d.Run(t.Context(), Workload{Points: []Point{{Name: "4/s", Requests: requests(8), Rate: 4, Burstiness: math.Inf(1)}}, Repeats: 1})
		if err != nil {
			t.Fatal(err)
		}
		for i, at := range r.sent {
			if want := time.Duration(i) * 250 * time.Millisecond; at.Sub(began) != want {
				t.Errorf("request %d was sent after %v, want %v", i, at.Sub(began), want)
			}
		}
		if late := log.Points[0].Runs[0].SendDelays; len(late) != 8 || slices.Max(late) != 0 {
			t.Errorf("late by %v", late)
		}
	})
}

func TestFullQueueDelaysSenders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, clock := &runner{room: 1}, engine.NewClock()
		d := Driver{Runner: r, Clock: clock}
		log, err := d.Run(t.Context(), Workload{Points: []Point{{Name: "4/s", Requests: requests(4), Rate: 4, Burstiness: math.Inf(1)}}, Repeats: 1})
		if err != nil {
			t.Fatal(err)
		}
		run := log.Points[0].Runs[0]
		if late := slices.Max(run.SendDelays); late < time.Second {
			t.Errorf("the last request was late by %v, want more than 1 s", late)
		}
		if !slices.Equal(run.Held, run.SendDelays) {
			t.Errorf("late by %v, of which the queue caused %v, want all", run.SendDelays, run.Held)
		}
	})
}

// slow is a runner whose sender is slow.
type slow struct{ runner }

func (s *slow) Submit(q engine.Request) (*engine.Handle, error) {
	time.Sleep(time.Second)
	return s.runner.Submit(q)
}

// TestSlowSenderIsNotHeld checks that the delay of a slow sender is its own.
func TestSlowSenderIsNotHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := Driver{Runner: &slow{}, Clock: engine.NewClock()}
		log, err := d.Run(t.Context(), Workload{Points: []Point{{Name: "4/s", Requests: requests(4), Rate: 4, Burstiness: math.Inf(1)}}, Repeats: 1})
		if err != nil {
			t.Fatal(err)
		}
		run := log.Points[0].Runs[0]
		if slices.Max(run.SendDelays) != 3*750*time.Millisecond || slices.Max(run.Held) != 0 {
			t.Errorf("late by %v, of which the queue caused %v", run.SendDelays, run.Held)
		}
	})
}

// TestCutRunKeepsDelays checks that the delays of an interrupted run are those of its requests.
func TestCutRunKeepsDelays(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithTimeout(t.Context(), 2500*time.Millisecond)
		defer stop()
		d := Driver{Runner: &runner{}, Clock: engine.NewClock()}
		log, err := d.Run(ctx, Workload{Points: []Point{{Name: "1/s", Requests: requests(9), Rate: 1, Burstiness: math.Inf(1)}}, Repeats: 1})
		if r := log.Points[0].Runs[0]; err == nil || len(r.Requests) != 2 || len(r.SendDelays) != 2 || len(r.Held) != 2 {
			t.Errorf("%+v, %v", r, err)
		}
	})
}

func TestFailuresAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := Driver{Runner: &runner{failing: 2}, Clock: engine.NewClock()}
		log, err := d.Run(t.Context(), Workload{Points: []Point{{Name: "one", Requests: requests(3), Concurrency: 1}}, Repeats: 1})
		if err != nil || log.Failed != 1 || log.First == nil || len(log.Points[0].Runs[0].Requests) != 3 {
			t.Errorf("%+v, %v", log, err)
		}
		d.Runner = &runner{refuse: engine.ErrEmptyPrompt}
		if log, err = d.Run(t.Context(), Workload{Points: []Point{{Name: "one", Requests: requests(3), Concurrency: 1}}, Repeats: 1}); err != nil || log.Failed != 3 {
			t.Errorf("refused: %+v, %v", log, err)
		}
		d.Runner = &runner{refuse: engine.ErrStopped}
		if _, err = d.Run(t.Context(), Workload{Points: []Point{{Name: "one", Requests: requests(3), Concurrency: 1}}, Repeats: 1}); !errors.Is(err, engine.ErrStopped) {
			t.Errorf("stopped: %v", err)
		}
	})
}

func TestInterruptedKeepsWholeRuns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithTimeout(t.Context(), 4500*time.Millisecond)
		defer stop()
		d := Driver{Runner: &runner{}, Clock: engine.NewClock()}
		log, err := d.Run(ctx, Workload{Points: []Point{{Name: "one", Requests: requests(3), Concurrency: 1}}, Repeats: 5})
		if !errors.Is(err, context.DeadlineExceeded) || len(log.Points[0].Runs) != 1 {
			t.Errorf("%d runs, %v", len(log.Points[0].Runs), err)
		}
		if open := d.Runner.(*runner).open; open != 0 {
			t.Errorf("%d requests still run", open)
		}
	})
}

// TestInterruptedInItsFirstRun: if no run is complete, the requests that ended before the interruption are kept.
func TestInterruptedInItsFirstRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithTimeout(t.Context(), 2500*time.Millisecond)
		defer stop()
		d := Driver{Runner: &runner{}, Clock: engine.NewClock()}
		log, err := d.Run(ctx, Workload{Points: []Point{{Name: "one", Requests: requests(9), Concurrency: 1}, {Name: "two", Requests: requests(9), Concurrency: 1}}, Repeats: 5})
		if !errors.Is(err, context.DeadlineExceeded) || len(log.Points[0].Runs) != 1 || len(log.Points[1].Runs) != 0 {
			t.Fatalf("%+v, %v", log.Points, err)
		}
		if r := log.Points[0].Runs[0]; len(r.Requests) != 2 || r.End-r.Start != 2_500_000_000 {
			t.Errorf("of a second each, %d requests in %d ns", len(r.Requests), r.End-r.Start)
		}
		if open := d.Runner.(*runner).open; open != 0 {
			t.Errorf("%d requests still run", open)
		}
	})
}

func TestWorkloadIsChecked(t *testing.T) {
	for name, w := range map[string]Workload{
		"no points":  {Repeats: 1},
		"no repeats": {Points: []Point{{Requests: requests(1), Concurrency: 1}}},
		"no load":    {Points: []Point{{Requests: requests(1)}}, Repeats: 1},
		"both":       {Points: []Point{{Requests: requests(1), Concurrency: 1, Rate: 1, Burstiness: 1}}, Repeats: 1},
		"endless":    {Points: []Point{{Requests: requests(1), Rate: math.Inf(1), Burstiness: 1}}, Repeats: 1},
		"burstiness": {Points: []Point{{Requests: requests(1), Rate: 1}}, Repeats: 1},
		"empty":      {Points: []Point{{Concurrency: 1}}, Repeats: 1},
	} {
		if _, err := (&Driver{Runner: &runner{}}).Run(t.Context(), w); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// TestArrivals: intervals have the mean of the rate, and a squared coefficient of variation of 1/burstiness.
func TestArrivals(t *testing.T) {
	const n, rate = 200_000, 10.0
	for _, burstiness := range []float64{0.3, 1, 4, math.Inf(1)} {
		at := arrivals(n, rate, burstiness, rand.New(rand.NewPCG(1, 2)))
		sum, squares := 0.0, 0.0
		for i := 1; i < n; i++ {
			gap := (at[i] - at[i-1]).Seconds()
			sum, squares = sum+gap, squares+gap*gap
		}
		mean := sum / (n - 1)
		cv2 := squares/(n-1)/(mean*mean) - 1
		if math.Abs(mean*rate-1) > 0.02 || math.Abs(cv2-1/burstiness) > 0.03*max(1/burstiness, 0.01) {
			t.Errorf("burstiness %v: mean interval %v, squared coefficient of variation %v", burstiness, mean, cv2)
		}
	}
}

func TestReadPrompts(t *testing.T) {
	got, err := ReadPrompts(strings.NewReader("{\"prompt\": \"a\", \"max_tokens\": 3}\n\n{\"prompt\": \"b\", \"group\": \"x\"}"))
	if err != nil || len(got) != 2 || *got[0].MaxTokens != 3 || got[1].Group != "x" {
		t.Errorf("%+v, %v", got, err)
	}
	for text, want := range map[string]string{
		"":                                   "no prompts",
		`{"prompt": ""}`:                     `line 1: field "prompt": must not be empty`,
		"\n" + `{"prompt": 7}`:               `line 2: field "prompt": must be text, not a number`,
		"7":                                  "line 1: must be an object, not a number",
		`{"prompt": "x", "max_tokens": 0}`:   `line 1: field "max_tokens": 0: must be 1 or more`,
		`{"prompt": "x", "temprature": 0.5}`: `line 1: unknown field "temprature"`,
		`{"prompt": "x"} {}`:                 "line 1: more than one value",
		`{"prompt": "x"`:                     "line 1: unexpected EOF",
	} {
		if _, err := ReadPrompts(strings.NewReader(text)); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}

func FuzzReadPrompts(f *testing.F) {
	f.Add("{\"prompt\": \"a\", \"max_tokens\": 3}\n{\"prompt\": \"b\", \"group\": \"x\", \"label\": \"y\"}")
	f.Add("null\n[]")
	f.Fuzz(func(t *testing.T, text string) {
		prompts, err := ReadPrompts(strings.NewReader(text))
		if err != nil {
			return
		}
		for _, p := range prompts {
			if p.Prompt == "" || p.MaxTokens != nil && *p.MaxTokens < 1 {
				t.Errorf("%+v was let through", p)
			}
		}
	})
}

// endless is a file of prompts without an end: a line over and over.
type endless struct {
	line string
	at   int
}

// Read implements io.Reader.
func (e *endless) Read(p []byte) (n int, err error) {
	for n < len(p) {
		some := copy(p[n:], e.line[e.at:])
		n, e.at = n+some, (e.at+some)%len(e.line)
	}
	return n, nil
}

// TestReadEndlessPrompts: the bytes of a line, of the file, and the number of prompts have bounds.
func TestReadEndlessPrompts(t *testing.T) {
	for want, line := range map[string]string{
		"line 1: longer than 16 MiB":              "x",
		"longer than 256 MiB":                     `{"prompt": "` + strings.Repeat("x", 1<<20) + "\"}\n",
		"line 1048577: more than 1048576 prompts": "{\"prompt\": \"x\"}\n",
	} {
		if _, err := ReadPrompts(&endless{line: line}); err == nil || err.Error() != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
