package socket

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/event/catchup"
	"github.com/llmtop/llmtop/profiler/event/wire"
)

// Found is an engine in the well-known folder.
type Found struct {
	Address string
	Engine  event.EngineInfo // Name is "" if it does not answer, or only with a token
	Refused error            // ErrToken: it requires one; ErrVersion; nil if it answers
	Synced  bool             // its state was received; Model and Live are part of it
	Model   event.Model
	Live    map[event.RequestID]int64 // tokens so far, by live request
}

// maxFound limits the number of sockets that are tried.
const maxFound = 64

// Look returns this user's running engines in the order of their addresses, none if the folder does not exist. With state
// it waits for their state, too, for at most a second. Error: ErrUntrusted.
func Look(ctx context.Context, state bool) (out []Found, err error) {
	candidates, err := sockets()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, shortTimeout)
	defer cancel()
	all := make([]*Found, len(candidates))
	var wait sync.WaitGroup
	for i, a := range candidates {
		wait.Go(func() { all[i] = look(ctx, a, state) })
	}
	wait.Wait()
	for _, p := range all {
		if p != nil {
			out = append(out, *p)
		}
	}
	slices.SortFunc(out, func(a, b Found) int { return strings.Compare(a.Address, b.Address) })
	return out, nil
}

// sockets returns the newest sockets in the well-known folder, with or without a listener, the newest first: engines that
// were killed leave theirs behind.
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
	made := map[string]time.Time{}
	for _, e := range entries {
		if info, err := e.Info(); err == nil && isSocket(info) && strings.HasSuffix(e.Name(), suffix) {
			a := address{"unix", filepath.Join(Folder(), e.Name())}
			out, made[a.path] = append(out, a), info.ModTime()
		}
	}
	slices.SortStableFunc(out, func(a, b address) int { return made[b.path].Compare(made[a.path]) })
	return out[:min(len(out), maxFound)], nil
}

// look reads the introduction of an engine, and its state if that is asked for; nil if none listens.
func look(ctx context.Context, a address, state bool) *Found {
	conn, err := dial(ctx, a)
	if err != nil {
		return nil
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	f := &Found{Address: a.String(), Live: map[event.RequestID]int64{}}
	var d wire.Decoder
	for lines := newLines(conn); ; {
		line, err := lines.next()
		if err != nil {
			return f
		}
		session, err := d.Decode(line, func(e event.Event) { f.hear(&e) })
		switch {
		case session.Type == wire.Auth:
			f.Refused = ErrToken
		case errors.Is(err, ErrVersion):
			f.Refused = err
		}
		if f.Synced = session.Type == wire.Synced; err != nil || f.Synced || f.Refused != nil || !state {
			return f
		}
	}
}

// hear processes an event of the state.
func (f *Found) hear(e *event.Event) {
	switch p := e.Data.(type) {
	case *event.EngineInfo:
		f.Engine = *p
	case *event.Model:
		f.Model = *p
	}
	_, live := f.Live[e.Req]
	switch {
	case e.Kind == event.KindToken && live:
		f.Live[e.Req] = int64(e.Index) + int64(max(e.N, 1))
	case e.Kind != event.KindRequest:
	case e.State.Final():
		delete(f.Live, e.Req)
	case !live && len(f.Live) < catchup.MaxLive:
		f.Live[e.Req] = 0
	}
}
