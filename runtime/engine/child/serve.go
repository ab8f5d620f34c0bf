package child

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/engine"
	"github.com/llmtop/llmtop/runtime/source/socket"
)

// Job is what a child runs: the engine to load, and the scheduler's options without the clock.
type Job struct {
	// Load is an engine.Load that can also report its progress, as a short text for the screen.
	Load    func(ctx context.Context, report func(engine.LoadStage), loading func(words string)) (engine.Engine, error)
	Options engine.Options
}

// exitAbandoned is the exit code of a child whose engine does not end after its parent has exited.
const exitAbandoned = 3

// Serve is the main function of the child. It reads the specification from in, its standard input, converts it to a job
// with prepare, and runs the engine until the parent closes in or exits. Answers are written to out, its standard
// output. An error of the engine is Reported; other errors have not been sent to the parent.
func Serve(in io.Reader, out io.Writer, prepare func(spec json.RawMessage) (Job, error)) error {
	lines := json.NewDecoder(bufio.NewReader(in))
	var first opening
	if err := lines.Decode(&first); err != nil {
		return fmt.Errorf("read what to run: %w", err)
	}
	job, err := prepare(first.Spec)
	if err != nil {
		return err
	}
	var server *socket.Server // created before the load
	opt := &job.Options
	opt.Clock = engine.NewClock()
	scheduler := engine.New(func(ctx context.Context, report func(engine.LoadStage)) (engine.Engine, error) {
		return job.Load(ctx, report, func(words string) { server.Emit(loading(opt, words)) })
	}, *opt)
	server, err = socket.Listen(first.Address, socket.Options{
		Clock: opt.Clock, Engine: opt.Engine, Controller: socket.Scheduled(scheduler),
	})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		handleInput(ctx, lines, scheduler, out)
		cancel()
		time.AfterFunc(grace+time.Second, func() { os.Exit(exitAbandoned) })
	}()
	if waitForParent(ctx, server) {
		if err = scheduler.Run(ctx, server); err != nil {
			err = Reported{err}
		}
	}
	return errors.Join(err, server.Close())
}

// loading returns the event that reports load progress.
func loading(opt *engine.Options, words string) event.Event {
	e := opt.Engine
	e.PID, e.Epoch, e.Pace, e.State, e.Reason = os.Getpid(), opt.Clock.Epoch(), opt.Pace, event.EngineLoading, words
	return event.Event{Kind: event.KindEngine, At: opt.Clock.Now(), Layer: -1, Data: &e}
}

// Reported is an error of the engine that has been sent to the parent.
type Reported struct{ Err error }

func (r Reported) Error() string { return r.Err.Error() }

// Unwrap returns the error of the engine.
func (r Reported) Unwrap() error { return r.Err }

// handleInput executes changes and questions from standard input until the parent closes it.
func handleInput(ctx context.Context, lines *json.Decoder, scheduler *engine.Scheduler, out io.Writer) {
	for {
		var c change
		if lines.Decode(&c) != nil {
			return
		}
		if c.Pace != nil {
			scheduler.SetPace(*c.Pace)
		}
		if c.Call != 0 {
			go c.reply(ctx, scheduler, out)
		}
	}
}

// waitForParent waits for the parent to connect, so that it receives all events. It returns false if ctx ends first.
func waitForParent(ctx context.Context, server *socket.Server) bool {
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for server.Readers() == 0 {
		select {
		case <-ctx.Done():
			return false
		case <-tick.C:
		}
	}
	return true
}
