package verdict

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
)

// engineFailed: "The engine failed: MODEL: no such file"
func engineFailed(e *Evidence) (Verdict, bool) {
	return Verdict{Severity: Bad, Topic: "engine", Text: "The engine failed: " + e.Failed, Degrades: true}, e.Failed != ""
}

// droppedEvents: "1 204 events were dropped (token 1 200, stage 4): numbers are incomplete"
func droppedEvents(e *Evidence) (Verdict, bool) {
	if e.Dropped == 0 {
		return Verdict{}, false
	}
	return Verdict{
		Severity: Bad, Topic: "dropped events",
		Text: fmt.Sprintf("%s events were dropped (%s): numbers are incomplete", metric.Count(float64(e.Dropped)), e.DroppedKinds),
		Try:  "lower the token rate, or give llmtop more CPU",
	}, true
}

// unmeasured: "500 requests began while 10.0k were running: they are counted, but their latencies are not measured"
func unmeasured(e *Evidence) (Verdict, bool) {
	if e.Unmeasured == 0 {
		return Verdict{}, false
	}
	return Verdict{
		Severity: Bad, Topic: "unmeasured requests",
		Text: fmt.Sprintf("%s requests began while %s were running: they are counted, but their latencies are not measured",
			metric.Count(float64(e.Unmeasured)), metric.Count(float64(e.MaxOpen))),
		Try: "watch fewer servers with one llmtop, or send fewer concurrent requests",
	}, true
}

// ttft: "TTFT 18.2 ms, target 200 ms (real time): 71 % of it prompt" or "TTFT 312 ms, 112 ms over the target of 200 ms:
// 88 % of it queue". Without a target "TTFT 864 ms: 94 % of it queue"
func ttft(e *Evidence) (Verdict, bool) {
	if !e.TTFT.OK() || e.Request == 0 {
		return Verdict{}, false
	}
	took := time.Duration(e.TTFT.V * float64(time.Second))
	v := Verdict{Topic: "TTFT", Evidence: fmt.Sprintf("request #%d", e.Request)}
	if e.Prompt > 0 {
		v.Evidence += fmt.Sprintf(", %d prompt tokens", e.Prompt)
	}
	mostly := ""
	if e.DomShare < 1 || e.Dominant != "other" { // otherwise no component was reported
		if e.DomPerTok > 0 {
			v.Evidence += fmt.Sprintf(", %s %s per prompt token", e.Dominant, metric.Duration(int64(e.DomPerTok)))
		}
		mostly = fmt.Sprintf(": %s of it %s", metric.Percent(e.DomShare), e.Dominant)
	}
	switch {
	case e.Cold:
		load := ", without the model load, which is not reported"
		switch {
		case e.Loaded:
			load = ", including the model load"
		case e.LoadBefore > 0:
			load = ", after the model load of " + metric.Duration(int64(e.LoadBefore))
		case e.DeviceStart:
			load = ", with the device start"
		}
		v.Severity, v.Text = Info, fmt.Sprintf("Cold TTFT %s%s%s", metric.Duration(int64(took)), load, mostly)
	case e.Target <= 0:
		v.Severity, v.Text = Info, fmt.Sprintf("TTFT %s%s", metric.Duration(int64(took)), mostly)
		v.because(e.whyTTFT(took))
	case took <= e.Target:
		v.Severity = Good
		v.Text = fmt.Sprintf("TTFT %s, target %s (%s)%s", metric.Duration(int64(took)),
			metric.Duration(int64(e.Target)), ttftClass(took), mostly)
	default:
		v.Severity, v.Degrades = Bad, e.Given && e.Warm.Count >= ServedRequests && e.Warm.P50.Over(int64(e.Target))
		v.Text = fmt.Sprintf("TTFT %s, %s over the target of %s%s", metric.Duration(int64(took)),
			metric.Duration(int64(took-e.Target)), metric.Duration(int64(e.Target)), mostly)
		if !v.because(e.whyTTFT(took)) && mostly != "" {
			v.Try = remedies[e.Dominant]
		}
	}
	return v, true
}

// whyTTFT returns the cause of a late first token; nil if it explains too little of TTFT to matter, as where the target was
// missed by a hair.
func (e *Evidence) whyTTFT(took time.Duration) *Explanation {
	if e.Why == nil || float64(e.Why.Explains) < LostShare*float64(took) {
		return nil
	}
	return e.Why
}

// because adds the cause of what the verdict names, and reports whether it is known.
func (v *Verdict) because(why *Explanation) bool {
	if why == nil || why.Cause == Unknown {
		return false
	}
	v.Evidence += "; " + Causes[why.Cause].Text + ": " + why.Evidence
	v.Try = Causes[why.Cause].Remedy
	return true
}

// Judged counts the finished requests of the last minute whose latency has a target that was set.
type Judged struct {
	Target      time.Duration // 0: none
	All, Missed uint64
}

// missed: "E2EL misses the target of 200 ms in 13 of 13 requests of the last minute"
func missed(e *Evidence) (Verdict, bool) {
	var words []string
	for _, t := range []struct {
		name string
		*Judged
	}{{"p99 ITL", &e.ITLs}, {"E2EL", &e.E2ELs}} {
		if t.All >= ServedRequests && 2*t.Missed > t.All {
			words = append(words, fmt.Sprintf("%s misses the target of %s in %d of %d requests", t.name, metric.Duration(int64(t.Target)), t.Missed, t.All))
		}
	}
	return Verdict{
		Severity: Bad, Topic: "targets", Degrades: true, Text: strings.Join(words, ", ") + " of the last minute",
	}, len(words) > 0
}

// Queued is what the requests of the last minute waited in the queue.
type Queued struct {
	Requests    int
	Wait, TTFTs int64 // ns, sums over these requests
}

// queueing: "Queue wait is 63 % of TTFT, 1.20 s for each of 12 requests of the last minute: all 4 slots busy"
func queueing(e *Evidence) (Verdict, bool) {
	q := &e.Queue
	share := metric.Share(float64(q.Wait), float64(q.TTFTs))
	if uint64(q.Requests) < ServedRequests || share < leastExplained || q.Wait/int64(q.Requests) < int64(leastLoss) {
		return Verdict{}, false
	}
	v := Verdict{
		Severity: Watch, Topic: "queue", Degrades: true, Try: Causes[Queue].Remedy,
		Text: fmt.Sprintf("Queue wait is %s of TTFT, %s for each of %s of the last minute", metric.Percent(share),
			metric.Duration(q.Wait/int64(q.Requests)), metric.Plural(q.Requests, "request")),
	}
	if e.Slots > 0 && e.Running >= e.Slots {
		v.Text += fmt.Sprintf(": all %d slots busy", e.Slots)
	}
	return v, true
}

// promptCache: "Cache misses are 83 % of prefill, 1.20 s in 12 requests of the last minute: a timestamp differs"
func promptCache(e *Evidence) (Verdict, bool) {
	share := metric.Share(e.CacheLost.Seconds(), e.CachePrefill.Seconds())
	if uint64(e.CacheMissed) < ServedRequests || share < leastExplained || e.CacheLost < leastLoss {
		return Verdict{}, false
	}
	v := Verdict{
		Severity: Watch, Topic: "prompt cache", Degrades: true, Evidence: e.CachePlace,
		Text: fmt.Sprintf("Cache misses are %s of prefill, %s in %s of the last minute: %s", metric.Percent(share),
			metric.Duration(int64(e.CacheLost)), metric.Plural(e.CacheMissed, "request"), e.CacheWhy),
	}
	if e.CachePlace != "" {
		v.Try = "keep the start of prompts the same, and put what changes at their end"
	}
	return v, true
}

// ttftClass names the use that a TTFT is fast enough for.
func ttftClass(took time.Duration) string {
	switch {
	case took < realTime:
		return "real time"
	case took < interactive:
		return "interactive"
	}
	return "within target"
}

// remedies suggests an action for each dominant component, by its name on the screen. That the prompt took most of TTFT
// does not say why: see OwnPrompt.
var remedies = map[string]string{
	"queue":           Causes[Queue].Remedy,
	"paced by others": Causes[Pacing].Remedy,

	"first token": "a smaller vocabulary or cheaper sampling",
	"tokenize":    "send token ids, or cut the prompt",
	"embed":       "check major page faults: the first access reads the embedding from disk",
	"model load":  "keep the model loaded between requests",
	"other":       "look at the stages of the request (Enter): no component accounts for this time",

	"host to device": "pinned memory, or larger prompt chunks",
	"device to host": "sample on the device, or fetch fewer logits",
}

// tail: "Token gaps: p99 1.94 ms is 3.1x p50 0.62 ms in the last minute (limit 3x): stalls, most of their time: while
// a prompt was processed"
func tail(e *Evidence) (Verdict, bool) {
	p50, p99 := e.ITL.P50.At, e.ITL.P99.At
	if e.ITL.Origin == event.Reported || e.ITL.Count < tailSamples || p50 <= 0 || e.Profit != nil { // accepted drafts come at once
		return Verdict{}, false
	}
	words, stalled := "", e.Losses.ShareOf(e.Stalls.Total())
	known, _ := e.Losses.significant()
	switch ratio := float64(p99) / float64(p50); {
	case ratio >= tailFactor && p99-p50 >= int64(leastTail):
		words = fmt.Sprintf("Token gaps: p99 %s is %.1fx p50 %s in the last minute (limit %.0fx)",
			metric.Duration(p99), ratio, metric.Duration(p50), tailFactor)
	case known == Unknown && stalled.OK() && stalled.V >= LostShare && e.Stalls.Total() >= int64(leastLoss): // few, but long
		words = fmt.Sprintf("Token gaps: stalls took %s of the time of requests in the last minute (limit %s)",
			metric.Percent(stalled.V), metric.Percent(LostShare))
	default:
		return Verdict{}, false
	}
	v := Verdict{Severity: Watch, Topic: "token gaps", Degrades: true, Text: words}
	switch top := e.Stalls.largest(); {
	case e.Stalls.Total() == 0:
	case e.Stalls.NS[Unknown] >= e.Stalls.NS[top]:
		v.Text += ": stalls of unknown cause"
	default:
		v.Text += ": stalls, most of their time: " + Causes[top].Text
		v.Try = Causes[top].Remedy
	}
	v.Evidence = e.Stalls.counts()
	return v, true
}

// lostTime: "62 % of the time of requests was lost in the last minute (limit 10 %): other processes used the cores"
func lostTime(e *Evidence) (Verdict, bool) {
	top, share := e.Losses.significant()
	if top == Unknown || top == MemoryBandwidth { // bound reports the latter
		return Verdict{}, false
	}
	return Verdict{
		Severity: Watch, Topic: "lost time", Cause: top, Degrades: true,
		Text: fmt.Sprintf("%s of the time of requests was lost in the last minute (limit %s): %s",
			metric.Percent(share), metric.Percent(LostShare), Causes[top].Text),
		Evidence: e.Losses.counts(), Try: Causes[top].Remedy,
	}, true
}

// decodeSpeed: "Decode 3.20 tok/s per request is slow (limit 5)" or "Decode 1 604 tok/s per request (reading speed 20)"
func decodeSpeed(e *Evidence) (Verdict, bool) {
	few := e.ITL.Count < tailSamples && (e.ITL.Count < speedSamples || float64(e.ITL.Count)*e.ITL.Mean < float64(speedTime))
	if few || e.ITL.Mean <= 0 || e.ITL.Origin == event.Reported { // slow engines generate few tokens in a minute
		return Verdict{}, false
	}
	v := judgeSpeed(float64(time.Second)/e.ITL.Mean, e,
		fmt.Sprintf("mean gap %s over %d tokens of the last minute", metric.Duration(int64(e.ITL.Mean)), e.ITL.Count))
	v.qualify(&e.DecodeLosses)
	return v, true
}

// qualify adds the cause that took most of the time to a verdict: its remedy is the one that helps, and a speed that lost
// time to it is not good. Without a cause there is nothing to try.
func (v *Verdict) qualify(losses *Losses) {
	switch top, _ := losses.significant(); {
	case top == Unknown && v.Severity != Good && v.Try == "":
		v.Evidence = strings.TrimPrefix(v.Evidence+"; no cause found", "; ")
	case top == Unknown:
	case v.Severity == Good:
		v.Severity = Info
	default:
		v.Text += ": " + Causes[top].Text
		v.Try = Causes[top].Remedy
	}
}

// judgeSpeed compares the tokens/s of one request with the target for TPOT, or else with reading speed. That is nobody's
// target: an engine below it is not degraded, since what it serves may be no reader.
func judgeSpeed(speed float64, e *Evidence, evidence string) Verdict {
	v := Verdict{Topic: "decode", Evidence: evidence}
	target := fmt.Sprintf("the target of %s for TPOT", metric.Duration(int64(e.TPOT)))
	switch {
	case e.TPOT > 0 && speed >= 1/e.TPOT.Seconds():
		v.Severity, v.Text = Good, fmt.Sprintf("Decode %s tok/s per request, within %s", metric.Rate(speed), target)
	case e.TPOT > 0:
		v.Severity, v.Degrades, v.Text = Bad, true, fmt.Sprintf("Decode %s tok/s per request misses %s", metric.Rate(speed), target)
	case speed < slowSpeed:
		v.Severity, v.Degrades, v.Text = Bad, true, fmt.Sprintf("Decode %s tok/s per request is slow (limit %.0f)", metric.Rate(speed), slowSpeed)
	case speed < ReadingSpeed:
		v.Severity, v.Text = Watch, fmt.Sprintf("Decode %s tok/s per request is below reading speed (%.0f)", metric.Rate(speed), ReadingSpeed)
	default:
		v.Severity, v.Text = Good, fmt.Sprintf("Decode %s tok/s per request (reading speed %.0f)", metric.Rate(speed), ReadingSpeed)
	}
	return v
}

// bound: "Decode bandwidth 9.10 GB/s is 71 % of the read bandwidth (memory-bound from 60 %): memory-bound", "…: its threads
// waited, they ran 43 % of the time" or, with fewer threads than cores, "CPU 31 % while decoding (below 50 %): 1 thread on
// 2 cores". It is silent while another cause takes the time: the bandwidth then says nothing about the model.
func bound(e *Evidence) (Verdict, bool) {
	busy := e.Pace == 0 && e.BusyShare.OK() && e.BusyShare.V > 0.9
	if top, _ := e.Losses.significant(); !busy || e.Running == 0 || top != Unknown && top != MemoryBandwidth {
		return Verdict{}, false
	}
	if e.Bandwidth.OK() && e.Wall.OK() && e.Wall.V > 0 {
		share := e.Bandwidth.V / e.Wall.V
		v := Verdict{Severity: Info, Topic: "bound", Evidence: fmt.Sprintf(
			"bytes of weights and KV read per pass x passes/s = %s; read bandwidth of the machine with as many threads: %s",
			metric.BytesPerSecond(e.Bandwidth.V), metric.BytesPerSecond(e.Wall.V))}
		limit := e.Recent.limit()
		switch {
		case share > 1:
			limit = "the weights come from caches"
		case share >= MemoryBound:
			limit, v.Try = "memory-bound", Causes[MemoryBandwidth].Remedy
		}
		v.Text = fmt.Sprintf("Decode bandwidth %s is %s of the read bandwidth (memory-bound from %s): %s",
			metric.BytesPerSecond(e.Bandwidth.V), metric.Percent(share), metric.Percent(MemoryBound), limit)
		return v, true
	}
	if e.CPU.OK() && e.CPU.V < busyCPU && e.Threads > 0 && e.Threads < e.Cores {
		return Verdict{
			Severity: Info, Topic: "bound",
			Text: fmt.Sprintf("CPU %s while decoding (below %s): %s on %s", metric.Percent(e.CPU.V), metric.Percent(busyCPU),
				metric.Plural(uint64(e.Threads), "thread"), coreCount(float64(e.Cores))),
			Try: fmt.Sprintf("--threads %d", e.Cores),
		}, true
	}
	return Verdict{}, false
}

// imbalanceSigmas is how far, in standard deviations, the picks of the hottest expert of all layers may exceed their
// expectation by chance.
const imbalanceSigmas = 4

// experts: "L7 is imbalanced: 3 of 16 experts take 58 % of the picks (max/mean 5.9 in the last minute, limit 3)"
func experts(e *Evidence) (Verdict, bool) {
	if e.Layer < 0 || e.LayerPicks < imbalancePicks || e.Experts == 0 {
		return Verdict{}, false
	}
	mean := float64(e.LayerPicks) / float64(e.Experts)
	hottest := e.MaxMean * mean
	if hottest-imbalanceSigmas*math.Sqrt(hottest) < imbalanced*mean { // chance may account for it
		return Verdict{}, false
	}
	return Verdict{
		Severity: Info, Topic: "experts", // of the model and its prompts: nothing is wrong with the engine
		Text: fmt.Sprintf("L%d is imbalanced: %d of %d experts take %s of the picks (max/mean %s in the last minute, limit %.0f)",
			e.Layer, len(e.Hot), e.Experts, metric.Percent(e.HotShare), metric.Rate(e.MaxMean), imbalanced),
		Evidence: fmt.Sprintf("experts %s of layer %d; %d picks in the last minute of decoding", join(e.Hot), e.Layer, e.LayerPicks),
		Try:      "keep these experts on the fastest device; other prompts may use others",
	}, true
}

func join(list []int) string {
	return strings.Trim(strings.Join(strings.Fields(fmt.Sprint(list)), ", "), "[]")
}

// memory: "Memory 23.1 GB of 24.0 GB in use, 96 % (limit 90 %): the machine may swap"
func memory(e *Evidence) (Verdict, bool) {
	if !e.MemUsed.OK() || !e.MemTotal.OK() || e.MemTotal.V <= 0 {
		return Verdict{}, false
	}
	share := e.MemUsed.V / e.MemTotal.V
	if share <= memoryFull {
		return Verdict{}, false
	}
	return Verdict{
		Severity: Bad, Topic: "memory", Degrades: true,
		Text: fmt.Sprintf("Memory %s of %s in use, %s (limit %s): the machine may swap",
			metric.Bytes(e.MemUsed.V), metric.Bytes(e.MemTotal.V), metric.Percent(share), metric.Percent(memoryFull)),
		Try: "a smaller context or quantisation, or fewer slots",
	}, true
}

// kvFull: "KV cache 97 % full (limit 95 %): a request that outgrows it ends with reason length", of a server "…: new
// requests will have to wait"
func kvFull(e *Evidence) (Verdict, bool) {
	if !e.KV.OK() || e.KV.V <= fullKV {
		return Verdict{}, false
	}
	then, try := "a request that outgrows it ends with reason length", "a larger context (--ctx)"
	if e.Server {
		then, try = "new requests will have to wait", moreKV+", a shorter context, or another replica"
	}
	return Verdict{
		Severity: Watch, Topic: "KV cache", Degrades: true, Try: try,
		Text: fmt.Sprintf("KV cache %s full (limit %s): %s", metric.Percent(e.KV.V), metric.Percent(fullKV), then),
	}, true
}
