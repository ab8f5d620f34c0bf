package ui

import (
	"slices"
	"strings"

	"github.com/llmtop/llmtop/ui/table"
)

// action is the effect of a key.
type action uint8

const (
	actNone action = iota
	actPrompt
	actPause
	actNext
	actPrevious
	actZoom
	actShow
	actFilter
	actFollow
	actColumnLeft
	actColumnRight
	actReverse
	actOpen
	actCopy
	actTokenLeft
	actTokenRight
	actRequestAbove
	actRequestBelow
	actAxis
	actNextStall
	actSlowest
	actInspect
	actBack
	actWindow
	actPhase
	actTheme
	actPalette
	actSnapshot
	actReport
	actMark
	actSince
	actUnmark
	actAlerts
	actCancel
	actFaster
	actSlower
	actHelp
	actQuit
	actUp
	actDown
	actPageUp
	actPageDown
	actTop
	actBottom
	actView // the number keys, from 1
	actSuspend
	actList
	actOps
	actPreviousEngine
	actNextEngine
	actExpertLeft
	actExpertRight
	actFind
	actFindNext
	actBudgetLess
	actBudgetMore
	actSplit
	actSection
	actSpan
	actPage
	actPageBack

	// Only in a replay, and some while the view is paused.
	actPlay
	actStep
	actBackward // also while the view is paused
	actForward
	actPreviousRequest
	actNextRequest
	actSpeedUp
	actSpeedDown
	actToBegin
	actToEnd
	actFarBack
	actFarOn
)

// binding is one row of the key table, the source of the footer, the help and the README's table. None applies while
// the user types.
type binding struct {
	views viewSet // views in which the keys apply; a binding of some views overrides one of all views
	act   action
	keys  []string // named as in the terminal library
	show  string   // their name in the footer
	word  string   // the action in the footer; "": not in the footer
	help  string
}

// viewKeys are the number keys of the views, in their order.
var viewKeys = func() (keys [numTabs]string) {
	for v := range keys {
		keys[v] = string(rune('1' + v))
	}
	return keys
}()

// paneViews are the views with a focused pane.
var paneViews = only(viewOverview, viewPane)

// tokenViews are the views that show one token of a request.
var tokenViews = only(viewRequest, viewSystem)

// scrollViews are the views with something to scroll or to select.
var scrollViews = everywhere &^ only(viewOverview)

var bindings = []binding{
	{everywhere, actPrompt, []string{"p"}, "p", "prompt", "type a prompt; in the editor: tab for built-in prompts, up and down for history, enter to send, esc to cancel"},
	{everywhere, actPause, []string{"space"}, "space", "pause", "pause and go back in time: move with left, right, [ and ] or a click on the timeline; the engine keeps running"},
	{everywhere, actView, viewKeys[:], "1-" + viewKeys[numTabs-1], "", "switch views: " + strings.ToLower(strings.Join(tabNames[:], ", ")) + "; or click a name in the last row"},
	{paneViews, actNext, []string{"tab", "right"}, "tab", "focus", "focus the next pane; or click it"},
	{paneViews, actPrevious, []string{"shift+tab", "left"}, "shift+tab", "", "focus the previous pane"},
	{only(viewOverview), actZoom, []string{"enter", "z"}, "enter", "zoom", "show the focused pane in full screen; or click its title"},
	{only(viewEngines), actShow, []string{"enter"}, "enter", "show", "show the selected engine"},
	{only(viewRequests), actOpen, []string{"enter"}, "enter", "open", "open the selected request; or click it"},
	{only(viewRequests, viewEngines), actFilter, []string{"/"}, "/", "filter", "filter rows: " + table.Syntax + "; servers: " + table.ReplicaSyntax + "; enter applies the filter, esc removes it"},
	{only(viewRequests, viewEngines), actColumnLeft, []string{"<"}, "<", "", "sort by the column to the left; or click a column header"},
	{only(viewRequests, viewEngines), actColumnRight, []string{">"}, "< >", "sort", "sort by the column to the right"},
	{only(viewRequests, viewEngines), actReverse, []string{"r"}, "r", "reverse", "reverse the order"},
	{tokenViews, actTokenLeft, []string{"left"}, "left", "", "select the previous token; in request also with the mouse, or by rows with up and down"},
	{tokenViews, actTokenRight, []string{"right"}, "left right", "token", "select the next token"},
	{tokenViews, actNextStall, []string{"n"}, "n", "stall", "select the next stall"},
	{only(viewRequest), actSlowest, []string{"N"}, "N", "slowest", "select the slowest token"},
	{only(viewRequest), actAxis, []string{"x"}, "x", "axis", "end the time axis at the first token or at the end of the request"},
	{tokenViews, actRequestAbove, []string{"<"}, "<", "", "show the request above in the table"},
	{tokenViews, actRequestBelow, []string{">"}, "< >", "request", "show the request below in the table"},
	{only(viewSystem), actInspect, []string{"i"}, "i", "inspect", "measure the engine's PSS and how much of the model's file is in the page cache; takes longer for larger models"},
	{only(viewRequests, viewRequest), actCopy, []string{"y"}, "y", "copy", "copy the request as JSON to the clipboard of the terminal (OSC 52)"},
	{only(viewRequests, viewRequest), actFollow, []string{"f"}, "f", "follow", "follow the newest request, or pin the selected one"},
	{only(viewExperts), actExpertLeft, []string{"left", "h"}, "left", "", "select the previous expert; also with the mouse, or by layers with up and down"},
	{only(viewExperts), actExpertRight, []string{"right", "l"}, "left right", "expert", "select the next expert"},
	{only(viewExperts), actFind, []string{"/"}, "/", "find", "find an expert: " + findSyntax + "; enter keeps the selection, esc restores it"},
	{only(viewExperts), actFindNext, []string{"n"}, "n", "", "select the next match, the most picked expert first"},
	{only(viewExperts), actSplit, []string{"v"}, "v", "by kind", "split the map: by prompt kind, by group, or not at all"},
	{only(viewExperts), actBudgetLess, []string{"<"}, "<", "", "reduce the expert capacity of the faster device"},
	{only(viewExperts), actBudgetMore, []string{">"}, "< >", "budget", "increase the expert capacity of the faster device: shows the share of routing it would serve"},
	{only(viewExperts), actSection, []string{"tab"}, "tab", "tables", "switch the first table below the map: pairs, prompt kinds, drift"},
	{only(viewExperts), actSpan, []string{"w"}, "w", "window", "switch the window of the map: 1 min, session, last request, 10 s"},
	{only(viewLatency), actPage, []string{"tab"}, "tab", "page", "switch pages: distributions with cold and warm TTFT, latencies over time, TTFT by prompt length, or all together"},
	{only(viewLatency), actPageBack, []string{"shift+tab"}, "shift+tab", "", "go to the previous page"},
	{everywhere, actBack, []string{"esc", "backspace"}, "esc", "", "go back: from a request to the table, from help and engines to the last view, otherwise to the overview, from there to the list of several engines"},
	{everywhere, actWindow, []string{"w"}, "w", "window", "switch the window of percentiles and router picks: 1 s, 10 s, 1 min, session"},
	{everywhere, actPhase, []string{"e"}, "e", "phase", "switch router picks between decode, prompt and both"},
	{everywhere, actCancel, []string{"c"}, "c", "cancel", "cancel the request on the screen"},
	{everywhere, actFaster, []string{"+", "="}, "+", "", "raise the pace of generation, up to unlimited"},
	{everywhere, actSlower, []string{"-"}, "-", "", "lower the pace of generation"},
	{everywhere, actList, []string{"l"}, "l", "", "list the engines, or go back"},
	{everywhere, actOps, []string{"o"}, "o", "", "show the time per operation and layer (--ops), or go back"},
	{everywhere, actPreviousEngine, []string{"[", "("}, "[", "", "switch to the previous engine"},
	{everywhere, actNextEngine, []string{"]", ")"}, "[ ]", "engine", "switch to the next engine"},
	{everywhere, actTheme, []string{"t"}, "t", "theme", "next theme"},
	{everywhere, actPalette, []string{":"}, ":", "command", "search commands and run one"},
	{everywhere, actSnapshot, []string{"s"}, "s", "snapshot", "save the screen as a picture (SVG) and as text in the working directory"},
	{everywhere, actReport, []string{"S"}, "S", "", "save a report of the moment on the screen as JSON in the working directory, without prompts and answers"},
	{everywhere, actMark, []string{"m"}, "m", "mark", "mark this moment, to compare the numbers since then with those before"},
	{everywhere, actSince, []string{"M"}, "M", "", "show changes since the newest mark: requests, tokens, latency, memory, router picks, dropped events"},
	{everywhere, actUnmark, []string{"u"}, "u", "", "clear the marks"},
	{everywhere, actAlerts, []string{"a"}, "a", "", "show the alerts of the config file: firing, pending and their conditions"},
	{scrollViews, actUp, []string{"up", "k"}, "up", "", "scroll or select up; or use the mouse wheel"},
	{scrollViews, actDown, []string{"down", "j"}, "down", "", "scroll or select down"},
	{scrollViews, actPageUp, []string{"pgup"}, "pgup", "", "go ten rows up"},
	{scrollViews, actPageDown, []string{"pgdown"}, "pgdown", "", "go ten rows down"},
	{scrollViews, actTop, []string{"home", "g"}, "home", "", "go to the start"},
	{scrollViews, actBottom, []string{"end", "G"}, "end", "", "go to the end"},
	{everywhere, actHelp, []string{"?", "h", "f1"}, "?", "help", "show the help: every key, and what each number means"},
	{everywhere, actSuspend, []string{"ctrl+z"}, "ctrl+z", "", "suspend llmtop; fg resumes it"},
	{everywhere, actQuit, []string{"q", "ctrl+c"}, "q", "quit", "quit llmtop"},
}

// names lists all keys of a binding for the help.
func (b binding) names() string {
	if b.act == actView {
		return b.show
	}
	return strings.Join(b.keys, " ")
}

// width returns the width of a binding in the footer, in cells.
func (b binding) width() int { return len(b.show) + len(b.word) + 3 }

// replayKeys are the keys that control a replay.
var replayKeys = []binding{
	{everywhere, actPlay, []string{"space"}, "space", "play", "play or pause the recording"},
	{everywhere, actStep, []string{"."}, ".", "step", "pause and step to the next token, or to the next event if the engine does not report tokens"},
	{everywhere, actBackward, []string{"left", "shift+left"}, "left", "", "go back 1 s"},
	{everywhere, actForward, []string{"right", "shift+right"}, "left right", "1 s", "go forward 1 s"},
	{everywhere, actFarBack, []string{"["}, "[", "", "go back 10 s"},
	{everywhere, actFarOn, []string{"]"}, "[ ]", "", "go forward 10 s"},
	{everywhere, actPreviousEngine, []string{"("}, "(", "", "switch to the previous engine"},
	{everywhere, actNextEngine, []string{")"}, "( )", "engine", "switch to the next engine"},
	{everywhere, actPreviousRequest, []string{"{"}, "{", "", "go back to the start of this request, or of the previous one"},
	{everywhere, actNextRequest, []string{"}"}, "{ }", "request", "go forward to the start of the next request"},
	{everywhere, actSpeedDown, []string{"-"}, "-", "", "play slower, down to 0.1x"},
	{everywhere, actSpeedUp, []string{"+", "="}, "+ -", "speed", "play faster, up to 1000x"},
	{everywhere, actToBegin, []string{"home"}, "home", "", "go to the start of the recording; in the help: scroll"},
	{everywhere, actToEnd, []string{"end"}, "end", "", "go to the end of the recording; in the help: scroll"},
}

// replayBindings returns the keys in a replay.
func replayBindings() []binding { return withOverrides(replayKeys) }

// lookup returns the action of a key in a view.
func lookup(among []binding, key string, v view) (act action) {
	for _, b := range among {
		switch {
		case !b.views.has(v) || !slices.Contains(b.keys, key):
		case b.views != everywhere:
			return b.act
		case act == actNone:
			act = b.act
		}
	}
	return act
}

// lookup returns the action of a key in the current view. The help scrolls with all its keys, in a replay too.
func (a *app) lookup(key string) action {
	if a.view == viewHelp {
		if act := lookup(bindings, key, viewHelp); act == actTop || act == actBottom {
			return act
		}
	}
	return lookup(a.bindings, key, a.view)
}
