package scrape

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/scrape/fetch"
	"github.com/llmtop/llmtop/runtime/scrape/gather"
)

// vllm watches vLLM by its metrics, and by the number of requests that its HTTP server works on.
type vllm struct {
	metrics *metrics
	without bool       // it keeps no metrics
	counts  bool       // it has told of requests: it does count them
	noLoad  bool       // it cannot tell of them
	asked   event.Time // when it was asked for them
	why     string     // they were not told then; "": they were, or it was never asked
}

func (*vllm) pause(interval time.Duration) time.Duration { return interval }

func (v *vllm) reconsider(*Source) { v.without, v.noLoad, v.why = false, false, "" }

// idleLoadEvery is how often a server is asked for the number of its requests that has metrics and did not tell that number last. Tests have more time.
var idleLoadEvery = event.Time(5 * time.Second)

// stands tells whether the engine has been put to sleep, as vLLM's users do to use the GPU otherwise.
func (v *vllm) stands(s *Source) {
	if v.metrics.from.Sleeps() {
		s.stands(event.EnginePaused, "the model sleeps until it is woken")
	} else {
		s.stands(event.EngineReady, "")
	}
}

func (v *vllm) look(ctx context.Context, s *Source) (*event.Report, error) {
	if !v.without {
		report, err := v.metrics.look(ctx, s)
		v.stands(s)
		if err == nil {
			v.load(ctx, s, report)
			return report, nil
		}
		refused := (*fetch.Status)(nil)
		if !errors.Is(err, gather.ErrUnknown) && !(errors.As(err, &refused) && refused.Code == http.StatusNotFound) {
			return nil, err
		}
		v.without = true
	}
	report := &event.Report{Interval: s.since()}
	from(report, "/metrics", "the server keeps none")
	requests, err := v.requests(ctx, s, report)
	if err != nil {
		return nil, err
	}
	report.Running = requests
	return report, nil
}

// requests asks for the number of requests that the HTTP server works on, waiting ones included; absent as long as it does not seem to count any.
func (v *vllm) requests(ctx context.Context, s *Source, report *event.Report) (event.Reading, error) {
	var load struct {
		Requests float64 `json:"server_load"`
	}
	v.asked, v.why = s.opt.Clock.Now(), ""
	err := s.client.JSON(ctx, "/load", &load)
	v.counts = v.counts || load.Requests > 0
	switch {
	case err != nil:
		v.refused(err)
	case !v.counts:
		v.why = notCounted
	}
	from(report, "/load", v.why)
	if v.why != "" {
		return event.Reading{}, err
	}
	return event.Told(max(load.Requests, 0)), nil
}

// notCounted is why a server's load is not shown: without that flag it is always 0.
const notCounted = "it has been 0 so far: the server counts with --enable-server-load-tracking"

// load adds the number of requests to what the metrics tell. That it is not told is no failure.
func (v *vllm) load(ctx context.Context, s *Source, report *event.Report) {
	if v.noLoad || v.why != "" && s.opt.Clock.Now()-v.asked < idleLoadEvery {
		from(report, "/load", v.why)
		return
	}
	if requests, err := v.requests(ctx, s, report); err == nil && requests.OK() {
		more(report, event.Number{Name: "server_load", Reading: requests})
	}
}

// refused takes in why the number of requests was not told, and whether it ever will be: a server that is overloaded or starts refuses for a time.
func (v *vllm) refused(err error) {
	v.why = "the server " + err.Error()
	if refused := (*fetch.Status)(nil); errors.As(err, &refused) {
		switch refused.Code {
		case http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusNotImplemented:
			v.noLoad, v.why = true, "the server has none"
		}
	}
}
