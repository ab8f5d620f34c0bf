package gather_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/source/scrape/engine"
	"github.com/llmtop/llmtop/runtime/source/scrape/gather"
)

const second = int64(1e9)

// sample returns a metrics text of testdata.
func sample(t testing.TB, name string) string {
	t.Helper()
	text, err := os.ReadFile("testdata/" + name + ".txt")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

var line = regexp.MustCompile(`(?m)^([a-zA-Z0-9_:]+)(\{.*\})? (\S+)$`)

// mistypedCounters are counters that the engine declares as gauges.
var mistypedCounters = regexp.MustCompile(`^lmdeploy:num_requests_(succeeded|failed)$`)

// doubled returns a text with all counters and histograms doubled, as after the same work again.
func doubled(text string) string {
	return line.ReplaceAllStringFunc(text, func(l string) string {
		m := line.FindStringSubmatch(l)
		base := regexp.MustCompile(`_(bucket|sum|count)$`).ReplaceAllString(m[1], "")
		if !strings.Contains(text, "# TYPE "+base+" histogram\n") && !strings.Contains(text, "# TYPE "+m[1]+" counter\n") && !mistypedCounters.MatchString(m[1]) {
			return l
		}
		v, err := strconv.ParseFloat(m[3], 64)
		if err != nil {
			return l
		}
		return m[1] + m[2] + " " + strconv.FormatFloat(2*v, 'g', -1, 64)
	})
}

func newGatherer(k engine.Kind) *gather.Gatherer { return gather.New(engine.Of(k).Metrics) }

func read(t *testing.T, g *gather.Gatherer, text string) {
	t.Helper()
	if err := g.Read(strings.NewReader(text)); err != nil {
		t.Fatal(err)
	}
}

// describe lists the readings of a report, one per line, without those that are not reported.
func describe(p *event.Aggregates) string {
	var b strings.Builder
	for _, n := range []event.NamedReading{
		{Name: "running", Reading: p.Running},
		{Name: "waiting", Reading: p.Waiting},
		{Name: "decode", Reading: p.Decode},
		{Name: "prefill", Reading: p.Prefill},
		{Name: "kv", Reading: p.KVUsage},
		{Name: "used", Reading: p.KVUsed},
		{Name: "total", Reading: p.KVTotal},
		{Name: "hits", Reading: p.CacheHits},
		{Name: "finished", Reading: p.Finished},
		{Name: "failed", Reading: p.Failed},
		{Name: "cancelled", Reading: p.Cancelled},
		{Name: "in", Reading: p.Prompt},
		{Name: "cached", Reading: p.Cached},
		{Name: "out", Reading: p.Generated},
	} {
		if n.Origin != event.NotReported {
			fmt.Fprintf(&b, "%s %.4g %v\n", n.Name, n.V, n.Origin)
		}
	}
	for _, t := range p.Histograms {
		fmt.Fprintf(&b, "%s n=%d mean=%.4gms %d bounds\n", t.Name, t.Count, float64(t.Sum)/1e6/math.Max(float64(t.Count), 1), len(t.Bounds))
	}
	for _, n := range p.More {
		fmt.Fprintf(&b, "%s %.4g\n", n.Name, n.V)
	}
	for _, n := range p.Counts {
		fmt.Fprintf(&b, "%s +%.4g\n", n.Name, n.V)
	}
	for _, n := range p.Ratios {
		fmt.Fprintf(&b, "%s %.4g/%.4g\n", n.Name, n.Part.V, n.Whole.V)
	}
	for _, l := range p.ExpertRanks {
		fmt.Fprintf(&b, "L%d %d\n", l.Layer, l.Picks)
	}
	return b.String()
}

func TestReportsOfEachEngine(t *testing.T) {
	for _, c := range []struct {
		file string
		kind engine.Kind
		want string
	}{
		{"vllm", engine.VLLM, `running 7 reported
waiting 3 reported
decode 1.024e+04 derived
prefill 2.551e+04 derived
kv 0.4271 reported
used 1.866e+05 derived
total 4.37e+05 reported
hits 0.4407 derived
finished 127 derived
failed 0 derived
cancelled 1 derived
in 9.123e+04 derived
cached 4.021e+04 derived
out 2.048e+04 derived
ttft n=128 mean=211ms 22 bounds
itl n=2000 mean=20.96ms 19 bounds
tpot n=128 mean=20.17ms 19 bounds
e2el n=128 mean=3382ms 21 bounds
queue n=128 mean=32.3ms 21 bounds
prefill n=128 mean=177.3ms 21 bounds
decode n=128 mean=2826ms 21 bounds
inference n=128 mean=2866ms 21 bounds
waiting_capacity 2
waiting_deferred 1
finished_length +9
finished_repetition +0
finished_stop +118
preemptions +2
accepted_draft_1_share 4310/5210
accepted_draft_2_share 3602/5210
accepted_draft_3_share 3030/5210
accepted_draft_length 1.094e+04/5210
accepted_draft_share 1.094e+04/1.563e+04
cache_hits_share 4.021e+04/9.123e+04
generated_tokens_per_request 1.942e+04/128
gpu_tier_hits_share 4.021e+04/9.123e+04
prompt_tokens_per_request 1.065e+05/128
`},
		{"sglang", engine.SGLang, `running 6 reported
waiting 2 reported
decode 1.024e+04 derived
prefill 2.551e+04 derived
kv 0.41 reported
used 1.679e+05 reported
total 4.096e+05 reported
hits 0.4407 derived
finished 128 derived
in 9.123e+04 derived
cached 4.021e+04 derived
out 2.048e+04 derived
ttft n=128 mean=211.2ms 18 bounds
itl n=2000 mean=14.03ms 23 bounds
e2el n=128 mean=3126ms 22 bounds
queue n=120 mean=22.41ms 14 bounds
prefill n=120 mean=176.7ms 10 bounds
accepted_draft_length 2.71
accepted_draft_share 0.57
forward_occupancy_share 0.934
kv_evictable_tokens 2.662e+04
utilization_share 0.62
cache_hits_share 4.021e+04/9.123e+04
gpu_tier_hits_share 4.021e+04/9.123e+04
`},
		{"llamacpp", engine.Llama, `running 2 reported
waiting 1 reported
decode 2560 derived
prefill 9171 derived
hits 0.3321 derived
in 2.746e+04 derived
cached 9120 derived
out 5120 derived
per_token n=5120 mean=25.66ms 0 bounds
busy_slots_per_pass 1.78
accepted_draft_1_share 690/800
accepted_draft_2_share 570/800
accepted_draft_3_share 450/800
accepted_draft_length 1710/800
accepted_draft_share 1710/2400
cache_hits_share 9120/2.746e+04
prompt_work_tokens_per_s 1.834e+04/14.22
`},
		{"llamacpp_old", engine.Llama, `running 0 reported
waiting 0 reported
decode 128 derived
prefill 256 derived
kv 0.19 reported
used 768 reported
out 256 derived
per_token n=256 mean=25.82ms 0 bounds
busy_slots_per_pass 2
prompt_work_tokens_per_s 512/1.204
`},
		{"tgi", engine.TGI, `running 5 reported
waiting 1 reported
decode 5500 derived
finished 137 derived
failed 6 derived
in 5.2e+04 derived
out 1.1e+04 derived
time_per_token n=137 mean=22.11ms 4 bounds
e2el n=137 mean=2649ms 4 bounds
queue n=137 mean=19.06ms 4 bounds
inference n=137 mean=2600ms 1 bounds
batch_prefill n=300 mean=124.9ms 2 bounds
batch_decode n=300 mean=20.67ms 2 bounds
prompt_tokens_per_s 2.6e+04
generated_tokens_per_request 1.1e+04/137
prompt_tokens_per_request 5.2e+04/137
`},
		{"tensorrt", engine.TensorRT, `running 3 reported
waiting 0 reported
decode 2050 derived
kv 0.12 reported
used 3.888e+05 derived
total 3.24e+06 derived
hits 0.3 reported
finished 12 derived
in 9000 derived
out 4100 derived
ttft n=12 mean=236ms 22 bounds
tpot n=12 mean=14.55ms 19 bounds
prompt_tokens_per_s 4500
finished_stop +12
`},
		{"tensorrt_ends", engine.TensorRT, `running 3 reported
decode 2050 derived
prefill 2500 derived
hits 0.4444 derived
finished 10 derived
failed 1 derived
cancelled 3 derived
in 9000 derived
cached 4000 derived
out 4100 derived
finished_length +2
finished_stop +8
http_4xx +2
http_5xx +1
cache_hits_share 4000/9000
`},
		{"vllm_caches", engine.VLLM, `running 1 reported
external_cache_hits_share 200/800
multimodal_cache_hits_share 4/10
`},
		{"lmdeploy", engine.LMDeploy, `running 9 reported
waiting 2 reported
decode 6400 derived
kv 0.25 reported
hits 0.5 reported
finished 64 derived
failed 1 derived
in 3.2e+04 derived
out 1.28e+04 derived
ttft n=64 mean=250ms 13 bounds
itl n=12736 mean=20ms 6 bounds
tpot n=64 mean=20ms 6 bounds
e2el n=64 mean=4000ms 9 bounds
queue n=64 mean=50ms 9 bounds
prefill n=64 mean=200ms 9 bounds
decode n=64 mean=3750ms 9 bounds
inference n=64 mean=3950ms 9 bounds
prompt_tokens_per_s 1.6e+04
`},
		{"triton", engine.Triton, `running 5 reported
waiting 4 reported
kv 0.25 reported
used 9.6e+04 derived
total 3.84e+05 derived
finished 90 derived
failed 1 derived
cancelled 2 derived
`},
		{"dynamo", engine.Dynamo, `running 5 derived
waiting 2 reported
finished 128 derived
ttft n=128 mean=222ms 8 bounds
itl n=500 mean=18.74ms 5 bounds
`},
	} {
		g, text := newGatherer(c.kind), sample(t, c.file)
		read(t, g, text)
		if first := g.Report(0); first.Interval != 0 || first.Generated.OK() || first.Decode.Origin == event.Derived || slices.ContainsFunc(first.Histograms, func(t event.Histogram) bool { return t.Count > 0 }) {
			t.Errorf("%s: the first report has increases: %s", c.file, describe(first))
		}
		read(t, g, doubled(text))
		if got := describe(g.Report(2 * second)); got != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", c.file, got, c.want)
		}
		read(t, g, doubled(text))
		if idle := g.Report(second); idle.Generated.V != 0 || g.Restarts != 0 {
			t.Errorf("%s: without work %s, %d restarts", c.file, describe(idle), g.Restarts)
		}
	}
}

func TestRestart(t *testing.T) {
	g, text := newGatherer(engine.VLLM), sample(t, "vllm")
	read(t, g, doubled(text))
	g.Report(0)
	read(t, g, text)
	p := g.Report(second)
	if g.Restarts != 1 || p.Generated.V != 20480 || p.Histograms[0].Count != 128 {
		t.Errorf("%d restarts, %s", g.Restarts, describe(p))
	}
	const began = "process_start_time_seconds %d\nvllm:generation_tokens_total 5\n"
	g = newGatherer(engine.VLLM)
	read(t, g, fmt.Sprintf(began, 1000))
	g.Report(0)
	read(t, g, strings.ReplaceAll(fmt.Sprintf(began, 2000), " 5", " 7"))
	if p := g.Report(second); g.Restarts != 1 || p.Generated.V != 7 {
		t.Errorf("%d restarts of a process whose counters passed the previous ones, %v tokens, want 7", g.Restarts, p.Generated.V)
	}
}

func TestSeriesComeAndGo(t *testing.T) {
	const series = "vllm:request_success_total{finished_reason=%q,engine=%q} %d\nvllm:num_requests_running{model_name=%q} 1\n"
	g := newGatherer(engine.VLLM)
	read(t, g, fmt.Sprintf(series, "stop", "0", 10, "a"))
	g.Report(0)
	read(t, g, fmt.Sprintf(series+series, "stop", "0", 12, "a", "length", "1", 3, "b"))
	if p := g.Report(second); p.Finished.V != 5 || !slices.Equal(g.Models(), []string{"a", "b"}) {
		t.Errorf("%v finished, want 2 and 3 of a new reason; models %v", p.Finished.V, g.Models())
	}
	read(t, g, fmt.Sprintf(series, "stop", "0", 12, "a"))
	g.Report(second)
	read(t, g, fmt.Sprintf(series+series, "stop", "0", 13, "a", "length", "1", 4, "b"))
	if p := g.Report(second); p.Finished.V != 2 || g.Restarts != 0 {
		t.Errorf("%v finished after one was absent, want 2; %d restarts", p.Finished.V, g.Restarts)
	}
}

func TestSamplesBeforeErrorCountOnce(t *testing.T) {
	const a, b = "vllm:generation_tokens_total %d\n", "vllm:num_requests_running 1\n"
	g, broken := newGatherer(engine.VLLM), errors.New("broken")
	if err := g.Read(io.MultiReader(strings.NewReader(fmt.Sprintf(a, 90)+b), iotest.ErrReader(broken))); !errors.Is(err, broken) {
		t.Fatal(err)
	}
	read(t, g, fmt.Sprintf(a+b, 100))
	g.Report(0)
	if err := g.Read(io.MultiReader(strings.NewReader(fmt.Sprintf(a, 107)+b), iotest.ErrReader(broken))); !errors.Is(err, broken) {
		t.Fatal(err)
	}
	read(t, g, fmt.Sprintf(a+b, 110))
	if p := g.Report(2 * second); p.Generated.V != 10 || p.Decode.V != 5 {
		t.Errorf("%v tokens, %v per second; want 10 and 5", p.Generated.V, p.Decode.V)
	}
}

// histogramText returns a TTFT histogram of one engine with the given cumulative counts, the last one for +Inf.
func histogramText(engine string, bounds []string, counts []int) string {
	var b strings.Builder
	for i, le := range append(bounds, "+Inf") {
		fmt.Fprintf(&b, "vllm:time_to_first_token_seconds_bucket{engine=%q,le=%q} %d\n", engine, le, counts[i])
	}
	last := counts[len(counts)-1]
	fmt.Fprintf(&b, "vllm:time_to_first_token_seconds_sum{engine=%q} %d\nvllm:time_to_first_token_seconds_count{engine=%q} %d\n", engine, last, engine, last)
	return b.String()
}

func TestBuckets(t *testing.T) {
	ab, ac := []string{"0.1", "0.5"}, []string{"0.1", "0.7"}
	empty := histogramText("0", ab, []int{0, 0, 0})
	for name, c := range map[string]struct {
		first, then string
		count       uint64
		buckets     []uint64 // nil: no buckets
	}{
		"one engine":           {empty, histogramText("0", ab, []int{1, 3, 4}), 4, []uint64{1, 2, 1}},
		"two engines":          {empty + histogramText("1", ab, []int{1, 1, 1}), histogramText("0", ab, []int{1, 3, 4}) + histogramText("1", ab, []int{1, 2, 2}), 5, []uint64{1, 3, 1}},
		"other buckets":        {empty + histogramText("1", ac, []int{1, 1, 1}), histogramText("0", ab, []int{1, 3, 4}) + histogramText("1", ac, []int{1, 2, 2}), 5, nil},
		"buckets that change":  {empty, histogramText("0", ac, []int{1, 3, 4}), 4, nil},
		"counts that fall":     {empty, histogramText("0", ab, []int{3, 1, 4}), 4, nil},
		"bounds out of order":  {empty, histogramText("0", []string{"0.5", "0.1"}, []int{1, 3, 4}), 4, nil},
		"first without count":  {"vllm:num_requests_running 1\n" + strings.ReplaceAll(empty, "seconds_count", "seconds_other"), histogramText("0", ab, []int{1, 3, 4}), 0, []uint64{0, 0, 0}},
		"and beside a new one": {"vllm:num_requests_running 1\n" + strings.ReplaceAll(empty, "seconds_count", "seconds_other"), histogramText("0", ab, []int{1, 3, 4}) + histogramText("1", ab, []int{1, 1, 1}), 1, []uint64{1, 0, 0}},
		"one that began since": {"vllm:num_requests_running 1\n", histogramText("0", ab, []int{1, 3, 4}), 4, []uint64{1, 2, 1}},
	} {
		g := newGatherer(engine.VLLM)
		read(t, g, c.first)
		g.Report(0)
		read(t, g, c.then)
		p := g.Report(second)
		if len(p.Histograms) != 1 || p.Histograms[0].Count != c.count || !slices.Equal(p.Histograms[0].Counts, c.buckets) {
			t.Errorf("%s: %+v, want %d in %v", name, p.Histograms, c.count, c.buckets)
		}
	}
}

func TestRanksCountOnce(t *testing.T) {
	const rank = "sglang:num_running_reqs{tp_rank=%q,pp_rank=\"0\"%s} 4\n"
	for want, text := range map[float64]string{
		4: fmt.Sprintf(rank+rank, "0", "", "1", ""),
		8: fmt.Sprintf(rank+rank, "0", `,dp_rank="0"`, "4", `,dp_rank="1"`),
	} {
		g := newGatherer(engine.SGLang)
		read(t, g, text)
		if p := g.Report(0); p.Running.V != want {
			t.Errorf("%v running, want %v:\n%s", p.Running.V, want, text)
		}
	}
}

func TestReadErrors(t *testing.T) {
	for text, want := range map[string]error{
		"<html><body>hello</body></html>": gather.ErrNotMetrics,
		"":                                gather.ErrNoKnownMetrics,
		"go_goroutines 7\n":               gather.ErrNoKnownMetrics,
		"vllm:num_requests_running NaN\nvllm:num_requests_waiting -3\n": gather.ErrNoKnownMetrics,
	} {
		if err := newGatherer(engine.VLLM).Read(strings.NewReader(text)); !errors.Is(err, want) {
			t.Errorf("%q: %v, want %v", text, err, want)
		}
	}
}

func TestTooManySeriesAreOmitted(t *testing.T) {
	var b strings.Builder
	for i := range gather.MaxSeries + 10 {
		fmt.Fprintf(&b, "vllm:generation_tokens_total{user=\"%d\"} 1\n", i)
	}
	g := newGatherer(engine.VLLM)
	read(t, g, b.String())
	if g.Omitted != 10 {
		t.Errorf("%d omitted, want 10", g.Omitted)
	}
}

// An implausible jump of a counter or gauge is omitted from its report and counted, and the next text is read normally.
func TestImplausibleSamplesAreOmitted(t *testing.T) {
	g := newGatherer(engine.VLLM)
	for i, generated := range []string{"100", "1.7e308", "1e19", "+Inf", "160"} {
		read(t, g, "vllm:num_requests_running 1\nvllm:kv_cache_usage_perc 1e300\nvllm:generation_tokens_total "+generated+"\n")
		p := g.Report(min(int64(i), 1) * second)
		if p.KVUsage.OK() || p.Running.V != 1 {
			t.Errorf("after %s: usage %v, %v running", generated, p.KVUsage, p.Running)
		}
		if i == 4 && p.Generated.V != 60 {
			t.Errorf("%v tokens, want 60", p.Generated)
		}
	}
	if g.Malformed != 8 || g.Restarts != 0 {
		t.Errorf("%d malformed lines and %d restarts, want 8 and 0", g.Malformed, g.Restarts)
	}
}

func FuzzGather(f *testing.F) {
	for _, name := range []string{"vllm", "sglang", "llamacpp", "tgi", "tensorrt", "dynamo", "lmdeploy", "triton"} {
		text := sample(f, name)
		f.Add([]byte(text[:min(len(text), 4000)]), []byte(text[len(text)*9/10:]))
	}
	f.Fuzz(func(t *testing.T, a, b []byte) {
		for _, e := range engine.Engines {
			if e.Metrics == nil {
				continue
			}
			kind, g := e.Kind, gather.New(e.Metrics)
			for i, text := range [][]byte{a, a, b, b, a} {
				_ = g.Read(bytes.NewReader(text))
				p := g.Report(int64(i) * second)
				for _, r := range []event.Reading{p.Decode, p.Prefill, p.Generated, p.Prompt, p.Finished, p.KVUsed} {
					if r.OK() && r.V < 0 {
						t.Errorf("%s: negative: %s", kind, describe(p))
					}
				}
				if r := p.CacheHits; r.OK() && r.Origin == event.Derived && r.V > 1 {
					t.Errorf("%s: more hits than tokens: %s", kind, describe(p))
				}
			}
		}
	})
}

// BenchmarkRead measures a poll: parsing 64 KiB of metrics and making a report.
func BenchmarkRead(b *testing.B) {
	one, text := sample(b, "vllm"), ""
	for i := 0; len(text) < 64<<10; i++ {
		text += strings.ReplaceAll(one, `engine="0"`, fmt.Sprintf(`engine="%d"`, i))
	}
	text = text[:strings.LastIndexByte(text[:64<<10], '\n')+1]
	g := newGatherer(engine.VLLM)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if err := g.Read(strings.NewReader(text)); err != nil {
			b.Fatal(err)
		}
		g.Report(second)
	}
}
