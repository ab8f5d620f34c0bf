package trace

import (
	"testing"
	"testing/synctest"

	"github.com/llmtop/llmtop/profiler/event/wire"
)

func newWire() Codec { return new(wire.Codec) }

// TestProtocolReplaysAsLive holds live and replayed frames equal in the words of the event protocol, which recordings are written in.
func TestProtocolReplaysAsLive(t *testing.T) {
	path, frames := live(t, 500, RecordOptions{Codec: newWire()})
	synctest.Test(t, func(t *testing.T) {
		r := newReplay(t, path, PlayOptions{Codec: newWire, Paused: true})
		defer r.quit()
		for _, want := range frames {
			if err := r.SeekTime(want.Now); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			same(t, "frame", want, r.store.Snapshot())
		}
		if s := r.Status(); s.Unread != 0 || s.Lost.Total() != 0 {
			t.Errorf("%d lines were not read, %v lost", s.Unread, s.Lost)
		}
	})
}
