package socket

import (
	"context"
	"sync"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/event/catchup"
	"github.com/llmtop/llmtop/profiler/event/wire"
)

// Seen is an engine in the well-known folder with its current state.
type Seen struct {
	Found
	Refused bool // it requires a token
	Synced  bool // its state was received; Model and Live are part of it
	Model   event.Model
	Live    map[event.RequestID]int64 // tokens so far, by live request
}

// Look returns the same engines as Discover with their state, as far as ctx allows to receive it.
func Look(ctx context.Context) ([]Seen, error) {
	candidates, err := sockets()
	if err != nil {
		return nil, err
	}
	all := make([]*Seen, len(candidates))
	var wait sync.WaitGroup
	for i, a := range candidates {
		wait.Go(func() { all[i] = look(ctx, a) })
	}
	wait.Wait()
	return nonNil(all), nil
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
