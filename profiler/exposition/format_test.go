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
	// endings are the names of samples that a type allows, as what follows the family's name.
	endings = map[string][]string{"counter": {"_total"}, "gauge": {""}, "histogram": {"_bucket", "_count", "_sum"}}
)

// parseOpenMetrics reads OpenMetrics 1.0 as strictly as its text asks of those who write what llmtop does: families one after the other, each
// sample with a name that its type allows and once, histograms whose buckets ascend and end with all, counters not below 0, EOF at the end.
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
					return nil, fmt.Errorf("family %s comes twice", family)
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
			return nil, fmt.Errorf("%s comes twice", key)
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
		return s, fmt.Errorf("%q is no sample", line)
	}
	s.name, s.labels = m[1], make(map[string]string)
	for rest := m[2]; rest != ""; {
		p := labelPair.FindStringSubmatch(rest)
		if p == nil {
			return s, fmt.Errorf("%q are no labels", rest)
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

// checkBuckets looks at the buckets of histograms, which stand together.
func checkBuckets(all []sample) error {
	last, below := math.Inf(-1), 0.0
	for _, s := range all {
		switch {
		case strings.HasSuffix(s.name, "_bucket"):
			le, err := strconv.ParseFloat(s.labels["le"], 64)
			if err != nil || le <= last || s.value < below {
				return fmt.Errorf("%v comes after a bucket up to %v with %v", s, last, below)
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

// samples are all that an exporter tells.
func samples(t testing.TB, x *Exporter) []sample {
	t.Helper()
	all, err := parseOpenMetrics(text(t, x, expfmt.TypeOpenMetrics))
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// find are the values of a name by those labels that are asked for.
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

// TestFormats: what is told is valid in both text formats and in itself, and every instrument is told.
func TestFormats(t *testing.T) {
	x := New("1.0")
	join(x, "native").everything()
	join(x, "other").everything()
	join(x, "server").sums()
	x.pushing.Store(true)
	all := samples(t, x)
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(text(t, x, expfmt.TypeTextPlain)))
	if err != nil {
		t.Fatal(err)
	}
	for _, i := range instruments {
		f := families[i.spelled]
		if f == nil {
			t.Errorf("%s is not told", i.spelled)
			continue
		}
		if f.GetType() != i.kind || f.GetHelp() != i.help {
			t.Errorf("%s: %v, %q", i.spelled, f.GetType(), f.GetHelp())
		}
		var names []string
		for _, l := range f.Metric[0].Label {
			names = append(names, l.GetName())
		}
		if !equalSets(names, i.labels) {
			t.Errorf("%s has the labels %v, want %v", i.spelled, names, i.labels)
		}
		delete(families, i.spelled)
	}
	if len(families) > 0 {
		t.Errorf("told but not defined: %v", slices.Collect(maps.Keys(families)))
	}
	if len(find(all, "llmtop_requests_total", "engine", "outcome")) != 6 {
		t.Error("not every engine has requests of three outcomes")
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

// TestSpelling: names follow the specification of how OpenTelemetry's names are written for Prometheus.
func TestSpelling(t *testing.T) {
	for i, want := range map[*instrument]string{
		ttft: "gen_ai_server_time_to_first_token_seconds", tpot: "gen_ai_server_time_per_output_token_seconds",
		e2el: "gen_ai_server_request_duration_seconds", usage: "gen_ai_client_token_usage",
		diskRead: "llmtop_process_disk_read_bytes_total", kvUsage: "llmtop_kv_cache_usage_ratio", gpuHeat: "llmtop_gpu_temperature_celsius",
		decodeRate: "llmtop_decode_tokens_per_second", bandwidth: "llmtop_memory_bandwidth_bytes_per_second",
	} {
		if i.spelled != want {
			t.Errorf("%s is spelled %s, want %s", i.name, i.spelled, want)
		}
	}
	for _, i := range instruments {
		if i.kind == 0 && i.unit == "" {
			t.Errorf("counter %s has no unit", i.name)
		}
	}
}

// TestAbsentIsNotZero: what an engine has not told has no series.
func TestAbsentIsNotZero(t *testing.T) {
	x := New("1.0")
	p := join(x, "far")
	for _, s := range samples(t, x) {
		if s.name != "llmtop_build_info" && (s.name != "llmtop_engine_up" || s.value != 0) {
			t.Errorf("of an engine that is not known: %v", s)
		}
	}
	p.emit(0, event.Event{Kind: event.KindEngine, Data: &event.Engine{Name: "mute", State: event.EngineReady}})
	p.emit(0, event.Event{Kind: event.KindHost, Data: &event.Host{CPU: event.Absent(event.NotPermitted), MemUsed: event.Of(math.NaN())}})
	for _, s := range samples(t, x) {
		for _, part := range []string{"throughput", "per_second", "kv_", "expert", "host", "process", "gpu", "slots", "queue", "model", "gen_ai", "passes"} {
			if strings.Contains(s.name, part) {
				t.Errorf("of an engine that tells nothing: %v", s)
			}
		}
	}
	p.everything()
	p.now += event.Time(staleAfter) + 1
	if stale := find(samples(t, x), cpu.spelled); len(stale) != 0 {
		t.Errorf("a sample of the machine is still told after %v: %v", staleAfter, stale)
	}
}

// TestEngineStates: up is what can be asked something.
func TestEngineStates(t *testing.T) {
	for _, c := range []struct {
		engine event.Engine
		up     float64
	}{
		{event.Engine{Name: "a", State: event.EngineReady}, 1},
		{event.Engine{Name: "a", State: event.EngineLoading}, 1},
		{event.Engine{Name: "a", State: event.EngineFailed}, 0},
		{event.Engine{Name: "a", State: event.EngineReady, Remote: event.Remote{Link: event.LinkConnected}}, 1},
		{event.Engine{Name: "a", State: event.EngineReady, Remote: event.Remote{Link: event.LinkDisconnected, Restarts: 2}}, 0},
	} {
		x := New("1.0")
		join(x, "a").emit(0, event.Event{Kind: event.KindEngine, Data: &c.engine})
		all := samples(t, x)
		if got := find(all, "llmtop_engine_up")[""]; got != c.up {
			t.Errorf("%+v: up is %v", c.engine, got)
		}
		if got := find(all, "llmtop_engine_state", "state")[c.engine.State.String()]; got != 1 {
			t.Errorf("%+v: not in its state", c.engine)
		}
	}
}

// TestLabelsFromOutside: whatever names engines and tenants have, what is told is valid, and no two series are the same.
func TestLabelsFromOutside(t *testing.T) {
	x := New("1.0")
	hostile := "a\"b\\c\n\x1b[31m\xff" + strings.Repeat("ä", 200)
	p, q := join(x, hostile), join(x, hostile)
	p.introduce(hostile, hostile)
	q.introduce("", hostile)
	p.request(1, event.Request{Group: "same"}, 2)
	p.request(2, event.Request{Group: "sa\x1bme"}, 2)
	p.request(3, event.Request{Group: hostile}, 2)
	all := samples(t, x)
	for _, s := range all {
		for name, v := range s.labels {
			if len(v) > maxWord+len(" #2") || strings.ContainsRune(v, 0x1b) {
				t.Errorf("%s of %s is %q", name, s.name, v)
			}
		}
	}
	if got := find(all, "llmtop_group_requests_total", "group"); got["same"] != 2 || len(got) != 2 {
		t.Errorf("requests of groups: %v", got)
	}
	if up := find(all, "llmtop_engine_up", "engine"); len(up) != 2 {
		t.Errorf("two engines of the same name are %v", up)
	}
}

// TestModelsAreBounded: an address that changes its model again and again does not make series without end.
func TestModelsAreBounded(t *testing.T) {
	x := New("1.0")
	p := join(x, "native")
	for i := range 3 * maxSubjects {
		p.introduce("native", fmt.Sprint("model ", i))
		p.request(event.RequestID(i+1), event.Request{}, 3)
	}
	p.introduce("native", "model 1")
	p.request(1000, event.Request{}, 3)
	models := find(samples(t, x), itl.spelled+"_count", "gen_ai_request_model")
	if len(models) > maxSubjects+1 || models["model 1"] != 4 || models["other"] < 2*maxSubjects {
		t.Errorf("gaps by model: %v", models)
	}
}

// TestDocumentation: every metric is in docs/export.md, and every name there is one.
func TestDocumentation(t *testing.T) {
	page, err := os.ReadFile("../../docs/export.md")
	if err != nil {
		t.Fatal(err)
	}
	known := make(map[string]bool)
	for _, i := range instruments {
		if known[i.spelled] = true; !strings.Contains(string(page), "`"+i.spelled+"`") {
			t.Errorf("docs/export.md does not have %s", i.spelled)
		}
		for _, l := range i.labels {
			known[l] = true
		}
	}
	for _, m := range regexp.MustCompile("`((?:llmtop|gen_ai)_[a-z0-9_]*[a-z0-9])`").FindAllStringSubmatch(string(page), -1) {
		if !known[m[1]] {
			t.Errorf("docs/export.md has %s, which is not told", m[1])
		}
	}
}
