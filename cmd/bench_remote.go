package cmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/api"
	"github.com/llmtop/llmtop/runtime/host"
)

// remote is the engine elsewhere that a benchmark is to measure.
type remote struct {
	at     string // its address; "": the engine runs here
	model  string
	api    string
	secret serverKey
	token  string // the file with that of an event socket, which has the flag of --listen
	cached bool

	server *api.Client // of an HTTP address
	engine *api.Engine // of an event socket
	watch  clientWatch
	self   self

	machine machine // of a server
}

func (r *remote) bind(flags *pflag.FlagSet) {
	flags.StringVar(&r.model, "model", "", "of a server: the model to ask for (default: its only one)")
	flags.StringVar(&r.api, "api", "", "of a server: openai-chat, openai, ollama-chat or ollama (default: found out)")
	r.secret.bind(flags, "of a server", "its API key (or $LLMTOP_API_KEY, or $OPENAI_API_KEY)")
	flags.BoolVar(&r.cached, "prompt-cache", false, "of a server: let it take prompts from its cache, and send every run the same ones")
}

// isRemote reports whether an argument is the address of an engine and not a model file.
func isRemote(arg string) bool {
	return api.IsAddress(arg) || strings.HasPrefix(arg, "unix:") || strings.HasPrefix(arg, "tcp:")
}

func (r *remote) is() bool { return r.at != "" }

// engineFlags are those about engines that this program runs.
var engineFlags = []string{"parallel", "threads", "ctx", "isolated", "engine", "gpu-layers", "expert-sample", "cold"}

// check refuses what makes no sense for where the engine is.
func (r *remote) check(c *cobra.Command) error {
	if r.is() {
		r.token = c.Flags().Lookup("token-file").Value.String()
		for _, name := range engineFlags {
			if c.Flags().Changed(name) {
				return usagef("--%s is for engines that llmtop runs, not for the one at %s", name, r.at)
			}
		}
	}
	if !api.IsAddress(r.at) {
		for _, name := range []string{"model", "api", "api-key-file", "api-key-over-http", "prompt-cache"} {
			if c.Flags().Changed(name) {
				return usagef("--%s is for servers: llmtop bench http://HOST:PORT", name)
			}
		}
	}
	if _, err := api.ParseAPI(r.api); err != nil {
		return usagef("--api %w", err)
	}
	return nil
}

// key is the API key for the server. That of OpenAI is not shown to others over the network in the clear.
func (r *remote) key() (string, error) {
	if key, err := r.secret.read(); key != "" || err != nil {
		return key, cmp.Or(err, r.secret.check("bench", key, r.at))
	}
	if inTheClear(r.at) {
		return "", nil
	}
	return strings.TrimSpace(os.Getenv("OPENAI_API_KEY")), nil
}

// engage adds the engine elsewhere to a session, and what samples this machine and this process.
func (r *remote) engage(ctx context.Context, l *local) error {
	l.sampler = host.New(host.Options{Clock: l.clock, NoGPU: !r.local(), NoCopy: true})
	if !api.IsAddress(r.at) {
		secret, err := token(r.token)
		if err != nil {
			return err
		}
		if r.engine, err = api.Attach(r.at, secret, l.clock); err != nil {
			return usageError{err}
		}
		l.scheduler = r.engine
		l.add("use "+r.at, func(ctx context.Context, sink event.Sink) error { return r.engine.Run(ctx, withSelf{&r.self, sink}) })
		l.add("sample host", func(ctx context.Context, _ event.Sink) error { return l.sampler.Run(ctx, event.Tee{&r.watch, &r.self}) })
		return nil
	}
	key, err := r.key()
	if err != nil {
		return err
	}
	way, err := api.ParseAPI(r.api)
	if err != nil {
		return usagef("--api %w", err)
	}
	r.server, err = api.Dial(ctx, api.Options{
		Address: r.at, API: way, Model: r.model, Key: key, Clock: l.clock, Cached: r.cached,
	})
	if err != nil {
		if ctx.Err() != nil {
			return interrupted(ctx, err)
		}
		return usageError{err}
	}
	l.scheduler = r.server
	l.add("ask "+r.at, r.server.Run)
	r.machine.add(r.at, ofSession{l})
	l.add("sample host", func(ctx context.Context, _ event.Sink) error {
		defer r.machine.close()
		return l.sampler.Run(ctx, event.Tee{&r.watch, &r.machine})
	})
	return nil
}

// local reports whether the engine is on this machine, as far as its address tells.
func (r *remote) local() bool {
	return strings.HasPrefix(r.at, "unix:") || api.IsLocal(strings.Replace(r.at, "tcp:", "tcp://", 1))
}

// connectWithin is how long an event socket may take to answer.
const connectWithin = 3 * time.Second

// ready waits for the engine.
func (r *remote) ready(ctx context.Context) error {
	if r.engine == nil {
		return nil
	}
	within, done := context.WithTimeout(ctx, connectWithin)
	defer done()
	err := r.engine.Ready(within)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		err = errors.New("nobody answers")
	}
	if err != nil {
		return usageError{fmt.Errorf("use %s: %w", r.at, interrupted(ctx, err))}
	}
	return nil
}

// samples is where the samples of this machine go that are taken for the session.
func (r *remote) samples(s *local) event.Sink {
	switch {
	case r.engine != nil:
		return event.Tee{&r.watch, &r.self}
	case r.server != nil:
		return event.Tee{&r.watch, &r.machine}
	}
	return s.sink
}

// notes are what the user should know of the server, in lines.
func (r *remote) notes(honourEOS bool) (lines []string) {
	if r.server == nil {
		return nil
	}
	name := string(r.server.API())
	lines = append(lines, fmt.Sprintf("%s: model %s, asked by %s", r.server.Address(), r.server.Model(), name))
	if !honourEOS && !r.server.IgnoresEnd() {
		lines = append(lines, "the server cannot be told to go on after the end of a text: outputs may be shorter than --tokens")
	}
	if !r.cached && !r.server.Fresh() {
		lines = append(lines, "the server cannot be told to leave its cache alone: prompts that are sent again may come from it")
	}
	if r.server.Exposed() {
		lines = append(lines, "the API key travels unencrypted")
	}
	return lines
}

// ofSession is the sink of a session, whatever that is by then.
type ofSession struct{ *local }

// Emit implements event.Sink.
func (o ofSession) Emit(e event.Event) { o.sink.Emit(e) }
