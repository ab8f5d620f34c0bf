package cmd

import (
	"os"
	"strings"

	"github.com/spf13/pflag"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime"
	"github.com/llmtop/llmtop/runtime/socket"
)

// listening is what a command with an engine of its own is told about letting others watch it.
type listening struct {
	at        string // "": nobody may
	tokenFile string
	text      bool // prompts and completions, too
}

func (l *listening) bind(set *pflag.FlagSet) {
	set.StringVar(&l.at, "listen", "", "let llmtop attach watch at unix:PATH or tcp:HOST:PORT")
	bindToken(set, &l.tokenFile)
	set.BoolVar(&l.text, "send-text", false, "send prompts and completions, too, to who watches")
}

func bindToken(set *pflag.FlagSet, file *string) {
	set.StringVar(file, "token-file", "", "file with the token that a socket wants which other machines can reach (or $LLMTOP_TOKEN)")
}

// token is the secret in a file, or else in the environment.
func token(file string) (string, error) {
	if file == "" {
		return os.Getenv("LLMTOP_TOKEN"), nil
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		return "", usagef("read token: %w", err)
	}
	secret := strings.TrimSpace(string(raw))
	if secret == "" {
		return "", usagef("read token: %s is empty", file)
	}
	return secret, nil
}

func (l *listening) check() error {
	if l.text && l.at == "" {
		return usagef("--send-text needs --listen ADDRESS")
	}
	return nil
}

// open lets others watch and steer the engine, if that is wanted. The sink is what they are told; the server must be closed after its last
// event.
func (l *listening) open(clock runtime.Clock, engine event.Engine, c socket.Controller) (*socket.Server, event.Sink, error) {
	if l.at == "" {
		return nil, nil, nil
	}
	secret, err := token(l.tokenFile)
	if err != nil {
		return nil, nil, err
	}
	server, err := socket.Listen(l.at, socket.Options{Clock: clock, Engine: engine, Token: secret, Controller: c})
	if err != nil {
		return nil, nil, usageError{err}
	}
	if l.text {
		return server, server, nil
	}
	return server, event.WithoutText{Sink: server}, nil
}
