package trace

import (
	"fmt"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
)

// run records until it is closed or an error ends it.
func (r *Recorder) run() {
	defer close(r.done)
	err := r.loop()
	r.queue.close()
	if err == nil {
		err = r.drain(true)
	}
	if err != nil {
		r.abandon()
	}
	// After an error this is worth a try: a note may fit where the frame did not.
	if e := r.out.end(r.note(NoteEnd, why(err)), r.queue.time()); err == nil {
		err = e
	}
	if e := r.out.close(); err == nil {
		err = e
	}
	if err != nil {
		err = fmt.Errorf("record to %s: %w", r.out.path, err)
	}
	r.report(0, err)
}

func why(err error) string {
	if err == nil {
		return "closed"
	}
	return err.Error()
}

func (r *Recorder) loop() error {
	tick := time.NewTicker(r.flush)
	defer tick.Stop()
	for {
		due := false
		select {
		case <-r.stop:
			return nil
		case <-r.queue.half:
		case <-tick.C:
			due = true
		}
		if err := r.drain(due); err != nil {
			return err
		}
	}
}

// drain records what has arrived. If due, it writes the block even if it is not full.
func (r *Recorder) drain(due bool) error {
	r.batch, _ = r.queue.swap(r.batch)
	for i := range r.batch {
		if len(r.block.body) >= blockSize {
			if err := r.write(); err != nil {
				r.missed(r.batch[i:])
				return err
			}
		}
		r.add(&r.batch[i])
	}
	if due {
		return r.write()
	}
	return nil
}

// add puts an event into the block.
func (r *Recorder) add(a *arrival) {
	line, err := r.codec.Append(r.line[:0], &a.Event)
	r.line = line
	if err != nil || len(line) > MaxLine {
		r.missed([]arrival{*a})
		return
	}
	r.block.add(a.at, a.source, line)
	if a.Kind == event.KindRequest && a.State == event.StateQueued && a.Req != 0 {
		r.block.reach(a.Req)
	}
	count(&r.waiting, a.Kind)
	r.state.apply(a)
}

// write writes the block, after a note of what has been lost since the last one.
func (r *Recorder) write() error {
	if lost := r.queue.losses(); lost != r.told {
		n := r.note(NoteLost, "")
		if err := r.out.note(&n, r.block.first); err != nil {
			return err
		}
		r.told = lost
	}
	if r.block.entries == 0 {
		return nil
	}
	if err := r.out.introduce(r.newSources(), r.block.first); err != nil {
		return err
	}
	if err := r.out.block(frameEvents, &r.block); err != nil {
		return err
	}
	r.report(r.block.entries, nil)
	last := r.block.last
	r.block.reset()
	r.waiting = event.Lost{}
	if r.out.full() {
		r.told = event.Lost{} // so that the new segment tells of it, too
		return r.out.rotate(r.note(NoteEnd, "rotated"), last, r.stateBlock())
	}
	return nil
}

// stateBlock is the state that a segment begins with.
func (r *Recorder) stateBlock() *block {
	b := &block{several: r.out.header.Several}
	for _, a := range r.state.events() {
		line, err := r.codec.Append(r.line[:0], &a.Event)
		r.line = line
		if err != nil || len(b.body)+len(line) > maxBody/2 {
			continue // it is only left out of the state; the recording has it
		}
		b.add(a.at, a.source, line)
		if a.Kind == event.KindRequest && a.State == event.StateQueued {
			b.reach(a.Req)
		}
	}
	return b
}

// note is a note with the counts so far.
func (r *Recorder) note(t NoteType, why string) Note {
	lost := r.queue.losses()
	return Note{Type: t, Why: why, Events: r.status.Events, Lost: lostNames(&lost)}
}

// abandon counts what waits and can be written no more.
func (r *Recorder) abandon() {
	r.queue.drop(&r.waiting)
	batch, _ := r.queue.swap(nil)
	r.missed(batch)
}

// missed counts events that are not recorded.
func (r *Recorder) missed(batch []arrival) {
	var lost event.Lost
	for i := range batch {
		count(&lost, batch[i].Kind)
	}
	r.queue.drop(&lost)
}

// report publishes how the recording goes.
func (r *Recorder) report(entries int, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status.Events += uint64(entries)
	r.status.Bytes, r.status.Segment = r.out.total, r.out.header.Segment
	if err != nil {
		r.status.Err = err
	}
}
