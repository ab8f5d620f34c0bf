package child

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/event/eventtest"
	"github.com/llmtop/llmtop/runtime/engine"
	"github.com/llmtop/llmtop/runtime/engine/native"
)

// role is the environment variable that selects the role of the test binary as a child process.
const role = "LLMTOP_TEST_ROLE"

func TestMain(m *testing.M) {
	switch os.Getenv(role) {
	case "child":
		os.Exit(childMain())
	case "parent":
		parentMain()
	}
	goleak.VerifyTestMain(m)
}

// errMistake is an error caused by the user's input.
var errMistake = errors.New("not a model file")

// job configures the child of a test: the built-in model on an engine that fails in the given way.
type job struct {
	Fault string `json:",omitempty"`
	After int    `json:",omitempty"` // number of forward passes before the fault
	Slots int    `json:",omitempty"`
	Pace  float64
}

// childMain is the main function of the child.
func childMain() int {
	err := Serve(os.Stdin, os.Stdout, func(spec json.RawMessage) (Job, error) {
		var j job
		if err := json.Unmarshal(spec, &j); err != nil {
			return Job{}, err
		}
		return Job{j.loadAloud, j.options()}, nil
	})
	switch {
	case errors.Is(err, errMistake):
		return ExitMistake
	case err != nil:
		return 1
	}
	return 0
}

func (j job) options() engine.Options {
	return engine.Options{
		Sampler: native.NewSampler, Pace: j.Pace, Engine: event.EngineInfo{Name: "native"},
		Hooks: engine.Hooks{Split: true, Experts: true},
	}
}

// loadAloud is load with progress messages.
func (j job) loadAloud(ctx context.Context, report func(engine.LoadStage), loading func(string)) (engine.Engine, error) {
	for _, words := range []string{"a quarter", "half of it"} {
		loading(words)
	}
	return j.load(ctx, report)
}

// load opens the model.
func (j job) load(_ context.Context, report func(engine.LoadStage)) (engine.Engine, error) {
	if j.Fault == "mistake" {
		return nil, errMistake
	}
	e, err := native.OpenDemo(native.Options{Slots: max(j.Slots, 1), Threads: 1, Context: 128, Report: report})
	if err != nil {
		return nil, err
	}
	return &faulty{Engine: e, job: j}, nil
}

// faulty is an engine that fails.
type faulty struct {
	*native.Engine
	job   job
	steps int
	hoard [][]byte
}

// Forward implements engine.Engine.
func (f *faulty) Forward(b *engine.Batch) error {
	f.steps++
	if f.job.Fault != "" && f.steps == f.job.After {
		fmt.Fprintf(os.Stderr, "\x1b[31mabout to %s\x1b[0m\n", f.job.Fault)
		if err := f.fail(); err != nil {
			return err
		}
	}
	return f.Engine.Forward(b)
}

// fail causes the fault of the job.
func (f *faulty) fail() error {
	switch f.job.Fault {
	case "exit":
		os.Exit(7)
	case "break":
		return fmt.Errorf("%w: the device is gone", engine.ErrBroken)
	case "give up":
		fmt.Fprint(os.Stderr, "a line without an end")
		LastWords("somewhere.c:12: it is all wrong")
		return raise("abort")
	case "hog":
		for {
			piece := make([]byte, 16<<20)
			for i := 0; i < len(piece); i += 4096 {
				piece[i] = 1
			}
			f.hoard = append(f.hoard, piece)
		}
	}
	return raise(f.job.Fault)
}

// log is a sink that stores all events.
type log struct{ eventtest.Log }

// engine returns the last engine event.
func (l *log) engine() event.EngineInfo {
	all := l.OfKind(event.KindEngine)
	if len(all) == 0 {
		return event.EngineInfo{}
	}
	return *all[len(all)-1].Data.(*event.EngineInfo)
}

// contains reports whether a line of the log contains words.
func (l *log) contains(words string) bool {
	for _, e := range l.OfKind(event.KindLog) {
		if strings.Contains(e.Text, words) {
			return true
		}
	}
	return false
}

// running is a process under test.
type running struct {
	*Process
	*log
	end   context.CancelFunc
	ended chan error
}

// start runs a job in a child, and waits until the engine is ready or has ended. The test fails if it leaves temporary
// files.
func start(t testing.TB, j job) *running {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	t.Setenv(role, "child")
	p, err := Start(Options{Program: []string{os.Args[0]}, Spec: j, Clock: engine.NewClock(), Engine: event.EngineInfo{Name: "child"}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	r := &running{p, &log{}, cancel, make(chan error, 1)}
	go func() {
		r.ended <- p.Run(ctx, r.log)
		close(r.ended)
	}()
	t.Cleanup(func() {
		cancel()
		<-r.ended
		if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
			t.Errorf("left in the temporary folder: %v, %v", left, err)
		}
	})
	eventtest.Wait(t, "ready", func() bool { return r.engine().State == event.EngineReady || len(r.ended) > 0 })
	return r
}

// ask submits a prompt.
func (r *running) ask(t testing.TB, text string, most int) *engine.Handle {
	t.Helper()
	h, err := r.Submit(engine.Request{Text: text, MaxTokens: most, IgnoreEOS: true, SendText: true, Params: engine.Params{Seed: 7, Temperature: 1}})
	if err != nil {
		t.Fatal(err)
	}
	return h
}
