package ui

import (
	"slices"
	"strings"
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
	actBack
	actWindow
	actPhase
	actTheme
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
	actPane // keys 1 to 7
	actSuspend
	actList
	actPreviousEngine
	actNextEngine

	// In a replay only.
	actPlay
	actStep
	actBackward
	actForward
	actPreviousRequest
	actNextRequest
	actSpeedUp
	actSpeedDown
	actToBegin
	actToEnd
)

// binding is one row of the table of keys, from which the footer and the help are made. The keys work in every view, except
// while a prompt is typed.
type binding struct {
	act  action
	keys []string // as the terminal library names them
	show string   // what the footer calls them
	word string   // in the footer; "" keeps it out of there
	help string
}

var bindings = []binding{
	{actPrompt, []string{"p"}, "p", "prompt", "type a prompt; in the editor: tab built-in prompts, up and down history, enter send, esc cancel"},
	{actPause, []string{"space"}, "space", "pause", "freeze the view and let it go on; the engine keeps running"},
	{actNext, []string{"tab", "right"}, "tab", "focus", "move the focus to the next pane; a mouse click does so too"},
	{actPrevious, []string{"shift+tab", "left"}, "shift+tab", "", "move the focus to the pane before"},
	{actZoom, []string{"enter"}, "enter", "zoom", "make the focused pane full screen; a click on the focused pane does so too"},
	{actBack, []string{"esc", "backspace"}, "esc", "", "back to the overview"},
	{actPane, []string{"1", "2", "3", "4", "5", "6", "7"}, "1-7", "", "make that pane full screen"},
	{actWindow, []string{"w"}, "w", "window", "window of percentiles and router picks: 1 s, 10 s, 1 min, session"},
	{actPhase, []string{"e"}, "e", "phase", "router picks of decode, of prompt, or of both"},
	{actCancel, []string{"c"}, "c", "cancel", "cancel the request that is shown"},
	{actFaster, []string{"+", "="}, "+", "", "pace: faster, up to flat out"},
	{actSlower, []string{"-"}, "-", "", "pace: slower"},
	{actList, []string{"l"}, "l", "engines", "the list of engines: up and down choose, enter shows"},
	{actPreviousEngine, []string{"["}, "[", "", "the engine before"},
	{actNextEngine, []string{"]"}, "[ ]", "engine", "the next engine"},
	{actTheme, []string{"t"}, "t", "theme", "next theme"},
	{actUp, []string{"up", "k"}, "up", "", "scroll up; the mouse wheel does so too"},
	{actDown, []string{"down", "j"}, "down", "", "scroll down"},
	{actPageUp, []string{"pgup"}, "pgup", "", "scroll up by ten rows"},
	{actPageDown, []string{"pgdown"}, "pgdown", "", "scroll down by ten rows"},
	{actTop, []string{"home", "g"}, "home", "", "scroll to the beginning"},
	{actBottom, []string{"end", "G"}, "end", "", "scroll to the end"},
	{actHelp, []string{"?", "h", "f1"}, "?", "help", "this help: every key, and what each number means"},
	{actSuspend, []string{"ctrl+z"}, "ctrl+z", "", "suspend llmtop; fg brings it back"},
	{actQuit, []string{"q", "ctrl+c"}, "q", "quit", "quit"},
}

// names are all keys of a binding, as the help lists them.
func (b binding) names() string {
	if b.act == actPane {
		return b.show
	}
	return strings.Join(b.keys, " ")
}

// steering are the keys of a replay.
var steering = []binding{
	{actPlay, []string{"space"}, "space", "play", "play the recording, or pause it"},
	{actStep, []string{"."}, ".", "step", "pause, and go on by one token, or by one event where the engine does not tell of tokens"},
	{actBackward, []string{"left"}, "left", "", "5 s back"},
	{actForward, []string{"right"}, "left right", "5 s", "5 s on"},
	{actPreviousRequest, []string{"{", "shift+left"}, "{", "", "back to where the request began, or the one before it"},
	{actNextRequest, []string{"}", "shift+right"}, "{ }", "request", "on to where the next request begins"},
	{actSpeedDown, []string{"-"}, "-", "", "slower, down to 0.1 times as it was"},
	{actSpeedUp, []string{"+", "="}, "+ -", "speed", "faster, up to 1000 times as it was"},
	{actToBegin, []string{"home"}, "home", "", "to the beginning of the recording; in the help: scroll"},
	{actToEnd, []string{"end"}, "end", "", "to the end of the recording; in the help: scroll"},
}

// replayBindings are the keys in a replay: its own, and of the others those that these leave.
func replayBindings() []binding {
	out := slices.Clone(steering)
	for _, b := range bindings {
		b.keys = slices.DeleteFunc(slices.Clone(b.keys), func(key string) bool { return lookup(steering, key) != actNone })
		if len(b.keys) > 0 {
			out = append(out, b)
		}
	}
	return out
}

// lookup finds what a key does.
func lookup(in []binding, key string) action {
	for _, b := range in {
		if slices.Contains(b.keys, key) {
			return b.act
		}
	}
	return actNone
}

// lookup finds what a key does in the view that is shown.
func (a *app) lookup(key string) action {
	if a.mode == helping {
		if act := lookup(bindings, key); act == actTop || act == actBottom {
			return act
		}
	}
	return lookup(a.bindings, key)
}
