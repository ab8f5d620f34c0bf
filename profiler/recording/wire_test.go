package recording

import (
	"testing"
	"testing/synctest"

	"github.com/llmtop/llmtop/profiler/event/wire"
)

func newWire() Codec { return new(wire.Codec) }

// TestProtocolReplaysAsLive checks that live and replayed frames are equal with the event protocol's codec, which
// recordings use.
func TestProtocolReplaysAsLive(t *testing.T) {
	path, frames := live(t, 500, RecordOptions{Codec: newWire()})
	synctest.Test(t, func(t *testing.T) {
		r := newReplay(t, path, PlayOptions{Codec: newWire, Paused: true})
		defer r.stop()
		for _, want := range frames {
			if err := r.SeekTime(want.Now); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			same(t, "frame", want, r.store.Snapshot())
		}
		if s := r.Status(); s.Undecoded != 0 || s.Dropped.Total() != 0 {
			t.Errorf("%d lines were not decoded, %v dropped", s.Undecoded, s.Dropped)
		}
	})
}
