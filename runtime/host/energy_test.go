package host

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// rapl creates a folder like the kernel's, with a package and a subzone.
func rapl(t *testing.T) (root string, set func(name string, microjoules uint64)) {
	t.Helper()
	root = t.TempDir()
	set = func(name string, microjoules uint64) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(root, name), fmt.Appendf(nil, "%d\n", microjoules), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, zone := range []string{"intel-rapl:0", "intel-rapl:0:0"} {
		if err := os.Mkdir(filepath.Join(root, zone), 0o700); err != nil {
			t.Fatal(err)
		}
		set(zone+"/max_energy_range_uj", 10_000_000)
		set(zone+"/energy_uj", 9_000_000)
	}
	return root, set
}

func TestEnergyWraps(t *testing.T) {
	root, set := rapl(t)
	e := startEnergy(root, "missing.so", time.Hour)
	set("intel-rapl:0/energy_uj", 9_500_000)
	e.read()
	set("intel-rapl:0/energy_uj", 250_000)
	joules, source, missing := e.Stop()
	if math.Abs(joules-1.25) > 1e-9 || source != "RAPL" || missing != "" {
		t.Errorf("%v J from %q (%s), want 1.25: subzones must not count twice", joules, source, missing)
	}
}

func TestEnergyWithoutSource(t *testing.T) {
	joules, source, missing := startEnergy(t.TempDir(), "missing.so", time.Hour).Stop()
	if joules != 0 || source != "" || missing != "no RAPL counters; no NVML" {
		t.Errorf("%v J from %q (%s)", joules, source, missing)
	}
	root, _ := rapl(t)
	e := startEnergy(root, "missing.so", time.Hour)
	if err := os.RemoveAll(filepath.Join(root, "intel-rapl:0")); err != nil {
		t.Fatal(err)
	}
	if _, source, missing = e.Stop(); source != "" || missing == "" {
		t.Errorf("a counter that became unreadable: %q (%s)", source, missing)
	}
}

func TestPower(t *testing.T) {
	root, set := rapl(t)
	e := meterEnergy(root)
	if got := e.power(0); got.Absence() != "not yet" || got.OK() {
		t.Errorf("power without an interval = %+v", got)
	}
	set("intel-rapl:0/energy_uj", 9_900_000)
	if got := e.power(2 * time.Second); math.Abs(got.V-0.45) > 1e-9 || !got.OK() {
		t.Errorf("power = %+v, want 0.9 J in 2 s", got)
	}
	if got := e.power(time.Second); got.V != 0 || !got.OK() {
		t.Errorf("power of an unchanged counter = %+v, want 0", got)
	}
	if got := meterEnergy(t.TempDir()).power(time.Second); got.OK() || got.Absence() != "not reported" {
		t.Errorf("power without counters = %+v", got)
	}
	if got := (&Energy{missing: "RAPL counters: " + notPermitted}).power(time.Second); got.OK() || got.Absence() != "not permitted" {
		t.Errorf("power of counters that are not permitted = %+v", got)
	}
	if got := (*Energy)(nil).power(time.Second); got.OK() {
		t.Errorf("power of a nil Energy = %+v", got)
	}
}
