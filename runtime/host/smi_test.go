package host

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
)

func TestParseNvidia(t *testing.T) {
	index, gpu, ok := parseNvidia("1, NVIDIA H200, 40, 1024, 143771, 120.50, 45, 1980")
	want := event.GPU{
		Name: "NVIDIA H200", Util: event.MeasuredValue(0.4), MemUsed: event.MeasuredValue(1 << 30), MemTotal: event.MeasuredValue(143771 << 20),
		Power: event.MeasuredValue(120.5), Temperature: event.MeasuredValue(45), Clock: event.MeasuredValue(1980e6),
	}
	if !ok || index != 1 || gpu != want {
		t.Errorf("parseNvidia = %d, %+v, %v; want 1, %+v", index, gpu, ok, want)
	}
	_, gpu, ok = parseNvidia("0, Orin, with a comma, [N/A], [Not Supported], 7620, [N/A], 45, [Unknown Error]")
	if !ok || gpu.Name != "Orin, with a comma" || gpu.Util.OK() || gpu.MemUsed.OK() || gpu.Power.OK() || gpu.Clock.OK() || !gpu.MemTotal.OK() {
		t.Errorf("values that a GPU does not report: %+v, %v", gpu, ok)
	}
	for _, bad := range []string{"", "No devices were found", "-1, x, 1, 1, 1, 1, 1, 1", "64, x, 1, 1, 1, 1, 1, 1", "0.5, x, 1, 1, 1, 1, 1, 1"} {
		if _, _, ok := parseNvidia(bad); ok {
			t.Errorf("parseNvidia(%q) succeeded", bad)
		}
	}
}

func FuzzNvidia(f *testing.F) {
	f.Add("1, NVIDIA H200, 40, 1024, 143771, 120.50, 45, 1980\n")
	f.Add("0, x, NaN, 1e999, -1, [N/A], , +Inf")
	f.Fuzz(func(t *testing.T, text string) {
		w := &smi{}
		w.scan(strings.NewReader(text))
		if len(w.gpus) > maxGPUs {
			t.Errorf("%d GPUs", len(w.gpus))
		}
		for _, g := range w.gpus {
			for _, r := range []event.Reading{g.Util, g.MemUsed, g.MemTotal, g.Power, g.Temperature, g.Clock} {
				if r.OK() && r.V < 0 {
					t.Errorf("%q gives %v", text, g)
				}
			}
		}
	})
}

// TestFollow runs a shell script instead of nvidia-smi.
func TestFollow(t *testing.T) {
	shell, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("no shell to replace nvidia-smi")
	}
	line := "0, Test, 50, 1, 2, 3, 4, 5"
	tests := []struct{ name, script, want string }{
		{"no device", "echo No devices were found; exit 6", "nvidia-smi failed: No devices were found"},
		{"driver", "echo driver/library version mismatch >&2; exit 18", "nvidia-smi failed: driver/library version mismatch"},
		{"silent", "exit 9", "nvidia-smi failed: exit status 9"},
		{"ended", "echo '" + line + "'", "nvidia-smi failed: it ended"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			w := &smi{}
			w.follow(exec.Command(shell, "-c", tt.script))
			if gpus, _, err := w.read(); len(gpus) != 0 || err == nil || err.Error() != tt.want {
				t.Errorf("read = %v, %v; want none, %q", gpus, err, tt.want)
			}
		})
	}
	w := &smi{}
	w.scan(strings.NewReader(line + "\n"))
	if gpus, _, err := w.read(); len(gpus) != 1 || gpus[0].Name != "Test" || err != nil {
		t.Errorf("read = %v, %v; want one GPU", gpus, err)
	}
	w.scan(strings.NewReader("2, Second, 50, 1, 2, 3, 4, 5\n"))
	w.at[0] = w.at[0].Add(-2 * gpuSilence)
	if gpus, _, err := w.read(); len(gpus) != 3 || gpus[0] != (event.GPU{Name: "Test"}) || gpus[1].Name != "NVIDIA GPU" || !gpus[2].Util.OK() || err != nil {
		t.Errorf("read = %v, %v; want readings of the third GPU only", gpus, err)
	}
	w.at[2] = w.at[0]
	if gpus, _, err := w.read(); len(gpus) != 0 || err == nil || !strings.HasPrefix(err.Error(), "no data from nvidia-smi since ") {
		t.Errorf("read after %v without a line = %v, %v", 2*gpuSilence, gpus, err)
	}
}
