package scrape

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/source/scrape/fetch"
	"github.com/llmtop/llmtop/runtime/source/scrape/gather"
)

// vllm collects the metrics of vLLM and the number of requests in its HTTP server (/load).
type vllm struct {
	metrics    *metrics
	noMetrics  bool       // the server has no /metrics
	countsLoad bool       // /load was above 0 once, so the server counts requests
	noLoad     bool       // the server has no /load
	loadAt     event.Time // when /load was read last
	loadError  string     // why /load is not shown; "": it was read, or never requested
}

func (*vllm) interval(interval time.Duration) time.Duration { return interval }

func (v *vllm) recheck(*Poller) { v.noMetrics, v.noLoad, v.loadError = false, false, "" }

// idleLoadEvery is the time between two requests to /load after one without a usable number, if the server has metrics.
// Tests use a longer time.
var idleLoadEvery = event.Time(5 * time.Second)

// updateState sets the engine to paused while it is in sleep mode, in which vLLM frees the GPU for other work.
func (v *vllm) updateState(s *Poller) {
	if v.metrics.gatherer.Asleep() {
		s.setState(event.EnginePaused, "asleep until it is woken up")
	} else {
		s.setState(event.EngineReady, "")
	}
}

func (v *vllm) collect(ctx context.Context, s *Poller) (*event.Aggregates, error) {
	if !v.noMetrics {
		report, err := v.metrics.collect(ctx, s)
		v.updateState(s)
		if err == nil {
			v.addLoad(ctx, s, report)
			return report, nil
		}
		refused := (*fetch.StatusError)(nil)
		if !errors.Is(err, gather.ErrNoKnownMetrics) && !(errors.As(err, &refused) && refused.Code == http.StatusNotFound) {
			return nil, err
		}
		v.noMetrics = true
	}
	report := &event.Aggregates{Interval: s.sinceReport()}
	addEndpoint(report, "/metrics", "the server has no metrics")
	requests, err := v.readLoad(ctx, s, report)
	if err != nil {
		return nil, err
	}
	report.Running = requests
	return report, nil
}

// readLoad reads the number of requests in the HTTP server, waiting ones included. It is absent until the server is
// known to count them.
func (v *vllm) readLoad(ctx context.Context, s *Poller, report *event.Aggregates) (event.Reading, error) {
	var load struct {
		Requests float64 `json:"server_load"`
	}
	v.loadAt, v.loadError = s.clock.Now(), ""
	err := s.client.JSON(ctx, "/load", &load)
	v.countsLoad = v.countsLoad || load.Requests > 0
	switch {
	case err != nil:
		v.setLoadError(err)
	case !v.countsLoad:
		v.loadError = notCounted
	}
	addEndpoint(report, "/load", v.loadError)
	if v.loadError != "" {
		return event.Reading{}, err
	}
	return event.ReportedValue(load.Requests), nil
}

// notCounted is the reason why /load is not shown: without the flag it is always 0.
const notCounted = "0 so far: start the server with --enable-server-load-tracking"

// addLoad adds the number of requests to the report of the metrics. A failure of /load does not fail the poll.
func (v *vllm) addLoad(ctx context.Context, s *Poller, report *event.Aggregates) {
	if why := v.metrics.several(); why != "" {
		addEndpoint(report, "/load", why)
		return
	}
	if v.noLoad || v.loadError != "" && s.clock.Now()-v.loadAt < idleLoadEvery {
		addEndpoint(report, "/load", v.loadError)
		return
	}
	if requests, err := v.readLoad(ctx, s, report); err == nil && requests.OK() {
		addReading(report, event.NamedReading{Name: "server_load", Reading: requests})
	}
}

// setLoadError records why /load was not read. An overloaded or starting server refuses for a while; a server without
// the endpoint is not polled again.
func (v *vllm) setLoadError(err error) {
	v.loadError = err.Error()
	if refused := (*fetch.StatusError)(nil); errors.As(err, &refused) {
		switch refused.Code {
		case http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusNotImplemented:
			v.noLoad, v.loadError = true, "not supported by this server"
		}
	}
}
