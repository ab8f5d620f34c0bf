package bench

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/llmtop/llmtop/cmd/address"
	"github.com/llmtop/llmtop/cmd/exit"
	"github.com/llmtop/llmtop/cmd/files"
	"github.com/llmtop/llmtop/cmd/local"
	"github.com/llmtop/llmtop/cmd/session"
	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/engine/remote"
	"github.com/llmtop/llmtop/runtime/host"
	"github.com/llmtop/llmtop/runtime/source/socket"
)

// target is the remote engine that a benchmark measures.
type target struct {
	at     string // "": the engine runs in llmtop
	model  string
	api    string
	secret files.APIKey
	token  string // file with the token of an event socket, from --token-file
	cached bool
	salt   uint64 // seeds the start of generated prompts

	server *remote.Client // of an HTTP address
	engine *socket.Runner // of an event socket
	watch  clientWatch
}

func (r *target) bind(flags *pflag.FlagSet) {
	flags.StringVar(&r.model, "model", "", "`MODEL` to request from a server (default: its only one)")
	flags.StringVar(&r.api, "api", "", "`API` of a server: openai-chat, openai, ollama-chat, ollama (default: detected)")
	r.secret.Bind(flags, "$LLMTOP_API_KEY or $OPENAI_API_KEY")
	flags.BoolVar(&r.cached, "prompt-cache", false, "send every run the same prompts, and let the server use its prompt cache")
	flags.Uint64Var(&r.salt, "prompt-salt", 0, "begin generated prompts with random words by seed `N`; 0: a new seed")
}

func (r *target) isSet() bool { return r.at != "" }

// engineFlags are the flags that apply only to engines that llmtop runs.
var engineFlags = []string{"parallel", "threads", "ctx", "isolated", "engine", "gpu-layers", "expert-sample", "cold"}

// check refuses flags that do not apply to the location of the engine.
func (r *target) check(c *cobra.Command, tokenFile string) error {
	if r.cached && r.salt != 0 {
		return exit.Usagef("--prompt-salt: --prompt-cache sends the same prompts; remove one of them")
	}
	for r.salt == 0 {
		r.salt = uint64(rand.Uint32())
	}
	if r.isSet() {
		r.token = tokenFile
		for _, name := range engineFlags {
			if c.Flags().Changed(name) {
				return exit.Usagef("--%s applies only to engines that llmtop runs, not to %s", name, r.at)
			}
		}
	}
	if !remote.IsAddress(r.at) {
		for _, name := range []string{"model", "api", "api-key-file", "api-key-over-http", "prompt-cache", "prompt-salt"} {
			if c.Flags().Changed(name) {
				return exit.Usagef("--%s needs the address of a server: llmtop bench http://HOST:PORT", name)
			}
		}
	}
	if _, err := remote.ParseAPI(r.api); err != nil {
		return exit.Usagef("--api %w", err)
	}
	return nil
}

// key returns the API key for the server. It never sends $OPENAI_API_KEY unencrypted to another machine.
func (r *target) key() (string, error) {
	if key, err := r.secret.Read(); key != "" || err != nil {
		return key, cmp.Or(err, r.secret.Check("bench", key, r.at))
	}
	if address.Unencrypted(r.at) {
		return "", nil
	}
	return strings.TrimSpace(os.Getenv("OPENAI_API_KEY")), nil
}

// addEngine adds the remote engine to a session, and the samplers of this machine and this process.
func (r *target) addEngine(ctx context.Context, l *local.Engine) error {
	l.Sampler = host.New(host.Options{Clock: l.Clock, NoGPU: !r.local(), NoRead: true})
	l.Samples = event.Tee{&r.watch, &l.Machine}
	if !remote.IsAddress(r.at) {
		secret, err := files.Token(r.token)
		if err != nil {
			return err
		}
		if r.engine, err = socket.NewRunner(r.at, secret, l.Clock); err != nil {
			return exit.Usage(err)
		}
		l.Scheduler = r.engine
		hosted := l.Machine.Watch(l.Session, l.Clock, session.Known(r.engine.PID), l)
		l.Add("use "+r.at, func(ctx context.Context, sink event.Sink) error { return r.engine.Run(ctx, hosted.Engine(sink)) })
		return nil
	}
	key, err := r.key()
	if err != nil {
		return err
	}
	way, err := remote.ParseAPI(r.api)
	if err != nil {
		return exit.Usagef("--api %w", err)
	}
	r.server, err = remote.Dial(ctx, remote.Options{
		Address: r.at, API: way, Model: r.model, Key: key, Clock: l.Clock, Cached: r.cached,
	})
	if err != nil {
		if ctx.Err() != nil {
			return exit.InterruptCause(ctx, err)
		}
		return exit.Usage(err)
	}
	l.Scheduler = r.server
	l.Add("send requests to "+r.at, r.server.Run)
	l.Machine.Watch(l.Session, l.Clock, l.Machine.At(r.at), l)
	return nil
}

// local reports whether the address of the engine is on this machine.
func (r *target) local() bool { return address.IsLocal(r.at) }

// connectTimeout is how long an event socket may take to answer.
const connectTimeout = 3 * time.Second

// ready waits until the engine answers.
func (r *target) ready(ctx context.Context) error {
	if r.engine == nil {
		return nil
	}
	within, done := context.WithTimeout(ctx, connectTimeout)
	defer done()
	err := r.engine.Ready(within)
	if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
		err = errors.New("no answer")
	}
	if err != nil {
		return exit.Usage(fmt.Errorf("connect to %s: %w", r.at, exit.InterruptCause(ctx, err)))
	}
	return nil
}

// notes returns warnings about the server, one per line.
func (r *target) notes(honourEOS bool) (lines []string) {
	if r.server == nil {
		return nil
	}
	name := string(r.server.API())
	lines = append(lines, fmt.Sprintf("%s: model %s, API %s", r.server.Address(), r.server.Model(), name))
	if !honourEOS && !r.server.Extended() {
		lines = append(lines, "the server cannot ignore end-of-text tokens: outputs may be shorter than --tokens")
	}
	if !r.cached && !r.server.Extended() {
		lines = append(lines, "the prompt cache of the server cannot be turned off: prompts that you repeat may be served from it")
	}
	if r.server.Exposed() {
		lines = append(lines, "the API key is sent unencrypted")
	}
	return lines
}
