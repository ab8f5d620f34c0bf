package ui

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/report"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/panes"
	"github.com/llmtop/llmtop/ui/table"
)

// current is the request that is selected, nil if there is none.
func (r *requests) current(s *store.Snapshot) *store.Request {
	if r.shown.Follow {
		return s.Current
	}
	for _, list := range [...][]*store.Request{s.Requests, s.Past} {
		for _, q := range list {
			if table.KeyOf(q) == r.at {
				return q
			}
		}
	}
	return nil
}

// look takes the request that is selected. Another one than before begins with a token of its own.
func (r *requests) look(s *store.Snapshot) {
	v := &r.one
	v.Request, v.Follow = r.current(s), r.shown.Follow
	if v.Request != nil && table.KeyOf(v.Request) != r.was {
		r.was, v.Chosen = table.KeyOf(v.Request), false
	}
}

// drawRequest draws the request that is selected.
func (r *requests) drawRequest(area grid.Area, s *store.Snapshot, c *panes.Ctx) {
	r.look(s)
	panes.Request(area, &r.one, s, c)
}

// step goes to the request in the row below in the table, or the one above.
func (r *requests) step(down bool, s *store.Snapshot) {
	r.refresh(s)
	by := 1
	if !down {
		by = -1
	}
	r.move(by)
}

// choose looks at another token, so many on from the one that is looked at.
func (r *requests) choose(by int) {
	v := &r.one
	if v.Request == nil {
		return
	}
	first, last, ok := panes.Received(v.Request)
	if ok {
		v.Token = max(min(v.Token+by, last), first)
		v.Chosen = v.Token < last || v.Request.State.Final() // the last one goes on with those that come
	}
}

// nextStall looks at the next stall, after the last one at the first.
func (r *requests) nextStall() (found bool) {
	v := &r.one
	if v.Request == nil || len(v.Request.Stalls) == 0 {
		return false
	}
	to := v.Request.Stalls[0].Index
	for _, s := range v.Request.Stalls {
		if s.Index > v.Token {
			to = s.Index
			break
		}
	}
	r.choose(to - v.Token)
	return true
}

// hover looks at the token under the mouse, and reports whether that is another one.
func (r *requests) hover(x, y int) bool {
	n := r.one.Cells.Token(x, y)
	if n < 0 || n == r.one.Token && r.one.Chosen {
		return false
	}
	r.choose(n - r.one.Token)
	return true
}

// scroll moves the token by rows of cells, and by pages and to the ends like any list.
func (r *requests) scroll(by int) {
	if by == 1 || by == -1 || by == page || by == -page {
		by *= max(r.one.Cells.PerRow, 1)
	}
	r.choose(by)
}

// doRequest does what a key of the request says.
func (a *app) doRequest(act action) {
	r := &a.requests
	switch act {
	case actOpen:
		r.pin(r.shown.Selected)
		a.show(viewRequest)
	case actTokenLeft, actTokenRight:
		r.choose(map[action]int{actTokenLeft: -1, actTokenRight: 1}[act])
	case actRequestAbove, actRequestBelow:
		r.step(act == actRequestBelow, a.snap)
	case actAxis:
		r.one.Whole = !r.one.Whole
	case actSlowest:
		if r.one.Request != nil {
			r.choose(panes.Slowest(r.one.Request) - r.one.Token)
		}
	case actNextStall:
		if !r.nextStall() {
			a.say("no stall: no gap was 3 times the median before it, or more")
		}
	}
}

// copied is the selected request as JSON, for the clipboard of the terminal. Whether that takes it is not known.
func (a *app) copied() (text string, ok bool) {
	q := a.requests.current(a.snap)
	if q == nil {
		a.say("no request to copy")
		return "", false
	}
	text, err := requestJSON(a.snap, q)
	if err != nil {
		a.report(err, "")
		return "", false
	}
	a.say(fmt.Sprintf("#%d copied as JSON, %s, if the terminal takes OSC 52", q.ID, metric.Bytes(float64(len(text)))))
	return text, true
}

// requestJSON is a request as reports have it, with the tokens that the store has kept.
func requestJSON(s *store.Snapshot, r *store.Request) (string, error) {
	kept := report.NewCollector()
	kept.Emit(event.Event{Kind: event.KindRequest, Req: r.ID, At: r.Enqueued, State: event.StateQueued})
	for i := range r.Tokens {
		t := &r.Tokens[i]
		kept.Emit(event.Event{
			Kind: event.KindToken, Req: r.ID, At: t.At, ID: t.ID, Index: int32(t.Index), N: int32(t.N), Text: t.Text,
			LogP: t.LogP, HasLogP: t.HasLP, Top: t.Top, Picks: t.Picks,
		})
	}
	alone := &store.Snapshot{Now: s.Now, Wall: s.Wall, Started: s.Started, Requests: []*store.Request{r}}
	out := report.Build(report.Meta{}, alone, kept).Requests[0]
	for i := range out.Tokens { // the store knows what was waited on purpose
		if t := &r.Tokens[i]; t.Nth > 0 && t.Gap >= 0 {
			out.Tokens[i].Gap = report.Number(event.From(float64(t.Gap) / 1e9))
		}
	}
	if len(r.Tokens) > 0 && r.Tokens[0].Nth > 0 {
		out.TokensCut, out.Text = uint64(r.Tokens[0].Nth), nil
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(out); err != nil {
		return "", fmt.Errorf("write request as JSON: %w", err)
	}
	return b.String(), nil
}
