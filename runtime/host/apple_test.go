package host

import (
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
)

const ioRegistry = `+-o AGXAcceleratorG13X  <class AGXAcceleratorG13X, id 0x100000475, registered, matched, active, busy 0 (0 ms), retain 71>
    {
      "IOClass" = "AGXAcceleratorG13X"
      "PerformanceStatistics" = {"In use system memory (driver)"=0,"Alloc system memory"=6452183040,"Tiler Utilization %"=5,"Renderer Utilization %"=4,"Device Utilization %"=97,"In use system memory"=643219456}
      "model" = "Apple M1 Pro"
      "gpu-core-count" = 16
    }
`

func TestIORegistry(t *testing.T) {
	want := event.GPU{
		Name: "Apple M1 Pro", Unified: true, Util: event.MeasuredValue(.97), MemUsed: event.MeasuredValue(643219456),
		Power: event.Absent(event.NotPermitted), Clock: event.Absent(event.NotPermitted),
	}
	if got := parseIORegistry(ioRegistry + "\n"); len(got) != 1 || got[0] != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	for _, text := range []string{"", `"model" = "no node"`, "+-o X\n\"PerformanceStatistics\" = {\"Device Utilization %\"=-3}\n\"model\" = unquoted"} {
		for _, g := range parseIORegistry(text) {
			if g.Util.OK() || g.MemUsed.OK() || g.Name != "Apple GPU" {
				t.Errorf("%q: %+v", text, g)
			}
		}
	}
}

func FuzzIORegistry(f *testing.F) {
	f.Add(ioRegistry)
	f.Add("+-o \n\"PerformanceStatistics\" = {\"Device Utilization %\"=1e999,\"In use system memory\"=}}}")
	f.Fuzz(func(t *testing.T, text string) {
		gpus := parseIORegistry(text)
		if len(gpus) > maxGPUs {
			t.Errorf("%d GPUs", len(gpus))
		}
		for _, g := range gpus {
			if g.Util.V < 0 || g.MemUsed.V < 0 {
				t.Errorf("%q: %+v", text, g)
			}
		}
	})
}
