package socket

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/event/wire"
	"github.com/llmtop/llmtop/runtime/engine"
)

const (
	// maxKnown limits the live requests that a client tracks, about 64 bytes each.
	maxKnown = 1 << 14
	// jump is the clock difference from which a heartbeat counts as early or late.
	jump = event.Time(250 * time.Millisecond)
	// minLateBeats is how many heartbeats in a row must be late, and settles how long this must last, before the cause is taken
	// to be the engine's clock. After a client was stopped its heartbeats are late too, but arrive all at once.
	minLateBeats = 3
	settles      = event.Time(1500 * time.Millisecond)
	// maxID is the largest request id that engines should use. Larger ones are passed on without an offset.
	maxID = event.RequestID(1)<<53 - 1
)

// follow converts an engine's lines to events, across connections and runs of the engine.
type follow struct {
	sink    event.Sink
	clock   engine.Clock
	decoder wire.Decoder
	batch   []event.Event // events of the current line
	held    []event.Event // steps that wait for the tokens they made

	engine  event.EngineInfo // as introduced
	remote  event.Remote
	model   event.Model
	took    int64 // ns that the model took to load
	run     string
	greeted bool // the engine has introduced itself on this connection
	ended   bool // nobody listens at its address any more

	offset  event.Time // client clock minus engine clock
	settles event.Time // see the constant
	late    lateness

	live    map[event.RequestID]*progress
	highest event.RequestID // highest id of all runs, after adding base
	base    event.RequestID // added to the ids of this run

	syncing bool   // the engine is sending its state
	round   uint64 // number of states received
	synced  bool   // a state was received in this run before

	received      uint64 // events counted on this connection
	malformed     uint64 // value of Remote.Malformed in the last engine event
	lost          event.Drops
	lostBefore    event.Drops // total of the connections before
	missing       int64       // see event.Remote
	missingBefore int64       // total of the connections before
}

// progress tracks a live request.
type progress struct {
	next    int32  // index of the next token
	begun   uint64 // round in which it first appeared
	named   uint64 // last round that named it
	several bool   // it has several choices
}

// lateness tracks a series of late heartbeats.
type lateness struct {
	beats int
	since event.Time // arrival of the first one
	least event.Time // smallest offset among them
}

// begin starts a connection.
func (f *follow) begin() {
	f.greeted, f.syncing, f.late, f.received = false, false, lateness{}, 0
	f.release()
	for k := range f.lost {
		f.lostBefore[k] += f.lost[k]
	}
	f.missingBefore += f.missing
	f.lost, f.missing = event.Drops{}, 0
}

// line converts a line to events. Malformed lines are counted. Error: ErrVersion.
func (f *follow) line(line []byte) (wire.Session, error) {
	clear(f.batch)
	f.batch = f.batch[:0]
	session, err := f.decoder.Decode(line, func(e event.Event) { f.batch = append(f.batch, e) })
	switch {
	case errors.Is(err, ErrVersion):
		return session, err
	case err != nil:
		f.remote.Malformed++
		return wire.Session{}, nil
	case session.Type == wire.Hello:
		f.greet(&session)
	case !f.greeted:
		return session, nil // the engine has not introduced itself
	}
	f.heard()
	if session.Type == wire.None && !f.syncing {
		f.received += uint64(len(f.batch))
	}
	f.events()
	f.control(&session)
	return session, nil
}

// greet processes an introduction and detects a restart of the engine.
func (f *follow) greet(s *wire.Session) {
	f.engine = *f.batch[0].Data.(*event.EngineInfo)
	run := fmt.Sprint(s.Run, "/", f.engine.PID)
	if f.run != "" && (run != f.run || f.ended) { // an engine that was only out of reach has its requests begin again
		f.endAll(event.StateCancelled, "the engine restarted", 0)
		if run != f.run {
			f.remote.Restarts++
			f.forget()
		}
		f.base, f.synced = f.highest, false
		if f.highest > maxID { // no ids left after these; such ids are random and will not repeat
			f.base, f.highest = 0, 0
		}
	}
	f.run, f.greeted, f.ended = run, true, false
	f.offset = f.clock.Now() - s.At
	f.remote.Link, f.remote.Reason, f.remote.Since = event.LinkConnected, "", f.clock.Now()
}

// forget drops the model of the run before. The new run may report its model later, or another one.
func (f *follow) forget() {
	had := f.model != event.Model{}
	f.model, f.took = event.Model{}, 0
	if had && !slices.ContainsFunc(f.batch, func(e event.Event) bool { return e.Kind == event.KindModel }) {
		f.sink.Emit(event.Event{Kind: event.KindModel, At: f.clock.Now(), Layer: -1, Data: new(event.Model)})
	}
}

// heard marks the engine as connected.
func (f *follow) heard() {
	if f.remote.Link != event.LinkConnected {
		f.linked(event.LinkConnected, "")
	}
}

// silent marks the engine as stale.
func (f *follow) silent() {
	if f.greeted {
		f.linked(event.LinkStale, "")
	}
}

// linked emits a change of the connection state.
func (f *follow) linked(l event.Link, why string) {
	f.release()
	if f.remote.Link == l && f.remote.Reason == why {
		return
	}
	f.remote.Link, f.remote.Reason, f.remote.Since = l, why, f.clock.Now()
	f.introduce(f.clock.Now())
}

// introduce emits the engine with its connection state.
func (f *follow) introduce(at event.Time) {
	e := f.engine
	e.Epoch, e.Remote = f.clock.Epoch(), f.remote
	e.Remote.Missed = f.missing + f.missingBefore
	f.malformed = f.remote.Malformed
	f.sink.Emit(event.Event{Kind: event.KindEngine, At: at, Layer: -1, Data: &e})
}

// control processes a line about the connection itself.
func (f *follow) control(s *wire.Session) {
	switch s.Type {
	case wire.Sync:
		f.syncing = true
		f.round++
	case wire.Synced:
		if f.syncing {
			f.endAll(event.StateUnseen, "its end was not received", f.round)
		}
		f.syncing, f.synced = false, true
	case wire.Clock:
		f.beat(s.At)
		f.balance(s)
	case wire.Dropped:
		f.balance(s)
	}
}

// balance reports changed numbers of malformed lines, and of missing events if the engine counts what it sends.
func (f *follow) balance(s *wire.Session) {
	missing := f.missing
	if s.HasEvents {
		missing = int64(s.Events) - int64(f.received+f.lost.Total())
	}
	if missing != f.missing || f.malformed != f.remote.Malformed {
		f.missing = missing
		f.introduce(f.clock.Now())
	}
}

// beat compares the clocks. A heartbeat cannot arrive early, but may be late if the client is behind.
func (f *follow) beat(at event.Time) {
	now := f.clock.Now()
	offset := now - at
	switch {
	case offset < f.offset-jump:
	case offset <= f.offset+jump:
		f.late = lateness{}
		return
	default:
		if !f.late.persists(now, offset, f.settles) {
			return
		}
		offset = f.late.least
	}
	f.late = lateness{}
	text := fmt.Sprintf("the engine's clock jumped by %v", time.Duration(f.offset-offset))
	f.offset = offset
	f.sink.Emit(event.Event{Kind: event.KindLog, At: f.clock.Now(), Layer: -1, Text: text})
}

// persists adds a late heartbeat and reports whether the series is too long to be explained by a slow client.
func (l *lateness) persists(now, offset, settles event.Time) bool {
	if l.beats == 0 {
		l.since, l.least = now, offset
	}
	l.beats++
	l.least = min(l.least, offset)
	return l.beats >= minLateBeats && now-l.since >= settles
}

// gone ends the live requests of an engine at whose address nobody listens any more.
func (f *follow) gone() {
	f.ended = true
	f.endAll(event.StateCancelled, "the engine has ended", 0)
}

// endAll ends the live requests that the state of the given round did not name. Round 0 ends all.
func (f *follow) endAll(how event.State, why string, round uint64) {
	f.release()
	unseen := how == event.StateUnseen
	for id, p := range f.live {
		if p.named == round && round > 0 {
			continue
		}
		delete(f.live, id)
		f.sink.Emit(event.Event{
			Kind: event.KindRequest, At: f.clock.Now(), Req: id, State: how, Layer: -1, Data: &event.Outcome{Reason: why, AnyCached: true, AtLeast: unseen, AnyEnd: unseen},
		})
	}
}
