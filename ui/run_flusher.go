package ui

import (
	"reflect"
	"sync"
	"time"
	"unsafe"

	tea "charm.land/bubbletea/v2"
)

// The terminal library writes a frame when its ticker fires, at a constant rate. A rate that shows keys and the first
// frame soon wakes an idle program up all the time, so the ticker fires soon after a frame was drawn, and then rests.
const (
	flushSoon = 4 * time.Millisecond // collects frames and queries drawn together
	flushEnd  = 3 * flushSoon        // then the frame has reached the library
	flushRest = 10 * time.Second     // for what the library writes without a frame or a message
)

// flusher makes a program write a frame soon after it was drawn. It needs a field that the library does not export
// (TestFlusher notices when it is gone). Without it, the library ticks at flushRate.
type flusher struct {
	program *tea.Program

	mu   sync.Mutex // guards the fields below
	rest *time.Timer
	busy time.Time // the ticker fires soon until then
}

// drawn is called on the goroutine that draws, which is the one that makes the ticker.
func (f *flusher) drawn() {
	t := tickerOf(f.program)
	if t == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.busy = time.Now().Add(flushEnd - flushSoon/2)
	t.Reset(flushSoon)
	if f.rest == nil {
		f.rest = time.AfterFunc(flushEnd, func() { f.slowDown(t) })
		return
	}
	f.rest.Reset(flushEnd)
}

// slowDown lets the ticker rest, unless another frame has been drawn meanwhile.
func (f *flusher) slowDown(t *time.Ticker) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if time.Now().Before(f.busy) {
		return // drawn has set the timer again
	}
	t.Reset(flushRest)
}

// stop ends the timer.
func (f *flusher) stop() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.rest != nil {
		f.rest.Stop()
	}
}

// tickerOf returns the ticker of a program that runs, nil if there is none.
func tickerOf(p *tea.Program) *time.Ticker {
	field := reflect.ValueOf(p).Elem().FieldByName("ticker")
	if field.Kind() != reflect.Pointer || field.Type() != reflect.TypeFor[*time.Ticker]() {
		return nil
	}
	return (*time.Ticker)(unsafe.Pointer(field.Pointer()))
}
