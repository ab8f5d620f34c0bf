package cmd

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/recording"
	"github.com/llmtop/llmtop/profiler/report"
	"github.com/llmtop/llmtop/profiler/store"
)

func bindEngineName(set *pflag.FlagSet, name *string) {
	set.StringVar(name, "engine", "", "report only the engine with this `NAME` or part of a name, of several")
}

// reportEngines plays a recording of several engines at full speed and returns their common report, nil if it cannot be
// played. With an error, the report covers the part before it.
func reportEngines(ctx context.Context, rec *recording.Recording, name string, judged *view) (*report.Report, error) {
	var player *recording.Player
	var collectors []*report.Collector // by source
	p := &played{rec: rec, newStore: func(source int) (*store.Store, event.Sink) {
		for len(collectors) <= source {
			collectors = append(collectors, nil)
		}
		c := report.NewCollector()
		collectors[source] = c
		s := store.New(store.Options{
			Now: player.Now, Wall: player.Wall, Targets: judged.targets, OnRequest: c.Request, Queue: serverQueue,
		})
		return s, event.Tee{s, c}
	}}
	player, err := recording.NewPlayer(rec, recording.PlayOptions{Codec: newCodec, Speed: recording.Unpaced, StopAtEnd: true, SinkFor: p.sinkOf, Drain: p.drain})
	if err != nil {
		return nil, usageError{err}
	}
	err = guarded("replay", func() error { return player.Run(ctx, nil) })()
	if err == nil && ctx.Err() != nil {
		err = interruptCause(ctx, ctx.Err())
	}
	meta := report.Meta{Version: versionString(), Partial: err != nil, Remote: true, Configuration: replayed(name, judged)}
	var members []report.Member
	for _, n := range p.listed() {
		s := p.snapshot(n)
		members = append(members, report.Member{Name: rec.Engine(n).Name, Snapshot: s, Report: report.Build(meta, s, collectors[n])})
	}
	return report.BuildFleet(meta, members), err
}

// selectEngine returns the report of the engine whose name contains engine, or r if engine is "".
func selectEngine(r *report.Report, engine, name string) (*report.Report, error) {
	switch {
	case engine == "":
		return r, nil
	case r.Fleet == nil:
		return nil, usagef("--engine %q: %s has only one engine", engine, name)
	}
	if one := r.Fleet.Find(engine); one != nil {
		return one, nil
	}
	return nil, usagef("--engine %q: must match one of %s", engine, engineNames(r.Fleet))
}

// maxNamed is the maximum number of engines in a message.
const maxNamed = 8

// engineNames returns the names of the engines of a report.
func engineNames(f *report.Fleet) string {
	var names []string
	for i := range f.Replicas {
		names = append(names, f.Replicas[i].Name)
	}
	if more := len(names) - maxNamed; more > 0 {
		names = append(names[:maxNamed], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(names, ", ")
}
