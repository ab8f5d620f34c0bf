package capture

import (
	"context"
	"errors"
	"io"
	"net/netip"
	"time"
)

// Source yields packets of a file, of a pipe, or of the network.
type Source struct {
	packets interface {
		read(*frame) error // io.EOF, errCut or errIdle, or the next packet
		drops() int        // packets dropped so far before they could be read
	}
	pump  *pump               // of a file
	lag   time.Duration       // how long packets wait elsewhere before they can be read
	close func() error        // of the network
	local map[netip.Addr]bool // network: addresses of this machine
}

// Local reports whether an address is one of this machine, as far as it is known: only of the network.
func (s *Source) Local(addr netip.Addr) bool { return addr.IsLoopback() || s.local[addr.Unmap()] }

// Close releases the source. Call it when Run has returned, or instead of Run.
func (s *Source) Close() error {
	if s.pump != nil {
		s.pump.close()
	}
	if s.close != nil {
		return s.close()
	}
	return nil
}

// Run reads a source to its end, or to that of ctx, and calls the listeners. Then it ends every connection. It returns
// nil at the end of ctx and of a file, even if that is cut off in the middle of a packet (Losses.Cut).
func (a *Assembler) Run(ctx context.Context, s *Source) error {
	if s.pump != nil {
		s.pump.ctx = ctx
	}
	a.local = s.local
	err := a.readAll(ctx, s)
	a.stop()
	a.setDropped(s)
	switch {
	case errors.Is(err, io.EOF) || ctx.Err() != nil && errors.Is(err, ctx.Err()):
		return nil
	case errors.Is(err, errCut):
		a.lose(&a.losses.Cut, 1)
		return nil
	}
	return err
}

// readAll reads packets until an error.
func (a *Assembler) readAll(ctx context.Context, s *Source) error {
	var f frame
	var since time.Time // when the source became idle
	for n := 0; ; n++ {
		err := s.packets.read(&f)
		if errors.Is(err, errIdle) {
			if since.IsZero() {
				since = time.Now()
			}
			// Time goes on while nothing comes, as far as nothing older can come any more.
			a.expire(a.now + int64(time.Since(since)-s.lag))
			a.setDropped(s)
			if ctx.Err() != nil {
				return ctx.Err()
			}
			continue
		}
		if err != nil {
			return err
		}
		since = time.Time{}
		a.frame(&f)
		if n%1024 == 0 {
			a.setDropped(s)
			if ctx.Err() != nil {
				return ctx.Err()
			}
		}
	}
}

// setDropped asks the source for what it has dropped.
func (a *Assembler) setDropped(s *Source) {
	n := s.packets.drops()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.losses.Dropped = n
	if f, ok := s.packets.(*file); ok {
		a.losses.Malformed += f.bad
		f.bad = 0
	}
}
