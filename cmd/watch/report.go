package watch

import (
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/llmtop/llmtop/cmd/local"
	"github.com/llmtop/llmtop/cmd/session"
	"github.com/llmtop/llmtop/cmd/version"
	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/report"
	"github.com/llmtop/llmtop/runtime/engine"
)

// unreached returns an error if none of the engines was ever reached, or could be read.
func (w *watcher) unreached() error {
	engines := w.visible()
	if len(engines) == 0 {
		return nil
	}
	why := ""
	for i, e := range engines {
		s := e.session.Store.Snapshot()
		of := "never reached: " + s.Engine.Remote.Reason
		switch {
		case w.probes[e.at] != nil && s.Engine.State == event.EngineFailed:
			of = s.Engine.Reason
		case !s.NeverReached():
			return nil
		}
		if i == 0 {
			why = of
		}
	}
	others := ""
	if n := len(engines) - 1; n > 0 {
		others = fmt.Sprintf(" (nor %d more)", n)
	}
	return fmt.Errorf("%s %s: %s%s", w.opt.verb(), engines[0].at, why, others)
}

// report returns the report of the only engine, or the common report if there may be several.
func (w *watcher) report(partial bool) *report.Report {
	meta := w.opt.meta()
	meta.Partial = partial
	var members []report.Member
	for _, e := range w.visible() {
		of := meta
		of.Remote = e.remote()
		s := e.session.Store.Snapshot()
		built := report.Build(of, s)
		built.DropText()
		members = append(members, report.Member{Name: e.at, Snapshot: s, Report: built})
	}
	w.mu.Lock()
	merged := len(w.merged) > 0
	w.mu.Unlock()
	if len(members) == 1 && (merged || !w.opt.several()) {
		return members[0].Report
	}
	return report.BuildFleet(meta, members)
}

// meta returns the metadata of a report of engines that may run elsewhere.
func (o *Options) meta() report.Meta {
	m := report.Meta{Version: version.String(), Remote: true, Configuration: o.configuration()}
	if o.flags != nil {
		m.Command = local.CommandLine(o.verb()+" --headless", o.flags, 0)
	}
	return m
}

// configuration returns the settings for the report.
func (o *Options) configuration() map[string]string {
	values := map[string]string{}
	if o.flags != nil {
		values = local.Configuration(o.flags)
	}
	for name, value := range map[string]string{o.verb(): strings.Join(o.Addresses, " "), "otlp": o.Traces, "match": o.match} {
		if value != "" {
			values[name] = value
		}
	}
	return o.View.AddTargets(values)
}

// stoppableClock is the clock of a session that is reported at its end. end stops it, and marks that moment in the
// recording, so that the report of the recording is the same.
type stoppableClock struct {
	clock  engine.Clock
	engine atomic.Pointer[event.EngineInfo] // latest introduction
	at     atomic.Int64                     // when it stopped; 0: still running
}

// Emit implements event.Sink.
func (d *stoppableClock) Emit(e event.Event) {
	if p, ok := e.Data.(*event.EngineInfo); ok && p != nil {
		d.engine.Store(p)
	}
}

// end stops the clock and repeats the introduction of the engine in the recording of s, so that it lasts until now.
func (d *stoppableClock) end(s *session.Session) {
	now := d.clock.Now()
	if e := d.engine.Load(); e != nil {
		s.EmitRecorded(event.Event{Kind: event.KindEngine, At: now, Layer: -1, Data: e})
	}
	d.at.Store(int64(now))
}

func (d *stoppableClock) now() event.Time {
	if at := d.at.Load(); at != 0 {
		return event.Time(at)
	}
	return d.clock.Now()
}

func (d *stoppableClock) wall() time.Time { return time.Unix(0, d.clock.Epoch()+int64(d.now())) }
