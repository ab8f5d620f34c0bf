package ui

import (
	"slices"
	"strings"

	"github.com/llmtop/llmtop/ui/table"
)

// action is what a key does.
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
	actView // keys from 1 on
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

	// In a replay only.
	actPlay
	actStep
	actBackward // and while the view is paused
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

// binding is one row of the table of keys, from which the footer, the help and the README's table are made. While a prompt is typed
// none works.
type binding struct {
	in   views // where the keys do this; what is not everywhere goes before what is
	act  action
	keys []string // as the terminal library names them
	show string   // what the footer calls them
	word string   // in the footer; "" keeps it out of there
	help string
}

// viewKeys are the keys of the views, in their order.
var viewKeys = func() (keys [numTabs]string) {
	for v := range keys {
		keys[v] = string(rune('1' + v))
	}
	return keys
}()

// panesOnly is where there are panes to move the focus among.
var panesOnly = in(viewOverview, viewPane)

// onToken is where one token of one request is looked at.
var onToken = in(viewRequest, viewSystem)

// scrolling is where there is something to scroll through or to choose from.
var scrolling = everywhere &^ in(viewOverview)

var bindings = []binding{
	{everywhere, actPrompt, []string{"p"}, "p", "prompt", "type a prompt; in the editor: tab built-in prompts, up and down history, enter send, esc cancel"},
	{everywhere, actPause, []string{"space"}, "space", "pause", "freeze the view, to go back in time with left right [ and ] or a click on the line of time, and let it go on; the engine keeps running"},
	{everywhere, actView, viewKeys[:], "1-" + viewKeys[numTabs-1], "", "the views: " + strings.ToLower(strings.Join(tabNames[:], ", ")) + "; a click on a name in the last row does so too"},
	{panesOnly, actNext, []string{"tab", "right"}, "tab", "focus", "move the focus to the next pane; a mouse click does so too"},
	{panesOnly, actPrevious, []string{"shift+tab", "left"}, "shift+tab", "", "move the focus to the pane before"},
	{in(viewOverview), actZoom, []string{"enter", "z"}, "enter", "zoom", "make the focused pane full screen; a click on its title does so too"},
	{in(viewEngines), actShow, []string{"enter"}, "enter", "show", "show the engine that is chosen"},
	{in(viewRequests), actOpen, []string{"enter"}, "enter", "open", "look at the request that is selected; a click on it does so too"},
	{in(viewRequests, viewEngines), actFilter, []string{"/"}, "/", "filter", "choose rows: " + table.Syntax + ", of servers " + table.ReplicaSyntax + "; enter keeps the filter, esc takes it away"},
	{in(viewRequests, viewEngines), actColumnLeft, []string{"<"}, "<", "", "sort by the column to the left; a click on a head does so too"},
	{in(viewRequests, viewEngines), actColumnRight, []string{">"}, "< >", "sort", "sort by the column to the right"},
	{in(viewRequests, viewEngines), actReverse, []string{"r"}, "r", "reverse", "turn the order round"},
	{onToken, actTokenLeft, []string{"left"}, "left", "", "look at the token before; in request, so does the mouse over the cells, and up and down by rows"},
	{onToken, actTokenRight, []string{"right"}, "left right", "token", "look at the next token"},
	{onToken, actNextStall, []string{"n"}, "n", "stall", "look at the next stall"},
	{in(viewRequest), actSlowest, []string{"N"}, "N", "slowest", "look at the slowest token"},
	{in(viewRequest), actAxis, []string{"x"}, "x", "axis", "time axis to the first token, or to the end"},
	{onToken, actRequestAbove, []string{"<"}, "<", "", "the request in the row above in the table"},
	{onToken, actRequestBelow, []string{">"}, "< >", "request", "the request in the row below in the table"},
	{in(viewSystem), actInspect, []string{"i"}, "i", "inspect", "measure the engine's PSS, and how much of the model's file is in the page cache: that takes time in proportion to their size"},
	{in(viewRequests, viewRequest), actCopy, []string{"y"}, "y", "copy", "copy the request as JSON into the clipboard of the terminal (OSC 52)"},
	{in(viewRequests, viewRequest), actFollow, []string{"f"}, "f", "follow", "follow the newest request, or stay with the one that is selected"},
	{in(viewExperts), actExpertLeft, []string{"left", "h"}, "left", "", "look at the expert before; so does the mouse over the map, and up and down by layers"},
	{in(viewExperts), actExpertRight, []string{"right", "l"}, "left right", "expert", "look at the next expert"},
	{in(viewExperts), actFind, []string{"/"}, "/", "find", "find an expert: " + findSyntax + "; enter stays there, esc goes back"},
	{in(viewExperts), actFindNext, []string{"n"}, "n", "", "the next one that was looked for, the most picked first"},
	{in(viewExperts), actSplit, []string{"v"}, "v", "by kind", "maps side by side: of each kind of prompt, of each group, or all together"},
	{in(viewExperts), actBudgetLess, []string{"<"}, "<", "", "room for fewer experts on the faster device"},
	{in(viewExperts), actBudgetMore, []string{">"}, "< >", "budget", "room for more experts: what share of the routing they would cover"},
	{in(viewExperts), actSection, []string{"tab"}, "tab", "tables", "which table below the map comes first: pairs, kinds of prompt, drift"},
	{in(viewExperts), actSpan, []string{"w"}, "w", "window", "window of the map: 1 min, session, the last request, 10 s"},
	{in(viewLatency), actPage, []string{"tab"}, "tab", "page", "one kind of picture with the whole view: distributions with cold TTFT beside warm, times by the second, TTFT by prompt; or all together"},
	{in(viewLatency), actPageBack, []string{"shift+tab"}, "shift+tab", "", "the page before"},
	{everywhere, actBack, []string{"esc", "backspace"}, "esc", "", "back: from a request to the table, from help and engines to where they were opened, else to the overview, and from there to the engines if there are several"},
	{everywhere, actWindow, []string{"w"}, "w", "window", "window of percentiles and router picks: 1 s, 10 s, 1 min, session"},
	{everywhere, actPhase, []string{"e"}, "e", "phase", "router picks of decode, of prompt, or of both"},
	{everywhere, actCancel, []string{"c"}, "c", "cancel", "cancel the request that is shown"},
	{everywhere, actFaster, []string{"+", "="}, "+", "", "pace: faster, up to flat out"},
	{everywhere, actSlower, []string{"-"}, "-", "", "pace: slower"},
	{everywhere, actList, []string{"l"}, "l", "", "the list of engines, and back"},
	{everywhere, actOps, []string{"o"}, "o", "", "time of each kind of operation in each layer (--ops), and back"},
	{everywhere, actPreviousEngine, []string{"[", "("}, "[", "", "the engine before"},
	{everywhere, actNextEngine, []string{"]", ")"}, "[ ]", "engine", "the next engine"},
	{everywhere, actTheme, []string{"t"}, "t", "theme", "next theme"},
	{everywhere, actPalette, []string{":"}, ":", "command", "look for what can be done here by its words, and do it"},
	{everywhere, actSnapshot, []string{"s"}, "s", "snapshot", "write the screen as a picture (SVG) and as text into the working folder"},
	{everywhere, actReport, []string{"S"}, "S", "", "write the report of the moment on show as JSON into the working folder, without prompts and answers"},
	{everywhere, actMark, []string{"m"}, "m", "mark", "mark this moment: numbers since then are compared with those before it"},
	{everywhere, actSince, []string{"M"}, "M", "", "what has changed since the newest mark: requests, tokens, latency, memory, router picks, losses"},
	{everywhere, actUnmark, []string{"u"}, "u", "", "clear the marks"},
	{everywhere, actAlerts, []string{"a"}, "a", "", "the alerts of the config file: which fire, which are about to, and what they wait for"},
	{scrolling, actUp, []string{"up", "k"}, "up", "", "up: scroll, or choose; the mouse wheel does so too"},
	{scrolling, actDown, []string{"down", "j"}, "down", "", "down"},
	{scrolling, actPageUp, []string{"pgup"}, "pgup", "", "ten rows up"},
	{scrolling, actPageDown, []string{"pgdown"}, "pgdown", "", "ten rows down"},
	{scrolling, actTop, []string{"home", "g"}, "home", "", "to the beginning"},
	{scrolling, actBottom, []string{"end", "G"}, "end", "", "to the end"},
	{everywhere, actHelp, []string{"?", "h", "f1"}, "?", "help", "this help: every key, and what each number means"},
	{everywhere, actSuspend, []string{"ctrl+z"}, "ctrl+z", "", "suspend llmtop; fg brings it back"},
	{everywhere, actQuit, []string{"q", "ctrl+c"}, "q", "quit", "quit"},
}

// names are all keys of a binding, as the help lists them.
func (b binding) names() string {
	if b.act == actView {
		return b.show
	}
	return strings.Join(b.keys, " ")
}

// width is what a binding takes in the footer.
func (b binding) width() int { return len(b.show) + len(b.word) + 3 }

// steering are the keys of a replay.
var steering = []binding{
	{everywhere, actPlay, []string{"space"}, "space", "play", "play the recording, or pause it"},
	{everywhere, actStep, []string{"."}, ".", "step", "pause, and go on by one token, or by one event where the engine does not tell of tokens"},
	{everywhere, actBackward, []string{"left", "shift+left"}, "left", "", "1 s back"},
	{everywhere, actForward, []string{"right", "shift+right"}, "left right", "1 s", "1 s on"},
	{everywhere, actFarBack, []string{"["}, "[", "", "10 s back"},
	{everywhere, actFarOn, []string{"]"}, "[ ]", "", "10 s on"},
	{everywhere, actPreviousEngine, []string{"("}, "(", "", "the engine before"},
	{everywhere, actNextEngine, []string{")"}, "( )", "engine", "the next engine"},
	{everywhere, actPreviousRequest, []string{"{"}, "{", "", "back to where the request began, or the one before it"},
	{everywhere, actNextRequest, []string{"}"}, "{ }", "request", "on to where the next request begins"},
	{everywhere, actSpeedDown, []string{"-"}, "-", "", "slower, down to 0.1 times as it was"},
	{everywhere, actSpeedUp, []string{"+", "="}, "+ -", "speed", "faster, up to 1000 times as it was"},
	{everywhere, actToBegin, []string{"home"}, "home", "", "to the beginning of the recording; in the help: scroll"},
	{everywhere, actToEnd, []string{"end"}, "end", "", "to the end of the recording; in the help: scroll"},
}

// replayBindings are the keys in a replay.
func replayBindings() []binding { return overriding(steering) }

// lookup finds what a key does in a view.
func lookup(among []binding, key string, v view) (act action) {
	for _, b := range among {
		switch {
		case !b.in.has(v) || !slices.Contains(b.keys, key):
		case b.in != everywhere:
			return b.act
		case act == actNone:
			act = b.act
		}
	}
	return act
}

// lookup finds what a key does in the view that is shown. The help scrolls with all its keys in a replay, too.
func (a *app) lookup(key string) action {
	if a.view == viewHelp {
		if act := lookup(bindings, key, viewHelp); act == actTop || act == actBottom {
			return act
		}
	}
	return lookup(a.bindings, key, a.view)
}
