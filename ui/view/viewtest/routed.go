package viewtest

import (
	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/store"
)

// pickFor draws router picks for a token of a prompt kind: experts of each layer by their bias, shifted by a few places
// per kind.
func (s *Scene) pickFor(kind string) (picks []uint16) {
	for l := range s.layers {
		seen := map[uint16]bool{}
		for len(seen) < s.used {
			if p := uint16((s.pick(l) + len(kind)) % s.experts); !seen[p] {
				seen[p] = true
				picks = append(picks, p)
			}
		}
	}
	return picks
}

// routed plays a session of a model of the given shape whose tokens carry their router picks: four prompt kinds and two
// groups, the last request still running.
func routed(m Shape) *Scene {
	s := NewScene()
	s.Load(event.StageNone)
	s.Model("moe", m.Layers, m.Experts, m.Used)
	s.withPicks = true
	for i, kind := range []string{"code", "novel", "scripture", "code", "arithmetic"} {
		s.Request(event.RequestID(i+1), kind, PromptText[:20+i*5], AnswerText, 60, 60, i == 0)
		s.Now += 2500 * Millisecond
		s.Host()
		s.Snapshot()
	}
	s.Request(6, "scripture", PromptText, AnswerText, 40, 420, false)
	s.Now += 1003 * Millisecond
	s.Emit(event.Event{Kind: event.KindLog, Text: "on"})
	return s
}

// Shape is the size of a router.
type Shape struct{ Layers, Experts, Used int }

// The shapes of the models under test.
var (
	Small  = Shape{8, 16, 2}
	Large  = Shape{94, 256, 8}
	Shapes = []Shape{Small, Large}
)

// Routed returns the final snapshot of a routed session; each is made once.
var Routed = once(func(m Shape) *store.Snapshot { return routed(m).Snapshot() })
