package watch

import (
	"bytes"
	"encoding/csv"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/exposition"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/report"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/runtime/source/scrape/engine"
	"github.com/llmtop/llmtop/runtime/source/scrape/gather"
)

// family returns the metric that a line of a metrics text is of: without the suffixes of histograms and counters.
func family(line string) string {
	name := line[:strings.IndexAny(line, "{ ")]
	for _, suffix := range []string{"_bucket", "_sum", "_count", "_total"} {
		name = strings.TrimSuffix(name, suffix)
	}
	return name
}

// samples returns the lines of a metrics text that are samples.
func samples(text string) (lines []string) {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && line[0] != '#' {
			lines = append(lines, line)
		}
	}
	return lines
}

// without returns the lines that are of none of the families.
func without(lines []string, families ...string) (rest []string) {
	for _, line := range lines {
		if !slices.Contains(families, family(line)) {
			rest = append(rest, line)
		}
	}
	return rest
}

// grown returns the text of lines, with everything that counts up twice as high.
func grown(lines []string, types map[string]string) string {
	var b strings.Builder
	for _, line := range lines {
		i := strings.LastIndexByte(line, ' ')
		v, err := strconv.ParseFloat(line[i+1:], 64)
		kind := types[family(line)]
		if name := line[:strings.IndexAny(line, "{ ")]; kind == "" && name != family(line) || strings.Contains(line, "succeeded") || strings.Contains(line, "_failed") {
			kind = "counter"
		}
		if err == nil && (kind == "counter" || kind == "histogram") {
			line = line[:i+1] + strconv.FormatFloat(2*v, 'g', -1, 64)
		}
		b.WriteString(line + "\n")
	}
	return b.String()
}

// numbersOf polls a text and then a grown one, and returns the numbers in the report, the exports and the catalogue that
// alerts read: their names, and where they are.
func numbersOf(t *testing.T, kind engine.Kind, lines []string, types map[string]string) map[string]bool {
	t.Helper()
	now := event.Time(1e9)
	clock := func() event.Time { return now }
	x := exposition.New("test")
	exported := x.Add("server", clock)
	s := store.New(store.Options{Now: clock, OnRequest: exported.Request, OnGaps: exported.Gaps})
	exported.Watch(s.Snapshot)
	sink := event.Tee{s, exported}
	sink.Emit(event.Event{Kind: event.KindEngine, At: now, Layer: -1, Data: &event.EngineInfo{Name: string(kind), Caps: event.CapAggregates, State: event.EngineReady}})
	g := gather.New(engine.Of(kind).Metrics)
	for i, text := range []string{strings.Join(lines, "\n") + "\n", grown(lines, types)} {
		if err := g.Read(strings.NewReader(text)); err != nil {
			return nil // nothing of this engine is left
		}
		sink.Emit(event.Event{Kind: event.KindAggregates, At: now, Layer: -1, Data: g.Report(int64(i) * 1e9)})
		now += 1e9
	}
	out := make(map[string]bool)
	v := s.Snapshot()
	for _, n := range slices.Concat(store.Rates, store.Totalled) {
		if n.Of != nil && n.Name != "dropped" && n.Of(v, metric.Session).OK() {
			out["alerts: "+n.Name] = true
		}
	}
	for id := range store.NumLatencies {
		if sum := v.Distribution(id, metric.Session); sum.Origin == event.Reported {
			out["alerts: "+id.Row().Name] = true
		}
	}
	var b bytes.Buffer
	if err := report.FromSnapshot(report.Meta{}, v).WriteCSV(&b); err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(&b).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, row := range rows[1:] {
		if row[1] != "duration_s" { // llmtop's own
			out["report: "+row[1]] = true
		}
	}
	families, err := x.Gather()
	if err != nil {
		t.Fatal(err)
	}
	own := regexp.MustCompile(`^(llmtop_(engine|build|lost|model|slots|otlp)_|process_)`)
	for _, f := range families {
		for _, m := range f.Metric {
			name := f.GetName()
			for _, l := range m.Label {
				if l.GetName() != "engine" {
					name += " " + l.GetValue()
				}
			}
			if !own.MatchString(name) {
				out["export: "+name] = true
			}
		}
	}
	return out
}

// TestEveryNumberOfAServerIsBacked removes series of each engine's sample: every number disappears with one of them, or
// with those of which each is enough. A number that stays was made up.
func TestEveryNumberOfAServerIsBacked(t *testing.T) {
	for file, kind := range map[string]engine.Kind{
		"vllm": engine.VLLM, "sglang": engine.SGLang, "llamacpp": engine.Llama, "tgi": engine.TGI, "tensorrt": engine.TensorRT,
		"lmdeploy": engine.LMDeploy, "triton": engine.Triton, "dynamo": engine.Dynamo,
	} {
		text, err := os.ReadFile(filepath.Join("..", "..", "runtime", "source", "scrape", "gather", "testdata", file+".txt"))
		if err != nil {
			t.Fatal(err)
		}
		types, known := make(map[string]string), make(map[string]bool)
		for _, m := range regexp.MustCompile(`(?m)^# TYPE (\S+) (\S+)`).FindAllStringSubmatch(string(text), -1) {
			types[strings.TrimSuffix(m[1], "_total")] = m[2]
		}
		lines := samples(string(text))
		for _, line := range lines {
			if e, _ := engine.WithMetric(line[:strings.IndexAny(line, "{ ")]); e != nil {
				known[family(line)] = true
			}
		}
		all := slices.Sorted(maps.Keys(known))
		made := numbersOf(t, kind, lines, types)
		if len(made) < 10 {
			t.Errorf("%s: only %d numbers", file, len(made))
		}
		remove := func(families ...string) {
			rest := numbersOf(t, kind, without(lines, families...), types)
			maps.DeleteFunc(made, func(name string, _ bool) bool { return !rest[name] })
		}
		for _, a := range all {
			remove(a)
		}
		for i, a := range all {
			for _, b := range all[:i] {
				if len(made) > 0 {
					remove(a, b)
				}
			}
		}
		remove("sglang:realtime_tokens", "sglang:generation_tokens", "sglang:gen_throughput") // each has generated tokens
		if len(made) > 0 {
			t.Errorf("%s: backed by no series: %v", file, slices.Sorted(maps.Keys(made)))
		}
	}
}
