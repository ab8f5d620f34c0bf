package report

import (
	"strings"
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
)

// A draft of 3 tokens is accepted twice of three times; a pass with it takes 14 ms, one without 10 ms.
func drafted() *event.Speculation {
	return &event.Speculation{
		DraftTime: 200e6, Drafted: []uint64{100, 100, 100}, Accepted: []uint64{90, 70, 40},
		Shapes: []event.PassShape{
			{Drafting: true, Requests: 1, Rows: 4, Passes: 100, Dur: 1400e6, Tokens: 300},
			{Requests: 1, Rows: 1, Passes: 40, Dur: 400e6, Tokens: 40},
		},
	}
}

func TestSpeculationSection(t *testing.T) {
	r := benched()
	r.Speculation = speculation(drafted())
	if err := schema(t).Validate(decoded(t, r)); err != nil {
		t.Error(err)
	}
	s := speculationSection(r)
	var got []string
	for _, row := range append([][]string{s.header}, s.rows...) {
		got = append(got, strings.Join(row, " "))
	}
	want := "position drafted accepted share\n1 100 90 90 %\n2 100 70 70 %\n3 100 40 40 %"
	if strings.Join(got, "\n") != want {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), want)
	}
	for i, words := range []string{"100 passes with drafts: 3.00 tokens per pass and request, 67 % of the drafted tokens accepted. The passes took 1.40 s, the drafts 200 ms.", "Gain: 1.88x the speed of 40 passes without drafts."} {
		if !strings.Contains(s.words[i], words) {
			t.Errorf("%q lacks %q", s.words[i], words)
		}
	}
	if text := textOf(t, r); !strings.Contains(text, "SPECULATION") {
		t.Errorf("the text lacks the table:\n%s", text)
	}
}

// Without passes to compare with, the gain is unknown and says what it lacks.
func TestSpeculationWithoutComparison(t *testing.T) {
	from := drafted()
	from.Shapes = from.Shapes[:1]
	r := benched()
	r.Speculation = speculation(from)
	if err := schema(t).Validate(decoded(t, r)); err != nil {
		t.Error(err)
	}
	if x := r.Speculation; x.Gain.OK() || x.Modelled || x.Absent["gain_ratio"] == "" {
		t.Errorf("%+v", x)
	}
	if s := speculationSection(r); s.words[1] != "Gain: unknown: no passes without drafts to compare with." {
		t.Errorf("%q", s.words)
	}
	if s := speculationSection(new(Report)); !s.empty() {
		t.Errorf("without speculation: %+v", s)
	}
}
