package engine

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"sync"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/source/answers"
	"github.com/llmtop/llmtop/runtime/source/scrape/fetch"
)

// loadsPath is the endpoint where a llama-server with several models streams the events of model loads.
const loadsPath = "/models/sse"

// Limits of the stream.
const (
	maxLoadMessage = 256 << 10 // bytes; a message with a model's details has some hundred
	minReconnect   = time.Second
	maxReconnect   = 30 * time.Second
	wakeAfter      = 250 * time.Millisecond
)

// loadFollower follows the model loads of a llama-server in its own goroutine. Polls read its state.
type loadFollower struct {
	poller *Poller
	stop   context.CancelFunc

	mu      sync.Mutex // guards the fields below
	tracker loadTracker
	changed bool      // the loaded models have changed since the last takeChanges
	wokeAt  time.Time // when it last triggered a poll
	why     string    // why the stream is not followed; "": it is followed
}

// followLoads starts to follow the model loads of a server with several models. It stops the previous follower, whose
// connection may belong to another server.
func followLoads(ctx context.Context, s *Poller) {
	if s.loads != nil {
		s.loads.stop()
		s.loads = nil
	}
	if !s.info.Router {
		return
	}
	ctx, cancel := context.WithCancel(ctx)
	f := &loadFollower{poller: s, stop: cancel, why: "not connected yet"}
	f.tracker = loadTracker{logf: s.logf, emit: s.sink.Emit}
	s.loads = f
	s.background.Go(func() {
		defer cancel()
		f.run(ctx)
	})
}

// run follows the stream until ctx ends, or until the server responds that it has no such endpoint.
func (f *loadFollower) run(ctx context.Context) {
	wait := minReconnect
	for ctx.Err() == nil {
		received, err := f.read(ctx)
		f.reset(err)
		if fetch.Unsupported(err) {
			return // the server is too old
		}
		if received {
			wait = minReconnect
		}
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
		wait = min(2*wait, maxReconnect)
	}
}

// read processes the stream until it ends. It reports whether any message arrived.
func (f *loadFollower) read(ctx context.Context) (received bool, err error) {
	a, err := f.poller.client.Stream(ctx, loadsPath)
	if err != nil {
		return false, err
	}
	defer a.Close()
	if err := a.Refusal(); err != nil {
		return false, err
	}
	if !a.Is("text/event-stream") {
		return false, errors.New("response is not an event stream")
	}
	f.mu.Lock()
	f.why = ""
	f.mu.Unlock()
	wait := func() {
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
	err = readLoads(a.Body, wait, func(m *loadMessage) {
		received = true
		f.handle(m)
	})
	if err == io.EOF {
		err = errors.New("event stream ended")
	}
	return received, err
}

// maxBytesPerSecond limits reading, however fast a server sends. Load events take a few KB per minute.
const maxBytesPerSecond = 1 << 20

// readLoads reads messages until the stream ends; the error is then io.EOF. It skips malformed messages, and calls wait for
// a second after each maxBytesPerSecond.
func readLoads(from io.Reader, wait func(), handle func(*loadMessage)) error {
	lines, e, left := bufio.NewReaderSize(from, 32<<10), answers.Event{Max: maxLoadMessage}, maxBytesPerSecond
	next := func() ([]byte, error) {
		line, err := lines.ReadSlice('\n')
		if left -= len(line); left <= 0 {
			left += maxBytesPerSecond
			wait()
		}
		return line, err
	}
	e.Begin()
	for {
		line, err := next()
		for errors.Is(err, bufio.ErrBufferFull) { // longer than any valid message
			e.Over = true
			_, err = next()
			line = []byte(":") // an SSE comment, which is ignored
		}
		if err != nil {
			return err
		}
		if !e.Line(bytes.TrimRight(line, "\r\n")) {
			continue
		}
		m := new(loadMessage)
		if !e.Over && !e.Failed && json.Unmarshal(e.Data, m) == nil {
			handle(m)
		}
		e.Begin()
	}
}

// handle processes a message. It triggers a poll if a model was loaded or unloaded, or a load started or ended.
func (f *loadFollower) handle(m *loadMessage) {
	f.mu.Lock()
	defer f.mu.Unlock()
	before := len(f.tracker.byModel)
	changed := f.tracker.handle(m, f.poller.clock.Now())
	f.changed = f.changed || changed
	least := wakeAfter
	if changed { // a request may already run on the model
		least = wakeAfter / 10
	}
	if (changed || len(f.tracker.byModel) != before) && time.Since(f.wokeAt) >= least {
		f.wokeAt = time.Now()
		f.poller.wakeUp()
	}
}

// reset discards the loads in progress: their further progress is unknown.
func (f *loadFollower) reset(why error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.tracker.byModel, f.tracker.last, f.changed = nil, nil, true
	f.why = why.Error()
}

// takeChanges reports whether the loaded models have changed since the previous call, and whether a model is loading.
func (f *loadFollower) takeChanges() (changed, loads bool) {
	if f == nil {
		return false, false
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	changed, f.changed = f.changed, false
	return changed, len(f.tracker.byModel) > 0
}

// addTo adds the progress of the latest load to a report.
func (f *loadFollower) addTo(p *event.Aggregates) {
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	addEndpoint(p, loadsPath, f.why)
	if stage, share, ok := f.tracker.progress(); ok {
		addReading(p, event.NamedReading{Name: "load_" + stage + "_share", Reading: event.ReportedValue(share)})
	}
}
