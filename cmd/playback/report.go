package playback

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/llmtop/llmtop/cmd/exit"
	"github.com/llmtop/llmtop/cmd/screen"
	"github.com/llmtop/llmtop/cmd/session"
	"github.com/llmtop/llmtop/cmd/version"
	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/recording"
	"github.com/llmtop/llmtop/profiler/report"
	"github.com/llmtop/llmtop/profiler/store"
)

// ReadReport reads a report, or plays a recording into one. Its errors name the file once.
func ReadReport(ctx context.Context, name string, notes io.Writer) (*report.Report, error) {
	rec, err := recording.Open(name)
	switch {
	case err == nil:
		defer rec.Close() // read only
		r, err := reportOf(ctx, rec, name, &screen.View{Targets: store.Targets{TTFT: store.DefaultTTFTTarget, DefaultTTFT: true}})
		if err != nil {
			err = fmt.Errorf("read %s: %w", name, err)
		}
		return r, err
	case !errors.Is(err, recording.ErrNotRecording):
		return nil, openError(name, err)
	}
	file, err := os.Open(name)
	if err != nil {
		return nil, openError(name, err)
	}
	defer file.Close()
	r, err := report.Read(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if r.Partial {
		fmt.Fprintf(notes, "%s: the run was interrupted\n", name)
	}
	return r, nil
}

// reportOf plays a recording at full speed and returns its report, for several engines their common one, nil if it
// cannot be played. With an error, the report covers the part before it.
func reportOf(ctx context.Context, rec *recording.Recording, name string, judged *screen.View) (*report.Report, error) {
	var player *recording.Player
	collectors := map[int]*report.Collector{} // by source
	var p *played
	p = newPlayed(rec, func(source int) (*store.Store, event.Sink) {
		c, opt := report.NewCollector(), p.storeOptions(player, judged.Targets)
		collectors[source], opt.OnRequest = c, c.Request
		s := store.New(opt)
		return s, event.Tee{s, c}
	})
	opt := p.options()
	opt.Speed, opt.StopAtEnd = recording.Unpaced, true
	player, err := recording.NewPlayer(rec, opt)
	if err != nil {
		return nil, exit.Usage(err)
	}
	sink := p.reset()
	err = session.Guarded("replay", func() error { return player.Run(ctx, sink) })()
	if err == nil && ctx.Err() != nil {
		err = exit.InterruptCause(ctx, ctx.Err())
	}
	meta := report.Meta{Version: version.String(), Partial: err != nil, Remote: true, Configuration: replayed(name, judged)}
	var members []report.Member
	for _, n := range p.listed() {
		s := p.snapshot(n)
		members = append(members, report.Member{Name: rec.Engine(n).Name, Snapshot: s, Report: report.Build(meta, s, collectors[n])})
	}
	if !rec.MultiEngine {
		return members[0].Report, err
	}
	return report.BuildFleet(meta, members), err
}

// SelectEngine returns the report of the engine whose name contains engine, or r if engine is "".
func SelectEngine(r *report.Report, engine, name string) (*report.Report, error) {
	switch {
	case engine == "":
		return r, nil
	case r.Fleet == nil:
		return nil, exit.Usagef("--engine %q: %s has only one engine", engine, name)
	}
	if one := r.Fleet.Find(engine); one != nil {
		return one, nil
	}
	return nil, exit.Usagef("--engine %q: must match one of %s", engine, EngineNames(r.Fleet))
}

// maxNamed is the maximum number of engines in a message.
const maxNamed = 8

// EngineNames returns the names of the engines of a report.
func EngineNames(f *report.Fleet) string {
	var names []string
	for i := range f.Replicas {
		names = append(names, f.Replicas[i].Name)
	}
	if more := len(names) - maxNamed; more > 0 {
		names = append(names[:maxNamed], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(names, ", ")
}

// replayed returns the configuration in the report of a recording.
func replayed(name string, judged *screen.View) map[string]string {
	return judged.AddTargets(map[string]string{"replay": name})
}
