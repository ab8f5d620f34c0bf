package report

import (
	"encoding/csv"
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
)

func TestPointTokensAndTTFTComponents(t *testing.T) {
	p := benched().Bench.Points[0]
	if k := &p.Tokens; k.Requests != 4 || k.Prompt != 40 || k.Cached != Measured(0) || k.Padding != 0 || k.Generated != 12 {
		t.Errorf("tokens %+v", p.Tokens)
	}
	if p.Dominant == nil || *p.Dominant != "prompt" || math.Abs(p.Parts[0].Time.V-0.15) > 1e-12 || math.Abs(p.Parts[1].Time.V-0.05) > 1e-12 {
		t.Errorf("of a mean warm TTFT of 0.2 s: %+v", p.Parts) // the cold request is not in it
	}
	if len(p.Profiles) != 4 || p.Profiles[0].Targets != "ttft=200ms" || p.Profiles[0].Goodput.Mean != p.Goodput.Mean {
		t.Errorf("profiles %+v", p.Profiles)
	}
	for name, want := range map[string]float64{"interactive": 1.0 / 5, "real-time": 0, "batch": 4.0 / 5} { // of five requests
		for _, f := range p.Profiles {
			if f.Targets == name && math.Abs(f.Compliance.All.V-want) > 1e-12 {
				t.Errorf("%s met by %v, want %v", name, f.Compliance.All.V, want)
			}
		}
	}
	if len(p.Groups) != 0 {
		t.Errorf("groups of requests without any: %+v", p.Groups)
	}
}

func TestGroupsOfAPoint(t *testing.T) {
	byID := map[event.RequestID]*Request{}
	var ids []event.RequestID
	for i, group := range []string{"a", "b", "a"} {
		id := event.RequestID(i + 1)
		ids = append(ids, id)
		byID[id] = &Request{ID: id, State: "finished", Group: group, Generated: 10 * (i + 1), TPS: Measured(float64(i + 1)), Cached: Measured(2), Prompt: Measured(3), Padding: Measured(1)}
	}
	p := Point{Runs: []Run{{Requests: ids, Duration: Measured(2)}}}
	p.describe(byID, Profiles)
	if len(p.Groups) != 2 || p.Groups[0].Generated != 40 || p.Groups[0].TPS.Mean.V != 2 || p.Groups[1].Requests != 1 {
		t.Errorf("%+v", p.Groups)
	}
	if p.Tokens.Cached.V != 6 || p.Tokens.Padding != 3 || p.Output.Mean.V != 30 {
		t.Errorf("%+v, %v tokens/s", p.Tokens, p.Output.Mean.V)
	}
}

// TestTotalsAddUp checks that the tokens of the requests add up to those of the points in JSON Lines, CSV and every
// summary.
func TestTotalsAddUp(t *testing.T) {
	r := benched()
	r.Bench.Points = r.Bench.Points[:1] // the second point has the same request again
	var lines uint64
	for line := range strings.Lines(in(t, r.WriteJSONL)) {
		var q Request
		if err := json.Unmarshal([]byte(line), &q); err != nil {
			t.Fatal(err)
		}
		lines += uint64(q.Generated)
	}
	rows, err := csv.NewReader(strings.NewReader(in(t, r.WriteCSV))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for _, row := range rows {
		got[row[1]] = row[3]
	}
	if sum := r.Bench.Points[0].Tokens.Generated; lines != sum || got["generated_tokens"] != fmt.Sprint(sum) {
		t.Errorf("%d tokens by line, %d at the point, %s in CSV", lines, sum, got["generated_tokens"])
	}
	for name, write := range formats(r) {
		if doc := in(t, write); name == "text" || name == "Markdown" || name == "HTML" {
			if !strings.Contains(doc, fmt.Sprintf("40 prompt tokens (0 cached, 0 padding), %d generated", lines)) {
				t.Errorf("%s has other token counts:\n%s", name, doc)
			}
		}
	}
}

// TestCSVHasWhatJSONHas checks every distribution of every point for equality.
func TestCSVHasWhatJSONHas(t *testing.T) {
	r := benched()
	rows, err := csv.NewReader(strings.NewReader(in(t, r.WriteCSV))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	means := map[string]string{}
	for _, row := range rows {
		means[row[0]+": "+row[1]] = row[4]
	}
	for i := range r.Bench.Points {
		p := &r.Bench.Points[i]
		for _, d := range distributions {
			s := *d.field(p)
			got, there := means[p.Name+": "+d.json]
			if there != (s != nil) {
				t.Errorf("%s of %s: in CSV %v", d.json, p.Name, there)
			} else if v, err := strconv.ParseFloat(got, 64); there && (err != nil || v != s.Mean.V) {
				t.Errorf("%s of %s: %s, want %v", d.json, p.Name, got, s.Mean.V)
			}
		}
	}
}

// TestUsage checks the resource use over a run with samples of different lengths.
func TestUsage(t *testing.T) {
	r := newRun()
	const second = 1e9
	sample := func(at event.Time, h *event.Host) {
		r.emit(int64(at-r.now), event.Event{Kind: event.KindHost, Data: h})
	}
	r.emit(0, event.Event{Kind: event.KindLog})
	sample(second, &event.Host{Cores: []float64{0, 0}, CPU: event.MeasuredValue(1), MemTotal: event.MeasuredValue(100), MemUsed: event.MeasuredValue(10)}) // the first sample covers no time
	sample(2*second, &event.Host{
		Interval: second, Cores: []float64{0, 0}, CPU: event.MeasuredValue(0.5), MemTotal: event.MeasuredValue(100), MemUsed: event.MeasuredValue(80),
		Engine: event.Process{CPU: event.MeasuredValue(1), Read: event.MeasuredValue(1000), ReadOps: event.MeasuredValue(4), RSS: event.MeasuredValue(5), Peak: event.MeasuredValue(6), Write: event.Absent(event.NotPermitted)},
		GPUs:   []event.GPU{{Name: "card", Power: event.MeasuredValue(100)}},
	})
	sample(5*second, &event.Host{
		Interval: 3 * second, Cores: []float64{0, 0}, CPU: event.MeasuredValue(0.1), MemTotal: event.MeasuredValue(100), MemUsed: event.MeasuredValue(60),
		Engine: event.Process{CPU: event.MeasuredValue(2), Read: event.MeasuredValue(0), ReadOps: event.MeasuredValue(0), RSS: event.MeasuredValue(9), Peak: event.MeasuredValue(9), Write: event.Absent(event.NotPermitted)},
		GPUs:   []event.GPU{{Name: "card", Power: event.MeasuredValue(200)}},
	})
	o := r.build(Meta{}).Host.RunUsage
	for name, c := range map[string]struct {
		got  event.Reading
		want float64
	}{
		"sampled": {o.Machine.Of("sampled_s"), 4}, "CPU": {o.Machine.Of("cpu_share"), 0.2}, "memory": {o.Machine.Of("memory_used_bytes"), 65}, "peak": {o.Machine.Of("memory_peak_bytes"), 80}, "share": {o.Machine.Of("memory_peak_share"), 0.8},
		"cores": {o.Engine.Of("cpu_cores"), 1.75}, "utilisation": {o.Engine.Of("cpu_utilisation"), 0.875}, "read": {o.Engine.Of("disk_read_bytes"), 1000}, "reads": {o.Engine.Of("disk_read_ops"), 4},
		"resident": {o.Engine.Of("rss_bytes"), 8}, "highest": {o.Engine.Of("peak_rss_bytes"), 9}, "power": {o.GPUs[0].Of("power_w"), 175},
	} {
		if !c.got.OK() || math.Abs(c.got.V-c.want) > 1e-9 {
			t.Errorf("%s: %v, want %v", name, c.got.V, c.want)
		}
	}
	if n := o.Engine.Of("disk_write_bytes"); n.Origin != event.NotPermitted {
		t.Errorf("reason of an unreadable number: %q", n.Origin)
	}
}

// TestUsageOfSession checks that only time of the session counts, once, and that the rates of a process count for the
// time in which they were measured.
func TestUsageOfSession(t *testing.T) {
	const second = 1e9
	r := newRun()
	sample := func(at, own event.Time) {
		r.emit(int64(at-r.now), event.Event{Kind: event.KindHost, Data: &event.Host{
			Interval: second, CPU: event.MeasuredValue(0.5), Engine: event.Process{ReadOps: event.MeasuredValue(10)},
			Self: event.Process{Interval: int64(own), ReadOps: event.MeasuredValue(100)},
		}})
	}
	r.emit(0, event.Event{Kind: event.KindLog})
	sample(-0.1*second, second) // before the session
	sample(0.5*second, second/4)
	sample(0.5*second, second/8) // again
	sample(second, second/2)     // covers half a second that already counted
	o := r.build(Meta{}).Host.RunUsage
	for name, c := range map[string]struct {
		got  event.Reading
		want float64
	}{
		"sampled": {o.Machine.Of("sampled_s"), 1}, "CPU": {o.Machine.Of("cpu_share"), 0.5}, "reads of the engine": {o.Engine.Of("disk_read_ops"), 10}, "reads of llmtop": {o.Self.Of("disk_read_ops"), 87.5},
	} {
		if !c.got.OK() || math.Abs(c.got.V-c.want) > 1e-6 { // the clock of a store begins at 1 ns
			t.Errorf("%s: %v, want %v", name, c.got.V, c.want)
		}
	}
}
