package recording

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
)

func TestReplayMatchesLive(t *testing.T) {
	path, frames := live(t, 500, RecordOptions{})
	synctest.Test(t, func(t *testing.T) {
		r := newReplay(t, path, PlayOptions{})
		defer r.stop()
		begin, exact := time.Now(), 0
		for _, want := range frames {
			time.Sleep(time.Duration(want.Now-r.rec.Begin) - time.Since(begin))
			synctest.Wait()
			got := r.store.Snapshot()
			if got.Now == want.Now {
				exact++
				same(t, "frame", want, got)
			} else if late := want.Now - got.Now; late < 0 || late > event.Time(nap) {
				t.Fatalf("the replay is at %v, want %v", got.Now, want.Now)
			}
		}
		if exact < len(frames)*3/4 {
			t.Errorf("only %d of %d frames have the exact time", exact, len(frames))
		}
	})
}

func TestSeekMatchesLive(t *testing.T) {
	path, frames := live(t, 500, RecordOptions{})
	synctest.Test(t, func(t *testing.T) {
		r := newReplay(t, path, PlayOptions{Paused: true})
		defer r.stop()
		for _, want := range frames {
			if err := r.SeekTime(want.Now); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			same(t, "frame", want, r.store.Snapshot())
		}
		if s := r.Status(); s.Undecoded != 0 || s.Dropped.Total() != 0 || s.Damage != (Damage{}) {
			t.Errorf("status %+v", s)
		}
		if r.fresh != 1 {
			t.Errorf("%d stores for seeks forward only, want 1", r.fresh)
		}
	})
}
