package event

import (
	"reflect"
	"testing"
)

// TestCatalogueIsComplete checks that every reading is defined, exported and usable in alerts, that no two share a name,
// and that every gauge has a row.
func TestCatalogueIsComplete(t *testing.T) {
	alerts := map[string]bool{}
	checkFields(t, MachineFields[:], alerts)
	checkFields(t, ProcessFields[:], alerts)
	checkFields(t, GPUFields[:], alerts)
	for g := range NumGauges {
		if g.Info().Title == "" || g.Info().Gauge != g {
			t.Errorf("gauge %d has no row", g)
		}
	}
	for _, r := range HostReadings {
		if (r.Gauge == NoGauge) != (r.Title == "") {
			t.Errorf("%s: title %q of gauge %d", r.Alert, r.Title, r.Gauge)
		}
	}
}

func checkFields[T any](t *testing.T, rows []Field[T], alerts map[string]bool) {
	t.Helper()
	var sample T
	names, at := map[string]bool{}, map[*Reading]string{}
	for _, f := range rows {
		if f.Key == "" || f.Name == "" || f.Help == "" || f.Own.Alert+f.Self.Alert == "" || f.Metric == "" {
			t.Errorf("%q lacks a name or a definition: %+v", f.Key, f)
		}
		for _, name := range []string{"key " + f.Key, "JSON " + f.JSON, "metric " + f.Metric} {
			if names[name] && name[len(name)-1] != ' ' {
				t.Errorf("%s occurs twice", name)
			}
			names[name] = true
		}
		for _, name := range []string{f.Own.Alert, f.Self.Alert} {
			if name != "" && alerts[name] {
				t.Errorf("the measure %s occurs twice", name)
			}
			alerts[name] = true
		}
		if other := at[f.At(&sample)]; other != "" {
			t.Errorf("%s and %s are the same reading", f.Key, other)
		}
		at[f.At(&sample)] = f.Key
	}
}

func TestUnits(t *testing.T) {
	for u, want := range map[Unit]string{"By": "B", "By/s": "B/s", "1": "0..1", "Cel": "°C", "{core}": "cores", "{fault}/s": "1/s", "{token}/s": "tokens/s", "s": "s", "": ""} {
		if got := u.String(); got != want {
			t.Errorf("%q is written %q, want %q", string(u), got, want)
		}
	}
	if u, factor := Unit("ns").Base(); u != "s" || factor != 1e-9 {
		t.Errorf("ns are exported as %g %s", factor, u)
	}
}

// TestUsageIsComplete checks that every reading of a Usage has a row of its own, with a definition.
func TestUsageIsComplete(t *testing.T) {
	var u Usage
	rows, keys := map[*Reading]bool{}, map[string]bool{}
	for _, f := range UsageFields {
		if f.Key == "" || keys[f.Key] || rows[f.At(&u)] || f.Name == "" || f.Help == "" || f.Unit == "" {
			t.Errorf("%q has a name twice, or lacks one: %+v", f.Key, f)
		}
		rows[f.At(&u)], keys[f.Key] = true, true
	}
	if n := reflect.TypeFor[Usage]().NumField() - 1; len(rows) != n {
		t.Errorf("%d of %d readings have a row", len(rows), n)
	}
}

// TestFoldedGPUs: a GPU of a processor does not count beside others, unless the engine uses it; alone it does.
func TestFoldedGPUs(t *testing.T) {
	card, own := GPU{Util: MeasuredValue(.8), Power: MeasuredValue(300)}, GPU{Unified: true, Power: MeasuredValue(20)}
	used := own
	used.EngineMem = MeasuredValue(1)
	for name, c := range map[string]struct {
		gpus  []GPU
		power float64
		util  bool
	}{
		"both": {[]GPU{own, card}, 300, true}, "two cards": {[]GPU{card, own, card}, 600, true}, "own alone": {[]GPU{own}, 20, false},
		"used": {[]GPU{used, card}, 320, false}, "lost": {[]GPU{card, {}}, 0, false},
	} {
		h := Host{GPUs: c.gpus}
		if p := GaugeGPUPower.Reading(&h); p.V != c.power || p.OK() != (c.power > 0) {
			t.Errorf("%s: %+v, want %v W", name, p, c.power)
		}
		if u := GaugeGPU.Reading(&h); u.OK() != c.util {
			t.Errorf("%s: busy %+v", name, u)
		}
	}
}
