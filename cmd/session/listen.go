package session

import (
	"context"
	"errors"

	"github.com/spf13/pflag"

	"github.com/llmtop/llmtop/cmd/exit"
	"github.com/llmtop/llmtop/cmd/files"
	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/source/socket"
)

// ListenFlags are the flags that let others connect to the engine of a command.
type ListenFlags struct {
	At   string // "": nobody may
	text bool   // send prompts and completions
}

// Bind adds the flags.
func (l *ListenFlags) Bind(set *pflag.FlagSet) {
	set.StringVar(&l.At, "listen", "", "let llmtop attach connect at `ADDRESS` (unix:PATH or tcp:HOST:PORT)")
	set.BoolVar(&l.text, "send-text", false, "send prompts and completions to every reader of --listen")
}

// Check refuses values that cannot be used.
func (l *ListenFlags) Check() error {
	if l.text && l.At == "" {
		return exit.Usagef("--send-text needs --listen ADDRESS")
	}
	return nil
}

// Listen serves the events of a session to those who connect, if --listen is set. It returns the address, or "".
func (g *Group) Listen(ctx context.Context, s *Session, l *ListenFlags, engine event.EngineInfo, c socket.Controller) (string, error) {
	if l.At == "" {
		return "", nil
	}
	secret, err := files.Token(g.outputs.TokenFile)
	if err != nil {
		return "", err
	}
	server, err := socket.Listen(l.At, socket.Options{
		Context: ctx, Clock: g.opt.Clock, Engine: engine, Token: secret, Controller: c, Text: l.text,
	})
	switch {
	case ctx.Err() != nil && errors.Is(err, context.Cause(ctx)):
		return "", context.Cause(ctx)
	case errors.Is(err, socket.ErrToken) && secret == "":
		return "", exit.Usagef("%w: set --token-file FILE or $LLMTOP_TOKEN", err)
	case err != nil:
		return "", exit.Usage(err)
	}
	s.AlsoTo(server)
	s.AtEnd(server.Close)
	return server.Address(), nil
}
