package engine_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/engine"
)

// gaps returns the times between the tokens of a request, and how much of each was pacing.
func (b *bench) gaps(req event.RequestID) (gap, paced []time.Duration) {
	var last event.Time
	var waited int64
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, e := range b.events {
		switch {
		case e.Req != req:
		case e.Kind == event.KindStage && e.Stage == event.StagePace:
			waited += e.Dur
		case e.Kind == event.KindToken:
			if e.Index > 0 {
				gap = append(gap, time.Duration(e.At-last))
				paced = append(paced, time.Duration(waited))
			}
			last, waited = e.At, 0
		}
	}
	return gap, paced
}

const (
	row        = fakeEmbed + fakeLayers*(fakeAttention+fakeRouter+fakeExperts) // the fake engine's time for one row
	oneToken   = row + fakeHead + fakeSample
	twoTokens  = 2*row + fakeHead + 2*fakeSample
	paceOf40   = 25 * time.Millisecond
	thirdToken = 2 // index
)

// TestPaceIsExcluded: at 40 tokens/s, a token comes every 25 ms; all but the computation is reported as pacing.
func TestPaceIsExcluded(t *testing.T) {
	run(t, newFake(t, 1, 64, 16), engine.Options{Pace: 40}, func(t *testing.T, b *bench) {
		h := b.mustSubmit(t, "abc", 8)
		<-h.Done()
		gap, paced := b.gaps(h.ID)
		for i := range gap {
			if i > 0 && gap[i] != paceOf40 {
				t.Errorf("gap %d is %v, want %v", i, gap[i], paceOf40)
			}
			if work := gap[i] - paced[i]; work != oneToken {
				t.Errorf("gap %d less pacing is %v, want %v", i, work, oneToken)
			}
		}
		info := b.byKind(event.KindEngine, 0)
		if e := info[len(info)-1].Data.(*event.EngineInfo); e.Pace != 40 {
			t.Errorf("the engine reports a pace of %v", e.Pace)
		}
	})
}

// TestPacedRequestsShareBatches even if they started at different times.
func TestPacedRequestsShareBatches(t *testing.T) {
	e := newFake(t, 2, 64, 16)
	run(t, e, engine.Options{Pace: 40}, func(t *testing.T, b *bench) {
		first := b.mustSubmit(t, "abc", 8)
		time.Sleep(2*paceOf40 + 8*time.Millisecond)
		second := b.mustSubmit(t, "abc", 8)
		<-first.Done()
		<-second.Done()
		_, paced := b.gaps(second.ID)
		gap, _ := b.gaps(second.ID)
		if work := gap[thirdToken] - paced[thirdToken]; work != twoTokens {
			t.Errorf("a gap of the second request less pacing is %v, want %v for a shared batch", work, twoTokens)
		}
	})
	shared := 0
	for _, rows := range e.batches {
		if len(rows) == 2 {
			shared++
		}
	}
	if shared < 4 {
		t.Errorf("%d batches were shared:\n%s", shared, shapes(e.batches))
	}
}

// TestStallIsNotPacing: if a paced request is due while another request's prompt is processed, the extra wait does not
// count as pacing.
func TestStallIsNotPacing(t *testing.T) {
	run(t, newFake(t, 2, 2048, 1024), engine.Options{Pace: 1000, Mixed: 1024}, func(t *testing.T, b *bench) {
		h := b.mustSubmit(t, "abc", 6)
		time.Sleep(1500 * time.Microsecond)
		long, err := b.Submit(engine.Request{IDs: make([]int32, 1000), MaxTokens: 1})
		if err != nil {
			t.Fatal(err)
		}
		<-h.Done()
		<-long.Done()
		gap, paced := b.gaps(h.ID)
		worst := time.Duration(0)
		for i := range gap {
			worst = max(worst, gap[i]-paced[i])
		}
		// The prompt may have started while the request was still paced, for up to one interval.
		if least := 1000*row - time.Millisecond; worst < least {
			t.Errorf("the worst gap less pacing is %v, want at least the %v of the prompt beyond the pace", worst, least)
		}
	})
}

// waits returns the parts of a request's wait in the queue, and the whole of it.
func (b *bench) waits(req event.RequestID) (queue, paced, whole time.Duration) {
	for _, e := range b.byKind(event.KindStage, req) {
		switch e.Stage {
		case event.StageQueue:
			queue += time.Duration(e.Dur)
		case event.StagePacedByOthers:
			paced += time.Duration(e.Dur)
		}
	}
	states := b.byKind(event.KindRequest, req)
	return queue, paced, time.Duration(states[1].At - states[0].At)
}

// TestPacedByOthers: a request that waits for a slot waits for the pacing of those that hold it, which is not queue.
func TestPacedByOthers(t *testing.T) {
	run(t, newFake(t, 1, 64, 16), engine.Options{Pace: 40}, func(t *testing.T, b *bench) {
		first := b.mustSubmit(t, "abc", 5)
		time.Sleep(paceOf40 / 2) // the second comes while the first is paced
		second, third := b.mustSubmit(t, "abc", 5), b.mustSubmit(t, "abc", 5)
		<-third.Done()
		var held [2]time.Duration // pacing of the first and the second request
		for i, h := range []*engine.Handle{first, second} {
			_, paced := b.gaps(h.ID)
			for _, d := range paced {
				held[i] += d
			}
		}
		queue, paced, whole := b.waits(second.ID)
		before := time.Duration(b.byKind(event.KindRequest, second.ID)[0].At - b.byKind(event.KindToken, first.ID)[0].At)
		if paced != held[0]-before || queue != 4*oneToken || queue+paced != whole {
			t.Errorf("of %v, %v are queue and %v paced by the first request, which was paced for %v, %v of it before", whole, queue, paced, held[0], before)
		}
		if queue, paced, whole := b.waits(third.ID); paced != held[0]-before+held[1] || queue+paced != whole {
			t.Errorf("of %v, %v are queue and %v paced by the others, which were paced for %v", whole, queue, paced, held)
		}
	})
}

// TestQueueIsNotPaced: a request that finds a free slot, or waits for work, was not paced by others.
func TestQueueIsNotPaced(t *testing.T) {
	run(t, newFake(t, 2, 64, 16), engine.Options{Pace: 40}, func(t *testing.T, b *bench) {
		first := b.mustSubmit(t, "abc", 9)
		time.Sleep(paceOf40 / 2)
		second := b.mustSubmit(t, "abc", 2)
		<-first.Done()
		<-second.Done()
		b.SetPace(0)
		for range 2 {
			<-b.mustSubmit(t, "abc", 9).Done()
		}
		last := []*engine.Handle{b.mustSubmit(t, "abc", 9), b.mustSubmit(t, "abc", 9), b.mustSubmit(t, "abc", 9)}
		for _, h := range last {
			<-h.Done()
		}
		for id := range last[2].ID {
			if queue, paced, whole := b.waits(id + 1); paced != 0 || queue != whole {
				t.Errorf("request %d waited %v, %v of it in the queue, %v paced by others", id+1, whole, queue, paced)
			}
		}
	})
}

// TestSetPace changes the pace of a waiting request.
func TestSetPace(t *testing.T) {
	run(t, newFake(t, 1, 64, 16), engine.Options{Pace: 0.001}, func(t *testing.T, b *bench) {
		h := b.mustSubmit(t, "abc", 5)
		time.Sleep(time.Second)
		b.SetPace(10)
		time.Sleep(50 * time.Millisecond)
		b.SetPace(0)
		<-h.Done()
		gap, paced := b.gaps(h.ID)
		for i := range gap {
			if work := gap[i] - paced[i]; work != oneToken {
				t.Errorf("gap %d less pacing is %v, want %v", i, work, oneToken)
			}
		}
		// The first token came right after the request, the second when the pace was set, one second later.
		if gap[0] < 999*time.Millisecond || gap[0] > time.Second+oneToken || gap[len(gap)-1] != oneToken {
			t.Errorf("gaps are %v, want about 1s first and %v last", gap, oneToken)
		}
	})
}

// TestPause pauses the engine between two tokens; the pause counts as pacing.
func TestPause(t *testing.T) {
	e := newFake(t, 1, 64, 16)
	run(t, e, engine.Options{}, func(t *testing.T, b *bench) {
		h := b.mustSubmit(t, "abc", 9)
		time.Sleep(5 * oneToken)
		b.Pause()
		time.Sleep(time.Millisecond)
		done := len(b.byKind(event.KindToken, h.ID))
		time.Sleep(time.Hour)
		if now := len(b.byKind(event.KindToken, h.ID)); now != done || done == 0 || done == 9 {
			t.Errorf("%d tokens before an hour of pause, %d after it", done, now)
		}
		late := b.mustSubmit(t, "x", 1)
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := len(b.byKind(event.KindRequest, late.ID)); got != 1 {
			t.Errorf("a paused engine has dispatched a request")
		}
		b.Resume()
		<-h.Done()
		<-late.Done()
		if queue, paced, whole := b.waits(late.ID); paced != time.Minute || queue+paced != whole {
			t.Errorf("of %v, a request that came to a paused engine has %v queue and %v pacing", whole, queue, paced)
		}
		gap, paced := b.gaps(h.ID)
		for i := range gap {
			if work := gap[i] - paced[i]; work != oneToken {
				t.Errorf("gap %d is %v, less pacing %v, want %v", i, gap[i], work, oneToken)
			}
		}
		var states []event.EngineState
		for _, e := range b.byKind(event.KindEngine, 0) {
			states = append(states, e.Data.(*event.EngineInfo).State)
		}
		if len(states) != 4 || states[2] != event.EnginePaused || states[3] != event.EngineReady {
			t.Errorf("states were %v", states)
		}
	})
}

// TestPacingEndsAtOnce: neither a cancellation nor the end of the session waits for a paced token.
func TestPacingEndsAtOnce(t *testing.T) {
	run(t, newFake(t, 1, 64, 16), engine.Options{Pace: 0.001}, func(t *testing.T, b *bench) {
		h, rest := b.mustSubmit(t, "abc", 5), b.mustSubmit(t, "abc", 5)
		time.Sleep(time.Second)
		before := b.clock.Now()
		h.Cancel()
		<-h.Done()
		time.Sleep(time.Second)
		if err := b.stop(); err != nil {
			t.Error(err)
		}
		<-rest.Done()
		if took := time.Duration(b.clock.Now() - before); took != time.Second {
			t.Errorf("both took %v, want the second between them", took)
		}
	})
}
