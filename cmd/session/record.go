package session

import (
	"errors"
	"fmt"
	"os"

	"github.com/llmtop/llmtop/cmd/console"
	"github.com/llmtop/llmtop/cmd/exit"
	"github.com/llmtop/llmtop/cmd/files"
	"github.com/llmtop/llmtop/cmd/version"
	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/recording"
	"github.com/llmtop/llmtop/profiler/report"
)

// record starts a recording, nil if none is named. local reports whether its only engine runs on this machine.
func (f *Outputs) record(o Options, local bool) (*recording.Recorder, error) {
	name := f.Out.Name(files.Recording)
	if name == "" {
		return nil, nil
	}
	opt := recording.RecordOptions{
		Now: o.Clock.Now, Epoch: o.Clock.Epoch(), Program: "llmtop " + version.String(),
		Conditions: conditions(o.Meta, local),
	}
	if o.Several {
		opt.MultiEngine, opt.SegmentBytes, opt.Segments = true, severalBytes, severalSegments
	}
	recorder, err := recording.Record(name, opt)
	if err != nil {
		return nil, exit.Usage(err)
	}
	return recorder, nil
}

// conditions returns what a recording says about its session.
func conditions(meta report.Meta, local bool) *recording.Conditions {
	m := report.ThisMachine()
	out := &recording.Conditions{Command: meta.Command, Settings: meta.Configuration, Cores: *m.Cores, Local: local}
	for to, text := range map[*string]*string{&out.OS: m.OS, &out.Arch: m.Arch, &out.CPU: m.CPU} {
		if text != nil {
			*to = *text
		}
	}
	return out
}

// Recordings of several engines have shorter segments and more of them: aggregate metrics take few bytes but long to
// replay, and a replay must reach any time within seconds.
const (
	severalBytes    = 16 << 20
	severalSegments = 32
)

// Record records a session if a recording is named: alone, or as entry in the recording of all sessions.
func (g *Group) Record(s *Session, entry recording.EngineEntry) (err error) {
	if !g.opt.Several {
		g.recorder, err = g.outputs.record(g.opt, entry.Local)
	}
	if err != nil || g.recorder == nil {
		return err
	}
	s.recordSink = g.recorder
	if g.opt.Several {
		s.recordSink = g.recorder.AddEngine(entry)
	}
	if !g.outputs.Out.Text {
		s.recordSink = event.WithoutText(s.recordSink)
	}
	s.AlsoTo(s.recordSink)
	return nil
}

// closeRecording closes the recording, prints its name and how many events it dropped, and returns err joined with its error. After
// a user error it removes an empty recording of several engines.
func (g *Group) closeRecording(err error) error {
	if g.recorder == nil {
		return err
	}
	closing := g.recorder.Close()
	status := g.recorder.Status()
	if n := status.Dropped.Total(); n > 0 && closing == nil {
		fmt.Fprintf(console.Err, "llmtop: the recording misses %s: the disk was too slow\n", metric.Plural(n, "event"))
	}
	switch name := g.outputs.Out.Name(files.Recording); {
	case g.opt.Several && exit.IsUsage(err) && status.Events == 0:
		closing = errors.Join(closing, os.Remove(name))
	case closing == nil:
		fmt.Fprintf(console.Err, "wrote %s\n", name)
	}
	return errors.Join(err, closing)
}

// recordStatus returns the state of the recording, if there is one.
func (g *Group) recordStatus() (recording.RecordStatus, bool) {
	if g.recorder == nil {
		return recording.RecordStatus{}, false
	}
	return g.recorder.Status(), true
}
