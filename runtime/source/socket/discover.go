package socket

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/event/catchup"
	"github.com/llmtop/llmtop/profiler/event/wire"
)

// Found is an engine in the well-known folder.
type Found struct {
	Address string
	Engine  event.EngineInfo // Name is "" if it does not answer, or only with a token
}

// maxFound limits the number of sockets that are tried.
const maxFound = 64

// Discover returns this user's running engines in the order of their addresses, none if the folder does not exist.
// Error: ErrUntrusted.
func Discover() ([]Found, error) { return visitAll(context.Background(), visit) }

// visitAll visits all sockets in the well-known folder at once, for at most a second, and returns what visit found; nil is
// nothing.
func visitAll[T any](ctx context.Context, visit func(context.Context, address) *T) (out []T, err error) {
	candidates, err := sockets()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, shortTimeout)
	defer cancel()
	all := make([]*T, len(candidates))
	var wait sync.WaitGroup
	for i, a := range candidates {
		wait.Go(func() { all[i] = visit(ctx, a) })
	}
	wait.Wait()
	for _, p := range all {
		if p != nil {
			out = append(out, *p)
		}
	}
	return out, nil
}

// sockets returns the sockets in the well-known folder, with or without a listener.
func sockets() (out []address, err error) {
	if err := trustedFolder(Folder()); err != nil {
		return nil, fmt.Errorf("find engines: %w", err)
	}
	entries, err := os.ReadDir(Folder())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("find engines: %w", err)
	}
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), suffix) && len(out) < maxFound {
			out = append(out, address{"unix", filepath.Join(Folder(), e.Name())})
		}
	}
	return out, nil
}

// visit returns the engine that listens at an address, or nil.
func visit(ctx context.Context, a address) *Found {
	conn, err := dial(ctx, a)
	if err != nil {
		return nil
	}
	defer conn.Close()
	f := &Found{Address: a.String()}
	if engine, err := introduction(conn); err == nil {
		f.Engine = engine
	}
	return f
}

// Seen is an engine in the well-known folder with its current state.
type Seen struct {
	Found
	Refused bool // it requires a token
	Synced  bool // its state was received; Model and Live are part of it
	Model   event.Model
	Live    map[event.RequestID]int64 // tokens so far, by live request
}

// Look returns the same engines as Discover with their state, as far as it arrives within a second.
func Look(ctx context.Context) ([]Seen, error) {
	return visitAll(ctx, look)
}

// look reads the state of an engine; nil if none listens.
func look(ctx context.Context, a address) *Seen {
	conn, err := dial(ctx, a)
	if err != nil {
		return nil
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	s := &Seen{Found: Found{Address: a.String()}, Live: map[event.RequestID]int64{}}
	var d wire.Decoder
	for lines := newLines(conn); !s.Synced && !s.Refused; {
		line, err := lines.next()
		if err != nil {
			break
		}
		session, err := d.Decode(line, func(e event.Event) { s.hear(&e) })
		if err != nil {
			break
		}
		s.Synced, s.Refused = session.Type == wire.Synced, session.Type == wire.Auth
	}
	return s
}

// hear processes an event of the state.
func (s *Seen) hear(e *event.Event) {
	switch p := e.Data.(type) {
	case *event.EngineInfo:
		s.Engine = *p
	case *event.Model:
		s.Model = *p
	}
	_, live := s.Live[e.Req]
	switch {
	case e.Kind == event.KindToken && live:
		s.Live[e.Req] = int64(e.Index) + int64(max(e.N, 1))
	case e.Kind != event.KindRequest:
	case e.State.Final():
		delete(s.Live, e.Req)
	case !live && len(s.Live) < catchup.MaxLive:
		s.Live[e.Req] = 0
	}
}
