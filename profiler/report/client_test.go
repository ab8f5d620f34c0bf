package report

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/llmtop/llmtop/profiler/capacity"
	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/store"
)

// watched returns the benchmark of benched with a client.
func watched(c Client) *Report {
	r := benched()
	r.AddClient(c)
	return r
}

// idle returns a client that was not a bottleneck.
func idle() Client {
	return Client{
		CPU: Measured(0.1), Cores: Measured(2), MachineCPU: Measured(0.5), ReadLag: Describe(slices.Repeat([]float64{0.0001}, 200)), GCPause: Measured(0),
	}
}

func TestClientBottlenecks(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Client)
		want   string
	}{
		"CPU":              {func(c *Client) { c.CPU = Measured(1.7) }, "it used 1.70 of 2 available cores"},
		"shared machine":   {func(c *Client) { c.CPU, c.MachineCPU = Measured(0.3), Measured(0.97) }, "it used 30 % of a core while the machine was 97 % busy"},
		"lag against TTFT": {func(c *Client) { c.ReadLag = Describe(slices.Repeat([]float64{0.012}, 100)) }, "read lag was 12.0 ms (p99), 6.0 % of the shortest median TTFT; read lag was 12.0 ms (p99), 120 % of the shortest median TPOT"},
		"lag against TPOT": {func(c *Client) { c.ReadLag = Describe(slices.Repeat([]float64{0.002}, 100)) }, "read lag was 2.00 ms (p99), 20 % of the shortest median TPOT"},
		"other processes":  {func(c *Client) { c.MachineCPU = Measured(1) }, ""},
		"no readings":      {func(c *Client) { *c = Client{} }, ""},
		"no bottleneck":    {func(*Client) {}, ""},
	} {
		client := idle()
		c.change(&client)
		r := watched(client)
		got := strings.Join(r.Bench.Client.Limits, "; ")
		late := "5/s: requests were sent 500 ms late (p50), 250 % of the median TTFT" // in the benchmark itself
		if want := strings.TrimPrefix(c.want+"; "+late, "; "); !strings.HasPrefix(got, strings.TrimSuffix(want, late)) || !strings.HasSuffix(got, late) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
		if err := schema(t).Validate(decoded(t, r)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestClientIsReported(t *testing.T) {
	r := benched()
	r.Bench.Points = r.Bench.Points[:1] // without the late one
	r.AddClient(idle())
	text := textOf(t, r)
	for _, want := range []string{"CLIENT", "10 % of a core (2 available); machine 50 %", "100 us (p50)", "bottleneck  no"} {
		if !strings.Contains(text, want) {
			t.Errorf("the text lacks %q:\n%s", want, text)
		}
	}
	busy := idle()
	busy.CPU, busy.UncountedResponses = Measured(2), 3
	r.AddClient(busy)
	text = textOf(t, r)
	for _, want := range []string{"YES: it used 2.00 of 2 available cores", "did not count the tokens of 3 responses"} {
		if !strings.Contains(text, want) {
			t.Errorf("the text lacks %q:\n%s", want, text)
		}
	}
}

// lateBy returns a benchmark at 10/s whose requests were sent late by these delays, of which the queue of the engine held
// some, and waited for their connections.
func lateBy(delays, held, connect []float64) *Report {
	r := &Report{SchemaVersion: SchemaVersion}
	run := Run{Duration: Measured(float64(len(delays)) / 10), SendDelays: delays, Held: held}
	for i := range delays {
		q := Request{ID: event.RequestID(i + 1), State: "finished", Generated: 3, TTFT: Measured(0.2), TPOT: Measured(0.01), E2EL: Measured(0.22)}
		if connect != nil {
			q.Connect = Measured(connect[i])
		}
		r.Requests, run.Requests = append(r.Requests, q), append(run.Requests, q.ID)
	}
	r.AddBench([]Point{{Name: "10/s", Rate: Measured(10), Runs: []Run{run}}}, 0, Profiles)
	r.AddClient(idle())
	return r
}

// TestLateRequests checks that llmtop is blamed for what it delayed itself: a delay that grows, and one in which it stood
// still, but not for a small one, a full queue, or waits for connections.
func TestLateRequests(t *testing.T) {
	steady, growing := slices.Repeat([]float64{0.003}, 100), make([]float64, 100)
	stalled := slices.Clone(steady)
	for i := range growing {
		growing[i] = 0.01 * float64(i)
	}
	for i := range 20 {
		stalled[40+i] = 2 - 0.1*float64(i)
	}
	for name, c := range map[string]struct {
		delays, held, connect []float64
		want                  string
	}{
		"jitter":      {steady, nil, nil, ""},
		"slow":        {growing, nil, nil, "10/s: it sent 91 % of the rate"},
		"stood still": {stalled, nil, nil, "10/s: it sent requests up to 2.00 s late"},
		"full queue":  {growing, growing, nil, ""},
		"connections": {steady, nil, stalled, ""},
	} {
		r := lateBy(c.delays, c.held, c.connect)
		if got := strings.Join(r.Bench.Client.Limits, "; "); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestWaitsForConnections checks that the wait for a connection is a number of its own, and in that from the planned time,
// and that the text warns of it.
func TestWaitsForConnections(t *testing.T) {
	r := lateBy([]float64{0, 0.5, 0}, nil, []float64{0.001, 4, 0.001})
	p := &r.Bench.Points[0]
	if p.Connect == nil || p.Connect.Max.V != 4 || p.Connect.Count != 3 || p.SendDelay.Max.V != 4.5 {
		t.Errorf("connections %+v, late %+v", p.Connect, p.SendDelay)
	}
	text := textOf(t, r)
	for _, want := range []string{"10/s: requests waited up to 4.00 s for a connection (p50 1.00 ms)", "10/s: requests were sent up to 4.50 s late"} {
		if !strings.Contains(text, want) {
			t.Errorf("the text lacks %q:\n%s", want, text)
		}
	}
	if p := &lateBy([]float64{0}, nil, nil).Bench.Points[0]; p.Connect != nil {
		t.Errorf("without HTTP: %+v", p.Connect)
	}
	text = textOf(t, lateBy([]float64{0}, nil, []float64{0.0015}))
	if strings.Contains(text, "for a connection") {
		t.Errorf("the text warns of 1.5 ms of 200:\n%s", text)
	}
}

// TestClientStoodStill checks that a stall is seen among many messages that were read at once.
func TestClientStoodStill(t *testing.T) {
	client := idle()
	client.ReadLag = Describe(append(slices.Repeat([]float64{0.0001}, 100_000), 2))
	r := benched()
	r.Bench.Points = r.Bench.Points[:1]
	r.AddClient(client)
	if got := strings.Join(r.Bench.Client.Limits, "; "); got != "it stood still for up to 2.00 s: the longest TTFT and gaps may be its own" {
		t.Errorf("%q", got)
	}
}

// TestTargetsFromConnection checks that a search counts the wait for a connection.
func TestTargetsFromConnection(t *testing.T) {
	targets := Targets{"", store.Targets{TTFT: 300 * time.Millisecond, E2EL: 500 * time.Millisecond}}
	for wait, want := range map[float64]bool{0: true, 0.05: true, 0.2: false, 4: false} {
		q := Request{State: "finished", Generated: 3, TTFT: Measured(0.2), TPOT: Measured(0.01), E2EL: Measured(0.22), Connect: Measured(wait)}
		if got := targets.MetWithConnection(&q); got != want || q.TTFT.V != 0.2 {
			t.Errorf("after a wait of %v s: %v, TTFT %v", wait, got, q.TTFT.V)
		}
	}
	if targets.MetWithConnection(nil) {
		t.Error("a request without data met the targets")
	}
}

// TestSentLate checks that jitter is no reason to doubt the rate of a run, and that a delay that grows or a stall is.
func TestSentLate(t *testing.T) {
	jitter, growing, stalled := slices.Repeat([]float64{0.0004}, 1400), make([]float64, 1400), make([]float64, 1400)
	for i := range growing {
		growing[i] = float64(i) / 282 * 0.06
	}
	for i := range 20 {
		stalled[700+i] = 2
	}
	for name, c := range map[string]struct {
		delays []float64
		late   bool
	}{"jitter": {jitter, false}, "growing": {growing, true}, "stalled": {stalled, true}} {
		p := Point{Rate: Measured(282), Runs: []Run{{SendDelays: c.delays}}}
		if p.SentLate() != c.late {
			t.Errorf("%s: late %v", name, p.SentLate())
		}
	}
}

// TestCapacityWords checks what the text claims about the capacity.
func TestCapacityWords(t *testing.T) {
	rate, low, above := 24.9, 22.6, 30.1
	trials := []capacity.Trial{
		{Rate: rate, Requests: 300, Met: 297, Share: 0.99, Low: 0.96, High: 1, Sent: 24.8, Goodput: 24.6, Verdict: capacity.Holds},
		{Rate: above, Requests: 300, Met: 200, Failed: 100, Share: 0.67, Low: 0.6, High: 0.7, Sent: 30, Goodput: 20, Verdict: capacity.Fails},
	}
	for want, c := range map[string]capacity.Result{
		"Capacity: 24.9 requests/s (90 % confidence: 22.6 to 30.1). There 99 % of 300 requests met ttft=1s.": {Rate: &rate, Low: &low, Above: &above, Complete: true},
		"Capacity: 24.9 requests/s (90 % confidence: at least 22.6). There":                                  {Rate: &rate, Low: &low},
		"No rate was found that fails: the capacity may be higher.":                                          {Rate: &rate, Low: &low},
		"llmtop could not send faster: the capacity may be higher.":                                          {Rate: &rate, Low: &low, Client: true, Complete: true},
		"Capacity: 24.9 requests/s, not confirmed by longer runs":                                            {Rate: &rate},
		"No rate was found at which 95 % of the requests meet ttft=1s.":                                      {Complete: true},
		"30.1             30    300       67 %     60 % to 70 %   20       ####":                             {Rate: &rate, Low: &low, Above: &above, Complete: true},
		"fails: 100 requests failed":                                                                         {Rate: &rate, Low: &low, Above: &above, Complete: true},
	} {
		c.Required, c.Trials = capacity.Required, trials
		r := benched()
		r.Bench.Targets, r.Bench.Capacity = "ttft=1s", &c
		if err := schema(t).Validate(decoded(t, r)); err != nil {
			t.Error(err)
		}
		if text := strings.Join(strings.Fields(textOf(t, r)), " "); !strings.Contains(text, strings.Join(strings.Fields(want), " ")) {
			t.Errorf("the text lacks %q:\n%s", want, text)
		}
	}
}
