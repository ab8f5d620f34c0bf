package host

import (
	"math"
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
)

const procStat = `cpu  300 0 100 600 0 0 0 0 50 0
cpu0 200 0 50 250 0 0 0 0 50 0
cpu1 100 0 50 350 10 0 0 0 0 0
intr 12345 0 0
ctxt 99
`

func TestParseCores(t *testing.T) {
	got := parseCores(nil, []byte(procStat))
	want := []coreTimes{{busy: 250, total: 500}, {busy: 150, total: 510}} // guest time is part of user time, waiting for I/O is idle
	if len(got) != len(want) || got[0] != want[0] || got[1] != want[1] {
		t.Errorf("parseCores = %v, want %v", got, want)
	}
}

func TestCoreTimesSince(t *testing.T) {
	tests := []struct {
		name        string
		now, before coreTimes
		want        float64
	}{
		{"half", coreTimes{busy: 150, total: 300}, coreTimes{busy: 100, total: 200}, 0.5},
		{"no time has passed", coreTimes{busy: 100, total: 200}, coreTimes{busy: 100, total: 200}, math.NaN()},
		{"a counter went back", coreTimes{busy: 90, total: 300}, coreTimes{busy: 100, total: 200}, 0},
		{"more busy than time", coreTimes{busy: 400, total: 300}, coreTimes{busy: 100, total: 200}, 1},
	}
	for _, tt := range tests {
		got := tt.now.since(tt.before)
		if got != tt.want && !(math.IsNaN(got) && math.IsNaN(tt.want)) {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}

// processStat has a name that contains text like the rest of the line.
const processStat = `4242 (a) R 1 (b) S 1 4242 4242 0 -1 4194304 100 0 7 0 30 12 0 0 20 0 9 0 12345 99999744 2500 18446744073709551615 1 1 0`

func TestParseProcess(t *testing.T) {
	got, ok := parseProcess([]byte(processStat))
	want := processTimes{state: 'S', parent: 1, cpu: 42, faults: 7, minor: 100, threads: 9, started: 12345}
	if !ok || got != want {
		t.Errorf("parseProcess = %+v, %v; want %+v", got, ok, want)
	}
	for _, bad := range []string{"", "4242", "4242 (x)", "4242 (x) S 1 2 3"} {
		if _, ok := parseProcess([]byte(bad)); ok {
			t.Errorf("parseProcess(%q) succeeded", bad)
		}
	}
}

func TestPer(t *testing.T) {
	if got := per(30, 10, 2); got != event.MeasuredValue(10) {
		t.Errorf("per(30, 10, 2 s) = %v, want 10", got)
	}
	if got := per(30, 10, 0); got.OK() || got.Absence() != "not yet" {
		t.Errorf("per without an interval = %v, want not yet", got)
	}
	if got := per(5, 10, 2); got != event.MeasuredValue(0) {
		t.Errorf("per of a counter that was reset = %v, want 0", got)
	}
}

func TestParseNetwork(t *testing.T) {
	const dev = "Inter-|   Receive  |  Transmit\n face |bytes packets|bytes\n    lo: 9 9 0 0 0 0 0 0 9 9 0 0 0 0 0 0\n" +
		"  eth0: 100 1 0 0 0 0 0 0 30 1 0 0 0 0 0 0\nwlan0:5 1 0 0 0 0 0 0 7 1 0 0 0 0 0 0\n  bad: 1 2 3\n"
	if received, sent, ok := parseNetwork([]byte(dev)); received != 105 || sent != 37 || !ok {
		t.Errorf("%d received, %d sent, %v; want 105 and 37 without the loopback", received, sent, ok)
	}
	if _, _, ok := parseNetwork([]byte("lo: 9 9 0 0 0 0 0 0 9 9 0 0 0 0 0 0\n")); ok {
		t.Error("a machine with only a loopback has a network")
	}
}

// TestPlausible: numbers that no machine reaches are absent.
func TestPlausible(t *testing.T) {
	for _, v := range []float64{-1, math.NaN(), math.Inf(1), 1e30} {
		if got := measured(v); got != event.Absent(event.NotReported) {
			t.Errorf("%v is %+v, want not reported", v, got)
		}
	}
	if got := per(math.MaxUint64, 0, 1e-9); got.OK() {
		t.Errorf("a counter that jumps by 2^64 is %+v", got)
	}
	if got := parseClocks([]byte("cpu MHz : 1e300\ncpu MHz : 1e303\ncpu MHz: -1\ncpu MHz: 2000\n")); len(got) != 1 || got[0] != 2e9 {
		t.Errorf("clocks %v, want one", got)
	}
}

// FuzzProcfs checks that parsed values stay in their ranges for any input.
func FuzzProcfs(f *testing.F) {
	f.Add([]byte(procStat), []byte(processStat))
	f.Add([]byte("cpu0\ncpu1 a b\ncpu"), []byte("1 ()) "))
	f.Add([]byte("cpu MHz : 1e3\ncpu MHz : nan\ncpu MHz: -1"), []byte("some total=9\n eth0: 1 2 3 4 5 6 7 8 9"))
	f.Fuzz(func(t *testing.T, one, other []byte) {
		for _, raw := range [][]byte{one, other} {
			cores := parseCores(nil, raw)
			for i, c := range cores {
				if v := c.since(cores[0]); v < 0 || v > 1 {
					t.Errorf("core %d is busy for %v of the time", i, v)
				}
			}
			parseProcess(raw)
			parseNetwork(raw)
			parseSchedstat(raw)
			for _, hz := range parseClocks(raw) {
				if !(hz >= 0) {
					t.Errorf("a core runs at %v Hz", hz)
				}
			}
			if r := quantity(string(raw), 1); r.OK() && r.V < 0 {
				t.Errorf("quantity %q = %v", raw, r)
			}
		}
	})
}
