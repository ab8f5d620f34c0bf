package files

import (
	"strings"
	"testing"

	"github.com/spf13/pflag"

	"github.com/llmtop/llmtop/profiler/report"
)

// TestEndings checks that the end of a name says what is written, and that the flags of single formats say the same for a
// file with another name.
func TestEndings(t *testing.T) {
	for _, c := range []struct {
		args   []string
		ending string
		want   string
	}{
		{[]string{"--out", "a.json", "--out", "a.JSONL"}, ".jsonl", "a.JSONL"},
		{[]string{"--out", "a.json", "--out", "a.perfetto.json"}, JSON, "a.json"},
		{[]string{"--out", "a.json", "--out", "a.perfetto.json"}, Timeline, "a.perfetto.json"},
		{[]string{"--out", "a.tokens.csv", "--out", "b.csv"}, ".csv", "b.csv"},
		{[]string{"--out", "x/.csv"}, ".csv", "x/.csv"},
		{[]string{"--out", "-"}, JSON, "-"},
		{[]string{"--out", "-.stages.csv"}, Stages, "-"},
		{[]string{"--out", "-.CSV"}, ".csv", "-"},
		{[]string{"--out", "-.llmtop"}, Recording, "-.llmtop"}, // never standard output
		{[]string{"--csv", "/dev/fd/3", "--out", "a.json"}, ".csv", "/dev/fd/3"},
		{[]string{"--record", "session"}, Recording, "session"},
	} {
		set := pflag.NewFlagSet("", pflag.ContinueOnError)
		o := BindOut(set, Timeline, Recording)
		if BindReports(set) != o {
			t.Fatal("a command has two --out")
		}
		if err := set.Parse(c.args); err != nil || o.Name(c.ending) != c.want {
			t.Errorf("%q: %s is %q (%v), want %q", c.args, c.ending, o.Name(c.ending), err, c.want)
		}
	}
	for _, args := range [][]string{
		{"--out", "a.txt"},
		{"--out", "json"},
		{"--out", ""},
		{"--out", "a.cast"},
		{"--out", "a.csv", "--out", "b.csv"},
		{"--out", "a.csv", "--csv", "b.csv"},
		{"--csv", "a.csv", "--csv", "b.csv"},
		{"--out", "a.perfetto.json"},
	} {
		set := pflag.NewFlagSet("", pflag.ContinueOnError)
		BindReports(set)
		if err := set.Parse(args); err == nil {
			t.Errorf("%q is accepted", args)
		}
	}
}

// TestWarnings checks that reports for programs and for people say what could not be measured well, also those that are read
// and written again.
func TestWarnings(t *testing.T) {
	const want = "half of it was lost (requests: 3)"
	var doc strings.Builder
	o := BindReports(pflag.NewFlagSet("", pflag.ContinueOnError))
	o.Warnings = func() []string { return []string{want} }
	var built *report.Report
	if err := o.Write(&doc, &doc, true, func() (*report.Report, error) {
		built = &report.Report{SchemaVersion: report.SchemaVersion}
		return built, nil
	}); err != nil || !strings.Contains(doc.String(), "Warning: "+want) {
		t.Errorf("%v: %s", err, doc.String())
	}
	doc.Reset()
	if err := built.WriteJSON(&doc); err != nil {
		t.Fatal(err)
	}
	read, err := report.Read(strings.NewReader(doc.String()))
	if err != nil {
		t.Fatal(err)
	}
	doc.Reset()
	o = BindReports(pflag.NewFlagSet("", pflag.ContinueOnError))
	if err := o.Write(&doc, &doc, true, func() (*report.Report, error) { return read, nil }); err != nil || !strings.Contains(doc.String(), "Warning: "+want) {
		t.Errorf("read again: %v: %s", err, doc.String())
	}
}
