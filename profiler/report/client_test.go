package report

import (
	"slices"
	"strings"
	"testing"
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
		"shared machine":   {func(c *Client) { c.CPU, c.MachineCPU = Measured(0.3), Measured(0.97) }, "it used 0.300 cores while the machine was 97 % busy"},
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
	for _, want := range []string{"CLIENT", "0.100 of 2 cores; machine 50 %", "100 us (p50)", "bottleneck  no"} {
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

func TestCompatIsShownWithOurs(t *testing.T) {
	r := benched()
	p := &r.Bench.Points[0]
	if n := p.Statistic("ttft_s", "p50", 1000); n.V != 200 || !n.OK() {
		t.Errorf("median TTFT %v", n)
	}
	for _, name := range [][2]string{{"ttft_s", "p75"}, {"nothing", "mean"}, {"stil_s", "mean"}} {
		if n := p.Statistic(name[0], name[1], 1); n.OK() {
			t.Errorf("%v is %v", name, n)
		}
	}
	r.Bench.Compat = &Compat{Tool: "vllm bench serve", Points: []CompatPoint{{Name: p.Name, Values: []CompatValue{
		{"Mean TTFT (ms)", Measured(123.456), p.Statistic("ttft_s", "mean", 1000)}, {"Peak concurrent requests", Measured(2), Number{}},
	}}}}
	if err := schema(t).Validate(decoded(t, r)); err != nil {
		t.Error(err)
	}
	text := textOf(t, r)
	for _, want := range []string{"2 AT A TIME, AS MEASURED BY VLLM BENCH SERVE", "Mean TTFT (ms)            123.46  200.00", "Peak concurrent requests  2.00    -"} {
		if !strings.Contains(text, want) {
			t.Errorf("the text lacks %q:\n%s", want, text)
		}
	}
}
