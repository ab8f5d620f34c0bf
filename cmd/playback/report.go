package playback

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
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
	"github.com/llmtop/llmtop/profiler/timeline"
)

// ReadReport reads a report, or plays a recording into one and into a trace, unless that is nil. Its errors name the file
// once.
func ReadReport(ctx context.Context, name string, trace *timeline.Trace, notes io.Writer) (*report.Report, error) {
	rec, err := recording.Open(name)
	switch {
	case err == nil:
		defer rec.Close() // read only
		r, err := reportOf(ctx, rec, name, &screen.View{Targets: store.NoTargets}, trace, notes)
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
	if trace != nil {
		return nil, exit.Usagef("a timeline needs a recording: %s is none; write one with --out FILE.llmtop", name)
	}
	r, err := report.Read(file)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if r.Partial {
		fmt.Fprintf(notes, "%s is partial: %s\n", name, report.WhyPartial)
	}
	return r, nil
}

// reportOf plays a recording at full speed and returns its report, for several engines their common one, nil if it
// cannot be played. With an error, the report covers the part before it. The engines are added to a trace, unless that is
// nil. notes receives what the recording lacks.
func reportOf(ctx context.Context, rec *recording.Recording, name string, judged *screen.View, trace *timeline.Trace, notes io.Writer) (*report.Report, error) {
	traced := map[int]*timeline.Engine{} // by source
	p, err := newPlayed(rec, judged.Targets, recording.PlayOptions{Speed: recording.Unpaced, StopAtEnd: true}, func(source int, opt store.Options) (*store.Store, event.Sink) {
		opt.Keep = store.DefaultKeep
		s := store.New(opt)
		if trace == nil {
			return s, s
		}
		name := ""
		if rec.MultiEngine {
			name = rec.Engine(source).Name
		}
		t := trace.Engine(name)
		traced[source] = t
		return s, event.Tee{s, t}
	})
	if err != nil {
		return nil, err
	}
	sink := p.reset()
	err = session.Guarded("replay", func() error { return p.player.Run(ctx, sink) })()
	if err == nil && ctx.Err() != nil {
		err = exit.InterruptCause(ctx, ctx.Err())
	}
	problems := p.player.Status().Problems()
	for _, problem := range problems {
		fmt.Fprintf(notes, "%s: %s\n", name, problem)
	}
	meta := replayed(rec, name, judged)
	meta.Partial = err != nil || len(problems) > 0
	var members []report.Member
	for _, n := range p.listed() {
		s, of := p.snapshot(n), meta
		if t := traced[n]; t != nil {
			t.Snapshot(s)
		}
		if of.Machine == nil && rec.Engine(n).Local {
			of.Machine = recordedMachine(rec.Conditions)
		}
		members = append(members, report.Member{Name: rec.Engine(n).Name, Snapshot: s, Report: report.Build(of, s)})
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
	return nil, exit.Usagef("--engine %q: must match one of %s", engine, engineNames(r.Fleet))
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

// replayed returns the metadata of the report of a recording: the recorded settings, and the machine if its only engine
// ran there.
func replayed(rec *recording.Recording, name string, judged *screen.View) report.Meta {
	meta := report.Meta{Version: version.String(), Remote: true, Configuration: map[string]string{}}
	if c := rec.Conditions; c != nil {
		meta.Command = c.Command
		maps.Copy(meta.Configuration, c.Settings)
		if c.Local {
			meta.Machine = recordedMachine(c)
		}
	}
	if meta.Configuration["tap"] != name { // a file of packets is read, not replayed
		meta.Configuration["replay"] = name
	}
	judged.AddTargets(meta.Configuration)
	return meta
}

// recordedMachine returns the machine of a recording, nil if it is not recorded.
func recordedMachine(c *recording.Conditions) *report.Machine {
	if c == nil {
		return nil
	}
	m := &report.Machine{}
	for to, text := range map[**string]*string{&m.OS: &c.OS, &m.Arch: &c.Arch, &m.CPU: &c.CPU} {
		if *text != "" {
			*to = text
		}
	}
	if c.Cores > 0 {
		m.Cores = &c.Cores
	}
	return m
}

// timeline is the action of a screen that makes the timeline of the whole recording.
func (o *Options) timeline(*store.Snapshot) ([]byte, error) {
	rec, err := o.open()
	if err != nil {
		return nil, err
	}
	defer rec.Close() // read only
	trace := timeline.New()
	if _, err := reportOf(context.Background(), rec, o.file, &o.View, trace, io.Discard); err != nil {
		return nil, err
	}
	return session.Timeline(trace)
}
