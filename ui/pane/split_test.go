package pane

import (
	"math"
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/store"
)

// Stages reported longer than the gap keep their length; their share is at most 1.
func TestSplitLongerThanItsGap(t *testing.T) {
	const most = math.MaxUint32
	tokens := []store.Token{
		{Gap: 1, Split: event.Split{Embed: most, Attention: most, Router: most, Experts: most, Head: most, Sample: most}},
	}
	parts, gap, n := MeanSplit(tokens)
	if gap != 1 || n != 1 {
		t.Fatalf("a gap of %v over %d tokens, want 1 ns over 1", gap, n)
	}
	for i, p := range parts {
		want := TimePart{Dur: most, Share: 1}
		if i == len(parts)-1 { // no time left for "other"
			want = TimePart{}
		}
		if p.Dur != want.Dur || p.Share != want.Share {
			t.Errorf("%s takes %v, a share of %v; want %v and %v", p.Name, p.Dur, p.Share, want.Dur, want.Share)
		}
	}
}
