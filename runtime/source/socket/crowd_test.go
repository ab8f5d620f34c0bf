package socket

import "github.com/llmtop/llmtop/profiler/event"

// crowd emits events of many kinds and counts them.
type crowd struct {
	*Server
	emitted       event.Drops
	tokens        int
	request       event.RequestID
	requestTokens int // tokens of the current request
}

func (c *crowd) Emit(e event.Event) {
	e.At = c.opt.Clock.Now()
	c.emitted[e.Kind]++
	c.Server.Emit(e)
}

// burst emits what an engine emits in 10 ms at 30,000 tokens/s.
func (c *crowd) burst() {
	if c.request == 0 {
		c.begin()
	}
	for i := range 300 {
		if i%10 == 0 {
			c.Emit(event.Event{Kind: event.KindStep, Layer: -1, Step: uint64(c.tokens/10 + 1), Dur: 1000, N: 10})
		}
		c.Emit(event.Event{Kind: event.KindToken, Layer: -1, Req: c.request, ID: int32(i), N: 1, Index: int32(c.requestTokens), Step: uint64(c.tokens/10 + 1)})
		c.tokens++
		c.requestTokens++
	}
	for range 5 {
		c.Emit(event.Event{Kind: event.KindStage, Stage: event.StageAttention, Req: c.request, Layer: 1, Dur: 1000})
		c.Emit(event.Event{Kind: event.KindKV, Layer: -1, Data: &event.KV{Used: int64(c.tokens), Total: 1 << 30}})
	}
	c.Emit(event.Event{Kind: event.KindCounters, Layer: -1, Data: &event.Counters{Values: []event.Counter{{Name: "generated_tokens", Value: float64(c.tokens)}}}})
	c.Emit(event.Event{Kind: event.KindHost, Layer: -1, Data: &event.Host{Interval: 1e7, CPU: event.MeasuredValue(.5)}})
	c.Emit(event.Event{Kind: event.KindLog, Layer: -1, Text: "a line"})
	if c.requestTokens >= 3000 {
		c.end()
	}
}

func (c *crowd) begin() {
	c.request++
	c.requestTokens = 0
	c.Emit(event.Event{Kind: event.KindRequest, Layer: -1, Req: c.request, State: event.StateQueued, Data: &event.Request{}})
	c.Emit(event.Event{Kind: event.KindRequest, Layer: -1, Req: c.request, State: event.StateDispatched})
}

// end ends the current request and starts the next one.
func (c *crowd) end() {
	c.Emit(event.Event{Kind: event.KindRequest, Layer: -1, Req: c.request, State: event.StateFinished, Data: &event.Outcome{Reason: "stop", Generated: c.requestTokens}})
	c.begin()
}
