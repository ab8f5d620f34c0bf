package host

import (
	"testing"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
)

// TestIntel reads a card of xe and the GPU of a processor with i915.
func TestIntel(t *testing.T) {
	const processor, discrete = "sys/class/drm/card0/device/", "sys/class/drm/card1/device/"
	root := tree(t, map[string]string{
		processor + "uevent": "DRIVER=i915\nPCI_SLOT_NAME=0000:00:02.0\n", "sys/class/drm/card0/gt_act_freq_mhz": "1300\n", "sys/class/drm/card0/gt_RP0_freq_mhz": "1500\n",
		discrete + "uevent": "DRIVER=xe\nPCI_ID=8086:E20B\nPCI_SLOT_NAME=0000:03:00.0\n", discrete + "tile0/gt0/freq0/act_freq": "2850\n",
		discrete + "hwmon/hwmon4/energy1_input": "1000000\n", discrete + "hwmon/hwmon4/power1_max": "190000000\n", discrete + "hwmon/hwmon4/temp2_input": "41000\n",
		discrete + "hwmon/hwmon4/name": "xe\n", discrete + "hwmon/hwmon12/name": "xe_gt0\n", discrete + "hwmon/hwmon12/power1_max": "9000000\n",
		discrete + "hwmon/hwmon4/temp3_input":                   "47000\n",
		"sys/class/drm/card3/device/uevent":                     "DRIVER=i915\nPCI_SLOT_NAME=0000:05:00.0\n",
		"sys/class/drm/card3/device/hwmon/hwmon7/energy2_input": "5000000\n", "sys/class/drm/card3/device/hwmon/hwmon7/power1_max": "0\n",
		"sys/class/drm/card2/device/uevent": "DRIVER=nouveau\nPCI_SLOT_NAME=0000:04:00.0\n",
	})
	r := &intel{drmCards: drmCards{root: root}, energy: make(map[string]event.Reading)}
	gpus, _, err := r.read()
	if err != nil || len(gpus) != 3 || !gpus[0].Unified || gpus[0].Clock.V != 1.3e9 || gpus[0].MaxClock.V != 1.5e9 || gpus[0].Util.OK() || gpus[0].Power.OK() {
		t.Fatalf("%+v, %v", gpus, err)
	}
	if g := gpus[2]; g.PowerLimit.OK() || g.Energy.V != 5 {
		t.Errorf("no limit, energy of the package: %+v", g)
	}
	if g := gpus[1]; g.MemTemperature.V != 47 || g.Unified || g.Name != "Intel GPU 0xe20b" || g.Temperature.V != 41 || g.PowerLimit.V != 190 || g.Clock.V != 2.85e9 || g.Power.Origin != event.NotYet {
		t.Errorf("%+v", g)
	}
	r.at = r.at.Add(-2 * time.Second)
	write(t, root, map[string]string{discrete + "hwmon/hwmon4/energy1_input": "201000000\n"})
	if gpus, _, _ = r.read(); !(gpus[1].Power.V > 50 && gpus[1].Power.V <= 100) {
		t.Errorf("200 J in at least 2 s: %+v", gpus[1].Power)
	}
	for _, driver := range []string{"none", "xe"} { // removed, and back
		write(t, root, map[string]string{discrete + "uevent": "DRIVER=" + driver + "\n", discrete + "hwmon/hwmon4/energy1_input": "901000000\n"})
		if gpus, _, _ = r.read(); len(gpus) != 3 || gpus[1].Power.OK() || gpus[1].Clock.OK() != (driver == "xe") {
			t.Errorf("%s: %+v", driver, gpus[1])
		}
	}
	if _, _, err := (&intel{drmCards: drmCards{root: t.TempDir()}}).read(); err != errNoGPU {
		t.Errorf("no GPU: %v", err)
	}
}
