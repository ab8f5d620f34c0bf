package report

import (
	"fmt"
	"strings"
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
)

var requestInfo = event.Request{Label: "code"}

func textOf(t *testing.T, r *Report) string {
	t.Helper()
	var b strings.Builder
	if err := r.WriteText(&b); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestTextIsPlain(t *testing.T) {
	for i, c := range textOf(t, wholeRun().build(Meta{Version: "v\x1b1\u009b"})) {
		if (c < ' ' && c != '\n') || c > '~' {
			t.Errorf("character %q at %d", c, i)
		}
	}
}

func TestPlain(t *testing.T) {
	if got := plain("a → b ± 1 µs · é"); got != "a -> b +- 1 us - ?" {
		t.Errorf("%q", got)
	}
}

func TestTextHasWhatWasMeasured(t *testing.T) {
	got := textOf(t, wholeRun().build(Meta{Version: "v1", Partial: true}))
	for _, want := range []string{
		"llmtop v1 - engine native on CPU avx2, ready", "This report is partial: the run was interrupted, or its recording lacks parts.", "Dropped 3 token events",
		"finished 3, cancelled 1, failed 0, running 0, queued 1", "24 prompt (6 cached, 0 padding), 11 generated, in 2.",
		"TTFT of request 1: 59.0 ms (cold, model load included)", "TTFT of request 2: 19.0 ms (warm)",
		"<- dominant", "ITL         8        5.00 ms", "0      0 (75 %)", "disk read     bytes not permitted, calls not reported", "70.0 MB", "not reported",
		"400 tokens/s while tokens were generated", "10 of 100 cells in use", "GROUPS",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing from\n%s", want, got)
		}
	}
	if empty := textOf(t, newRun().build(Meta{})); !strings.Contains(empty, "No samples of the machine") {
		t.Errorf("text of a run without events:\n%s", empty)
	}
}

func TestTextListsOnlySomeRequests(t *testing.T) {
	r := newRun()
	for id := range event.RequestID(30) {
		r.emit(ms, event.Event{Kind: event.KindRequest, Req: id + 1, State: event.StateQueued})
	}
	if got := textOf(t, r.build(Meta{})); !strings.Contains(got, "The first 20 of 30.") {
		t.Errorf("text of 30 requests:\n%s", got)
	}
}

// TestReadingsHaveEachReasonOnce checks that absent readings are named, and that a common reason is not repeated.
func TestReadingsHaveEachReasonOnce(t *testing.T) {
	plain := func(v float64) string { return fmt.Sprint(v) }
	none, denied := event.Absent(event.NotReported), event.Absent(event.NotPermitted)
	for want, got := range map[string]string{
		"1, 2":                                   joinReadings([]named{{"a", Measured(1)}, {"b", Measured(2)}}, plain, plain),
		"1, b not reported":                      joinReadings([]named{{"a", Measured(1)}, {"b", none}}, plain, plain),
		"a not permitted, b not reported":        joinReadings([]named{{"a", denied}, {"b", none}}, plain, plain),
		"not reported":                           joinReadings([]named{{"a", none}, {"b", none}}, plain, plain),
		"not permitted":                          withShare(denied, plain, none),
		"1 of 2":                                 usedOfTotal(Measured(1), Measured(2), plain),
		"not reported (total 2)":                 usedOfTotal(none, Measured(2), plain),
		"not permitted; 1 request; 0 requests; ": format(denied, plain) + "; " + metric.Plural(1, "request") + "; " + metric.Plural(0, "request") + "; ",
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

// TestDecodeRateIsNamed checks that the rate of a request is headed by its name: it is not TPS, which includes TTFT.
func TestDecodeRateIsNamed(t *testing.T) {
	s := requestsSection("Requests", wholeRun().build(Meta{}).Requests)
	if last := s.header[len(s.header)-1]; last != "decode tokens/s" {
		t.Errorf("the decode rate of requests is headed %q", last)
	}
}
