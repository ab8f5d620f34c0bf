package engine

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/source/scrape/fetch"
)

var llamaSwapEngine = Engine{
	Kind: LlamaSwap, owners: []string{"llama-swap"}, details: readRunning, list: runningModels,
	collector: func(*Poller, *metrics) collector { return new(llamaSwap) },
}

// runningModels reads the list of models, and which of them are loaded.
func runningModels(ctx context.Context, p *identification) error {
	err := readModels(ctx, p)
	if err == nil {
		readRunning(ctx, p)
	}
	return err
}

// readRunning reads which models of llama-swap are loaded.
func readRunning(ctx context.Context, p *identification) {
	var list struct {
		Running []struct {
			Model string `json:"model"`
			State string `json:"state"`
		} `json:"running"`
	}
	if p.getJSON(ctx, "/running", &list) != nil {
		return
	}
	for i := range p.info.Models {
		m := &p.info.Models[i]
		m.Loaded = false
		for _, r := range list.Running {
			m.Loaded = m.Loaded || r.Model == m.Name && r.State == "ready"
		}
	}
}

// llamaSwap collects the models of llama-swap, and the requests that have ended, from its log of activity. Reading it loads no
// model.
type llamaSwap struct {
	listing
	began    bool // last is the latest request before the session, or of it
	last     int64
	noLog    bool       // the version has no such log
	listedAt event.Time // when the models were listed last
}

func (l *llamaSwap) recheck(*Poller) { l.noLog, l.began = false, false }

func (l *llamaSwap) interval(interval time.Duration) time.Duration {
	if l.noLog {
		return l.listing.interval(interval)
	}
	return interval
}

// activityPath is llama-swap's log of the requests that have ended, by their number.
const activityPath = "/api/metrics/activity"

// maxActivity limits the requests of one answer; more come with the next polls.
const maxActivity = 500

// activity is a page of the log.
type activity struct {
	Data []struct {
		ID       int64   `json:"id"`
		Status   int     `json:"resp_status_code"` // 0: not recorded
		Duration float64 `json:"duration_ms"`
		Tokens   struct {
			Out float64 `json:"output_tokens"` // its prompt tokens are with or without those from a cache
		} `json:"tokens"`
	} `json:"data"`
}

func (l *llamaSwap) collect(ctx context.Context, s *Poller) (*event.Aggregates, error) {
	report := &event.Aggregates{Interval: s.sinceReport()}
	now := s.clock.Now()
	if l.listedAt == 0 || now-l.listedAt >= event.Time(listEvery)*9/10 {
		listed, err := l.listing.collect(ctx, s)
		if err != nil || listed == nil {
			return nil, err
		}
		l.listedAt, report.Endpoints = now, listed.Endpoints
	}
	if l.noLog {
		addEndpoint(report, activityPath, oldLlamaSwap)
		return report, nil
	}
	ask, page := activityPath+"?limit=1", activity{}
	if l.began {
		ask = fmt.Sprintf("%s?order=asc&limit=%d&min_id=%d", activityPath, maxActivity, l.last+1)
	}
	err := s.client.JSON(ctx, ask, &page)
	switch {
	case fetch.Unsupported(err):
		l.noLog = true
		addEndpoint(report, activityPath, oldLlamaSwap)
		return report, nil
	case err != nil:
		return nil, err
	}
	addEndpoint(report, activityPath, "")
	l.count(&page, report)
	return report, nil
}

// oldLlamaSwap is the reason why requests are not shown.
const oldLlamaSwap = "not in this version of llama-swap, which has its requests only in the stream at /api/events"

// count adds the requests of a page to a report. Of the first page only the number counts: the requests were before the
// session, or before a restart, if the server has none as late.
func (l *llamaSwap) count(page *activity, report *event.Aggregates) {
	first := !l.began
	l.began = true
	var finished, failed, out float64
	times := event.Histogram{Name: "e2el"}
	for _, r := range page.Data {
		switch {
		case first && (l.last == 0 || r.ID < l.last):
			l.last = r.ID
			continue
		case first || r.ID <= l.last:
			continue
		}
		l.last = r.ID
		if r.Status != 0 && r.Status != http.StatusOK {
			failed++
			continue
		}
		finished, out = finished+1, out+max(r.Tokens.Out, 0)
		times.Count, times.Sum = times.Count+1, times.Sum+int64(max(r.Duration, 0)*1e6)
	}
	count := event.DerivedValue
	if report.Interval == 0 {
		count = func(float64) event.Reading { return event.Absent(event.NotYet) }
	}
	report.Finished, report.Failed, report.Generated = count(finished), count(failed), count(out)
	if times.Count > 0 {
		report.Histograms = append(report.Histograms, times)
	}
}
