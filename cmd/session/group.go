package session

import (
	"errors"

	"github.com/spf13/pflag"

	"github.com/llmtop/llmtop/cmd/files"
	"github.com/llmtop/llmtop/cmd/screen"
	"github.com/llmtop/llmtop/profiler/recording"
	"github.com/llmtop/llmtop/profiler/report"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/runtime/engine"
	"github.com/llmtop/llmtop/ui"
	"github.com/llmtop/llmtop/ui/view"
)

// Outputs are the flags for what receives the events of sessions, besides the store.
type Outputs struct {
	Out       *files.Out // may name a recording
	TokenFile string     // token for those who connect from other machines

	listen string   // HOST:PORT of the metrics; "": off
	Allow  []string // host names, besides those of loopback, that requests to a loopback address may use
	push   string   // URL to push the metrics to; "": off
}

// Bind adds the flags.
func (o *Outputs) Bind(set *pflag.FlagSet) {
	o.Out = files.BindOut(set, files.Recording)
	o.Out.BindText(set)
	o.bindExport(set)
	files.BindToken(set, &o.TokenFile)
}

// Options describe the sessions of a command.
type Options struct {
	Clock   engine.Clock
	View    *screen.View
	Shown   bool        // on a screen or as plain lines: print nothing else
	Several bool        // record all sessions together
	Meta    report.Meta // what recordings say about the sessions
}

// Group holds what the sessions of a command share.
type Group struct {
	Alerts *Alerts // nil: no rules

	opt      Options
	outputs  *Outputs
	export   *export             // nil: none
	recorder *recording.Recorder // nil: not recorded
}

// Open opens the outputs. Close them after the last session has ended.
func (o *Outputs) Open(opt Options) (*Group, error) {
	x, err := o.openExport(opt.Shown)
	if err != nil {
		return nil, err
	}
	g := &Group{opt: opt, outputs: o, export: x}
	if opt.Several {
		if g.recorder, err = o.record(opt, false); err != nil {
			return nil, errors.Join(err, x.close())
		}
	}
	g.Alerts = NewAlerts(opt.View.Alerts, opt.Shown, false)
	return g, nil
}

// OpenSession opens the outputs for a single session, which closes them at its end.
func (o *Outputs) OpenSession(opt Options, name string, of store.Options) (*Session, *Group, error) {
	g, err := o.Open(opt)
	if err != nil {
		return nil, nil, err
	}
	s := g.New(name, of)
	g.Alerts.Watch(s, "")
	s.AtEnd(func() error { return g.Close(nil) })
	return s, g, nil
}

// ServerQueue is the capacity of the event queue of a server: it sends a few events per second, and there may be
// hundreds of servers.
const ServerQueue = 512

// New creates a session with the outputs of the group, and a name in exported metrics. The group sets the targets, and
// the clock if there is none. Record adds the recording.
func (g *Group) New(name string, opt store.Options) *Session {
	opt.Targets = g.opt.View.Targets
	if opt.Now == nil {
		opt.Now = g.opt.Clock.Now
	}
	s := g.export.session(name, opt)
	s.sink[0] = g.opt.View.DropCastText(s.sink[0])
	return s
}

// Close closes the outputs after the last event, and returns err joined with their errors.
func (g *Group) Close(err error) error {
	g.Alerts.Close()
	return errors.Join(g.closeRecording(err), g.export.close())
}

// Screen returns the configuration of the screen of the group.
func (g *Group) Screen() ui.Config {
	cfg := g.opt.View.Config()
	cfg.Recording, cfg.Alerts = g.recordStatus, g.Alerts.Status()
	return cfg
}

// ScreenOf returns the configuration of the screen of one session, with some actions.
func (g *Group) ScreenOf(s *Session, actions view.Actions) ui.Config {
	cfg, shown := g.Screen(), s.OnScreen("")
	shown.Actions = actions
	cfg.Sessions = ui.One(shown)
	return cfg
}
