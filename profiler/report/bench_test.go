package report

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/store"
)

// benched returns a report of four requests in two runs of 2 s each; the first request is cold.
func benched() *Report {
	r := wholeRun().build(Meta{Version: "1", Configuration: map[string]string{"parallel": "2"}})
	r.Requests = nil
	for i, ttft := range []float64{0.9, 0.1, 0.2, 0.3} {
		r.Requests = append(r.Requests, Request{
			ID: event.RequestID(i + 1), State: "finished", Cold: i == 0, Prompt: Measured(10), Cached: Measured(0), Generated: 3, TTFT: Measured(ttft), TPOT: Measured(0.01),
			Tokens:  []Token{{Index: 0, Top: []Candidate{}}, {Index: 1, N: 2, Gap: Measured(0.01), Top: []Candidate{}}},
			Layers:  []Layer{},
			Stalls:  []Stall{},
			E2EL:    Measured(ttft + 0.02),
			Prefill: Measured(ttft),
			Parts:   Parts{{"prompt", Measured(ttft * 0.75)}, {"other", Measured(ttft * 0.25)}},
		})
	}
	r.Requests = append(r.Requests, Request{ID: 9, State: "failed", Tokens: []Token{}, Layers: []Layer{}, Stalls: []Stall{}})
	r.AddBench([]Point{
		{Name: "2 at a time", Concurrency: 2, Runs: []Run{
			{Requests: []event.RequestID{1, 2}, Started: Measured(0), Duration: Measured(2)},
			{Requests: []event.RequestID{3, 4, 9}, Started: Measured(2), Duration: Measured(2)},
		}},
		{Name: "5/s", Rate: Measured(5), Runs: []Run{{Requests: []event.RequestID{3}, Duration: Measured(1), SendDelays: []float64{0.5}}}},
	}, 1, append([]Targets{{"ttft=200ms", store.Targets{TTFT: 200 * time.Millisecond}}}, Profiles...))
	return r
}

func TestBench(t *testing.T) {
	p := benched().Bench.Points[0]
	for name, c := range map[string]struct{ got, want float64 }{
		"warm TTFT":         {p.TTFT.P50.V, 0.2},
		"warm requests":     {float64(p.TTFT.Count), 3},
		"cold TTFT":         {p.ColdTTFT.Mean.V, 0.9},
		"gaps":              {float64(p.ITL.Count), 8},
		"output":            {p.Output.Mean.V, 3},
		"total":             {p.Total.Mean.V, 13},
		"finished":          {p.Finished.Mean.V, 1},
		"goodput":           {p.Goodput.Mean.V, 0.5},
		"deviation of TTFT": {p.TTFT.StdDev.V, 0.1},
		"p90 between two":   {p.TTFT.P90.V, 0.28},
		"half of 95 % of 3": {p.TTFT.High.V - p.TTFT.Mean.V, 4.302652729911275 * 0.1 / math.Sqrt(3)},
	} {
		if math.Abs(c.got-c.want) > 1e-9 {
			t.Errorf("%s: %v, want %v", name, c.got, c.want)
		}
	}
	if want := []string{"p90", "p95", "p99"}; !slices.Equal(p.TTFT.TooFew, want) {
		t.Errorf("too few for %v, want %v", p.TTFT.TooFew, want)
	}
	if p.SendDelay != nil || p.STIL != nil {
		t.Error("numbers that were not measured are present")
	}
}

func TestBenchIsValidAndReadable(t *testing.T) {
	r := benched()
	if err := schema(t).Validate(decoded(t, r)); err != nil {
		t.Error(err)
	}
	text := textOf(t, r)
	for _, want := range []string{"2 at a time", "200 ms", "5/s: requests were sent up to 500 ms late", "1 request failed", "298 ms?"} {
		if !strings.Contains(text, want) {
			t.Errorf("the text lacks %q:\n%s", want, text)
		}
	}
}

// TestColdRequestsAreApart checks that requests for which the model was loaded again are in their own point and list, and
// not among those of the session.
func TestColdRequestsAreApart(t *testing.T) {
	r := benched()
	session := in(t, r.WriteText)
	cold, text := r.Requests[0], "secret"
	cold.ID, cold.Label, cold.Enqueued, cold.TTFT, cold.Text = 10, "again", Measured(100), Measured(0.7), &text
	r.Bench.Cold = []Request{cold}
	r.AddPoint(Point{Name: "again, cold", Concurrency: 1, Runs: []Run{{Requests: []event.RequestID{10}, Started: Measured(99), Duration: Measured(2)}}}, Profiles)
	if p := r.Bench.Points[2]; p.ColdTTFT == nil || p.ColdTTFT.Mean.V != 0.7 || p.Tokens.Requests != 1 {
		t.Errorf("the cold point has %+v of %+v", p.ColdTTFT, p.Tokens)
	}
	if err := schema(t).Validate(decoded(t, r)); err != nil {
		t.Error(err)
	}
	r, err := Read(strings.NewReader(in(t, r.WriteJSON)))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range allCharts(r) {
		for _, box := range c.Boxes {
			if strings.HasPrefix(box.Text, "#10") {
				t.Errorf("%s has the cold request: %s", c.Title, box.Text)
			}
		}
	}
	doc := in(t, r.WriteText)
	for _, title := range []string{"REQUESTS\n", "LATENCY OF ALL REQUESTS OF THE SESSION"} {
		section := func(doc string) string {
			_, after, _ := strings.Cut(doc, "\n"+title)
			section, _, _ := strings.Cut(after, "\n\n")
			return section
		}
		if was, is := section(session), section(doc); was == "" || was != is {
			t.Errorf("%s without the cold request:\n%s\nwith it:\n%s", title, was, is)
		}
	}
	_, list, ok := strings.Cut(doc, "\nCOLD REQUESTS\n")
	if !ok || !strings.Contains(list, "10  finished  again") {
		t.Errorf("the cold request is not listed:\n%s", doc)
	}
	if n := len(strings.Split(strings.TrimSpace(in(t, r.WriteJSONL)), "\n")); n != len(r.Requests)+1 {
		t.Errorf("%d lines for %d requests and a cold one", n, len(r.Requests))
	}
	if r.DropText(); strings.Contains(in(t, r.WriteJSON), text) {
		t.Error("the cold request has its text still")
	}
}

// TestTimePerTokenIsMeasured checks that ms/token is the mean TPOT, not the inverse of a mean rate.
func TestTimePerTokenIsMeasured(t *testing.T) {
	r := benched()
	for i, tpot := range []float64{0.001, 0.002, 0.003, 0.01} {
		r.Requests[i].TPOT, r.Requests[i].DecodeRate, r.Requests[i].PrefillRate = Measured(tpot), Measured(1/tpot), Measured(1/tpot)
	}
	p := Point{Name: "1 at a time", Runs: r.Bench.Points[0].Runs}
	p.describe(requestsByID(r), Profiles)
	var times []string
	for _, words := range p.tokenWords() {
		if strings.Contains(words, "ms/token") {
			times = append(times, words)
		}
	}
	if want := []string{"TPOT: 4 ms/token."}; !slices.Equal(times, want) {
		t.Errorf("times per token %q, want %q", times, want)
	}
}

// TestMeanInterval checks that the interval contains the true mean about 95 % of the time, also if runs differ.
func TestMeanInterval(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, runs := range []int{1, 3, 6} {
		held := 0
		for range 1000 {
			var s samples
			for run := range runs {
				drift := 0.0
				if runs > 1 {
					drift = rng.NormFloat64()
				}
				for range 10 {
					s.add(run, Measured(drift+rng.NormFloat64()))
				}
			}
			if d := s.describe(); d.Low.V <= 0 && d.High.V >= 0 {
				held++
			}
		}
		if held < 930 || held > 970 {
			t.Errorf("%d runs: %d of 1000 intervals contain the mean", runs, held)
		}
	}
}

func ExamplePoint() {
	var s samples
	for i := range 100 {
		s.add(0, Measured(float64(i+1)))
	}
	d := s.describe()
	fmt.Println(d.P50.V, d.P99.V, d.TooFew)
	// Output: 50.5 99.01 []
}
