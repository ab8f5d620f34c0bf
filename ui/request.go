package ui

import (
	"bytes"
	"fmt"

	"github.com/llmtop/llmtop/profiler/clean"
	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/report"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/pane"
	"github.com/llmtop/llmtop/ui/table"
	"github.com/llmtop/llmtop/ui/view/request"
)

// current returns the selected request, or nil.
func (r *requestsState) current(s *store.Snapshot) *store.Request {
	if r.shown.Follow {
		return s.Current
	}
	for _, list := range [...][]*store.Request{s.Requests, s.Past} {
		for _, q := range list {
			if table.KeyOf(q) == r.selectedKey {
				return q
			}
		}
	}
	return nil
}

// updateDetail takes the selected request. For another request than before it resets the selected token.
func (r *requestsState) updateDetail(s *store.Snapshot) {
	v := &r.detail
	v.Request, v.Follow = r.current(s), r.shown.Follow
	if v.Request != nil && table.KeyOf(v.Request) != r.detailKey {
		r.detailKey, v.Chosen = table.KeyOf(v.Request), false
	}
}

// drawRequest draws the selected request.
func (r *requestsState) drawRequest(area grid.Area, s *store.Snapshot, c *pane.Frame) {
	r.updateDetail(s)
	request.Draw(area, &r.detail, s, c)
}

// selectNeighbour selects the request below in the table, or above.
func (r *requestsState) selectNeighbour(down bool, s *store.Snapshot) {
	r.refresh(s)
	by := 1
	if !down {
		by = -1
	}
	r.move(by)
}

// selectToken moves the selected token by a number of tokens.
func (r *requestsState) selectToken(by int) {
	v := &r.detail
	if v.Request == nil {
		return
	}
	first, last, ok := request.Received(v.Request)
	if ok {
		v.Token = max(min(v.Token+by, last), first)
		v.Chosen = v.Token < last || v.Request.State.Final() // the last token of a running request follows new tokens
	}
}

// nextStall selects the next stall, after the last one the first.
func (r *requestsState) nextStall() (found bool) {
	v := &r.detail
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
	r.selectToken(to - v.Token)
	return true
}

// hover selects the token under the mouse and reports whether the selection changed.
func (r *requestsState) hover(x, y int) bool {
	n := r.detail.Cells.Token(x, y)
	if n < 0 || n == r.detail.Token && r.detail.Chosen {
		return false
	}
	r.selectToken(n - r.detail.Token)
	return true
}

// scroll moves the selected token by rows of cells, and by pages and to the ends like in a list.
func (r *requestsState) scroll(by int) {
	if by == 1 || by == -1 || by == page || by == -page {
		by *= max(r.detail.Cells.PerRow, 1)
	}
	r.selectToken(by)
}

// doRequest performs a key action of the request.
func (a *app) doRequest(act action) {
	r := &a.requests
	switch act {
	case actOpen:
		r.pin(r.shown.Selected)
		a.show(viewRequest)
	case actTokenLeft, actTokenRight:
		r.selectToken(map[action]int{actTokenLeft: -1, actTokenRight: 1}[act])
	case actRequestAbove, actRequestBelow:
		r.selectNeighbour(act == actRequestBelow, a.snap)
	case actAxis:
		r.detail.ToEnd = !r.detail.ToEnd
	case actSlowest:
		if r.detail.Request != nil {
			r.selectToken(request.Slowest(r.detail.Request) - r.detail.Token)
		}
	case actNextStall:
		if !r.nextStall() {
			a.notify("no stall: no gap reached 3 times the median before it")
		}
	}
}

// requestToCopy returns the selected request as JSON for the clipboard. A terminal does not confirm that it supports
// OSC 52.
func (a *app) requestToCopy() (text string, ok bool) {
	q := a.requests.current(a.snap)
	if q == nil {
		a.notify("no request to copy")
		return "", false
	}
	text, err := requestJSON(a.snap, q)
	if err != nil {
		a.report(err, "")
		return "", false
	}
	a.notify(fmt.Sprintf("#%d copied as JSON, %s, if the terminal takes OSC 52", q.ID, metric.Bytes(float64(len(text)))))
	return text, true
}

// requestJSON formats a request as in reports, with the tokens that the store still has.
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
	for i := range out.Tokens { // gaps of the store exclude pacing
		if t := &r.Tokens[i]; t.Nth > 0 && t.Gap >= 0 {
			out.Tokens[i].Gap = report.Number(event.DerivedValue(float64(t.Gap) / 1e9))
		}
	}
	if len(r.Tokens) > 0 && r.Tokens[0].Nth > 0 {
		out.TokensCut, out.Text = uint64(r.Tokens[0].Nth), nil
	}
	var b bytes.Buffer
	if err := clean.NewEncoder(&b).Encode(out); err != nil {
		return "", fmt.Errorf("write request as JSON: %w", err)
	}
	return b.String(), nil
}
