package ui

import (
	"slices"
	"strconv"
	"strings"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/ui/view"
)

// binding is a key with the views in which it applies; a binding of some views overrides one of all views.
type binding struct {
	view.Key
	views     viewSet
	time      bool // moves in a replay or in the history, and takes the key from others
	essential bool // always in the footer
}

// viewKey returns the number key of a view with a tab.
func viewKey(v viewID) string { return strconv.Itoa(int(v) + 1) }

// name returns the name of a binding in the palette.
func (b *binding) name() string {
	if b.Name != "" {
		return b.Name
	}
	return b.Word
}

// names lists all keys of a binding for the help.
func (b *binding) names() string {
	if len(b.Keys) > 3 { // the number keys
		return b.Show
	}
	return strings.Join(b.Keys, " ")
}

// width returns the width of a binding in the footer, in cells.
func (b *binding) width() int { return len(b.Show) + len(b.Word) + 3 }

// is reports whether two bindings are the same row of the key table.
func (b *binding) is(other *binding) bool { return other != nil && b.Help == other.Help }

// why returns why the key does nothing now, "" if it does something.
func (b *binding) why() string {
	if b.Why == nil {
		return ""
	}
	return b.Why()
}

// keyTable returns the keys of a live screen: those that a newcomer needs first, then those of each view, then the rest.
func (a *app) keyTable() (table []binding) {
	add := func(views viewSet, keys []view.Key) {
		for _, k := range keys {
			table = append(table, binding{Key: k, views: views})
		}
	}
	add(everywhere, a.firstKeys())
	for v, room := range a.views {
		if room != nil && a.offered.has(viewID(v)) {
			add(only(viewID(v)), room.Keys())
		}
	}
	table = append(table, binding{
		views: everywhere, essential: true,
		Key: view.Key{Keys: []string{"esc", "backspace"}, Show: "esc", Name: "back", Help: "close the pop-up, or go back: from a request to the table, from help and engines to the last view, otherwise to the overview, from there to the list of several engines", Do: a.back},
	})
	add(everywhere, a.engineKeys())
	add(everywhere, a.screenKeys())
	add(scrollViews, a.scrollKeys())
	for _, k := range a.lastKeys() {
		table = append(table, binding{Key: k, views: everywhere, essential: k.Word != ""})
	}
	return table
}

// distinct returns the rows of a key table for the help: a key that several views share is one row.
func distinct(table []binding) (rows []binding) {
	for _, b := range table {
		if b.Hidden {
			continue
		}
		if i := slices.IndexFunc(rows, func(r binding) bool { return r.is(&b) }); i >= 0 {
			rows[i].views |= b.views
			continue
		}
		rows = append(rows, b)
	}
	return rows
}

// working returns the rows of the key table that do anything now, in the views in which they do.
func (a *app) working() (rows []binding) {
	shown := a.view // conditions of keys depend on it
	for _, b := range distinct(a.bindings) {
		for a.view = range numViews {
			if b.views.has(a.view) && b.why() != "" {
				b.views &^= only(a.view)
			}
		}
		if b.views != 0 {
			rows = append(rows, b)
		}
	}
	a.view = shown
	return rows
}

func (a *app) firstKeys() []view.Key {
	var digits, offered, names []string // the keys of views that are not offered show why
	for v, room := range a.tabs {
		digits = append(digits, viewKey(viewID(v)))
		if a.offered.has(viewID(v)) {
			offered, names = append(offered, viewKey(viewID(v))), append(names, strings.ToLower(room.Name()))
		}
	}
	show := strings.Join(offered, " ")
	if len(offered) == len(digits) {
		show = digits[0] + "-" + digits[len(digits)-1]
	}
	return []view.Key{
		{Keys: []string{"p"}, Show: "p", Word: "prompt", Help: "type a prompt; in the editor: tab for built-in prompts, up and down for history, ctrl+t to send it several times at once, enter to send, esc to cancel", Do: a.openEditor, Why: a.noPrompt},
		{Keys: []string{"space"}, Show: "space", Word: "pause", Help: "pause and go back in time: move with left, right, [ and ] or a click on the timeline; the engine keeps running", Do: a.history.toggle},
		{
			Keys: digits, Show: show, Help: "switch views: " + strings.Join(names, ", ") + "; or click a name in the last row",
			Do: func() { a.show(viewID(slices.Index(digits, a.pressed))) },
		},
	}
}

// toShow is why a key of one engine does nothing in the list of engines.
const toShow = "press enter to show an engine first"

// noPrompt returns why the engine on the screen takes no prompts, "" if it does.
func (a *app) noPrompt() string {
	return a.refuses(a.session.Actions.Prompt == nil, event.CapPrompt, "takes no prompts from llmtop")
}

// noPace returns why the pace of the engine on the screen cannot be set, "" if it can.
func (a *app) noPace() string {
	return a.refuses(a.session.Actions.SetPace == nil, 0, "has no pace to set")
}

// refuses returns why the engine on the screen does not do something for the user, "" if it does: there is no action for
// it, or an engine in another process is not connected or lacks the capability. For an engine in this process the action
// decides.
func (a *app) refuses(never bool, c event.Caps, what string) string {
	e := &a.snap.Engine
	switch {
	case a.view == viewEngines:
		return toShow
	case never && a.cfg.Replay != nil:
		return "a recording " + what
	case !never && e.Remote.Link == event.LinkNone:
		return ""
	case !never && e.Remote.Link.Down():
		return "the engine is not connected"
	case never, !e.Caps.Has(c):
		return "this engine " + what
	}
	return ""
}

// engineKeys act on the engine on the screen, or select another.
func (a *app) engineKeys() []view.Key {
	picks := func() string {
		why, _ := a.missing(viewExperts)
		if a.view == viewEngines {
			why = toShow
		}
		return why
	}
	cancel := func() string {
		return a.refuses(a.session.Actions.Cancel == nil, event.CapCancel, "does not cancel requests for llmtop")
	}

	return []view.Key{
		{Keys: []string{"w"}, Show: "w", Word: "window", Help: "switch the window of percentiles and router picks: 1 s, 10 s, 1 min, session", Do: a.nextWindow},
		{Keys: []string{"e"}, Show: "e", Word: "phase", Help: "switch router picks between decode, prompt and both", Do: a.nextPhase, Why: picks},
		{Keys: []string{"c"}, Show: "c", Word: "cancel", Help: "cancel the request on the screen", Do: a.cancel, Why: cancel},
		{Keys: []string{"+", "="}, Show: "+", Name: "faster", Help: "raise the pace of generation, up to unlimited", Do: func() { a.pace(true) }, Why: a.noPace},
		{Keys: []string{"-"}, Show: "-", Name: "slower", Help: "lower the pace of generation", Do: func() { a.pace(false) }, Why: a.noPace},
		{Keys: []string{"l"}, Show: "l", Name: "engines", Help: "list the engines, or go back", Do: func() { a.toggle(viewEngines) }},
		{Keys: []string{"o"}, Show: "o", Name: "operations", Help: "show the time per operation and layer (--ops), or go back", Do: func() { a.toggle(viewOps) }, Hidden: !a.offered.has(viewOps)},
		{Keys: []string{"[", "("}, Show: "[", Name: "previous engine", Help: "switch to the previous engine", Do: func() { a.switchEngine(false) }, Why: a.noOther},
		{Keys: []string{"]", ")"}, Show: "[ ]", Word: "engine", Help: "switch to the next engine", Do: func() { a.switchEngine(true) }, Why: a.noOther},
	}
}

// screenKeys change or save what the screen shows.
func (a *app) screenKeys() []view.Key {
	listed := view.Unless(func() bool { return a.view != viewEngines }, toShow)
	report := func() string { // also of an engine that is not connected any more
		if a.session.Actions.Report != nil {
			return listed()
		}
		return a.refuses(true, 0, "has no report to save")
	}
	return []view.Key{
		{Keys: []string{"t"}, Show: "t", Word: "theme", Help: "next theme", Do: a.nextTheme},
		{Keys: []string{"T"}, Show: "T", Name: "themes", Help: "list the themes: moving previews one, enter keeps it, esc restores", Do: func() { a.openPalette("theme ") }},
		{Keys: []string{"Y"}, Show: "Y", Name: "log axis", Help: "switch charts over time between a linear and a logarithmic axis", Do: func() { a.panes.LogAxis = !a.panes.LogAxis }},
		{Keys: []string{"L"}, Show: "L", Name: "layouts", Help: "list the layouts of the overview: moving previews one, enter keeps it, esc restores", Do: a.chooseLayout, Why: listed},
		{Keys: []string{":"}, Show: ":", Word: "command", Help: "search commands and run one, or set a value: :theme light, :pace 0, :window 10s; tab completes", Do: func() { a.openPalette("") }},
		{Keys: []string{"s"}, Show: "s", Word: "snapshot", Help: "save the screen as a picture (SVG) and as text in the working directory", Do: a.writeScreenshot},
		{Keys: []string{"S"}, Show: "S", Name: "report", Help: "save a report of the moment on the screen as JSON, and a timeline for ui.perfetto.dev of the history before it, in the working directory, without prompts and answers", Do: a.writeReport, Why: report},
		{Keys: []string{"m"}, Show: "m", Word: "mark", Help: "mark this moment, to compare the numbers since then with those before", Do: a.marks.add, Why: listed},
		{Keys: []string{"M"}, Show: "M", Name: "changes since mark", Help: "show changes since the newest mark: requests, tokens, latency, memory, router picks, dropped events", Do: a.marks.toggle, Why: listed},
		{Keys: []string{"u"}, Show: "u", Name: "clear marks", Help: "clear the marks", Do: a.marks.clear, Why: listed},
		{Keys: []string{"a"}, Show: "a", Name: "alerts", Help: "show the alerts of the config file: firing, pending and their conditions", Do: a.toggleAlerts},
	}
}

// farRows is more rows than any view has.
const farRows = 1 << 20

func (a *app) scrollKeys() []view.Key {
	by := func(rows int) func() { return func() { a.views[a.view].Scroll(rows) } }
	return []view.Key{
		{Keys: []string{"up", "k"}, Show: "up", Name: "up", Help: "scroll or select up; or use the mouse wheel", Do: by(-1)},
		{Keys: []string{"down", "j"}, Show: "down", Name: "down", Help: "scroll or select down", Do: by(1)},
		{Keys: []string{"pgup", "ctrl+u"}, Show: "pgup", Name: "page up", Help: "go ten rows up, in the help a page", Do: by(-view.Page)},
		{Keys: []string{"pgdown", "ctrl+d"}, Show: "pgdown", Name: "page down", Help: "go ten rows down, in the help a page", Do: by(view.Page)},
		{Keys: []string{"home", "g"}, Show: "home", Name: "start", Help: "go to the start", Do: by(-farRows)},
		{Keys: []string{"end", "G"}, Show: "end", Name: "end", Help: "go to the end", Do: by(farRows)},
	}
}

func (a *app) lastKeys() []view.Key {
	return []view.Key{
		{Keys: []string{"?", "h", "f1"}, Show: "?", Word: "help", Help: "show the help: every key, and what each number means", Do: func() { a.toggle(viewHelp) }},
		{Keys: []string{"ctrl+z"}, Show: "ctrl+z", Name: "suspend", Help: "suspend llmtop; fg resumes it", Do: a.suspend},
		{Keys: []string{"q", "ctrl+c"}, Show: "q", Word: "quit", Help: "quit llmtop", Do: a.quit},
	}
}

// withTime returns the keys that move in time, and all others without the keys that these take. Keys of some views only
// are not taken, except those of the focus and of scrolling.
func (a *app) withTime(keys []view.Key) (table []binding) {
	for _, k := range keys {
		table = append(table, binding{Key: k, views: everywhere, time: true})
	}
	own := table
	for _, b := range a.live {
		if b.views == everywhere || b.views == scrollViews || b.views == only(viewOverview) || b.views == only(viewPane) {
			b.Keys = slices.DeleteFunc(slices.Clone(b.Keys), func(key string) bool { return find(own, key, viewOverview) != nil })
		}
		if len(b.Keys) > 0 {
			table = append(table, b)
		}
	}
	return table
}

// updateBindings selects the keys of a replay, of a paused view with a history, or of a live view.
func (a *app) updateBindings() {
	switch {
	case a.cfg.Replay != nil, a.status.Paused && a.session.Past != nil:
		a.bindings = a.withTime(a.travel.keys())
	default:
		a.bindings = a.live
	}
}

// commands returns all available actions of the current view in the order of the key table, each view as one command.
// It omits the palette itself.
func (a *app) commands() (out []command) {
	for i := range a.bindings {
		b := &a.bindings[i]
		switch {
		case !b.views.has(a.view) || b.why() != "" || b.Hidden || b.Keys[0] == ":":
		case b.name() == "": // the number keys
			for v, room := range a.tabs {
				if !a.offered.has(viewID(v)) {
					continue
				}
				name := "view " + strings.ToLower(room.Name())
				out = append(out, command{keys: viewKey(viewID(v)), name: name, help: "show this view", do: func() { a.show(viewID(v)) }})
			}
		case slices.ContainsFunc(b.Keys, func(key string) bool { return b.is(a.find(key)) }):
			out = append(out, command{keys: b.names(), name: b.name(), help: b.Help, do: b.Do})
		}
	}
	return out
}

// find returns the binding of a key in a view, or nil.
func find(among []binding, key string, v viewID) (found *binding) {
	for i := range among {
		b := &among[i]
		switch {
		case !b.views.has(v) || !slices.Contains(b.Keys, key):
		case b.views != everywhere:
			return b
		case found == nil:
			found = b
		}
	}
	return found
}

// find returns the binding of a key in the current view, or nil. The help scrolls with all its keys, in a replay too.
func (a *app) find(key string) *binding {
	if a.view == viewHelp {
		if b := find(a.live, key, viewHelp); b != nil && b.views == scrollViews {
			return b
		}
	}
	return find(a.bindings, key, a.view)
}
