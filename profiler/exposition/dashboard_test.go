package exposition

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"
)

// dashboard is the part of a Grafana dashboard that the test reads.
type dashboard struct {
	Panels []struct {
		ID      int
		Type    string
		Title   string
		GridPos struct{ X, Y, W, H int }
		Targets []struct{ Expr, LegendFormat string }
	}
	Templating struct {
		List []struct {
			Name  string
			Query any
		}
	}
}

// variables replaces Grafana's variables as Grafana would.
var variables = strings.NewReplacer("$__rate_interval", "1m", "$engine", ".*")

var (
	legendLabel = regexp.MustCompile(`\{\{([^}]*)\}\}`)
	labelValues = regexp.MustCompile(`^label_values\((\w+), (\w+)\)$`)
)

// TestDashboard checks that every query of the dashboard parses, and that each of its metrics and labels is exported
// for an engine that reports everything.
func TestDashboard(t *testing.T) {
	raw, err := os.ReadFile("../../docs/grafana/llmtop.json")
	if err != nil {
		t.Fatal(err)
	}
	var d dashboard
	if err := json.Unmarshal(raw, &d); err != nil {
		t.Fatal(err)
	}
	x := New("1.0")
	addEngine(x, "native").emitEverything()
	addEngine(x, "server").emitAggregates()
	labels := make(map[string]map[string]bool) // of each metric
	for _, s := range samples(t, x) {
		if labels[s.name] == nil {
			labels[s.name] = make(map[string]bool)
		}
		for name := range s.labels {
			labels[s.name][name] = true
		}
	}
	queries, ids := 0, make(map[int]bool)
	for _, p := range d.Panels {
		if ids[p.ID] || p.GridPos.X+p.GridPos.W > 24 || p.Type != "row" && len(p.Targets) == 0 {
			t.Errorf("panel %q: id %d, place %+v, %d queries", p.Title, p.ID, p.GridPos, len(p.Targets))
		}
		ids[p.ID] = true
		for _, target := range p.Targets {
			queries++
			checkQuery(t, p.Title, variables.Replace(target.Expr), target.LegendFormat, labels)
		}
	}
	if queries < 50 {
		t.Errorf("%d queries", queries)
	}
	for _, v := range d.Templating.List {
		if q, ok := v.Query.(map[string]any); ok {
			m := labelValues.FindStringSubmatch(q["query"].(string))
			if m == nil || !labels[m[1]][m[2]] {
				t.Errorf("variable %s asks for %v", v.Name, q)
			}
		}
	}
}

// checkQuery parses a query and looks up its metrics and labels.
func checkQuery(t *testing.T, title, expr, legend string, labels map[string]map[string]bool) {
	t.Helper()
	q, err := parseQuery(expr)
	if err != nil {
		t.Errorf("%s: %s: %v", title, expr, err)
		return
	}
	labelNames := make(map[string]bool) // of all its metrics
	for _, s := range q.selectors {
		if labels[s.metric] == nil {
			t.Errorf("%s: there is no %s", title, s.metric)
		}
		for _, l := range s.labels {
			if !labels[s.metric][l] {
				t.Errorf("%s: %s has no label %s", title, s.metric, l)
			}
		}
		for l := range labels[s.metric] {
			labelNames[l] = true
		}
	}
	for _, l := range q.grouped {
		if !labelNames[l] {
			t.Errorf("%s: %s groups by %s, which none of its metrics has", title, expr, l)
		}
	}
	for _, m := range legendLabel.FindAllStringSubmatch(legend, -1) {
		if !labelNames[m[1]] {
			t.Errorf("%s: its legend names %s, which none of its metrics has", title, m[1])
		}
	}
}

// TestInvalidQueries checks that the parser rejects text that is not a query.
func TestInvalidQueries(t *testing.T) {
	for _, text := range []string{
		"", "sum(", "rate(a[1m]", "rate(a[1m], b)", "a{b}", "a{b=c}", `a{b="c"`, "a b", "a +", "nosuch(a)", "sum by (a, (b)", "1 / ", "a[1 m]", "topk(a)",
	} {
		if q, err := parseQuery(text); err == nil {
			t.Errorf("%q parses as %v", text, q)
		}
	}
}
