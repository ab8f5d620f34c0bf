package viewtest

import (
	"sync"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/store"
)

// crowd simulates a server under load: n requests of three groups arrive one after another, four are decoded at a time,
// some fail, some are cancelled, and now and then a long prompt stalls the others. The last eight have not finished.
func crowd(n int) *Scene {
	s := NewScene()
	s.Load(event.StageNone)
	s.Slots = 4
	s.Model("qwen3-30b-a3b", 48, 128, 8)
	for i := range n {
		s.crowdRequest(event.RequestID(i+1), n-i)
		s.inspected = s.inspected || i == n/2
		if s.Now-s.sampled > 1000*Millisecond {
			s.sample(s.machineRng.Float64() * 0.04)
		}
		if i%64 == 0 {
			s.Host()
			s.Snapshot()
		}
	}
	s.Host()
	return s
}

// crowdRequest plays one request of a crowd; left is the number of requests still to come, this one included.
func (s *Scene) crowdRequest(id event.RequestID, left int) {
	i := int(id)
	prompt := 40 + i*37%700
	if i%41 == 0 {
		prompt = 9000
	}
	s.Emit(event.Event{Kind: event.KindRequest, Req: id, State: event.StateQueued, Data: &event.Request{
		Group: []string{"adapter-a", "adapter-b", "base"}[i%3], Label: []string{"chat", "code", "summary", "translation"}[i%4],
		Prompt: PromptText, MaxTokens: 64,
	}})
	if left <= 4 {
		s.Now += 90 * Millisecond
		return // still queued
	}
	s.Stage(id, event.StageQueue, time.Duration(200+i*7919%9000)*10*time.Microsecond, 0)
	s.Emit(event.Event{Kind: event.KindRequest, Req: id, State: event.StateDispatched})
	if i%97 == 0 {
		s.Outcome(id, event.StateFailed, "out of KV cells", prompt, 0)
		return
	}
	s.Stage(id, event.StageTokenize, time.Duration(prompt)*2*time.Microsecond, prompt)
	s.Stage(id, event.StagePrompt, time.Duration(prompt)*130*time.Microsecond, prompt)
	s.Stage(id, event.StageFirst, 2*time.Millisecond, 1)
	words := SplitWords(AnswerText)
	tokens := 8 + i%17
	for k := range tokens {
		gap := time.Duration(9e6 * (0.9 + 0.2*s.rng.Float64()))
		late := i%41 < 3 && k == 12
		if late {
			gap *= 7
			s.stalled = true
		}
		if k > 0 {
			s.Now += event.Time(gap)
		}
		if late {
			s.steps++
			s.Emit(event.Event{Kind: event.KindStep, Step: s.steps, Dur: int64(gap), N: 3, Prompt: 512})
		}
		s.steps++
		s.Token(id, k, words[k%len(words)])
	}
	switch {
	case left <= 8: // still running
	case i%53 == 0:
		s.Outcome(id, event.StateCancelled, "cancelled", prompt, tokens)
	case i%5 == 0:
		s.Outcome(id, event.StateFinished, "length", prompt, tokens)
	default:
		s.Outcome(id, event.StateFinished, "stop", prompt, tokens)
	}
}

// Outcome ends a request.
func (s *Scene) Outcome(id event.RequestID, st event.State, reason string, prompt, tokens int) {
	s.Emit(event.Event{Kind: event.KindRequest, Req: id, State: st, Data: &event.Outcome{
		Reason: reason, Prompt: prompt, Cached: prompt / 3 * int(id%2), Generated: tokens,
	}})
}

// Crowd returns the final snapshot of a crowd of n requests; each is made once.
var Crowd = once(func(n int) *store.Snapshot { return crowd(n).Snapshot() })

// once returns play with its results kept: each key is made once.
func once[K comparable](play func(K) *store.Snapshot) func(K) *store.Snapshot {
	var mu sync.Mutex
	made := map[K]*store.Snapshot{}
	return func(key K) *store.Snapshot {
		mu.Lock()
		defer mu.Unlock()
		if made[key] == nil {
			made[key] = play(key)
		}
		return made[key]
	}
}
