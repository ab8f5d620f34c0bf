package socket

import (
	"context"
	"net"
	"sync"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/event/wire"
)

// Seen is an engine of the well-known folder with what it says of itself at once.
type Seen struct {
	Found
	Refused bool // it wants a token
	Told    bool // it has told its state, which the rest is part of
	Model   event.Model
	Live    map[event.RequestID]int64 // tokens so far of the requests that have not ended
}

// Look is Discover that also hears the state of each engine, for as long as the context allows.
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
	return present(all), nil
}

// look hears an engine out; nil if nobody listens.
func look(ctx context.Context, a address) *Seen {
	conn, err := new(net.Dialer).DialContext(ctx, a.network, a.path)
	if err != nil {
		return nil
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	s := &Seen{Found: Found{Address: a.String()}, Live: map[event.RequestID]int64{}}
	var d wire.Decoder
	for lines := newLines(conn); !s.Told && !s.Refused; {
		line, err := lines.next()
		if err != nil {
			break
		}
		session, err := d.Decode(line, func(e event.Event) { s.hear(&e) })
		if err != nil {
			break
		}
		s.Told, s.Refused = session.Type == wire.Synced, session.Type == wire.Auth
	}
	return s
}

// hear takes an event of the state.
func (s *Seen) hear(e *event.Event) {
	switch p := e.Data.(type) {
	case *event.Engine:
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
	case !live && len(s.Live) < maxLive:
		s.Live[e.Req] = 0
	}
}
