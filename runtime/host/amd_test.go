package host

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
)

func TestAMD(t *testing.T) {
	const device = "sys/class/drm/card1/device/"
	root := tree(t, map[string]string{
		device + "gpu_busy_percent": "40\n", device + "mem_info_vram_used": "1048576\n", device + "mem_info_vram_total": "2097152\n",
		device + "product_name": "Radeon Test\n", device + "hwmon/hwmon3/power1_average": "30000000\n",
		device + "hwmon/hwmon3/temp1_input":                "45000\n",
		"sys/class/drm/card1-DP-1/device/gpu_busy_percent": "9\n", "sys/class/drm/card0/device/vendor": "0x8086\n",
	})
	want := event.GPU{
		Name: "Radeon Test", Util: event.MeasuredValue(0.4), MemUsed: event.MeasuredValue(1 << 20), MemTotal: event.MeasuredValue(2 << 20),
		Power: event.MeasuredValue(30), Temperature: event.MeasuredValue(45), Clock: event.Absent(event.NotReported),
	}
	r := amd{drmCards{root: root}}
	if got, _, err := r.read(); err != nil || len(got) != 1 || got[0] != want {
		t.Errorf("read = %+v, %v, want %+v", got, err, want)
	}
	for n := 2; n <= 10; n += 8 {
		write(t, root, map[string]string{fmt.Sprintf("sys/class/drm/card%d/device/gpu_busy_percent", n): "70\n"})
	}
	if err := os.RemoveAll(filepath.Join(root, "sys/class/drm/card1")); err != nil {
		t.Fatal(err)
	}
	got, _, err := r.read()
	if err != nil || len(got) != 3 || got[0] != (event.GPU{Name: "Radeon Test"}) || got[1].Name != "card2" || got[2].Name != "card10" {
		t.Errorf("one removed, two added: %+v, %v", got, err)
	}
	if got, _, err := (&amd{drmCards{root: t.TempDir()}}).read(); len(got) != 0 || err != errNoGPU {
		t.Errorf("read of nothing = %+v, %v", got, err)
	}
}

// TestAPU: an APU uses the machine's memory beside its own, as its metrics or the sensor of its northbridge show.
func TestAPU(t *testing.T) {
	const device = "sys/class/drm/card0/device/"
	files := map[string]string{
		device + "gpu_busy_percent": "97\n", device + "mem_info_vram_used": "400\n", device + "mem_info_vram_total": "512\n",
		device + "mem_info_gtt_used": "63000\n", device + "mem_info_gtt_total": "120000\n", device + "uevent": "DRIVER=amdgpu\nPCI_SLOT_NAME=0000:c5:00.0\n",
	}
	for name, extra := range map[string]map[string]string{
		"little memory": {device + "vendor": "0x1002\n"},
		"metrics":       {device + "gpu_metrics": "\x08\x01\x03\x00rest"}, "sensor": {device + "hwmon/hwmon1/in1_label": "vddnb\n"},
	} {
		root := tree(t, files)
		write(t, root, extra)
		gpus, _, _ := (&amd{drmCards{root: root}}).read()
		if len(gpus) != 1 || gpus[0].MemUsed.V != 63400 || gpus[0].MemTotal.V != 120512 || !gpus[0].Unified || gpus[0].Address != "0000:c5:00.0" {
			t.Errorf("%s: %+v, want the sum of both memories", name, gpus)
		}
	}
	root := tree(t, files)
	write(t, root, map[string]string{device + "gpu_metrics": "\x08\x01\x01\x03rest"})
	if gpus, _, _ := (&amd{drmCards{root: root}}).read(); len(gpus) != 1 || gpus[0].MemUsed.V != 400 || gpus[0].Unified {
		t.Errorf("a card: %+v, want its own memory only", gpus)
	}
}

// TestUnreadGPU: a GPU without readings is not "no GPU", and a display without one is.
func TestUnreadGPU(t *testing.T) {
	for uevent, want := range map[string]string{
		"DRIVER=nouveau\nPCI_ID=10DE:2684\n": "GPU without readings: card0, driver nouveau", "DRIVER=amdgpu\n": "GPU without readings: card0, driver amdgpu",
		"DRIVER=bochs-drm\n": "no GPU", "MODALIAS=pci:v1\n": "no GPU",
	} {
		root := tree(t, map[string]string{"sys/class/drm/card0/device/uevent": uevent})
		if err := noReadings(root); err.Error() != want {
			t.Errorf("%q: %v, want %s", uevent, err, want)
		}
	}
}
