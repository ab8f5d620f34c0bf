package cmd

import (
	"context"
	"errors"
	"os"
	"strings"

	"github.com/spf13/pflag"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/engine"
	"github.com/llmtop/llmtop/runtime/source/socket"
)

// listenFlags are the flags that let others connect to the engine of a command.
type listenFlags struct {
	at        string // "": nobody may
	tokenFile string
	text      bool // send prompts and completions
}

func (l *listenFlags) bind(set *pflag.FlagSet) {
	set.StringVar(&l.at, "listen", "", "let llmtop attach connect at `ADDRESS` (unix:PATH or tcp:HOST:PORT)")
	bindToken(set, &l.tokenFile)
	set.BoolVar(&l.text, "send-text", false, "send prompts and completions to every reader of --listen")
}

func bindToken(set *pflag.FlagSet, file *string) {
	set.StringVar(file, "token-file", "", "`FILE` with the token for non-loopback addresses (or $LLMTOP_TOKEN)")
}

// token returns the token in a file, otherwise $LLMTOP_TOKEN.
func token(file string) (string, error) {
	if file == "" {
		return os.Getenv("LLMTOP_TOKEN"), nil
	}
	raw, err := readFile(file, maxSecretBytes)
	if err != nil {
		return "", usagef("read token %s: %w", file, err)
	}
	secret := strings.TrimSpace(string(raw))
	if secret == "" {
		return "", usagef("read token: %s is empty", file)
	}
	return secret, nil
}

func (l *listenFlags) check() error {
	if l.text && l.at == "" {
		return usagef("--send-text needs --listen ADDRESS")
	}
	return nil
}

// open starts the socket server if --listen is set, nil otherwise. Close the server after its last event.
func (l *listenFlags) open(ctx context.Context, clock engine.Clock, engine event.EngineInfo, c socket.Controller) (*socket.Server, error) {
	if l.at == "" {
		return nil, nil
	}
	secret, err := token(l.tokenFile)
	if err != nil {
		return nil, err
	}
	server, err := socket.Listen(l.at, socket.Options{Context: ctx, Clock: clock, Engine: engine, Token: secret, Controller: c, Text: l.text})
	if ctx.Err() != nil && errors.Is(err, context.Cause(ctx)) {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		return nil, usageError{err}
	}
	return server, nil
}
