package report

import (
	"fmt"
	"strings"

	"github.com/llmtop/llmtop/profiler/metric"
)

// From where on the numbers of a benchmark are worth a recommendation.
const (
	missed    = 0.95 // share of requests that met all targets: below
	queued    = 0.3  // share of the mean TTFT spent in the queue
	coldRatio = 2    // cold TTFT / warm TTFT
	tailRatio = 3    // p99 / p50 of gaps between tokens, of tailGaps or more
	tailGaps  = 100
	unsure    = 0.1  // half of the interval / mean of output tokens/s
	kept      = 0.9  // requests/s / those that a rate would have made
	gain      = 1.1  // output tokens/s of a higher concurrency / that of a lower one
	fullShare = 0.9  // of memory
	covered   = 1.25 // share of picks / the even one
)

// Severities of recommendations.
const (
	info, watch = "info", "watch"
)

// Advise works out what follows from the numbers of a benchmark that is complete. Each recommendation names its number.
func (r *Report) Advise() {
	b := r.Bench
	b.Advice = append([]Verdict{}, r.adviseConcurrency()...)
	for i := range b.Points {
		b.Advice = append(b.Advice, r.advisePoint(&b.Points[i])...)
	}
	b.Advice = append(b.Advice, r.adviseMachine()...)
}

// prompts is what the names of points that differ in concurrency or rate alone have in common.
func (p *Point) prompts() string {
	if at := strings.LastIndex(p.Name, ", "); at >= 0 {
		return p.Name[:at]
	}
	return p.Name
}

// meets reports whether nearly all requests met the targets, if there are any.
func (p *Point) meets() bool { return !p.Compliance.All.OK() || p.Compliance.All.V >= missed }

// adviseConcurrency says of each kind of prompts which concurrency generates the most tokens within the targets, and whether more would help.
func (r *Report) adviseConcurrency() (out []Verdict) {
	sweeps := map[string][]*Point{}
	var order []string
	for i := range r.Bench.Points {
		p := &r.Bench.Points[i]
		if p.Concurrency == 0 || p.Output == nil || p.TTFT == nil {
			continue
		}
		if sweeps[p.prompts()] == nil {
			order = append(order, p.prompts())
		}
		sweeps[p.prompts()] = append(sweeps[p.prompts()], p)
	}
	for _, name := range order {
		points := sweeps[name]
		if len(points) < 2 {
			continue
		}
		least, best := points[0], (*Point)(nil)
		for _, p := range points {
			if p.Concurrency < least.Concurrency {
				least = p
			}
			if p.meets() && (best == nil || p.Output.Mean.V > gain*best.Output.Mean.V || p.Output.Mean.V >= best.Output.Mean.V && p.Concurrency < best.Concurrency) {
				best = p
			}
		}
		if best == nil {
			continue // each of them is told that it missed its targets
		}
		out = append(out, Verdict{
			Severity: info, Topic: "concurrency",
			Text: fmt.Sprintf("%s: %d at a time generates %s tokens/s, %.2f times what %d generates", name, best.Concurrency, metric.Rate(best.Output.Mean.V),
				best.Output.Mean.V/least.Output.Mean.V, least.Concurrency),
			Evidence: fmt.Sprintf("TTFT p50 %s against %s, TPOT p50 %s against %s", best.TTFT.cell("p50", metric.Seconds), least.TTFT.cell("p50", metric.Seconds),
				best.TPOT.cell("p50", metric.Seconds), least.TPOT.cell("p50", metric.Seconds)),
			Try: fmt.Sprintf("--parallel %d; of those measured, none that meets the targets generates %s more", best.Concurrency, metric.Percent(gain-1)),
		})
	}
	return out
}

// advisePoint says what stands out at one point.
func (r *Report) advisePoint(p *Point) (out []Verdict) {
	add := func(severity, topic, try, evidence, format string, args ...any) {
		out = append(out, Verdict{severity, topic, p.Name + ": " + fmt.Sprintf(format, args...), evidence, try})
	}
	if c := p.Compliance; !p.meets() {
		add(watch, "targets", "fewer requests at a time, shorter prompts, or a faster engine", fmt.Sprintf("TTFT met by %s, TPOT by %s, E2EL by %s",
			short(c.TTFT, metric.Percent), short(c.TPOT, metric.Percent), short(c.E2EL, metric.Percent)),
			"only %s of the requests met %s", metric.Percent(c.All.V), r.Bench.Targets)
	}
	total, queue := 0.0, 0.0
	for _, part := range p.Parts {
		total += part.Time.V
		if part.Name == "queue" {
			queue = part.Time.V
		}
	}
	if total > 0 && queue/total >= queued {
		add(watch, "queue", "more slots (--parallel), or fewer requests at a time", metric.Seconds(queue)+" of "+metric.Seconds(total),
			"%s of TTFT is waiting in the queue", metric.Percent(queue/total))
	}
	if v := p.ITL; v != nil && v.Count >= tailGaps && v.P99.V >= tailRatio*v.P50.V {
		add(watch, "token gaps", "look for stalls on the screen (--ui): other work on the machine, prompts that are processed meanwhile",
			fmt.Sprintf("p50 %s, p99 %s of %d gaps", metric.Seconds(v.P50.V), metric.Seconds(v.P99.V), v.Count), "one token in a hundred takes %.1f times the median or more", v.P99.V/v.P50.V)
	}
	if p.TTFT == nil {
		return append(out, r.adviseCold(p)...)
	}
	if v := p.Output; v != nil && v.High.OK() && v.Mean.V > 0 && (v.High.V-v.Mean.V)/v.Mean.V >= unsure {
		add(watch, "spread", "more --repeats, more --requests, or a quieter machine", fmt.Sprintf("%s tokens/s over %d runs", v.margin(metric.Rate), v.Count),
			"output tokens/s is known to ±%s only", metric.Percent((v.High.V-v.Mean.V)/v.Mean.V))
	}
	if rate, ok := p.Rate.Positive(); ok && p.Finished != nil && p.E2EL != nil && len(p.Runs) > 0 {
		perRun := float64(p.count()) / float64(len(p.Runs))
		if expected := perRun / (perRun/rate + p.E2EL.Mean.V); p.Finished.Mean.V < kept*expected {
			add(watch, "rate", "a lower --rate, or more slots (--parallel)", fmt.Sprintf("%s requests/s finished, %s were asked for", metric.Rate(p.Finished.Mean.V), metric.Rate(rate)),
				"the engine does not keep up: %s of the rate", metric.Percent(p.Finished.Mean.V/rate))
		}
	}
	if p.CopyShare.OK() {
		try := "a smaller quantisation would decode faster in proportion"
		if p.CopyShare.V < bandwidthBound || p.CopyShare.V > 1 {
			try = "" // what holds it back instead is not measured
		}
		add(info, "bound", try, fmt.Sprintf("%s/s of %s/s", metric.Bytes(p.Bandwidth.V), metric.Bytes(r.Bench.Limits.Copy.V)), "%s", p.bound())
	}
	return out
}

// adviseCold compares cold requests with the warm ones of the same prompts.
func (r *Report) adviseCold(p *Point) []Verdict {
	if p.ColdTTFT == nil {
		return nil
	}
	for i := range r.Bench.Points {
		warm := &r.Bench.Points[i]
		if warm.prompts() != p.prompts() || warm.Concurrency != 1 || warm.TTFT == nil || !(p.ColdTTFT.P50.V >= coldRatio*warm.TTFT.P50.V) {
			continue
		}
		return []Verdict{{
			info, "cold start", fmt.Sprintf("%s: cold TTFT is %.1f times the warm one", p.prompts(), p.ColdTTFT.P50.V/warm.TTFT.P50.V),
			fmt.Sprintf("p50 %s against %s", p.ColdTTFT.cell("p50", metric.Seconds), warm.TTFT.cell("p50", metric.Seconds)), "keep the model loaded between requests",
		}}
	}
	return nil
}

// adviseMachine says what follows for the machine as a whole.
func (r *Report) adviseMachine() (out []Verdict) {
	if u := &r.Host.OverRun; u.MemoryShare.OK() && u.MemoryShare.V >= fullShare {
		out = append(out, Verdict{watch, "memory", "memory was filled to " + metric.Percent(u.MemoryShare.V), "peak " + metric.Bytes(u.MemoryPeak.V), "a smaller quantisation or context"})
	}
	if p := r.Placement; p != nil && p.Chosen == nil && len(p.Curve) > 1 {
		if b := p.Curve[1]; b.Coverage.V >= covered*b.Even.V {
			out = append(out, Verdict{
				info, "experts", fmt.Sprintf("%d of %d experts take %s of the routing, %s if all were picked alike", b.Experts, p.Experts, metric.Percent(b.Coverage.V), metric.Percent(b.Even.V)),
				fmt.Sprintf("%d picks", p.Picks), "keep those on the faster device: --expert-budget 25% lists them",
			})
		}
	}
	if c := r.Bench.Client; c != nil {
		for _, why := range c.Limits {
			out = append(out, Verdict{watch, "client", "llmtop was itself a bottleneck: " + why, "", "fewer requests at a time, or another machine for llmtop"})
		}
	}
	return out
}
