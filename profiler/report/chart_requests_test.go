package report

import (
	"slices"
	"strings"
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
)

// served returns a report of three requests in one slot: the second waits for the first, and the third runs after both.
func served() *Report {
	n := Measured
	request := func(id int, from, queue, prompt, decode float64) Request {
		q := Request{ID: event.RequestID(id + 1), Label: "novel", State: "finished", Enqueued: n(from), Generated: 3, TTFT: n(queue + prompt), E2EL: n(queue + prompt + decode), Decode: n(decode)}
		q.Parts = Parts{{"queue", n(queue)}, {"prompt", n(prompt)}, {"other", n(0)}}
		q.ITL = &Distribution{Count: 2, P50: n(decode / 2)}
		q.Tokens = []Token{{At: n(queue + prompt)}, {Index: 1, At: n(queue + prompt + decode/4), Gap: n(decode / 4)}, {Index: 2, At: n(queue + prompt + decode), Gap: n(decode * 3 / 4)}}
		return q
	}
	r := &Report{Configuration: map[string]string{"slo": "ttft=150ms"}}
	r.Requests = []Request{request(0, 0, 0, .1, .4), request(1, .1, .4, .1, .4), request(2, 1.5, 0, .1, .4)}
	r.Requests[1].Stalls = []Stall{{Index: 2, At: n(.9), Gap: n(.3), Cause: Cause{Text: "waiting\x1b[2J for a core"}}}
	return r
}

// TestTimelineChart checks where the boxes of requests lie.
func TestTimelineChart(t *testing.T) {
	c := timelineChart(served()) // 2 s on 1060 px
	var got []string
	for _, b := range c.Boxes {
		if b.W > 1 {
			got = append(got, b.Class)
		}
	}
	if words := strings.Join(got, " "); words != "prompt decode queue prompt decode stall prompt decode" {
		t.Errorf("boxes %q", words)
	}
	queue, stall := c.Boxes[2], c.Boxes[5]
	if queue.X != 10+.1*530 || queue.W < .4*530-1e-6 || queue.W > .4*530+1e-6 || queue.Y == c.Boxes[0].Y {
		t.Errorf("the second request waits at %+v, the first is at %+v", queue, c.Boxes[0])
	}
	if stall.Class != "stall" || stall.Y != queue.Y || strings.Contains(stall.Text, "\x1b") || !strings.Contains(stall.Text, "300 ms") {
		t.Errorf("stall %+v", stall)
	}
	if last := c.Boxes[len(c.Boxes)-1]; last.Y != c.Boxes[0].Y {
		t.Errorf("the third request is on a lane of its own: %+v", last)
	}
}

// TestChartsOfRequests checks the order of the slowest requests, and which request has its tokens coloured.
func TestChartsOfRequests(t *testing.T) {
	r := served()
	if c := slowestChart(r); c.Labels[0].Text != "#2 novel" || c.Labels[1].Text != "500 ms" {
		t.Errorf("slowest: %+v", c.Labels)
	}
	if c := tokensChart(r); len(c.Boxes) != 3 || !strings.Contains(c.Boxes[2].Text, "token 2: 300 ms") {
		t.Errorf("tokens: %+v", c.Boxes)
	}
	tokens := 0.
	for _, b := range seriesChart(r).Boxes {
		tokens += b.H
	}
	if c := seriesChart(r); len(c.Boxes) == 0 || tokens == 0 {
		t.Errorf("series: %+v", c.Boxes)
	}
	for _, c := range []chart{timelineChart(&Report{}), slowestChart(&Report{}), tokensChart(&Report{}), seriesChart(&Report{})} {
		if len(c.Boxes) > 0 {
			t.Errorf("a chart without requests: %+v", c)
		}
	}
}

// TestKeyNumbers checks the summary of the page, and that an absent number has no place in it.
func TestKeyNumbers(t *testing.T) {
	r := served()
	r.Latencies = []Latency{{Name: "ttft_s", Distribution: Distribution{Count: 3, P50: Measured(.1), P99: Measured(.5)}}}
	var got []string
	for _, k := range kpis(r) {
		got = append(got, k[0]+": "+k[1])
	}
	if words := strings.Join(got, ", "); words != "TTFT p50: 100 ms, TTFT target met: 67 %" {
		t.Errorf("key numbers %q", words)
	}
}

// TestWaitsSection checks that reports for people name who held up whom, the longest wait first.
func TestWaitsSection(t *testing.T) {
	r := served()
	by := r.Requests[0].ID
	r.Requests[1].Waits = []Wait{{Cause: "queue", Wait: Measured(.3), Request: &by}, {Cause: "unknown", Wait: Measured(.1)}}
	r.Requests[2].Waits = []Wait{{Cause: "unknown", Wait: Measured(9)}}
	doc := in(t, r.WriteMarkdown)
	if !strings.Contains(doc, `slot of \#1 300 ms, unexplained 100 ms`) || strings.Contains(doc, "9.00 s") {
		t.Error(doc)
	}
}

// TestMissesSection checks the sums by kind, and that the costliest request is the example.
func TestMissesSection(t *testing.T) {
	r := served() // 300 ms of prompts
	at := 130
	for i, lost := range []float64{.02, .07} {
		r.Requests[i].Miss = &CacheMiss{Why: "timestamp", Text: "a timestamp differs", Place: "messages[0].content", At: &at, With: 7, Tokens: 100, Lost: Measured(lost)}
	}
	r.Requests[2].Miss = &CacheMiss{Why: "none", Text: "the text is the same", With: 2, Tokens: 50}
	s := missesSection(r)
	want := [][]string{
		{"a timestamp differs", "#2, from #7: messages[0].content, character 130", "2", "200", "90.0 ms", "30 %"},
		{"the text is the same", "#3, from #2", "1", "50", "-", "-"},
	}
	if !slices.EqualFunc(s.rows, want, slices.Equal) {
		t.Errorf("%q", s.rows)
	}
}
