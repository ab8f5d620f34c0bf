package recording

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/event/catchup"
	"github.com/llmtop/llmtop/profiler/metric"
)

// run records until Close or an error.
func (r *Recorder) run() {
	defer close(r.done)
	err := r.loop()
	r.queue.Close()
	if err == nil {
		err = r.drain(true)
	}
	if err != nil {
		r.abandon()
	}
	// Try this also after an error: the note may fit where the frame did not.
	if e := r.out.end(r.note(NoteEnd, endReason(err), r.time())); err == nil {
		err = e
	}
	if e := r.out.close(); err == nil {
		err = e
	}
	if err != nil {
		err = fmt.Errorf("record to %s: %w", r.out.path, err)
	}
	r.updateStatus(0, err)
}

// endReason returns the reason that a recording ends with.
func endReason(err error) string {
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
		case <-r.queue.HalfFull():
		case <-tick.C:
			due = true
		}
		if err := r.drain(due); err != nil {
			return err
		}
	}
}

// drain records the queued events. If due, it writes the block even if it is not full.
func (r *Recorder) drain(due bool) error {
	r.batch, _ = r.queue.Swap(r.batch)
	for i := range r.batch {
		if len(r.block.lines) >= blockSize {
			if err := r.write(); err != nil {
				r.countDropped(r.batch[i:])
				return err
			}
		}
		r.last = max(r.last, r.batch[i].Arrived)
		r.batch[i].Arrived = r.last
		r.add(&r.batch[i])
	}
	if due {
		return r.write()
	}
	return nil
}

// time returns the current time on the clock of the arrivals.
func (r *Recorder) time() event.Time { return max(r.last, r.now()) }

// add adds an event to the block.
func (r *Recorder) add(e *catchup.Entry) {
	if r.block.add(e) != nil {
		r.countDropped([]catchup.Entry{*e})
		return
	}
	r.waiting.Count(e.Kind)
	r.state.Apply(&e.Event, e.Arrived, e.Engine)
}

// write writes the block, after a note about new drops.
func (r *Recorder) write() error {
	if drops := r.queue.Drops(); drops != r.recordedDrops {
		n := r.note(NoteDropped, "", r.block.first)
		if err := r.out.notes([]Note{n}); err != nil {
			return err
		}
		r.recordedDrops = drops
	}
	if r.block.events == 0 {
		return nil
	}
	if err := r.out.announceEngines(r.newEngines(), r.block.first); err != nil {
		return err
	}
	if err := r.out.frame(r.block.lines); err != nil {
		return err
	}
	r.updateStatus(r.block.events, nil)
	last := r.block.last
	r.block.reset()
	r.waiting = event.Drops{}
	if r.out.full() {
		r.recordedDrops = event.Drops{} // so that the new segment reports them, too
		return r.out.rotate(r.note(NoteEnd, "rotated", last), last, r.stateBlock())
	}
	return nil
}

// stateBlock returns the state at the start of a segment.
func (r *Recorder) stateBlock() *block {
	b := new(block)
	b.lines = append(b.lines, fmt.Sprintf(`{"recording":"%s","at":%d}`+"\n", NoteState, r.block.last)...)
	skipped := 0
	events := r.stateEvents()
	for i := range events {
		if len(b.lines) > maxFrame/2 || b.add(&events[i]) != nil {
			skipped++ // only the state lacks it; the recording has it
		}
	}
	if untracked := r.state.Untracked(); untracked > 0 || skipped > 0 {
		at := events[len(events)-1].Arrived
		text := fmt.Sprintf("this segment lacks %s, and %s of others", metric.Plural(untracked, "running request"), metric.Plural(skipped, "event"))
		_ = b.add(&catchup.Entry{Event: event.Event{Kind: event.KindLog, At: at, Layer: -1, Text: text}, Arrived: at}) // a log line always fits
	}
	return b
}

// note returns a note with the counts so far.
func (r *Recorder) note(t NoteType, why string, at event.Time) Note {
	drops := r.queue.Drops()
	return Note{Type: t, At: at, Reason: truncateName(why), Events: r.status.Events, Dropped: dropsByName(&drops)}
}

// abandon counts all queued events as dropped.
func (r *Recorder) abandon() {
	r.queue.Drop(&r.waiting)
	batch, _ := r.queue.Swap(nil)
	r.countDropped(batch)
}

// countDropped counts events that are not recorded.
func (r *Recorder) countDropped(batch []catchup.Entry) {
	var drops event.Drops
	for i := range batch {
		drops.Count(batch[i].Kind)
	}
	r.queue.Drop(&drops)
}

// updateStatus updates the status.
func (r *Recorder) updateStatus(entries int, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.status.Events += uint64(entries)
	r.status.Bytes, r.status.Segment = r.out.total, r.out.header.Segment
	if err != nil {
		r.status.Err = err
	}
}

const (
	tokenStep = 512 // most tokens that one event of a state represents
	maxSpread = 128 // most events that represent the tokens of a request; tokens beyond them are counted when the request ends
)

// stateLimits limit the state at the start of a segment, which a reader needs that starts in the middle of a recording.
// The events of all requests before their first tokens take 30 MB at most.
var stateLimits = catchup.Limits{
	Kinds: [event.NumKinds]bool{
		event.KindEngine: true, event.KindModel: true, event.KindExperts: true, event.KindKV: true, event.KindHost: true,
		event.KindCounters: true, event.KindOps: true, event.KindSpeculation: true, event.KindDrops: true, event.KindAggregates: true,
	},
	Detailed: 256, Begin: 128, UntilToken: true, Tokens: maxSpread, LeastTokens: 1, Chunk: tokenStep,
}

// stateEvents returns the state in the order of arrival.
func (r *Recorder) stateEvents() []catchup.Entry {
	all := r.state.All()
	slices.SortStableFunc(all, func(a, b catchup.Entry) int { return cmp.Compare(a.Arrived, b.Arrived) })
	return all
}
