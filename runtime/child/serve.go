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
	"github.com/llmtop/llmtop/runtime"
	"github.com/llmtop/llmtop/runtime/socket"
)

// Job is what a child does: the engine that it loads, and the scheduler's options but for the clock.
type Job struct {
	Load    Load
	Options runtime.Options
}

// Load is a runtime.Load that may also say how far it has come, in a few words for the screen.
type Load func(ctx context.Context, report func(runtime.LoadStage), loading func(words string)) (runtime.Engine, error)

// exitAbandoned is the exit code of a child whose engine does not end although its parent is gone.
const exitAbandoned = 3

// Serve is the work of the child: it reads from in, its standard input, what it was started for, makes a job of that, and runs an engine
// for the parent until that closes in or is gone. To out, its standard output, go answers. The error of an engine is
// Reported; the parent does not know of others.
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
	var server *socket.Server // is there before the load
	opt := &job.Options
	opt.Clock = runtime.NewClock()
	scheduler := runtime.New(func(ctx context.Context, report func(runtime.LoadStage)) (runtime.Engine, error) {
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
		obey(ctx, lines, scheduler, out)
		cancel()
		time.AfterFunc(grace+time.Second, func() { os.Exit(exitAbandoned) })
	}()
	if met(ctx, server) {
		if err = scheduler.Run(ctx, server); err != nil {
			err = Reported{err}
		}
	}
	return errors.Join(err, server.Close())
}

// loading is the event that tells how far a load has come.
func loading(opt *runtime.Options, words string) event.Event {
	e := opt.Engine
	e.PID, e.Epoch, e.Pace, e.State, e.Reason = os.Getpid(), opt.Clock.Epoch(), opt.Pace, event.EngineLoading, words
	return event.Event{Kind: event.KindEngine, At: opt.Clock.Now(), Layer: -1, Data: &e}
}

// Reported is an error of the engine, of which the parent has been told.
type Reported struct{ Err error }

func (r Reported) Error() string { return r.Err.Error() }

// Unwrap is the error itself.
func (r Reported) Unwrap() error { return r.Err }

// obey does what the parent asks for besides what goes over the socket, until it is gone.
func obey(ctx context.Context, lines *json.Decoder, scheduler *runtime.Scheduler, out io.Writer) {
	for {
		var c change
		if lines.Decode(&c) != nil {
			return
		}
		if c.Pace != nil {
			scheduler.SetPace(*c.Pace)
		}
		if c.Encode != nil {
			go encode(ctx, scheduler, *c.Encode, out)
		}
		if c.Size != nil {
			go size(ctx, scheduler, *c.Size, out)
		}
	}
}

// met waits for the parent, which is to see everything. It says false if the parent is gone before.
func met(ctx context.Context, server *socket.Server) bool {
	tick := time.NewTicker(lookEvery)
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
