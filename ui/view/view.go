// Package view is what the screen expects of its views. Each view is a package below this one, with its panes, its keys
// and its state.
package view

import (
	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/pane"
)

// View is one screen of the program.
type View interface {
	Name() string // in the tabs
	Draw(a grid.Area, s *store.Snapshot, f *pane.Frame)
	Keys() []Key // keys that apply in this view only

	Open()         // prepares to be shown
	Reset()        // forgets what belongs to one engine: another is shown
	Back() bool    // undoes something for esc, and reports whether there was something to undo
	Scroll(by int) // scrolls or selects, by rows
	Click(x, y int)
	Working() bool // reports whether it computes what it shows over several frames, and needs another one

	// Missing returns why a view has nothing to show of an engine, for which it is not offered then, and how to get the
	// data if there is a way; why is "" if it has. It is not asked before an engine has identified itself.
	Missing(s *store.Snapshot) (why, advice string)

	Typing() bool          // reports whether an input line is open: the view gets all keys
	Type(key, text string) // key as in Key.Keys, and the text that it types
	Paste(text string)
}

// Base is the part of a view that does nothing: views embed it and have the methods that they need.
type Base struct{}

func (Base) Open()                                        {}
func (Base) Reset()                                       {}
func (Base) Back() bool                                   { return false }
func (Base) Scroll(int)                                   {}
func (Base) Click(int, int)                               {}
func (Base) Working() bool                                { return false }
func (Base) Missing(*store.Snapshot) (why, advice string) { return "", "" }
func (Base) Typing() bool                                 { return false }
func (Base) Type(string, string)                          {}
func (Base) Paste(string)                                 {}

// Hoverer is a view that reacts to the mouse without a click. Hover reports whether the view changed.
type Hoverer interface{ Hover(x, y int) bool }

// Program is what views use of the program around them.
type Program interface {
	Snapshot() *store.Snapshot // of the moment on the screen; never nil
	Frame() *pane.Frame
	Actions() Actions   // of the engine on the screen
	Notify(note string) // shows a note in the footer
	Copy(text string)   // copies text to the clipboard of the terminal
}

// Key is a key of a view: a row of the key table, from which footer, help, palette and docs/keys.md come. It does
// not apply while the user types.
type Key struct {
	Keys []string // named as in the terminal library
	Show string   // their name in the footer
	Word string   // what they do, in the footer; "": not in the footer
	Name string   // what they do, in the palette; "": Word
	Help string
	Do   func()
	Why  func() string // returns why the key does nothing now, "" if it does something; nil: it always does

	Hidden bool // listed nowhere: the key only shows why it does nothing
}

// Unless returns a Key.Why that is why unless ok holds.
func Unless(ok func() bool, why string) func() string {
	return func() string {
		if ok() {
			return ""
		}
		return why
	}
}

// Actions are the operations that keys trigger. A nil one disables its key, and so does an engine in another process
// without the capability. They run on the goroutine of the screen and must not wait for the engine. The screen shows
// their errors in the footer.
type Actions struct {
	Prompt  func(text, label string) (note string, err error) // note: an optional remark for the user
	Cancel  func(id event.RequestID) error
	SetPace func(tokensPerSecond float64) error     // 0: unlimited
	Report  func(s *store.Snapshot) ([]byte, error) // returns the report of a snapshot as JSON; it may take seconds

	// Timeline returns the trace of the events up to a snapshot for a timeline viewer, as JSON; it may take seconds.
	Timeline func(s *store.Snapshot) ([]byte, error)

	// Watch turns closer sampling of the machine and of the model's file on or off. It is on while the user looks at
	// the machine.
	Watch   func(model string, on bool)
	Inspect func(model string) // measures once what is too expensive for periodic samples
}

// Page is the number of rows of a page key.
const Page = 10

// TableKeys returns the keys that filter and sort a table of rows: start opens the filter with a syntax, column sorts by
// the next column to the right (1) or left (-1), reverse reverses the order.
func TableKeys(rows, syntax string, start func(), column func(by int), reverse func(), why func() string) []Key {
	return []Key{
		{Keys: []string{"/"}, Show: "/", Word: "filter", Help: "filter " + rows + ": " + syntax + "; enter applies the filter, esc removes it", Do: start, Why: why},
		{Keys: []string{"<"}, Show: "<", Name: "sort by column to the left", Help: "sort " + rows + " by the column to the left; or click a column header", Do: func() { column(-1) }, Why: why},
		{Keys: []string{">"}, Show: "< >", Word: "sort", Help: "sort " + rows + " by the column to the right", Do: func() { column(1) }, Why: why},
		{Keys: []string{"r"}, Show: "r", Word: "reverse", Help: "reverse the order of " + rows, Do: reverse, Why: why},
	}
}
