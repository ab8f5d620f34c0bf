package event

import "testing"

// TestAddLoadStage checks which stages are kept of successive loads, and of stages that make progress.
func TestAddLoadStage(t *testing.T) {
	stage := func(stage Stage, name string, from, to Time) Event {
		return Event{Kind: KindStage, Stage: stage, Text: name, At: to, Dur: int64(to - from)}
	}
	var kept []Event
	for i, c := range []struct {
		next Event
		want int
	}{
		{stage(StageLoadOpen, "", 0, 5), 1},
		{stage(StageLoadPart, "a", 5, 6), 2},
		{stage(StageLoadPart, "a", 5, 9), 2}, // progress
		{stage(StageLoadPart, "b", 5, 9), 3},
		{stage(StageLoadPart, "b", 6, 9), 4},
		{stage(StageLoadPart, "c", 9, 9), 4}, // above the limit
		{stage(StageLoad, "", 0, 9), 4},
		{stage(StageLoadOpen, "", 8, 9), 1},
		{stage(StageLoad, "", 0, 20), 2},
		{stage(StageLoadPart, "late", 19, 20), 3},
		{stage(StageLoadPart, "a", 20, 21), 1}, // next load
	} {
		before := append([]Event(nil), kept...)
		shared := kept
		if kept = AddLoadStage(kept, c.next, 4, (*Event).LoadStage); len(kept) != c.want {
			t.Fatalf("step %d: %d stages, want %d: %+v", i, len(kept), c.want, kept)
		}
		for j := range before {
			if shared[j].LoadStage() != before[j].LoadStage() {
				t.Errorf("step %d: the earlier list has changed", i)
			}
		}
	}
	if kept[0].Text != "a" || kept[0].At != 21 {
		t.Errorf("last load %+v", kept)
	}
}
