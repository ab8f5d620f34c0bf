package event

import (
	"fmt"
	"math"
	"testing"
)

// distinct checks that the first n values of an enumeration have names of their own, and what lies beyond has the one given.
func distinct[T interface {
	~uint8
	fmt.Stringer
}](t *testing.T, n T, beyond string) {
	t.Helper()
	names := map[string]T{}
	for v := range n {
		name := v.String()
		if other, taken := names[name]; taken || name == "" {
			t.Errorf("%T %d is called %q, as is %d", v, v, name, other)
		}
		names[name] = v
	}
	if got := T(255).String(); got != beyond {
		t.Errorf("%T 255 is called %q, want %q", n, got, beyond)
	}
}

func TestEverythingHasAName(t *testing.T) {
	distinct(t, NumKinds, "unknown")
	distinct(t, NumStates, "unknown")
	distinct(t, NumStages, "unknown")
	distinct(t, EnginePaused+1, "unknown")
	distinct(t, Derived+1, "not reported")
}

func TestStageByNameIsTheInverse(t *testing.T) {
	for s := StageNone + 1; s < NumStages; s++ {
		if got, ok := StageByName(s.String()); !ok || got != s {
			t.Errorf("%q names %v, %v", s.String(), got, ok)
		}
	}
	for _, name := range []string{"", "none", "unknown", "Queue"} {
		if s, ok := StageByName(name); ok {
			t.Errorf("%q names %v, want no stage", name, s)
		}
	}
}

func TestComponentsComeBeforeTheirParts(t *testing.T) {
	for i, s := range Components() {
		if int(s) != i+1 {
			t.Errorf("component %d is stage %d", i, s)
		}
	}
	if last := Components()[len(Components())-1]; last != StageDeviceToHost {
		t.Errorf("the last component is %v, want %v", last, StageDeviceToHost)
	}
}

func TestFinalStates(t *testing.T) {
	for s := range NumStates {
		if want := s == StateFinished || s == StateCancelled || s == StateFailed; s.Final() != want {
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
		{Of(0), true, "undefined"},
		{From(-1), true, "undefined"},
		{Reading{V: 3, Origin: NotYet}, false, "not yet"},
		{Of(math.NaN()), false, "undefined"},
		{From(math.Inf(-1)), false, "undefined"},
	} {
		if c.r.OK() != c.ok || c.r.Why() != c.why {
			t.Errorf("%+v: %v, %q; want %v, %q", c.r, c.r.OK(), c.r.Why(), c.ok, c.why)
		}
	}
}

func TestCaps(t *testing.T) {
	c := CapTokens | CapText
	if !c.Has(CapTokens) || !c.Has(CapTokens|CapText) || c.Has(CapTokens|CapKV) || !c.Has(0) {
		t.Errorf("%b has the wrong bits", c)
	}
}
