package report

import (
	"strings"
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
)

// timed returns a report of two passes, with 3 ms per pass in a layer and 1 ms outside of layers.
func timed() *Report {
	layer := 0
	seconds := func(v float64) event.Reading { return event.MeasuredValue(v) }
	r := &Report{Ops: &Ops{Passes: 2, Slowdown: seconds(1.5), Times: []OpTime{
		{Op: "MUL_MAT", Layer: &layer, Calls: 6, Time: seconds(0.006)},
		{Op: "MUL_MAT", Calls: 2, Time: seconds(0.002)},
	}}}
	for i, op := range strings.Fields("A B C D E F G") {
		r.Ops.Times = append(r.Ops.Times, OpTime{Op: op, Layer: &layer, Calls: 2, Time: seconds(0.0008 - 0.0001*float64(i))})
	}
	return r
}

func TestOpsTable(t *testing.T) {
	s := opsSection(timed())
	var got []string
	for _, row := range append([][]string{s.header}, s.rows...) {
		got = append(got, strings.Join(row, " "))
	}
	want := `layer MUL_MAT A B C D E others all
outside 1.00 ms - - - - - - 1.00 ms
0 3.00 ms 400 µs 350 µs 300 µs 250 µs 200 µs 250 µs 4.75 ms
all 4.00 ms 400 µs 350 µs 300 µs 250 µs 200 µs 250 µs 5.75 ms`
	if strings.Join(got, "\n") != want {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), want)
	}
	if !strings.Contains(s.words[0], "2 forward passes") || !strings.Contains(s.words[0], "duration 1.50") {
		t.Errorf("%q", s.words)
	}
	if s := opsSection((&Report{})); len(s.rows) > 0 {
		t.Errorf("without times: %v", s.rows)
	}
	whole := benched()
	whole.Ops = timed().Ops
	if err := schema(t).Validate(decoded(t, whole)); err != nil {
		t.Error(err)
	}
	if text := textOf(t, whole); !strings.Contains(text, "TIME PER OPERATION") {
		t.Errorf("the text lacks the table:\n%s", text)
	}
	unknown := timed()
	unknown.Ops.Slowdown = event.Absent(event.NotYet)
	if s := opsSection(unknown); !strings.Contains(s.words[0], event.Absent(event.NotYet).Absence()) {
		t.Errorf("%q", s.words)
	}
}
