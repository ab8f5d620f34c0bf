package verdict

import (
	"fmt"
	"strings"
	"time"

	"github.com/llmtop/llmtop/profiler/metric"
)

// engineFailed: "The engine failed: MODEL: no such file."
type engineFailed struct{}

func (engineFailed) judge(e *Evidence, _ *Limits) (Verdict, bool) {
	return Verdict{Severity: Bad, Topic: "engine", Text: "The engine failed: " + e.Failed}, e.Failed != ""
}

// lost: "1 204 events were lost (token 1 200, stage 4): what is shown misses them."
type lost struct{}

func (lost) judge(e *Evidence, _ *Limits) (Verdict, bool) {
	return Verdict{
		Severity: Bad, Topic: "lost events",
		Text: fmt.Sprintf("%s events were lost (%s): what is shown misses them", metric.Count(float64(e.Lost)), e.LostKinds),
		Try:  "lower the token rate, or give llmtop more CPU",
	}, e.Lost > 0
}

// ttft: "TTFT 18.2 ms of 200 ms allowed (182 ms to spare), 71 % of it prompt." or "TTFT 312 ms, 112 ms over the target of 200 ms:
// 88 % of it queue."
type ttft struct{}

func (ttft) judge(e *Evidence, l *Limits) (Verdict, bool) {
	if !e.TTFT.OK() || e.Request == 0 {
		return Verdict{}, false
	}
	took := time.Duration(e.TTFT.V * float64(time.Second))
	v := Verdict{Topic: "TTFT", Evidence: fmt.Sprintf("request #%d, %d prompt tokens", e.Request, e.Prompt)}
	mostly := ""
	if e.DomShare < 1 || e.Dominant != "other" { // or nobody has told where the time went
		if e.DomPerTok > 0 {
			v.Evidence += fmt.Sprintf(", %s %s a prompt token", e.Dominant, metric.Duration(int64(e.DomPerTok)))
		}
		mostly = fmt.Sprintf(": %s of it %s", metric.Percent(e.DomShare), e.Dominant)
	}
	switch {
	case e.Cold:
		v.Severity = Info
		v.Text = fmt.Sprintf("Cold TTFT %s, the model load included%s", metric.Duration(int64(took)), mostly)
	case took <= e.Target:
		v.Severity = Good
		v.Text = fmt.Sprintf("TTFT %s of %s allowed (%s)%s", metric.Duration(int64(took)),
			metric.Duration(int64(e.Target)), class(took, l), mostly)
	default:
		v.Severity = Bad
		v.Text = fmt.Sprintf("TTFT %s, %s over the target of %s%s", metric.Duration(int64(took)),
			metric.Duration(int64(took-e.Target)), metric.Duration(int64(e.Target)), mostly)
		if mostly != "" {
			v.Try = remedies[e.Dominant]
		}
	}
	return v, true
}

// class says for what a TTFT is good enough.
func class(took time.Duration, l *Limits) string {
	switch {
	case took < l.RealTime:
		return "fit for real time"
	case took < l.Interactive:
		return "fit for interactive use"
	}
	return "within the target"
}

// remedies for each dominant component, by its name on the screen.
var remedies = map[string]string{
	"queue":       "more slots (--parallel), or fewer requests at a time",
	"prompt":      "a shorter prompt, more threads, or a smaller quantisation",
	"first token": "a smaller vocabulary or cheaper sampling",
	"tokenize":    "send token ids, or cut the prompt",
	"embed":       "look at major page faults: the embedding is read from disk the first time",
	"model load":  "keep the model loaded between requests",
	"other":       "look at the CPU: time that no stage accounts for is often waiting for a core",

	"host to device": "pinned memory, or larger prompt chunks",
	"device to host": "sample on the device, or fetch fewer logits",
}

// WaitingForCore is the cause of a stall during which the engine's threads wanted to run and could not.
const WaitingForCore = "waiting for a core"

// tail: "Token gaps: p99 1.94 ms is 3.1x p50 0.62 ms in the last minute (limit 3x): 2 stalls, both while #42's prompt was processed."
type tail struct{}

func (tail) judge(e *Evidence, l *Limits) (Verdict, bool) {
	if e.ITL.Count < l.TailSamples || e.ITL.P50 <= 0 {
		return Verdict{}, false
	}
	ratio := float64(e.ITL.P99) / float64(e.ITL.P50)
	if ratio < l.TailFactor {
		return Verdict{}, false
	}
	stalls, try := "", "look at the stalls in the TPOT pane; smaller prompt chunks shorten those that prompts cause"
	var evidence []string
	for _, c := range e.Stalls {
		evidence = append(evidence, fmt.Sprintf("%d %s", c.N, c.Text))
	}
	if len(e.Stalls) > 0 {
		stalls = fmt.Sprintf(": stalls, most often %s", e.Stalls[0].Text)
		if e.Stalls[0].Text == "unknown" {
			stalls = ": stalls of unknown cause"
		}
		if e.Stalls[0].Text == WaitingForCore {
			try = "stop what else uses the cores, or give the engine fewer threads than there are cores"
		}
	}
	return Verdict{
		Severity: Watch, Topic: "token gaps",
		Text: fmt.Sprintf("Token gaps: p99 %s is %.1fx p50 %s in the last minute (limit %.0fx)%s",
			metric.Duration(e.ITL.P99), ratio, metric.Duration(e.ITL.P50), l.TailFactor, stalls),
		Evidence: strings.Join(evidence, " · "),
		Try:      try,
	}, true
}

// decodeSpeed: "Decode 3.2 tokens/s a request is slow (below 5)." or "Decode 1 604 tokens/s a request (comfortable from 20)."
type decodeSpeed struct{}

func (decodeSpeed) judge(e *Evidence, l *Limits) (Verdict, bool) {
	if e.ITL.Count < l.TailSamples || e.ITL.Mean <= 0 {
		return Verdict{}, false
	}
	return judgeSpeed(float64(time.Second)/e.ITL.Mean, l,
		fmt.Sprintf("mean gap %s over %d tokens of the last minute", metric.Duration(int64(e.ITL.Mean)), e.ITL.Count)), true
}

// judgeSpeed holds the tokens/s of one request against the speed of a reader.
func judgeSpeed(speed float64, l *Limits, evidence string) Verdict {
	v := Verdict{Topic: "decode", Evidence: evidence}
	switch {
	case speed < l.Slow:
		v.Severity, v.Text = Bad, fmt.Sprintf("Decode %s tokens/s a request is slow (below %.0f)", metric.Rate(speed), l.Slow)
		v.Try = "a smaller quantisation, more threads, or fewer requests at a time"
	case speed < l.Comfortable:
		v.Severity, v.Text = Watch, fmt.Sprintf("Decode %s tokens/s a request is below reading comfort (%.0f)", metric.Rate(speed), l.Comfortable)
		v.Try = "a smaller quantisation or more threads"
	default:
		v.Severity, v.Text = Good, fmt.Sprintf("Decode %s tokens/s a request (comfortable from %.0f)", metric.Rate(speed), l.Comfortable)
	}
	return v
}

// bound: "Decoding touches 9.1 GB/s, 71 % of what this machine copies: it is memory-bound." or, with the CPU idle, "CPU 31 % while decoding
// (below 50 %): it waits for memory or I/O."
type bound struct{}

func (bound) judge(e *Evidence, l *Limits) (Verdict, bool) {
	busy := e.Pace == 0 && e.BusyShare.OK() && e.BusyShare.V > 0.9
	if !busy || e.Running == 0 {
		return Verdict{}, false
	}
	if e.Bandwidth.OK() && e.Copy.OK() && e.Copy.V > 0 {
		share := e.Bandwidth.V / e.Copy.V
		v := Verdict{Severity: Info, Topic: "bound", Evidence: fmt.Sprintf(
			"bytes of weights and KV touched a token x decode rate = %s/s; copy bandwidth measured at start: %s/s",
			metric.Bytes(e.Bandwidth.V), metric.Bytes(e.Copy.V))}
		if share >= l.MemoryBound {
			v.Text = fmt.Sprintf("Decode touches %s/s, %s of what this machine copies (limit %s): memory-bound",
				metric.Bytes(e.Bandwidth.V), metric.Percent(share), metric.Percent(l.MemoryBound))
			v.Try = "a smaller quantisation, or more requests in a batch"
			return v, true
		}
		v.Text = fmt.Sprintf("Decode touches %s/s, %s of what this machine copies (memory-bound from %s): compute or overhead decides",
			metric.Bytes(e.Bandwidth.V), metric.Percent(share), metric.Percent(l.MemoryBound))
		return v, true
	}
	if e.CPU.OK() && e.CPU.V < l.BusyCPU {
		return Verdict{
			Severity: Info, Topic: "bound",
			Text: fmt.Sprintf("CPU %s while decoding (below %s): waiting for memory or I/O", metric.Percent(e.CPU.V), metric.Percent(l.BusyCPU)),
			Try:  "more threads, or look at disk reads",
		}, true
	}
	return Verdict{}, false
}

// experts: "L7 is lopsided: 3 of 16 experts take 58 % of the tokens (max/mean 5.9, limit 3)."
type experts struct{}

func (experts) judge(e *Evidence, l *Limits) (Verdict, bool) {
	if e.Layer < 0 || e.LayerPicks < l.LopsidedPicks || e.MaxMean < l.Lopsided {
		return Verdict{}, false
	}
	return Verdict{
		Severity: Watch, Topic: "experts",
		Text: fmt.Sprintf("L%d is lopsided: %d of %d experts take %s of the picks (max/mean %.1f, limit %.0f)",
			e.Layer, len(e.Hot), e.Experts, metric.Percent(e.HotShare), e.MaxMean, l.Lopsided),
		Evidence: fmt.Sprintf("experts %s of layer %d; %d picks in the last 10 s of decoding", join(e.Hot), e.Layer, e.LayerPicks),
		Try:      "keep these experts on the fastest device; other prompts may light others",
	}, true
}

func join(list []int) string {
	return strings.Trim(strings.Join(strings.Fields(fmt.Sprint(list)), ", "), "[]")
}

// memory: "Memory 23.1 of 24.0 GB in use, 96 % (limit 90 %): swapping threatens."
type memory struct{}

func (memory) judge(e *Evidence, l *Limits) (Verdict, bool) {
	if !e.MemUsed.OK() || !e.MemTotal.OK() || e.MemTotal.V <= 0 {
		return Verdict{}, false
	}
	share := e.MemUsed.V / e.MemTotal.V
	return Verdict{
		Severity: Bad, Topic: "memory",
		Text: fmt.Sprintf("Memory %s of %s in use, %s (limit %s): swapping threatens",
			metric.Bytes(e.MemUsed.V), metric.Bytes(e.MemTotal.V), metric.Percent(share), metric.Percent(l.MemoryFull)),
		Try: "a smaller context or quantisation, or fewer slots",
	}, share > l.MemoryFull
}

// kvFull: "KV cache 97 % full (limit 95 %): requests will end with reason length."
type kvFull struct{}

func (kvFull) judge(e *Evidence, l *Limits) (Verdict, bool) {
	return Verdict{
		Severity: Watch, Topic: "KV cache",
		Text: fmt.Sprintf("KV cache %s full (limit %s): requests will end with reason length", metric.Percent(e.KV.V), metric.Percent(l.KVFull)),
		Try:  "a larger context (--ctx)",
	}, e.Served == nil && e.KV.OK() && e.KV.V > l.KVFull
}
