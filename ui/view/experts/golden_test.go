package experts

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/ui/view/viewtest"
)

// show shows the view once it has nothing more to compute.
func show(p *viewtest.Screen) *viewtest.Screen {
	v := New(p)
	for p.Show(v); v.Working(); {
		p.Show(v)
	}
	return p
}

// The view with a small and a large router: in every size, by prompt kind, with ASCII, and with colours, which are the
// shares of the experts.
func TestGolden(t *testing.T) {
	for _, shape := range viewtest.Shapes {
		s, name := viewtest.Routed(shape), fmt.Sprintf("%dx%d", shape.Layers, shape.Experts)
		for _, size := range []viewtest.Size{viewtest.Narrow, viewtest.Wide} {
			show(viewtest.NewScreen(t, s, size)).Golden(name)
		}
		show(viewtest.NewScreen(t, s, viewtest.Medium)).GoldenColours(name)
		show(viewtest.NewScreen(t, s, viewtest.Medium)).Press("v").Golden(name + "_kinds")
		show(viewtest.NewScreen(t, s, viewtest.Medium).ASCII()).Golden(name + "_ascii")
	}
}

// The experts in memory beside the picks: of the first layer only every third is resident, the second is unknown.
func TestGoldenInMemory(t *testing.T) {
	for _, shape := range viewtest.Shapes {
		s := *viewtest.Routed(shape)
		host := *s.Host.Host
		host.ExpertsCached = slices.Repeat([]uint8{100}, shape.Layers*shape.Experts)
		s.Host.Host, s.Host.ExpertsAt = &host, s.Now-event.Time(3*time.Second)
		for e := range shape.Experts {
			if e%3 > 0 {
				s.Host.ExpertsCached[e] = 10
			}
			s.Host.ExpertsCached[shape.Experts+e] = event.UnknownShare
		}
		for _, size := range []viewtest.Size{viewtest.Narrow, viewtest.Wide} {
			show(viewtest.NewScreen(t, &s, size)).Press("v", "v", "v").Golden(fmt.Sprintf("%dx%d_memory", shape.Layers, shape.Experts))
		}
	}
}

// The smallest screen has the share of routing whole, without the size of the budget.
func TestBudgetInLittleRoom(t *testing.T) {
	show(viewtest.NewScreen(t, viewtest.Routed(viewtest.Shapes[0]), viewtest.Size{W: 60, H: 16})).Holds("32 of 128 experts: 53 % of routing")
}

// An engine that reports no router picks.
func TestGoldenNoPicks(t *testing.T) {
	show(viewtest.NewScreen(t, viewtest.Crowd(20), viewtest.Medium)).Golden("no_picks")
}

// A past moment of a large model says that its router picks are no longer kept.
func TestPicksNoLongerKept(t *testing.T) {
	s := *viewtest.Routed(viewtest.Shapes[0])
	s.Experts, s.Picks, s.HeatmapsDropped = nil, nil, true
	text := show(viewtest.NewScreen(t, &s, viewtest.Medium)).Text()
	if !strings.Contains(text, "router picks of this moment are no longer kept") || !strings.Contains(text, "a large model are kept for a minute") {
		t.Error(text)
	}
	if why, _ := new(View).Missing(&s); why != "" {
		t.Errorf("the view is not offered: %s", why)
	}
}
