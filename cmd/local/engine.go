package local

import (
	"context"
	"errors"
	"maps"
	"os"
	"sync"

	"github.com/llmtop/llmtop/cmd/exit"
	"github.com/llmtop/llmtop/cmd/session"
	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/recording"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/runtime/engine"
	"github.com/llmtop/llmtop/runtime/engine/child"
	"github.com/llmtop/llmtop/runtime/host"
	"github.com/llmtop/llmtop/runtime/source/socket"
)

// Engine is a session with an engine that llmtop runs, in its own process or in a child process, or with a remote one
// that it sends requests to.
type Engine struct {
	*session.Session
	Group     *session.Group
	Clock     engine.Clock // of the events
	Scheduler Scheduler
	Sampler   *host.Sampler
	Samples   event.Sink      // for the samples of this machine
	Machine   session.Machine // of an engine in another process
	Inspector *host.Inspector // nil: its model is not a file of this machine for certain
	Address   string          // of --listen, "" without

	native bool // the native engine runs it
	mu     sync.Mutex
	notes  string // since the last call of takeNotice
}

// Scheduler is an engine.Scheduler, or its counterpart for another process or machine.
type Scheduler interface {
	engine.Source
	engine.Runner
	Encode(ctx context.Context, text string) ([]int32, error)
}

// Open creates the session of a run. If it is to be reported, it keeps all requests.
func (r *Run) Open(ctx context.Context, reported bool) (*Engine, error) {
	opt := session.Options{Clock: engine.NewClock(), View: &r.View, Shown: r.Shown, Meta: r.Meta(nil)}
	var of store.Options
	if reported {
		of.Keep = store.DefaultKeep
	}
	if r.Shown {
		of.Past = store.NewPastBudget(store.MaxPastBytes)
	}
	s, group, err := r.Outputs.OpenSession(opt, session.ExportName(r.At), of)
	if err != nil {
		return nil, err
	}
	e := &Engine{Session: s, Group: group, Clock: opt.Clock}
	if err := e.open(ctx, r, opt.Meta.Configuration); err != nil {
		return nil, e.End(err)
	}
	return e, nil
}

// open adds the engine and begins the recording, which holds the configuration: what of it depends on a remote engine is
// known once the engine has answered.
func (e *Engine) open(ctx context.Context, r *Run, configuration map[string]string) error {
	info, controller, err := e.add(r)
	if err != nil {
		return err
	}
	e.Add("sample host", func(ctx context.Context, _ event.Sink) error {
		defer e.Machine.Close()
		return e.Sampler.Run(ctx, e.Samples)
	})
	if e.Address, err = e.Group.Listen(ctx, e.Session, &r.Listen, info, controller); err != nil {
		return err
	}
	meta := r.Meta(nil)
	maps.Copy(configuration, meta.Configuration)
	return e.Group.Record(e.Session, recording.EngineEntry{Local: !meta.Remote})
}

// add adds the engine (native, in a child process, or remote) and the sampler of its process.
func (e *Engine) add(r *Run) (info event.EngineInfo, controller socket.Controller, err error) {
	if r.Remote != nil {
		return new(spec).info(), nil, r.Remote(e)
	}
	of, err := r.choose(r.Model)
	if err != nil {
		return info, nil, err
	}
	s := spec{EngineSettings: r.EngineSettings, Engine: of.name, Libraries: of.libraries, Model: r.Model, Reuse: r.chat.template != nil}
	var run func(context.Context, event.Sink) error
	sampled, process := host.Options{Clock: e.Clock, NoRead: r.Quiet}, host.Identify(os.Getpid())
	if e.native = of.name == engineNative; e.native && !r.isolated {
		in := s.scheduler(e.Clock)
		e.Scheduler, controller, run, sampled.EngineThreads = in, socket.Scheduled(in), in.Run, in.Threads
		e.AddUsage(host.UsageOptions{Clock: e.Clock, EngineThreads: in.Threads})
	} else {
		p, err := child.Start(child.Options{Clock: e.Clock, Engine: s.info(), Spec: s})
		if err != nil {
			return info, nil, err
		}
		e.AtEnd(p.Close)
		e.Scheduler, controller, run = p, p, deferCrash(p.Run)
		process = host.Identify(p.PID())
	}
	e.Sampler, e.Inspector = host.New(sampled), host.NewInspector(process.Alive)
	if e.Samples = e.Inspector.In(e); process.PID != os.Getpid() {
		e.Machine.Watch(e.Session, e.Clock, session.Known(process.Alive), e.Samples) // an engine that ended keeps its last sample
		e.Samples = &e.Machine
	}
	e.Add("run engine", session.WithReason(r.reasons(of.why), run))
	e.Add("inspect model", e.Inspector.Run)
	return s.info(), controller, nil
}

// AwaitLoad waits until the model is loaded. It returns early if the load fails, which Submit then reports, or if ctx
// ends.
func (e *Engine) AwaitLoad(ctx context.Context) { _, _ = e.Scheduler.Encode(ctx, "") }

// reasons returns the remarks about the engine for the header: how it takes prompts, and why it was chosen.
func (r *Run) reasons(chosen string) string {
	switch {
	case r.Reason != "":
		return r.Reason
	case r.chat.mode == "":
		return chosen
	case chosen == "":
		return r.chat.mode
	}
	return r.chat.mode + "; " + chosen
}

// notify reports a remark about a prompt: in the log, and below the input if the prompt was typed.
func (e *Engine) notify(words string) {
	e.Emit(event.Event{Kind: event.KindLog, At: e.Clock.Now(), Layer: -1, Text: words})
	e.mu.Lock()
	defer e.mu.Unlock()
	e.notes = words
}

// takeNotice returns the last remark and clears it.
func (e *Engine) takeNotice() string {
	e.mu.Lock()
	defer e.mu.Unlock()
	words := e.notes
	e.notes = ""
	return words
}

// deferCrash runs the process of an engine and holds back the error of a crash until the session ends, so that the
// measurements stay on the screen and get into the report. It returns user errors at once.
func deferCrash(run func(context.Context, event.Sink) error) func(context.Context, event.Sink) error {
	return func(ctx context.Context, sink event.Sink) error {
		err := run(ctx, sink)
		switch ended := (*child.Ended)(nil); {
		case !errors.As(err, &ended):
		case ended.Mistake:
			return exit.Usage(err)
		default:
			<-ctx.Done()
		}
		return err
	}
}

// crashed reports whether an error is an unexpected end of the process of an engine.
func crashed(err error) bool {
	ended, ok := errors.AsType[*child.Ended](err)
	return ok && !ended.Mistake
}
