package scrape

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/scrape/fetch"
	"github.com/llmtop/llmtop/runtime/sse"
)

// loadsPath is where a llama-server with several models tells of their loads as they happen.
const loadsPath = "/models/sse"

// The bounds of following it.
const (
	maxLoadMessage = 256 << 10 // bytes; one with a model's details has some hundred
	followAgain    = time.Second
	followAtMost   = 30 * time.Second
	wakeAfter      = 250 * time.Millisecond
)

// router follows the loads of the models of a llama-server. It runs beside the looks, and these ask it for what it knows.
type router struct {
	source *Source
	stop   context.CancelFunc

	mu      sync.Mutex // guards what follows
	loads   loading
	changed bool      // models have come or gone since that was asked last
	woke    time.Time // when it had the server looked at
	why     string    // it is not followed; "": it is
}

// followLoads begins to follow the loads of a server that has several models, and ends following the one before, whose connection nothing is known of.
func (s *Source) followLoads(ctx context.Context) {
	if s.router != nil {
		s.router.stop()
		s.router = nil
	}
	if !s.info.Router {
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	r := &router{source: s, stop: cancel, why: "not connected yet"}
	r.loads = loading{say: s.say, emit: s.sink.Emit}
	s.router = r
	s.beside.Go(func() {
		defer cancel()
		r.run(ctx)
	})
}

// run follows for as long as ctx, unless the server says that it tells nothing.
func (r *router) run(ctx context.Context) {
	wait := followAgain
	for ctx.Err() == nil {
		came, err := r.follow(ctx)
		refused := (*fetch.Status)(nil)
		r.forget(err)
		if errors.As(err, &refused) && (refused.Code == http.StatusNotFound || refused.Code == http.StatusMethodNotAllowed || refused.Code == http.StatusNotImplemented) {
			return // it is too old
		}
		if came {
			wait = followAgain
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
		wait = min(2*wait, followAtMost)
	}
}

// follow takes in what the server tells until it stops. It reports whether anything came.
func (r *router) follow(ctx context.Context) (came bool, err error) {
	a, err := r.source.client.Stream(ctx, loadsPath)
	if err != nil {
		return false, err
	}
	defer a.Close()
	if err := a.Refusal(); err != nil {
		return false, err
	}
	if !a.Is("text/event-stream") {
		return false, errors.New("answers no stream of events")
	}
	r.mu.Lock()
	r.why = ""
	r.mu.Unlock()
	slowly := &paced{from: a.Body, wait: func() {
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}}
	err = readLoads(slowly, func(m *loadMessage) {
		came = true
		r.take(m)
	})
	if err == io.EOF {
		err = errors.New("has ended its stream of events")
	}
	return came, err
}

// paced is a stream of which no more than maxPace is read between two waits of a second, however fast it comes: one of loads has some KB a minute.
type paced struct {
	from io.Reader
	wait func()
	left int // bytes until the next wait

	began bool
}

const maxPace = 1 << 20 // bytes

// Read implements io.Reader.
func (p *paced) Read(b []byte) (int, error) {
	if p.left <= 0 {
		if p.left = maxPace; p.began {
			p.wait()
		}
		p.began = true
	}
	n, err := p.from.Read(b[:min(len(b), p.left)])
	p.left -= n
	return n, err
}

// readLoads reads messages until the stream ends, which is an error, io.EOF where nothing else is wrong. What is no message is passed over.
func readLoads(from io.Reader, take func(*loadMessage)) error {
	lines, e := bufio.NewReaderSize(from, 32<<10), sse.Event{Max: maxLoadMessage}
	e.Begin()
	for {
		line, err := lines.ReadSlice('\n')
		for errors.Is(err, bufio.ErrBufferFull) { // longer than anything that is understood
			e.Over = true
			_, err = lines.ReadSlice('\n')
			line = []byte(":") // a comment
		}
		if err != nil {
			return err
		}
		if !e.Line(bytes.TrimRight(line, "\r\n")) {
			continue
		}
		m := new(loadMessage)
		if !e.Over && !e.Failed && json.Unmarshal(e.Data, m) == nil {
			take(m)
		}
		e.Begin()
	}
}

// take takes in a message. Where models have come or gone the server is looked at soon.
func (r *router) take(m *loadMessage) {
	r.mu.Lock()
	defer r.mu.Unlock()
	was := len(r.loads.of)
	changed := r.loads.take(m, r.source.opt.Clock.Now())
	r.changed = r.changed || changed
	if (changed || len(r.loads.of) != was) && time.Since(r.woke) >= wakeAfter {
		r.woke = time.Now()
		select {
		case r.source.wake <- struct{}{}:
		default:
		}
	}
}

// forget gives up what was being loaded: how it goes on is not told.
func (r *router) forget(why error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.loads.of, r.loads.last, r.changed = nil, nil, true
	r.why = why.Error()
}

// news reports whether models have come or gone since it was asked last, and whether one is being loaded.
func (r *router) news() (changed, loads bool) {
	if r == nil {
		return false, false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	changed, r.changed = r.changed, false
	return changed, len(r.loads.of) > 0
}

// tell puts into a report how far a load is.
func (r *router) tell(p *event.Report) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	from(p, loadsPath, r.why)
	if stage, share, ok := r.loads.far(); ok {
		more(p, event.Number{Name: "load_" + stage + "_share", Reading: event.Told(share)})
	}
}
