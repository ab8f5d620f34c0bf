package cmd

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/report"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/runtime/engine/remote"
)

// runHeadless watches the engines without a screen until a signal arrives or the time is up, and writes the report.
func (o *attachOptions) runHeadless(ctx context.Context, secret, key string, x *metricsExport) error {
	out, err := o.files.open()
	if err != nil {
		return err
	}
	a, err := o.watch(ctx, secret, key, x)
	if mistake := (usageError{}); errors.As(err, &mistake) { // nothing was watched
		out.discard()
		return err
	}
	return errors.Join(err, out.write(a.report(err != nil), o.stdout), a.unreached())
}

// unreached returns an error if none of the engines was ever reached.
func (a *attached) unreached() error {
	engines := a.visibleEngines()
	if len(engines) == 0 {
		return nil
	}
	why := ""
	for i, e := range engines {
		s := e.session.store.Snapshot()
		if r := s.Engine.Remote; !s.NeverReached() && !(e.fleet && r.Link == event.LinkDisconnected) {
			return nil
		} else if i == 0 {
			why = r.Reason
		}
	}
	others := ""
	if n := len(engines) - 1; n > 0 {
		others = fmt.Sprintf(" (nor %d more)", n)
	}
	return fmt.Errorf("attach %s: never reached: %s%s", engines[0].at, why, others)
}

// waitLength waits until ctx ends, or as long as --for says.
func (o *attachOptions) waitLength(ctx context.Context) {
	if o.length == 0 {
		<-ctx.Done()
		return
	}
	select {
	case <-ctx.Done():
	case <-time.After(o.length):
	}
}

// announce prints what a run without a screen does.
func (o *attachOptions) announce() {
	if o.recording.file != "" && !o.exports.screen && !o.headless {
		fmt.Fprintf(o.notes, "recording to %s until interrupted\n", o.recording.file)
	}
	if !o.headless || len(o.addresses) == 0 {
		return
	}
	until := "until interrupted"
	if o.length > 0 {
		until = fmt.Sprintf("for %v", o.length)
	}
	what := o.addresses[0]
	if n := len(o.addresses); n > 1 {
		what = fmt.Sprintf("%d addresses", n)
	}
	fmt.Fprintf(o.notes, "watching: %s, %s\n", what, until)
}

// session creates the session of an engine. Without a screen it collects everything for the report, except texts.
func (a *attached) session(name string, opt store.Options) *session {
	opt.Budget = a.share
	if !a.opt.headless {
		return a.exporting.session(name, opt)
	}
	collector, ending := report.NewCollector(), &stoppableClock{clock: a.clock}
	opt.OnRequest, opt.Now, opt.Wall = collector.Request, ending.now, ending.wall
	s := a.exporting.session(name, opt)
	s.sink = append(s.sink, event.WithoutText{Sink: collector}, ending)
	s.collector = collector
	s.atEnd = append(s.atEnd, func() error { // must run before the recording is closed
		ending.end(s.recordSink)
		return nil
	})
	return s
}

// report returns the report of the only engine, or the common report if there may be several.
func (a *attached) report(partial bool) *report.Report {
	meta := report.Meta{Version: versionString(), Partial: partial, Remote: true, Configuration: a.opt.configuration()}
	var members []report.Member
	for _, e := range a.visibleEngines() {
		of := meta
		of.Remote = e.client != nil || e.hostUnknown || !remote.IsLocal(e.at)
		s := e.session.store.Snapshot()
		collector := e.session.collector
		if collector == nil {
			collector = report.NewCollector()
		}
		members = append(members, report.Member{Name: e.at, Snapshot: s, Report: report.Build(of, s, collector)})
	}
	if len(members) == 1 && !a.opt.several() {
		return members[0].Report
	}
	return report.BuildFleet(meta, members)
}

// configuration returns the settings for the report.
func (o *attachOptions) configuration() map[string]string {
	values := map[string]string{}
	for name, value := range map[string]string{"attach": strings.Join(o.addresses, " "), "otlp": o.traces.at, "match": o.match} {
		if value != "" {
			values[name] = value
		}
	}
	return o.view.addTargets(values)
}
