package cmd

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/report"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/profiler/trace"
)

func bindEngine(set *pflag.FlagSet, name *string) {
	set.StringVar(name, "engine", "", "of several engines: report this one, by its name or a part of it")
}

// reportEngines goes through a recording of several engines as fast as possible and makes the report of all, nil if it cannot be played. With an error
// beside it, it covers what came before.
func reportEngines(ctx context.Context, rec *trace.Recording, name string, judged *view) (*report.Report, error) {
	var player *trace.Player
	var collectors []*report.Collector // by source
	p := &played{rec: rec, make: func(source int) (*store.Store, event.Sink) {
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
	player, err := trace.NewPlayer(rec, trace.PlayOptions{Codec: newCodec, Speed: trace.Unpaced, StopAtEnd: true, Of: p.of, Drain: p.drain})
	if err != nil {
		return nil, usageError{err}
	}
	err = guarded("replay", func() error { return player.Run(ctx, nil) })()
	if err == nil && ctx.Err() != nil {
		err = interrupted(ctx, ctx.Err())
	}
	meta := report.Meta{Version: versionString(), Partial: err != nil, Elsewhere: true, Configuration: replayed(name, judged)}
	var members []report.Member
	for _, n := range p.listed() {
		s := p.snapshot(n)
		members = append(members, report.Member{Name: rec.Source(n).Name, Snapshot: s, Report: report.Build(meta, s, collectors[n])})
	}
	return report.Several(meta, members), err
}

// ofEngine is the report of one engine of several, by its name or a part of it, if one is asked for.
func ofEngine(r *report.Report, engine, name string) (*report.Report, error) {
	switch {
	case engine == "":
		return r, nil
	case r.Fleet == nil:
		return nil, usagef("--engine %q: %s is of one engine", engine, name)
	}
	if one := r.Fleet.Named(engine); one != nil {
		return one, nil
	}
	return nil, usagef("--engine %q: must name one of %s", engine, namesOf(r.Fleet))
}

// mostNamed is how many engines a message names.
const mostNamed = 8

// namesOf are the engines of a report.
func namesOf(f *report.Fleet) string {
	var names []string
	for i := range f.Replicas {
		names = append(names, f.Replicas[i].Name)
	}
	if more := len(names) - mostNamed; more > 0 {
		names = append(names[:mostNamed], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(names, ", ")
}
