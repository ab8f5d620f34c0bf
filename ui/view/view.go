// Package view is what the screen expects of its views. Each view is a package below this one, with its panes, its keys
// and its state.
package view

import (
	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/pane"
)

// View is one screen of the program. It may also implement Offerer, Opener, Resetter, Backer, Hoverer,
// Worker and Typist.
type View interface {
	Name() string // in the tabs
	Draw(a grid.Area, s *store.Snapshot, f *pane.Frame)
	Keys() []Key   // keys that apply in this view only
	Scroll(by int) // scrolls or selects, by rows
	Click(x, y int)
}

// Offerer is a view that has nothing to show of some kinds of engine, and is not offered for them. Missing returns why,
// and how to get the data if there is a way; why is "" if the view has something to show. It is not asked before an
// engine has identified itself.
type Offerer interface {
	Missing(s *store.Snapshot) (why, advice string)
}

// Opener is a view that prepares to be shown.
type Opener interface{ Open() }

// Resetter is a view with state that belongs to one engine. Reset is called when another engine is shown.
type Resetter interface{ Reset() }

// Backer is a view in which esc first undoes something. Back reports whether there was something to undo.
type Backer interface{ Back() bool }

// Hoverer is a view that reacts to the mouse without a click. Hover reports whether the view changed.
type Hoverer interface{ Hover(x, y int) bool }

// Worker is a view that computes what it shows over several frames. Working reports whether it needs another frame.
type Worker interface{ Working() bool }

// Typist is a view with an input line. While Typing is true, the view gets all keys.
type Typist interface {
	Typing() bool
	Type(key, text string) // key as in Key.Keys, and the text that it types
	Paste(text string)
}

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
	When func() bool // reports whether the key does anything now; nil: always

	Hidden bool // listed nowhere: the key only shows why it does nothing
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
func TableKeys(rows, syntax string, start func(), column func(by int), reverse func(), when func() bool) []Key {
	return []Key{
		{Keys: []string{"/"}, Show: "/", Word: "filter", Help: "filter " + rows + ": " + syntax + "; enter applies the filter, esc removes it", Do: start, When: when},
		{Keys: []string{"<"}, Show: "<", Name: "sort by column to the left", Help: "sort " + rows + " by the column to the left; or click a column header", Do: func() { column(-1) }, When: when},
		{Keys: []string{">"}, Show: "< >", Word: "sort", Help: "sort " + rows + " by the column to the right", Do: func() { column(1) }, When: when},
		{Keys: []string{"r"}, Show: "r", Word: "reverse", Help: "reverse the order of " + rows, Do: reverse, When: when},
	}
}
