package gather_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/source/scrape/engine"
	"github.com/llmtop/llmtop/runtime/source/scrape/gather"
	"pgregory.net/rapid"
)

// gauges returns one sample of a metric per line of labels and value.
func gauges(name, lines string) (text string) {
	for line := range strings.SplitSeq(strings.TrimSpace(lines), "\n") {
		labels, value, _ := strings.Cut(strings.TrimSpace(line), " ")
		text += name + "{" + strings.ReplaceAll(labels, "'", `"`) + "} " + value + "\n"
	}
	return text
}

// TestSumsOverLabels: what the samples of one text count for follows from their labels.
func TestSumsOverLabels(t *testing.T) {
	const none = -1
	for name, c := range map[string]struct {
		kind    engine.Kind
		metric  string
		samples string
		running float64 // or the KV usage; none: not reported
	}{
		"an empty label is the total":       {engine.SGLang, "sglang:num_running_reqs", "p='' 6\np='0' 4\np='1' 2", 6},
		"a missing label is the total":      {engine.VLLM, "vllm:num_requests_running", "engine='0' 6\nengine='0',lora='a' 4\nengine='0',lora='b' 2", 6},
		"named total":                       {engine.TGI, "tgi_batch_current_size", "class='total' 6\nclass='a' 4\nclass='b' 1", 6},
		"totals of two labels":              {engine.TensorRT, "trtllm_num_requests_running", "a='',b='' 9\na='1',b='' 5\na='2',b='' 4\na='',b='1' 9\na='1',b='1' 5\na='2',b='1' 4", 9},
		"a total per engine":                {engine.VLLM, "vllm:num_requests_running", "engine='0',p='' 6\nengine='0',p='1' 6\nengine='1',p='' 2\nengine='1',p='3' 2", 8},
		"a part above its total":            {engine.VLLM, "vllm:num_requests_running", "lora='' 1\nlora='a' 4", none},
		"parts without a total":             {engine.VLLM, "vllm:num_requests_running", "p='0' 4\np='1' 2", 6},
		"data-parallel ranks":               {engine.VLLM, "vllm:num_requests_running", "engine='0' 5\nengine='1' 5", 10},
		"tensor-parallel ranks":             {engine.LMDeploy, "lmdeploy:num_requests_running", "tp_rank='0' 5\ntp_rank='1' 5", 5},
		"of which one is a step behind":     {engine.LMDeploy, "lmdeploy:num_requests_running", "tp_rank='1' 4\ntp_rank='0' 5", 5},
		"ranks of both kinds":               {engine.SGLang, "sglang:num_running_reqs", "dp_rank='0',tp_rank='0' 5\ndp_rank='0',tp_rank='1' 5\ndp_rank='1',tp_rank='2' 3\ndp_rank='1',tp_rank='3' 3", 8},
		"other names of ranks":              {engine.TensorRT, "trtllm_num_requests_running", "attn_dp_rank='0',attn_cp_rank='0' 5\nattn_dp_rank='0',attn_cp_rank='1' 5\nattn_dp_rank='1',attn_cp_rank='0' 3", 8},
		"ranks of an unknown kind, equal":   {engine.TensorRT, "trtllm_num_requests_running", "rank='0' 5\nrank='1' 5", 5},
		"ranks of an unknown kind, unequal": {engine.TensorRT, "trtllm_num_requests_running", "rank='0' 5\nrank='1' 3", none},
		"workers":                           {engine.VLLM, "vllm:num_requests_running", "worker='a' 5\nworker='b' 3", 8},
		"requests seen by one process":      {engine.VLLM, "vllm:num_requests_running", "pid='1' 0\npid='2' 3", 3},
		"requests seen by two processes":    {engine.VLLM, "vllm:num_requests_running", "pid='1' 3\npid='2' 2", none},
		"usage seen by one process":         {engine.VLLM, "vllm:kv_cache_usage_perc", "engine='0',pid='1' 0\nengine='0',pid='2' 0.6", 0.6},
		"usage that processes agree on":     {engine.VLLM, "vllm:kv_cache_usage_perc", "pid='1' 0.6\npid='2' 0.6\npid='3' 0", 0.6},
		"usage that they disagree on":       {engine.VLLM, "vllm:kv_cache_usage_perc", "pid='1' 0.4\npid='2' 0.6", none},
		"usage of two engines":              {engine.VLLM, "vllm:kv_cache_usage_perc", "engine='0',pid='1' 0.4\nengine='0',pid='2' 0\nengine='1',pid='1' 0\nengine='1',pid='2' 0.6", 0.5},
		"usage rounded up":                  {engine.VLLM, "vllm:kv_cache_usage_perc", "engine='0' 1.01", 1.01},
		"usage as a percentage":             {engine.VLLM, "vllm:kv_cache_usage_perc", "engine='0' 0.5\nengine='1' 25", none},
		"usage of an idle rank":             {engine.SGLang, "sglang:token_usage", "dp_rank='0' 0.4\ndp_rank='1' 0", 0.2},
	} {
		g := newGatherer(c.kind)
		read(t, g, gauges(c.metric, c.samples))
		p := g.Report(0)
		got := p.Running
		if !got.OK() {
			got = p.KVUsage
		}
		if c.running == none {
			if got.OK() || len(p.Endpoints) != 1 || p.Endpoints[0].Name != c.metric || p.Endpoints[0].Reason == "" {
				t.Errorf("%s: %v, want none and the reason: %+v", name, got, p.Endpoints)
			}
		} else if !got.OK() || got.V != c.running || len(p.Endpoints) != 0 {
			t.Errorf("%s: %v, want %v; %v", name, got, c.running, p.Endpoints)
		}
	}
}

// TestPropertiesOfAnEngine: a label that running requests do not have does not name an engine.
func TestPropertiesOfAnEngine(t *testing.T) {
	g := newGatherer(engine.VLLM)
	read(t, g, gauges("vllm:num_requests_running", "engine='0' 3\nengine='1' 2")+
		gauges("vllm:kv_cache_usage_perc", "engine='0',server='a' 0.5\nengine='0',server='b' 0\nengine='1',server='a' 0\nengine='1',server='b' 0.3")+
		gauges("vllm:cache_config_info", "engine='0',block_size='16',num_gpu_blocks='10',pid='1' 1\nengine='0',block_size='16',num_gpu_blocks='10',pid='2' 1\nengine='1',block_size='16',num_gpu_blocks='10',pid='1' 1"))
	if p := g.Report(0); p.Running.V != 5 || p.KVUsage.V != 0.4 || p.KVTotal.V != 320 {
		t.Errorf("running %v, usage %v of %v cells; want 5, 0.4 of 320", p.Running, p.KVUsage, p.KVTotal)
	}
}

// counted is a text with a gauge, a counter and a histogram with the given labels.
func counted(labels string, n int) string {
	return fmt.Sprintf("vllm:num_requests_running{%[1]s} 2\nvllm:generation_tokens_total{%[1]s} %[2]d\nvllm:time_to_first_token_seconds_bucket{%[1]s,le=\"1\"} %[2]d\n"+
		"vllm:time_to_first_token_seconds_bucket{%[1]s,le=\"+Inf\"} %[2]d\nvllm:time_to_first_token_seconds_sum{%[1]s} %[2]d\nvllm:time_to_first_token_seconds_count{%[1]s} %[2]d\n", labels, n)
}

// TestCounterParts: counters and histograms of parts and of ranks count once.
func TestCounterParts(t *testing.T) {
	for name, labels := range map[string][]string{
		"parts":      {`p=""`, `p="0"`, `p="1"`},
		"ranks":      {`tp_rank="0"`, `tp_rank="1"`},
		"new totals": {`p="0"`, `p=""`},
	} {
		g := newGatherer(engine.VLLM)
		for i, n := range []int{1000, 1010, 1025} {
			text := ""
			for _, l := range labels[:min(len(labels), i+1)] {
				text += counted(l, n)
			}
			read(t, g, text)
			p := g.Report(int64(i) * second)
			if want := float64([]int{0, 10, 15}[i]); name != "new totals" && i > 0 && (p.Generated.V != want || p.Decode.V != want/float64(i) || p.Histograms[0].Count != uint64(want)) {
				t.Errorf("%s: %v tokens, %v/s, %d durations; want %v", name, p.Generated, p.Decode, p.Histograms[0].Count, want)
			} else if p.Generated.V > want {
				t.Errorf("%s: %v tokens, want at most %v", name, p.Generated, want)
			}
		}
	}
}

// TestMissingWorker: a worker that is missing in some texts continues with its counters, is shown as it was meanwhile, and
// its rate is over the time that it was missing.
func TestMissingWorker(t *testing.T) {
	g, a, b := newGatherer(engine.VLLM), `worker="a"`, `worker="b"`
	total := 0.0
	for i := range 20 {
		text := counted(a, 1_000_000+50*i)
		if i < 5 || i >= 8 {
			text += counted(b, 2_000_000+50*i)
		}
		read(t, g, text)
		p := g.Report(int64(min(i, 1)) * second)
		if total += p.Generated.V; p.Running.V != 4 || i > 0 && p.Decode.V != 100 {
			t.Errorf("text %d: %v running, %v/s; want 4 and 100", i, p.Running, p.Decode)
		}
	}
	if total != 1900 || g.Restarts != 0 {
		t.Errorf("%v tokens, %d restarts; want 1900 and 0", total, g.Restarts)
	}
	for i := range gather.HeldTexts + 1 {
		read(t, g, counted(a, 1_001_000+50*i))
	}
	if p := g.Report(second); p.Running.V != 2 {
		t.Errorf("%v running after a worker is gone, want 2", p.Running)
	}
}

// TestWorkersOverTime: whatever is missing, comes, or restarts, no token is counted that was not generated.
func TestWorkersOverTime(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type worker struct {
			count, base, seen int
			start             float64
		}
		workers := make([]worker, rapid.IntRange(1, 4).Draw(t, "workers"))
		for i := range workers {
			workers[i] = worker{count: rapid.IntRange(0, 1_000_000).Draw(t, "count"), base: -1, start: 500}
		}
		restarts, starts := rapid.Bool().Draw(t, "restarts"), rapid.Bool().Draw(t, "starts")
		ranks := rapid.IntRange(1, 3).Draw(t, "ranks")
		g, grown, got := newGatherer(engine.VLLM), 0, 0.0
		for i := range 30 {
			g.Now = float64(1000 + i)
			text := ""
			for w := range workers {
				v := &workers[w]
				if restarts && rapid.IntRange(0, 9).Draw(t, "restart") == 0 {
					v.count, v.start = 0, g.Now-0.5
				}
				n := rapid.IntRange(0, 100).Draw(t, "tokens")
				v.count += n
				grown += n
				if w > 0 && rapid.IntRange(0, 2).Draw(t, "missing") == 0 {
					continue
				}
				if v.seen = v.count; v.base < 0 {
					v.base = v.count
				}
				if starts {
					text += fmt.Sprintf("process_start_time_seconds{worker=\"%d\"} %v\n", w, v.start)
				}
				for r := range ranks {
					text += counted(fmt.Sprintf(`worker="%d",tp_rank="%d"`, w, r), v.count)
				}
			}
			if err := g.Read(strings.NewReader(text)); err != nil {
				t.Fatal(err)
			}
			p := g.Report(int64(min(i, 1)) * second)
			if p.Void {
				got = 0
			}
			if got += p.Generated.V; got > float64(grown) {
				t.Fatalf("text %d: %v tokens, but at most %d were generated", i, got, grown)
			}
		}
		want := 0
		for _, v := range workers {
			want += v.seen - max(v.base, 0)
		}
		if !restarts && got != float64(want) {
			t.Fatalf("%v tokens, want %d", got, want)
		}
	})
}

// TestSeveralProcesses: replicas that answer in turn are not one engine, whatever their order.
func TestSeveralProcesses(t *testing.T) {
	type process struct{ start, count int }
	balanced := []process{{1000, 900_000}, {2000, 1000}, {1500, 500_000}}
	for name, c := range map[string]struct {
		order  string // which process answers
		starts bool
		from   int // text from which it is known
	}{
		"two in turn":                 {"ababababab", true, 2},
		"two in turn, unknown starts": {"ababababab", false, 2},
		"three":                       {"abcabcabca", true, 2},
		"three, unknown starts":       {"abcabcabca", false, 3},
		"at random":                   {"aabbbacab", true, 5},
		"one that answers once":       {"ccccac", false, 5},
		"the younger first":           {"babababa", true, 2},
	} {
		g, total := newGatherer(engine.VLLM), 0.0
		for i := range c.order {
			p := balanced[c.order[i]-'a']
			g.Now = float64(5000 + i)
			text := counted(`engine="0"`, p.count+50*i)
			if c.starts {
				text = fmt.Sprintf("process_start_time_seconds %d\n", p.start) + text
			}
			read(t, g, text)
			report := g.Report(int64(min(i, 1)) * second)
			if report.Void {
				total = 0
			}
			total += report.Generated.V
			if i >= c.from && (!g.Several() || report.Generated.OK() || report.Running.OK()) || report.Void != (i == c.from) {
				t.Errorf("%s: text %d: %+v", name, i, report)
			}
			if c.starts && total > 1000 {
				t.Errorf("%s: %v tokens after text %d", name, total, i)
			}
		}
		if total != 0 || g.Restarts != 0 {
			t.Errorf("%s: %v tokens and %d restarts in the end", name, total, g.Restarts)
		}
		for i := range gather.SettledTexts + 2 {
			read(t, g, counted(`engine="0"`, 2_000_000+50*i))
			p := g.Report(second)
			if !g.Several() && p.Generated.OK() {
				total += p.Generated.V
			}
		}
		if g.Several() || total == 0 || total > 200 || g.Restarts != 0 {
			t.Errorf("%s: %v tokens and %d restarts after one process has answered", name, total, g.Restarts)
		}
	}
}

// TestNotSeveralProcesses: neither restarts, however often, nor a step of the clock are taken for several processes.
func TestNotSeveralProcesses(t *testing.T) {
	for name, c := range map[string]struct {
		counts, starts []int
		restarts       int
		want           float64
	}{
		"a clock that steps back": {[]int{5000, 5010, 5020, 5030}, []int{900, 880, 880, 880}, 0, 20}, // without the text of the step
		"an old process":          {[]int{5000, 5010, 5020, 5030}, []int{800, 900, 900, 900}, 0, 20},
		"a restart":               {[]int{5000, 10, 20, 30}, []int{900, 1001, 1001, 1001}, 1, 30},
		"two restarts":            {[]int{5000, 10, 20, 5}, []int{900, 1001, 1001, 1003}, 2, 25},
		"restart, unknown start":  {[]int{5000, 10, 2000, 6000}, nil, 1, 6000},
		"the same request again":  {[]int{0, 100, 0, 100}, nil, 1, 200},
		"a restart under load":    {[]int{5000, 5010, 9010, 13010, 4000, 8000}, nil, 1, 16010},
		"the same load again":     {[]int{5000, 10000, 15000, 5000}, nil, 1, 15000},
		"and to little":           {[]int{5000, 9000, 40, 5000}, nil, 1, 9000},
	} {
		g, total := newGatherer(engine.VLLM), 0.0
		for i, n := range c.counts {
			text := counted(`engine="0"`, n)
			if c.starts != nil {
				text = fmt.Sprintf("process_start_time_seconds %d\n", c.starts[i]) + text
			}
			g.Now = float64(1000 + i)
			read(t, g, text)
			total += g.Report(int64(min(i, 1)) * second).Generated.V
		}
		if g.Several() || total != c.want || g.Restarts != c.restarts {
			t.Errorf("%s: %v tokens, want %v; %d restarts, want %d; several processes: %v", name, total, c.want, g.Restarts, c.restarts, g.Several())
		}
	}
}

// TestRestartWhileMissing: a process that restarts while some of its series are missing restarts once, and they begin
// at 0.
func TestRestartWhileMissing(t *testing.T) {
	const text = "process_start_time_seconds %d\nvllm:num_requests_running 1\nvllm:generation_tokens_total %d\n"
	const aborted = "vllm:request_success_total{finished_reason=\"abort\"} %d\n"
	g, got := newGatherer(engine.VLLM), event.Reading{}
	for i, text := range []string{
		fmt.Sprintf(text+aborted, 100, 900, 7), fmt.Sprintf(text, 1001, 5), fmt.Sprintf(text, 1001, 6), fmt.Sprintf(text+aborted, 1001, 9, 8),
	} {
		g.Now = float64(1000 + i)
		read(t, g, text)
		p := g.Report(int64(i) * second)
		if got = p.Cancelled; i > 0 && p.Generated.V != float64([]int{0, 5, 1, 3}[i]) {
			t.Errorf("text %d: %v tokens", i, p.Generated)
		}
	}
	if got.V != 8 || g.Restarts != 1 {
		t.Errorf("%v cancelled and %d restarts, want 8 and 1", got, g.Restarts)
	}
}

// ttftOf returns the TTFT histogram of a report; nil: not reported.
func ttftOf(p *event.Aggregates) *event.Histogram {
	if i := slices.IndexFunc(p.Histograms, func(h event.Histogram) bool { return h.Name == event.HistogramTTFT }); i >= 0 {
		return &p.Histograms[i]
	}
	return nil
}

// TestSumOfHistogram: a mean is never computed from a sum that a text lacks, or that fell.
func TestSumOfHistogram(t *testing.T) {
	text := func(n int, sum string) string {
		out := fmt.Sprintf("vllm:num_requests_running 1\nvllm:time_to_first_token_seconds_bucket{le=\"1.0\"} %d\nvllm:time_to_first_token_seconds_count %d\n", n, n)
		if sum != "" {
			out += "vllm:time_to_first_token_seconds_sum " + sum + "\n"
		}
		return out
	}
	g := newGatherer(engine.VLLM)
	for i, c := range []struct {
		n     int
		sum   string
		count uint64 // that the report adds
		mean  time.Duration
		why   string // if it is not reported
	}{
		{10, "4", 0, 0, ""},
		{12, "5", 2, 500 * time.Millisecond, ""},
		{14, "", 0, 0, "sum"},
		{16, "NaN", 0, 0, "sum"},
		{20, "8", 8, 375 * time.Millisecond, ""}, // with those of the texts before
		{22, "7.5", 0, 0, "fell"},
		{24, "8.5", 2, 500 * time.Millisecond, ""},
	} {
		read(t, g, text(c.n, c.sum))
		p := g.Report(min(int64(i), 1) * second)
		h := ttftOf(p)
		if c.why != "" {
			if h != nil || len(p.Endpoints) != 1 || !strings.Contains(p.Endpoints[0].Reason, c.why) {
				t.Errorf("text %d: reported %v because of %+v", i+1, h, p.Endpoints)
			}
			continue
		}
		if h == nil || h.Count != c.count || c.count > 0 && time.Duration(h.Sum)/time.Duration(h.Count) != c.mean {
			t.Errorf("text %d: got %+v, want %d values with a mean of %v", i+1, h, c.count, c.mean)
		}
	}
}

// TestSeriesTwice: a text that joins those of several processes has their series twice. Nothing shows which is whose.
func TestSeriesTwice(t *testing.T) {
	of := func(running, tokens, n int) string {
		return fmt.Sprintf("vllm:num_requests_running{model_name=\"m\"} %d\nvllm:generation_tokens_total{model_name=\"m\"} %d\n", running, tokens) +
			fmt.Sprintf("vllm:time_to_first_token_seconds_sum %d\nvllm:time_to_first_token_seconds_count %d\n", n, n)
	}
	g := newGatherer(engine.VLLM)
	check := func(text string, running, tokens float64, ttfts int) {
		t.Helper()
		read(t, g, text)
		p := g.Report(second)
		if got := p.Running.V; p.Running.OK() != (running >= 0) || p.Running.OK() && got != running {
			t.Errorf("running %+v, want %v", p.Running, running)
		}
		if got := p.Generated.V; p.Generated.OK() != (tokens >= 0) || p.Generated.OK() && got != tokens {
			t.Errorf("generated %+v, want %v", p.Generated, tokens)
		}
		if h := ttftOf(p); (h != nil) != (ttfts >= 0) || h != nil && h.Count != uint64(ttfts) {
			t.Errorf("TTFT %+v, want %d", h, ttfts)
		}
		if why := len(p.Endpoints) > 0; why != (running < 0) {
			t.Errorf("reasons %+v", p.Endpoints)
		}
	}
	check(of(1, 100, 10), 1, 0, 0)
	check(of(2, 150, 12), 2, 50, 2)
	check(of(2, 160, 12)+of(2, 160, 12), 2, 10, 0) // the same text twice
	check(of(2, 170, 12)+of(2, 90_000, 900), -1, -1, -1)
	check(of(1, 180, 13)+of(3, 90_100, 901), -1, -1, -1)
	check(of(1, 190, 14), 1, 0, 0) // one of them is left: what it counted since is unknown
	check(of(1, 200, 15), 1, 10, 1)
}
