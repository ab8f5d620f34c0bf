// Package request is the Request view: one request with its waterfall, its tokens and one token in detail.
package request

import (
	"slices"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/pane"
	"github.com/llmtop/llmtop/ui/table"
	"github.com/llmtop/llmtop/ui/view"
)

// View is the Request view: the choices of the user and, after drawing, the screen position of the tokens.
type View struct {
	view.Base
	Request *store.Request // nil: none
	ToEnd   bool           // the time axis ends with the request, not with the first token
	Chosen  bool           // the user chose Token; otherwise it is the slowest, or the last of a running request
	Static  bool           // not interactive: no key hints
	Token   int            // number of the selected token, from 0
	Cells   Cells

	program   view.Program
	selection *table.Selection
	neighbour func(by int) // selects a request by rows below the selected one in its table; above it if by is negative
	pin       func()       // stops following the newest request and keeps the selected one
	last      table.Key    // the request that was shown last
}

// New makes the view of the request selected in a table: neighbour selects one by rows below it, pin keeps it.
func New(program view.Program, selection *table.Selection, neighbour func(by int), pin func()) *View {
	return &View{program: program, selection: selection, neighbour: neighbour, pin: pin}
}

// Name implements view.View.
func (v *View) Name() string { return "Request" }

// Missing implements view.View.
func (v *View) Missing(s *store.Snapshot) (why, advice string) { return Missing(s) }

// Draw draws the selected request.
func (v *View) Draw(a grid.Area, s *store.Snapshot, f *pane.Frame) {
	v.Update(s)
	drawRequest(a, s, f, v)
}

// Show selects a token of a request; false if the request is no longer kept.
func (v *View) Show(s *store.Snapshot, id event.RequestID, token int) bool {
	for _, r := range slices.Concat(s.Requests, s.Earlier) {
		if r.ID == id {
			v.selection.Follow, v.selection.Key = false, table.KeyOf(r)
			v.Update(s)
			v.Token, v.Chosen = token, true
			return true
		}
	}
	return false
}

// Update takes the selected request of a snapshot. For another request than before it resets the selected token.
func (v *View) Update(s *store.Snapshot) {
	v.Request = v.selection.Request(s)
	if v.Request != nil && table.KeyOf(v.Request) != v.last {
		v.last, v.Chosen = table.KeyOf(v.Request), false
	}
}

// Keys implements view.View.
func (v *View) Keys() []view.Key {
	keys := append(v.tokenKeys(),
		view.Key{Keys: []string{"N"}, Show: "N", Word: "slowest", Help: "select the slowest token", Do: v.selectSlowest},
		view.Key{Keys: []string{"x"}, Show: "x", Word: "axis", Help: "end the time axis at the first token or at the end of the request", Do: func() { v.ToEnd = !v.ToEnd }},
	)
	return append(append(keys, v.neighbourKeys()...), SelectionKeys(v.program, v.selection, v.pin)...)
}

// TokenKeys returns the keys of the views that show one token of the request.
func (v *View) TokenKeys() []view.Key { return append(v.tokenKeys(), v.neighbourKeys()...) }

func (v *View) tokenKeys() []view.Key {
	return []view.Key{
		{Keys: []string{"left"}, Show: "left", Name: "previous token", Help: "select the previous token; in request also with the mouse, or by rows with up and down", Do: func() { v.step(-1) }},
		{Keys: []string{"right"}, Show: "left right", Word: "token", Help: "select the next token", Do: func() { v.step(1) }},
		{Keys: []string{"n"}, Show: "n", Word: "stall", Help: "select the next stall", Do: v.nextStall},
	}
}

func (v *View) neighbourKeys() []view.Key {
	return []view.Key{
		{Keys: []string{"<"}, Show: "<", Name: "request above", Help: "show the request above in the table", Do: func() { v.neighbour(-1) }},
		{Keys: []string{">"}, Show: "< >", Word: "request", Help: "show the request below in the table", Do: func() { v.neighbour(1) }},
	}
}

// SelectionKeys returns the keys of the views that show the selected request. pin stops following the newest one.
func SelectionKeys(program view.Program, selection *table.Selection, pin func()) []view.Key {
	follow := func() {
		if selection.Follow {
			pin()
		} else {
			selection.Follow = true
		}
	}
	return []view.Key{
		{Keys: []string{"y"}, Show: "y", Word: "copy", Help: "copy the request as JSON to the clipboard of the terminal (OSC 52)", Do: func() { copyRequest(program, selection) }},
		{Keys: []string{"f"}, Show: "f", Word: "follow", Help: "follow the newest request, or pin the selected one", Do: follow},
	}
}

// step moves the selected token by a number of tokens.
func (v *View) step(by int) {
	if v.Request == nil {
		return
	}
	if first, last, ok := Received(v.Request); ok {
		v.Token = max(min(v.Token+by, last), first)
		v.Chosen = v.Token < last || v.Request.State.Final() // the last token of a running request follows new tokens
	}
}

func (v *View) selectSlowest() {
	if v.Request != nil {
		v.step(Slowest(v.Request) - v.Token)
	}
}

// nextStall selects the next stall, after the last one the first.
func (v *View) nextStall() {
	if v.Request == nil || len(v.Request.Late) == 0 {
		v.program.Notify("no stall: no gap reached 3 times the median before it")
		return
	}
	late := slices.Sorted(slices.Values(v.Request.Late)) // the first tokens are judged later than the next ones
	i, _ := slices.BinarySearch(late, int32(v.Token+1))
	v.step(int(late[i%len(late)]) - v.Token)
}

// Scroll moves the selected token by rows of cells, and to the ends like in a list.
func (v *View) Scroll(by int) {
	if by == 1 || by == -1 || by == view.Page || by == -view.Page {
		by *= max(v.Cells.PerRow, 1)
	}
	v.step(by)
}

// Click selects the token under the mouse.
func (v *View) Click(x, y int) { v.Hover(x, y) }

// Hover selects the token under the mouse.
func (v *View) Hover(x, y int) bool {
	n := v.Cells.Token(x, y)
	if n < 0 || n == v.Token && v.Chosen {
		return false
	}
	v.step(n - v.Token)
	return true
}
