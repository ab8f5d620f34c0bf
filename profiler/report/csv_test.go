package report

import (
	"encoding/csv"
	"errors"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/store"
)

func rowsOf(t *testing.T, r *Report) (names []string, sums map[string]float64) {
	t.Helper()
	var b strings.Builder
	if err := r.WriteStagesCSV(&b); err != nil {
		t.Fatal(err)
	}
	all, err := csv.NewReader(strings.NewReader(b.String())).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	if strings.Join(all[0], ",") != "stage,elapsed_us" {
		t.Fatalf("header %v", all[0])
	}
	sums = map[string]float64{}
	for _, row := range all[1:] {
		us, err := strconv.ParseFloat(row[1], 64)
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, row[0])
		sums[row[0]] += us
	}
	return names, sums
}

func TestStagesCSVAgreesWithJSON(t *testing.T) {
	r := wholeRun().build(Meta{})
	_, got := rowsOf(t, r)
	want := map[string]float64{}
	for _, q := range r.Requests {
		for _, p := range q.Parts {
			want[p.Name] += p.Time.V * 1e6
		}
		for _, l := range q.Layers {
			want["attention"] += l.Attention.V * 1e6
			want["router"] += l.Router.V * 1e6
			want["experts"] += l.Experts.V * 1e6
		}
		if q.Paced.OK() {
			want["pace"] += q.Paced.V * 1e6
		}
	}
	for _, l := range r.Model.Load {
		if l.Stage != "model_load" {
			want[l.Stage] += l.Time.V * 1e6
		}
	}
	for name, us := range want {
		if math.Abs(got[name]-us) > 1e-3 {
			t.Errorf("%s: %v us, JSON has %v", name, got[name], us)
		}
	}
	for name := range got {
		if _, ok := want[name]; !ok {
			t.Errorf("%s is only in the CSV", name)
		}
	}
}

func TestStagesCSVIsInOrderOfTime(t *testing.T) {
	r := newRun()
	r.load()
	r.request(1, requestInfo, 2)
	names, sums := rowsOf(t, r.build(Meta{}))
	// A part that ends together with its whole comes after it.
	const want = "load_open load_map queue tokenize embed attention router prompt experts first_token other pace"
	if got := strings.Join(names, " "); got != want {
		t.Errorf("rows %s\nwant %s", got, want)
	}
	if sums["load_map"] != 30_000 || sums["other"] != 1000 {
		t.Errorf("load_map %v and other %v us, want 30000 and 1000", sums["load_map"], sums["other"])
	}
}

// broken fails after some bytes.
type broken struct{ left int }

var errBroken = errors.New("disk full")

func (b *broken) Write(p []byte) (int, error) {
	if b.left -= len(p); b.left < 0 {
		return 0, errBroken
	}
	return len(p), nil
}

func TestWritersReturnErrors(t *testing.T) {
	r := wholeRun().build(Meta{})
	for name, err := range map[string]error{
		"json": r.WriteJSON(&broken{10}), "csv": r.WriteCSV(&broken{10}), "tokens": r.WriteTokensCSV(&broken{10}), "stages": r.WriteStagesCSV(&broken{10}), "text": r.WriteText(&broken{10}), "summary": r.WriteSummary(&broken{10}),
	} {
		if !errors.Is(err, errBroken) {
			t.Errorf("%s: %v, want %v", name, err, errBroken)
		}
	}
}

// TestCellsAreNoFormulas checks that text that a spreadsheet would run is marked as text, and that negative numbers
// stay numbers.
func TestCellsAreNoFormulas(t *testing.T) {
	for in, want := range map[string]string{
		"=HYPERLINK(1)": "'=HYPERLINK(1)", "+1": "'+1", "-1": "'-1", "@SUM(1)": "'@SUM(1)", "\t=1": "' =1", "\r=1": "' =1", " =1": "' =1",
		"c=1": "c=1", "": "", "a\x1b[2Jb": "a?b", "\u202e=1": "?=1", "ü": "?",
	} {
		if got := textCell(in); got != want {
			t.Errorf("%q became %q, want %q", in, got, want)
		}
	}
	const formula = "=cmd|'/C calc'!A0"
	cells := func(r *Report, write func(*Report, io.Writer) error) {
		t.Helper()
		var b strings.Builder
		if err := write(r, &b); err != nil {
			t.Fatal(err)
		}
		rows, err := csv.NewReader(strings.NewReader(b.String())).ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		found := false
		for _, cell := range slices.Concat(rows...) {
			found = found || cell == "'"+formula
			if _, err := strconv.ParseFloat(cell, 64); err != nil && strings.IndexAny(cell, "=+-@\t\r") == 0 {
				t.Errorf("a cell is %q", cell)
			}
		}
		if !found {
			t.Errorf("no cell has the name:\n%s", b.String())
		}
	}
	r := benched()
	r.Bench.Points[0].Name = formula
	cells(r, (*Report).WriteCSV)
	r = wholeRun().build(Meta{})
	r.Model.Load = append(r.Model.Load, LoadStage{Stage: formula, ns: -1})
	cells(r, (*Report).WriteStagesCSV)
	r = wholeRun().build(Meta{})
	r.Requests[0].Label, r.Requests[1].Stalls = formula, []Stall{{Index: 1, Cause: Cause{Cause: formula}}}
	cells(r, (*Report).WriteCSV)
	cells(r, (*Report).WriteTokensCSV)
	r = wholeRun().build(Meta{})
	r.Reported = Aggregates{Numbers: []store.ServerNumber{{Name: formula, Value: event.MeasuredValue(-1)}}}
	cells(r, (*Report).WriteCSV)
}
