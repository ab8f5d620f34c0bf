package cmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/pflag"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/report"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/profiler/trace"
)

func bindEngine(set *pflag.FlagSet, name *string) {
	set.StringVar(name, "engine", "", "of a recording of several engines: report this one, by its name or a part of it")
}

// reportEngines goes through a recording of several engines as fast as possible and makes the reports of all. With an error beside them, they
// cover what came before.
func reportEngines(ctx context.Context, rec *trace.Recording, name string, judged *view) (*report.Engines, error) {
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
	all := report.NewEngines(meta)
	for _, n := range p.listed() {
		s := p.snapshot(n)
		all.Add(rec.Source(n).Name, s, report.Build(meta, s, collectors[n]))
	}
	return all, err
}

// reportRecording writes the report of a recording: to the files that were named, or else as text.
func reportRecording(ctx context.Context, rec *trace.Recording, files *reportFiles, out outputs, name, engine string, judged *view, stdout io.Writer) error {
	if !rec.Several {
		if engine != "" {
			out.discard()
			return usagef("--engine %q: %s is of one engine", engine, name)
		}
		built, err := reportOf(ctx, rec, name, judged)
		if built == nil {
			out.discard()
			return err
		}
		return errors.Join(err, out.write(built, stdout))
	}
	if engine == "" && files.beyondJSON() != "" {
		out.discard()
		return usagef("--%s: %s is of several engines: choose one with --engine, of %s", files.beyondJSON(), name, sourceNames(rec))
	}
	all, err := reportEngines(ctx, rec, name, judged)
	if all == nil {
		out.discard()
		return err
	}
	if engine == "" {
		return errors.Join(err, out.writeEngines(all, stdout))
	}
	one := all.Named(engine)
	if one == nil {
		out.discard()
		return usagef("--engine %q: must name one of %s", engine, sourceNames(rec))
	}
	return errors.Join(err, out.write(one, stdout))
}

// mostNamed is how many engines a message names.
const mostNamed = 8

// sourceNames are the engines of a recording.
func sourceNames(rec *trace.Recording) string {
	var names []string
	for n := range rec.Sources {
		if s := rec.Source(n); !s.Fleet {
			names = append(names, s.Name)
		}
	}
	if more := len(names) - mostNamed; more > 0 {
		names = append(names[:mostNamed], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(names, ", ")
}
