package event

import (
	"fmt"
	"math"
	"testing"
)

// checkNames checks that the first n values of an enumeration have distinct names, and all others the fallback.
func checkNames[T interface {
	~uint8
	fmt.Stringer
}](t *testing.T, n T, fallback string) {
	t.Helper()
	names := map[string]T{}
	for v := range n {
		name := v.String()
		if other, exists := names[name]; exists || name == "" {
			t.Errorf("%T %d has the name %q, like %d", v, v, name, other)
		}
		names[name] = v
	}
	if got := T(255).String(); got != fallback {
		t.Errorf("%T 255 has the name %q, want %q", n, got, fallback)
	}
}

func TestNamesAreDistinct(t *testing.T) {
	checkNames(t, NumKinds, "unknown")
	checkNames(t, NumStates, "unknown")
	checkNames(t, NumStages, "unknown")
	checkNames(t, EnginePaused+1, "unknown")
	checkNames(t, Derived+1, "not reported")
}

func TestStageByName(t *testing.T) {
	for s := StageNone + 1; s < NumStages; s++ {
		if got, ok := StageByName(s.String()); !ok || got != s {
			t.Errorf("stage of %q is %v, %v", s.String(), got, ok)
		}
	}
	for _, name := range []string{"", "none", "unknown", "Queue"} {
		if s, ok := StageByName(name); ok {
			t.Errorf("stage of %q is %v, want none", name, s)
		}
	}
}

func TestComponentsAreTheFirstStages(t *testing.T) {
	for i, s := range Components() {
		if int(s) != i+1 {
			t.Errorf("component %d is stage %d", i, s)
		}
	}
	if last := Components()[len(Components())-1]; last != StageSend {
		t.Errorf("the last component is %v, want %v", last, StageSend)
	}
}

func TestFinalStates(t *testing.T) {
	for s := range NumStates {
		if want := s == StateFinished || s == StateCancelled || s == StateFailed || s == StateUnseen; s.Final() != want {
			t.Errorf("%v: final %v", s, !want)
		}
	}
}

func TestReadings(t *testing.T) {
	for _, c := range []struct {
		r   Reading
		ok  bool
		why string
	}{
		{Reading{}, false, "not reported"},
		{Absent(NoDevice), false, "no device"},
		{Absent(Undefined), false, "undefined"},
		{MeasuredValue(0), true, "undefined"},
		{DerivedValue(-1), true, "undefined"},
		{Reading{V: 3, Origin: NotYet}, false, "not yet"},
		{MeasuredValue(math.NaN()), false, "undefined"},
		{DerivedValue(math.Inf(-1)), false, "undefined"},
	} {
		if c.r.OK() != c.ok || c.r.Absence() != c.why {
			t.Errorf("%+v: %v, %q; want %v, %q", c.r, c.r.OK(), c.r.Absence(), c.ok, c.why)
		}
	}
}

func TestPlus(t *testing.T) {
	two, three := ReportedValue(2), MeasuredValue(3)
	notYet, none, huge := Absent(NotYet), Reading{}, MeasuredValue(math.Inf(1))
	for _, c := range []struct{ a, b, want Reading }{
		{two, three, DerivedValue(5)}, {none, two, two}, {notYet, none, notYet}, {none, none, none}, {huge, none, Absent(Undefined)},
	} {
		if got, other := c.a.Plus(c.b), c.b.Plus(c.a); got != c.want || other != c.want {
			t.Errorf("%v + %v = %v, %v; want %v", c.a, c.b, got, other, c.want)
		}
	}
}

func TestCaps(t *testing.T) {
	c := CapTokens | CapText
	if !c.Has(CapTokens) || !c.Has(CapTokens|CapText) || c.Has(CapTokens|CapKV) || !c.Has(0) {
		t.Errorf("%b has the wrong bits", c)
	}
}
