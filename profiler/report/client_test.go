package report

import (
	"slices"
	"strings"
	"testing"
)

// watched is the benchmark of benched with a client.
func watched(c Client) *Report {
	r := benched()
	r.AddClient(c)
	return r
}

// idle is a client that was in nobody's way.
func idle() Client {
	return Client{
		CPU: Measured(0.1), Cores: Measured(2), MachineCPU: Measured(0.5), ReadLag: Describe(slices.Repeat([]float64{0.0001}, 200)), GCPause: Measured(0),
	}
}

func TestClientIsJudged(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*Client)
		want   string
	}{
		"CPU":                {func(c *Client) { c.CPU = Measured(1.7) }, "it used 1.70 of the 2 cores that it may use"},
		"shared machine":     {func(c *Client) { c.CPU, c.MachineCPU = Measured(0.3), Measured(0.97) }, "it used 0.30 cores of a machine that was busy to 97 %"},
		"lag against TTFT":   {func(c *Client) { c.ReadLag = Describe(slices.Repeat([]float64{0.012}, 100)) }, "bytes waited up to 12.0 ms to be read (p99), 6.0 % of the shortest median TTFT; bytes waited up to 12.0 ms to be read (p99), 120 % of the shortest median TPOT"},
		"lag against TPOT":   {func(c *Client) { c.ReadLag = Describe(slices.Repeat([]float64{0.002}, 100)) }, "bytes waited up to 2.00 ms to be read (p99), 20 % of the shortest median TPOT"},
		"an engine's own":    {func(c *Client) { c.MachineCPU = Measured(1) }, ""},
		"what is not known":  {func(c *Client) { *c = Client{} }, ""},
		"nothing in the way": {func(*Client) {}, ""},
	} {
		client := idle()
		c.change(&client)
		r := watched(client)
		got := strings.Join(r.Bench.Client.Limits, "; ")
		late := "5/s: requests were sent 500 ms after their time (p50), 250 % of the median TTFT" // in the benchmark itself
		if want := strings.TrimPrefix(c.want+"; "+late, "; "); !strings.HasPrefix(got, strings.TrimSuffix(want, late)) || !strings.HasSuffix(got, late) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
		if err := schema(t).Validate(decoded(t, r)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestClientIsTold(t *testing.T) {
	r := benched()
	r.Bench.Points = r.Bench.Points[:1] // without the late one
	r.AddClient(idle())
	text := textOf(t, r)
	for _, want := range []string{"CLIENT", "0.10 of 2 cores; machine 50 %", "100 us (p50)", "a bottleneck      no"} {
		if !strings.Contains(text, want) {
			t.Errorf("the text lacks %q:\n%s", want, text)
		}
	}
	busy := idle()
	busy.CPU, busy.Untold = Measured(2), 3
	r.AddClient(busy)
	text = textOf(t, r)
	for _, want := range []string{"YES: it used 2.00 of the 2 cores", "did not count the tokens of 3 answers"} {
		if !strings.Contains(text, want) {
			t.Errorf("the text lacks %q:\n%s", want, text)
		}
	}
}

func TestCompatStandsBesideOurs(t *testing.T) {
	r := benched()
	p := &r.Bench.Points[0]
	if n := p.Of("ttft_s", "p50", 1000); n.V != 200 || !n.OK() {
		t.Errorf("median TTFT %v", n)
	}
	for _, name := range [][2]string{{"ttft_s", "p75"}, {"nothing", "mean"}, {"stil_s", "mean"}} {
		if n := p.Of(name[0], name[1], 1); n.OK() {
			t.Errorf("%v is %v", name, n)
		}
	}
	r.Bench.Compat = &Compat{Tool: "vllm bench serve", Points: []CompatPoint{{Name: p.Name, Values: []CompatValue{
		{"Mean TTFT (ms)", Measured(123.456), p.Of("ttft_s", "mean", 1000)}, {"Peak concurrent requests", Measured(2), Number{}},
	}}}}
	if err := schema(t).Validate(decoded(t, r)); err != nil {
		t.Error(err)
	}
	text := textOf(t, r)
	for _, want := range []string{"2 AT A TIME, AS VLLM BENCH SERVE COUNTS", "Mean TTFT (ms)            123.46   200.00", "Peak concurrent requests  2.00     -"} {
		if !strings.Contains(text, want) {
			t.Errorf("the text lacks %q:\n%s", want, text)
		}
	}
}
