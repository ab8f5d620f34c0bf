package capture

import (
	"bufio"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"time"
)

// errIdle says that no packet has come for a while. Reading goes on after it.
var errIdle = errors.New("no packets")

// idle is how long a source waits for a packet before it returns errIdle.
const idle = 100 * time.Millisecond

// pump reads ahead in a goroutine, so that the reader of a pipe sees time pass and the end of its context.
type pump struct {
	full, empty chan []byte
	err         error // why full was closed
	rest, chunk []byte
	ctx         context.Context
	stop        chan struct{}
}

// newPump starts to read r, or what r holds compressed with gzip.
func newPump(r io.Reader) *pump {
	const chunks, size = 4, 256 << 10
	p := &pump{full: make(chan []byte, chunks), empty: make(chan []byte, chunks), ctx: context.Background(), stop: make(chan struct{})}
	for range chunks {
		p.empty <- make([]byte, size)
	}
	go func() {
		defer close(p.full)
		small := bufio.NewReader(r)
		r = small
		if magic, _ := small.Peek(2); len(magic) == 2 && magic[0] == 0x1f && magic[1] == 0x8b {
			z, err := gzip.NewReader(small)
			if err != nil {
				p.err = err
				return
			}
			r = z
		}
		for {
			var b []byte
			select {
			case b = <-p.empty:
			case <-p.stop:
				p.err = io.EOF
				return
			}
			n, err := r.Read(b[:cap(b)])
			if n > 0 {
				p.full <- b[:n]
			}
			if err != nil {
				p.err = err
				return
			}
		}
	}()
	return p
}

// Read returns errIdle if nothing comes for a while, and the error of the context.
func (p *pump) Read(b []byte) (int, error) {
	if len(p.rest) == 0 {
		if p.chunk != nil {
			p.empty <- p.chunk
			p.chunk = nil
		}
		select {
		case <-p.ctx.Done():
			return 0, p.ctx.Err()
		default:
		}
		select {
		case p.chunk = <-p.full:
		default:
			timer := time.NewTimer(idle)
			defer timer.Stop()
			select {
			case p.chunk = <-p.full:
			case <-p.ctx.Done():
				return 0, p.ctx.Err()
			case <-timer.C:
				return 0, errIdle
			}
		}
		if p.chunk == nil {
			return 0, p.err
		}
		p.rest = p.chunk
	}
	n := copy(b, p.rest)
	p.rest = p.rest[n:]
	return n, nil
}

// close ends the goroutine, unless it is blocked in Read.
func (p *pump) close() {
	select {
	case <-p.stop:
	default:
		close(p.stop)
	}
}
