package tap

import (
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/source/tap/capture"
)

// TestNamedByPlace: the engine's name says at which end packets are captured, unless that is unknown or differs.
func TestNamedByPlace(t *testing.T) {
	far, atServer, atClient := *flow(), *flow(), *flow()
	atServer.AtServer, atClient.AtClient = true, true
	near := atServer
	near.AtClient = true
	for want, flows := range map[string][]capture.Flow{
		"tap":                    {far, near},
		"tap 8000 at the server": {atServer, atServer, near},
		"tap 8000 at a client":   {far, atClient},
		"tap 8000":               {atServer, atClient, atServer},
	} {
		opt := Options{Port: 8000}
		if want == "tap" {
			opt.Port = 0
		}
		tap, log := newTap(t, opt)
		for _, f := range flows {
			tap.open(&f)
		}
		engines := log.OfKind(event.KindEngine)
		if got := engines[len(engines)-1].Data.(*event.EngineInfo).Name; got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
