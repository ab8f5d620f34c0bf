package ui

import (
	"fmt"
	"sync"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/store"
)

// crowd simulates a server under load: n requests of three groups arrive one after another, four are decoded at a time,
// some fail, some are cancelled, and now and then a long prompt stalls the others. The last eight have not finished.
func crowd(n int) *scene {
	s := newScene()
	s.load(event.StageNone)
	s.slots = 4
	s.model("qwen3-30b-a3b", 48, 128, 8)
	for i := range n {
		s.crowdRequest(event.RequestID(i+1), n-i)
		s.inspected = s.inspected || i == n/2
		if s.now-s.sampled > 1000*ms {
			s.sample(s.machineRng.Float64() * 0.04)
		}
		if i%64 == 0 {
			s.host()
			s.drain()
		}
	}
	s.host()
	return s
}

// crowdRequest plays one request of a crowd; left is the number of requests still to come, this one included.
func (s *scene) crowdRequest(id event.RequestID, left int) {
	i := int(id)
	prompt := 40 + i*37%700
	if i%41 == 0 {
		prompt = 9000
	}
	s.emit(event.Event{Kind: event.KindRequest, Req: id, State: event.StateQueued, Data: &event.Request{
		Group: []string{"adapter-a", "adapter-b", "base"}[i%3], Label: []string{"chat", "code", "summary", "translation"}[i%4],
		Prompt: promptText, MaxTokens: 64,
	}})
	if left <= 4 {
		s.now += 90 * ms
		return // still queued
	}
	s.stage(id, event.StageQueue, time.Duration(200+i*7919%9000)*10*time.Microsecond, 0)
	s.emit(event.Event{Kind: event.KindRequest, Req: id, State: event.StateDispatched})
	if i%97 == 0 {
		s.outcome(id, event.StateFailed, "out of KV cells", prompt, 0)
		return
	}
	s.stage(id, event.StageTokenize, time.Duration(prompt)*2*time.Microsecond, prompt)
	s.stage(id, event.StagePrompt, time.Duration(prompt)*130*time.Microsecond, prompt)
	s.stage(id, event.StageFirst, 2*time.Millisecond, 1)
	words := splitWords(answerText)
	tokens := 8 + i%17
	for k := range tokens {
		gap := time.Duration(9e6 * (0.9 + 0.2*s.rng.Float64()))
		if i%41 < 3 && k == 12 {
			s.step++
			s.emit(event.Event{Kind: event.KindStep, Step: s.step, Dur: int64(gap), N: 3, Prompt: 512})
			gap *= 7
			s.stalled = true
		}
		if k > 0 {
			s.now += event.Time(gap)
		}
		s.step++
		s.emit(event.Event{Kind: event.KindToken, Req: id, ID: int32(k), Index: int32(k), N: 1, Step: s.step, Text: words[k%len(words)]})
	}
	switch {
	case left <= 8: // still running
	case i%53 == 0:
		s.outcome(id, event.StateCancelled, "cancelled", prompt, tokens)
	case i%5 == 0:
		s.outcome(id, event.StateFinished, "length", prompt, tokens)
	default:
		s.outcome(id, event.StateFinished, "stop", prompt, tokens)
	}
}

func (s *scene) outcome(id event.RequestID, st event.State, reason string, prompt, tokens int) {
	s.emit(event.Event{Kind: event.KindRequest, Req: id, State: st, Data: &event.Outcome{
		Reason: reason, Prompt: prompt, Cached: prompt / 3 * int(id%2), Generated: tokens,
	}})
}

// crowdSnapshots returns the final snapshot of a crowd of n requests; each is made once.
var crowdSnapshots = func() func(n int) *store.Snapshot {
	var mu sync.Mutex
	made := map[int]*store.Snapshot{}
	return func(n int) *store.Snapshot {
		mu.Lock()
		defer mu.Unlock()
		if made[n] == nil {
			made[n] = crowd(n).drain()
		}
		return made[n]
	}
}()

// crowds are the crowd sizes under test.
var crowds = []int{1, 20, 5000}

func crowdName(n int) string { return fmt.Sprintf("%d", n) }
