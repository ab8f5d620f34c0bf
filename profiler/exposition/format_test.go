package exposition

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/llmtop/llmtop/profiler/event"
)

// sample is one line of OpenMetrics.
type sample struct {
	family, name string
	labels       map[string]string
	value        float64
}

var (
	sampleLine = regexp.MustCompile(`^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)$`)
	labelPair  = regexp.MustCompile(`^([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[\\"n])*)"(,|$)`)
	// endings are the suffixes of sample names that a type allows.
	endings = map[string][]string{"counter": {"_total"}, "gauge": {""}, "histogram": {"_bucket", "_count", "_sum"}}
)

// parseOpenMetrics parses OpenMetrics 1.0 with the rules for writers: families are contiguous, each sample has a name
// that its type allows and occurs once, histogram buckets ascend up to +Inf, counters are not negative, EOF is at the
// end.
func parseOpenMetrics(text string) (out []sample, err error) {
	body, ok := strings.CutSuffix(text, "# EOF\n")
	if !ok {
		return nil, errors.New("does not end with # EOF")
	}
	families, seen := make(map[string]bool), make(map[string]bool)
	var family, kind string
	for line := range strings.Lines(body) {
		line = strings.TrimSuffix(line, "\n")
		if words := strings.SplitN(line, " ", 4); words[0] == "#" && len(words) == 4 {
			if words[2] != family {
				family, kind = words[2], ""
				if families[family] {
					return nil, fmt.Errorf("family %s occurs twice", family)
				}
				families[family] = true
			}
			if words[1] == "TYPE" {
				kind = words[3]
			}
			continue
		}
		s, err := parseSample(line)
		if err != nil {
			return nil, err
		}
		s.family = family
		ending, ours := strings.CutPrefix(s.name, family)
		if !ours || !slices.Contains(endings[kind], ending) {
			return nil, fmt.Errorf("%q in family %s, a %s", line, family, kind)
		}
		if key := line[:strings.LastIndexByte(line, ' ')]; seen[key] {
			return nil, fmt.Errorf("%s occurs twice", key)
		} else {
			seen[key] = true
		}
		if kind != "gauge" && !(s.value >= 0) {
			return nil, fmt.Errorf("%q below 0", line)
		}
		out = append(out, s)
	}
	return out, checkBuckets(out)
}

func parseSample(line string) (s sample, err error) {
	m := sampleLine.FindStringSubmatch(line)
	if m == nil {
		return s, fmt.Errorf("%q is not a sample", line)
	}
	s.name, s.labels = m[1], make(map[string]string)
	for rest := m[2]; rest != ""; {
		p := labelPair.FindStringSubmatch(rest)
		if p == nil {
			return s, fmt.Errorf("%q are not labels", rest)
		}
		if _, twice := s.labels[p[1]]; twice {
			return s, fmt.Errorf("%q has %s twice", line, p[1])
		}
		s.labels[p[1]] = strings.NewReplacer(`\\`, `\`, `\"`, `"`, `\n`, "\n").Replace(p[2])
		rest = rest[len(p[0]):]
	}
	s.value, err = strconv.ParseFloat(m[3], 64)
	return s, err
}

// checkBuckets checks the buckets of histograms, which are contiguous.
func checkBuckets(all []sample) error {
	last, below := math.Inf(-1), 0.0
	for _, s := range all {
		switch {
		case strings.HasSuffix(s.name, "_bucket"):
			le, err := strconv.ParseFloat(s.labels["le"], 64)
			if err != nil || le <= last || s.value < below {
				return fmt.Errorf("%v follows a bucket up to %v with %v", s, last, below)
			}
			last, below = le, s.value
		case strings.HasSuffix(s.name, "_count"):
			if !math.IsInf(last, 1) || s.value != below {
				return fmt.Errorf("%v, but its last bucket, up to %v, has %v", s, last, below)
			}
			last, below = math.Inf(-1), 0
		}
	}
	return nil
}

// samples returns all samples of an exporter.
func samples(t testing.TB, x *Exporter) []sample {
	t.Helper()
	all, err := parseOpenMetrics(text(t, x, expfmt.TypeOpenMetrics))
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// find returns the values of the samples of a name, by the values of the given labels.
func find(all []sample, name string, labels ...string) map[string]float64 {
	out := make(map[string]float64)
	for _, s := range all {
		if s.name == name {
			var key []string
			for _, l := range labels {
				key = append(key, s.labels[l])
			}
			out[strings.Join(key, " ")] = s.value
		}
	}
	return out
}

// TestFormats checks that both text formats are valid and consistent, and that every instrument is exported.
func TestFormats(t *testing.T) {
	x := New("1.0")
	addEngine(x, "native").emitEverything()
	addEngine(x, "other").emitEverything()
	addEngine(x, "server").emitAggregates()
	x.pushing.Store(true)
	all := samples(t, x)
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(text(t, x, expfmt.TypeTextPlain)))
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range instruments {
		f := families[i.promName]
		if f == nil {
			t.Errorf("%s is not exported", i.promName)
			continue
		}
		if f.GetType() != i.kind || f.GetHelp() != i.help {
			t.Errorf("%s: %v, %q", i.promName, f.GetType(), f.GetHelp())
		}
		var names []string
		for _, l := range f.Metric[0].Label {
			names = append(names, l.GetName())
		}
		if !equalSets(names, i.labels) {
			t.Errorf("%s has the labels %v, want %v", i.promName, names, i.labels)
		}
		delete(families, i.promName)
	}
	if len(families) > 0 {
		t.Errorf("exported but not defined: %v", slices.Collect(maps.Keys(families)))
	}
	if len(find(all, "llmtop_requests_total", "engine", "outcome")) != 6 {
		t.Error("some engine lacks requests of the three outcomes")
	}
	// Gatherers check each metric against its family and against all others.
	if _, err := (prometheus.Gatherers{x}).Gather(); err != nil {
		t.Error(err)
	}
	problems, err := promlint.New(strings.NewReader(text(t, x, expfmt.TypeTextPlain))).Lint()
	if err != nil || len(problems) > 0 {
		t.Errorf("%v, %v", err, problems)
	}
}

func equalSets(a, b []string) bool {
	return slices.Equal(slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b)))
}

// TestSpelling checks that names follow OpenTelemetry's specification for Prometheus names.
func TestSpelling(t *testing.T) {
	for i, want := range map[*instrument]string{
		ttft: "gen_ai_server_time_to_first_token_seconds", tpot: "gen_ai_server_time_per_output_token_seconds",
		e2el: "gen_ai_server_request_duration_seconds", usage: "gen_ai_client_token_usage",
		instrumentNamed("llmtop.process.disk_read"): "llmtop_process_disk_read_bytes_total", instrumentNamed("llmtop.kv_cache.usage"): "llmtop_kv_cache_usage_ratio", instrumentNamed("llmtop.gpu.temperature"): "llmtop_gpu_temperature_celsius",
		instrumentNamed("llmtop.decode.tokens"): "llmtop_decode_tokens_per_second", instrumentNamed("llmtop.memory.bandwidth"): "llmtop_memory_bandwidth_bytes_per_second",
	} {
		if i.promName != want {
			t.Errorf("%s has the Prometheus name %s, want %s", i.name, i.promName, want)
		}
	}
	for _, i := range instruments {
		if i.kind == 0 && i.unit == "" {
			t.Errorf("counter %s has no unit", i.name)
		}
	}
}

// TestAbsentIsNotZero checks that what an engine has not reported has no series.
func TestAbsentIsNotZero(t *testing.T) {
	x := New("1.0")
	p := addEngine(x, "far")
	for _, s := range samples(t, x) {
		if s.name != "llmtop_build_info" && (s.name != "llmtop_engine_up" || s.value != 0) {
			t.Errorf("before the first event of the engine: %v", s)
		}
	}
	p.emit(0, event.Event{Kind: event.KindEngine, Data: &event.EngineInfo{Name: "mute", State: event.EngineReady}})
	p.emit(0, event.Event{Kind: event.KindHost, Data: &event.Host{CPU: event.Absent(event.NotPermitted), MemUsed: event.MeasuredValue(math.NaN())}})
	for _, s := range samples(t, x) {
		for _, part := range []string{"throughput", "per_second", "kv_", "expert", "host", "process", "gpu", "slots", "queue", "model", "gen_ai", "passes"} {
			if strings.Contains(s.name, part) {
				t.Errorf("of an engine that reports nothing: %v", s)
			}
		}
	}
	p.emitEverything()
	p.now += event.Time(staleAfter) + 1
	if stale := find(samples(t, x), "llmtop_host_cpu_usage_ratio"); len(stale) != 0 {
		t.Errorf("a sample of the machine is still exported after %v: %v", staleAfter, stale)
	}
}

// TestEngineStates checks llmtop_engine_up and llmtop_engine_state.
func TestEngineStates(t *testing.T) {
	for _, c := range []struct {
		engine event.EngineInfo
		up     float64
	}{
		{event.EngineInfo{Name: "a", State: event.EngineReady}, 1},
		{event.EngineInfo{Name: "a", State: event.EngineLoading}, 1},
		{event.EngineInfo{Name: "a", State: event.EngineFailed}, 0},
		{event.EngineInfo{Name: "a", State: event.EngineReady, Remote: event.Remote{Link: event.LinkConnected}}, 1},
		{event.EngineInfo{Name: "a", State: event.EngineReady, Remote: event.Remote{Link: event.LinkDisconnected, Restarts: 2}}, 0},
	} {
		x := New("1.0")
		addEngine(x, "a").emit(0, event.Event{Kind: event.KindEngine, Data: &c.engine})
		all := samples(t, x)
		if got := find(all, "llmtop_engine_up")[""]; got != c.up {
			t.Errorf("%+v: up is %v", c.engine, got)
		}
		if got := find(all, "llmtop_engine_state", "state")[c.engine.State.String()]; got != 1 {
			t.Errorf("%+v: its state is not 1", c.engine)
		}
	}
}

// TestLabelsFromOutside checks that hostile names of engines and tenants give valid output without duplicate series.
func TestLabelsFromOutside(t *testing.T) {
	x := New("1.0")
	hostile := "a\"b\\c\n\x1b[31m\xff" + strings.Repeat("ä", 200)
	p, q := addEngine(x, hostile), addEngine(x, hostile)
	p.introduce(hostile, hostile)
	q.introduce("", hostile)
	p.request(1, event.Request{Group: "same"}, 2)
	p.request(2, event.Request{Group: "sa\u200bme"}, 2)
	p.request(3, event.Request{Group: hostile}, 2)
	all := samples(t, x)
	for _, s := range all {
		for name, v := range s.labels {
			if len(v) > maxLabel+len(" #2") || strings.ContainsRune(v, 0x1b) {
				t.Errorf("%s of %s is %q", name, s.name, v)
			}
		}
	}
	if got := find(all, "llmtop_group_requests_total", "group"); got["same"] != 2 || len(got) != 2 {
		t.Errorf("requests of groups: %v", got)
	}
	if up := find(all, "llmtop_engine_up", "engine"); len(up) != 2 {
		t.Errorf("two engines of the same name: %v", up)
	}
}

// TestModelsAreBounded checks that an address that changes its model often gets a bounded number of series.
func TestModelsAreBounded(t *testing.T) {
	x := New("1.0")
	p := addEngine(x, "native")
	for i := range 3 * maxLabelSets {
		p.introduce("native", fmt.Sprint("model ", i))
		p.request(event.RequestID(i+1), event.Request{}, 3)
	}
	p.introduce("native", "model 1")
	p.request(1000, event.Request{}, 3)
	models := find(samples(t, x), itl.promName+"_count", "gen_ai_request_model")
	if len(models) > maxLabelSets+1 || models["model 1"] != 4 || models["other"] < 2*maxLabelSets {
		t.Errorf("gaps by model: %v", models)
	}
}

// instrumentNamed returns the instrument of an OpenTelemetry name.
func instrumentNamed(name string) *instrument {
	return instruments[slices.IndexFunc(instruments, func(i *instrument) bool { return i.name == name })]
}

// TestDocumentation checks that docs/export.md and the tables of docs/metrics.md list exactly the exported metrics.
func TestDocumentation(t *testing.T) {
	var pages string
	for _, name := range []string{"../../docs/export.md", reference} {
		page, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		pages += string(page)
	}
	names := make(map[string]bool)
	for _, i := range instruments {
		if names[i.promName] = true; !strings.Contains(pages, "`"+i.promName+"`") {
			t.Errorf("docs/export.md and docs/metrics.md lack %s", i.promName)
		}
		for _, l := range i.labels {
			names[l] = true
		}
	}
	for _, m := range regexp.MustCompile("`((?:llmtop|gen_ai)_[a-z0-9_]*[a-z0-9])`").FindAllStringSubmatch(pages, -1) {
		if !names[m[1]] {
			t.Errorf("docs/export.md or docs/metrics.md has %s, which is not exported", m[1])
		}
	}
}
