package report

import (
	"fmt"
	"strings"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
)

// Thresholds of recommendations.
const (
	minCompliance   = 0.95 // share of requests that meet all targets: recommend below this
	maxQueueShare   = 0.3  // queue time / mean TTFT
	coldRatio       = 2    // cold TTFT / warm TTFT
	tailRatio       = 3    // p99 / p50 of the gaps between tokens, with at least tailGaps gaps
	tailGaps        = 100
	uncertainShare  = 0.1  // half the confidence interval / mean of output tokens/s
	minRateShare    = 0.9  // finished requests/s / expected requests/s at the rate
	minGain         = 1.1  // output tokens/s of a higher concurrency / of a lower one
	fullShare       = 0.9  // of memory
	minCoverageGain = 1.25 // share of picks / uniform share
)

// Severities of recommendations.
const (
	severityInfo, severityWatch = "info", "watch"
)

// prompts returns the part of the name that points share which differ only in concurrency or rate.
func (p *Point) prompts() string {
	if at := strings.LastIndex(p.Name, ", "); at >= 0 {
		return p.Name[:at]
	}
	return p.Name
}

// ownsSlots reports whether llmtop ran the engine, with --parallel as its number of slots.
func (r *Report) ownsSlots() bool { return r.Configuration["parallel"] != "" }

// trySlots returns the advice to decode n requests together.
func (r *Report) trySlots(n int) string {
	if r.ownsSlots() {
		return fmt.Sprintf("set --parallel %d", n)
	}
	return "send " + plural(n, "request") + " at a time"
}

// moreSlots names the setting of the engine that lets it decode more requests together.
func (r *Report) moreSlots() string {
	if r.ownsSlots() {
		return "more slots (--parallel)"
	}
	return "more slots in the server's settings"
}

// meets reports whether nearly all requests met the targets, or there are none.
func (p *Point) meets() bool { return !p.Compliance.All.OK() || p.Compliance.All.V >= minCompliance }

// adviseConcurrency finds, for each prompt kind, the concurrency with the most tokens/s within the targets.
func adviseConcurrency(r *Report) (out []Verdict) {
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
			if p.meets() && (best == nil || p.Output.Mean.V > minGain*best.Output.Mean.V || p.Output.Mean.V >= best.Output.Mean.V && p.Concurrency < best.Concurrency) {
				best = p
			}
		}
		if best == nil {
			continue // advisePoint reports the missed targets of each point
		}
		from, to, finding := least, best, ""
		if best.Concurrency == least.Concurrency { // compare it with the next one, not with itself
			if from, to = best, nextPoint(points, best); to == nil {
				continue
			}
			if finding = "higher concurrency does not help: "; !to.meets() {
				finding = "higher concurrency misses the targets: "
			}
		}
		out = append(out, Verdict{
			Severity: severityInfo, Topic: "concurrency",
			Text: fmt.Sprintf("%s: %sconcurrency %d generates %s tokens/s, %.2f times concurrency %d", name, finding, to.Concurrency, metric.Rate(to.Output.Mean.V),
				to.Output.Mean.V/from.Output.Mean.V, from.Concurrency),
			Evidence: fmt.Sprintf("TTFT p50 %s vs. %s, TPOT p50 %s vs. %s", to.TTFT.cell("p50", metric.Seconds), from.TTFT.cell("p50", metric.Seconds),
				to.TPOT.cell("p50", metric.Seconds), from.TPOT.cell("p50", metric.Seconds)),
			Try: fmt.Sprintf("%s: no measured concurrency within the targets generates %s more", r.trySlots(best.Concurrency), metric.Percent(minGain-1)),
		})
	}
	return out
}

// nextPoint returns the point with the next higher concurrency; nil if there is none.
func nextPoint(points []*Point, p *Point) (next *Point) {
	for _, other := range points {
		if other.Concurrency > p.Concurrency && (next == nil || other.Concurrency < next.Concurrency) {
			next = other
		}
	}
	return next
}

// advisePoint returns the recommendations for one point.
func advisePoint(r *Report, p *Point) (out []Verdict) {
	add := func(severity, topic, try, evidence, format string, args ...any) {
		out = append(out, Verdict{severity, topic, p.Name + ": " + fmt.Sprintf(format, args...), evidence, try})
	}
	if c := p.Compliance; !p.meets() {
		failed, try := "", "use fewer concurrent requests, shorter prompts, or a faster engine"
		if share := r.failedShare(p); share > 0 {
			failed = ": " + metric.Percent(share) + " failed"
			if c.All.V+share >= minCompliance {
				try = "" // a faster engine does not help requests that fail
			}
		}
		add(severityWatch, "targets", try, fmt.Sprintf("TTFT met by %s, TPOT by %s, E2EL by %s",
			short(c.TTFT, metric.Percent), short(c.TPOT, metric.Percent), short(c.E2EL, metric.Percent)),
			"only %s of the requests met %s%s", metric.Percent(c.All.V), r.Bench.Targets, failed)
	}
	total, queue := 0.0, 0.0
	for _, part := range p.Parts {
		total += part.Time.V
		if part.Name == "queue" {
			queue = part.Time.V
		}
	}
	if total > 0 && queue/total >= maxQueueShare {
		add(severityWatch, "queue", "use "+r.moreSlots()+", or fewer concurrent requests", metric.Seconds(queue)+" of "+metric.Seconds(total),
			"%s of TTFT is queue time", metric.Percent(queue/total))
	}
	if v := p.ITL; v != nil && v.Count >= tailGaps && v.P50.V > 0 && v.P99.V >= tailRatio*v.P50.V { // 0: several tokens per message
		add(severityWatch, "token gaps", "look for stalls on the screen (--ui): other work on the machine, prefill of other requests",
			fmt.Sprintf("p50 %s, p99 %s of %d gaps", metric.Seconds(v.P50.V), metric.Seconds(v.P99.V), v.Count), "p99 of the gaps between tokens is %.1f times the median", v.P99.V/v.P50.V)
	}
	if p.TTFT == nil {
		return append(out, adviseCold(r, p)...)
	}
	if v := p.Output; v != nil && v.High.OK() && v.Mean.V > 0 && (v.High.V-v.Mean.V)/v.Mean.V >= uncertainShare {
		add(severityWatch, "spread", "use more --repeats, more --requests, or an idle machine", fmt.Sprintf("%s tokens/s over %s", v.margin(metric.Rate), plural(v.Count, "run")),
			"output tokens/s has a margin of error of ±%s", metric.Percent((v.High.V-v.Mean.V)/v.Mean.V))
	}
	if rate, ok := p.Rate.Positive(); ok && p.Finished != nil && p.E2EL != nil && len(p.Runs) > 0 {
		_, kept := p.ownDelays()
		if expected := r.expectedRate(p, rate); p.Finished.Mean.V < minRateShare*expected && kept >= minKept {
			add(severityWatch, "rate", "use a lower --rate, or "+r.moreSlots(), fmt.Sprintf("%s requests/s finished, %s requested", metric.Rate(p.Finished.Mean.V), metric.Rate(rate)),
				"the engine does not keep up: it finishes %s of the rate", metric.Percent(p.Finished.Mean.V/rate))
		}
	}
	if p.ReadShare.OK() {
		try := "use a smaller quantisation: decode gets faster in proportion"
		if p.ReadShare.V < bandwidthBound || p.ReadShare.V > 1 {
			try = "" // the bottleneck is not measured
		}
		add(severityInfo, "bound", try, fmt.Sprintf("%s/s of %s/s", metric.Bytes(p.Bandwidth.V), metric.Bytes(r.Bench.Limits.Read.V)), "%s", p.bound())
	}
	return out
}

// failedShare returns the share of the requests of a point that failed.
func (r *Report) failedShare(p *Point) float64 {
	byID, failed := requestsByID(r), 0
	for _, run := range p.Runs {
		for _, id := range run.Requests {
			if q := byID[id]; q != nil && q.State == event.StateFailed.String() {
				failed++
			}
		}
	}
	return float64(failed) / float64(max(p.count(), 1))
}

// expectedRate returns how many requests/s of an open loop finish if the engine keeps up: those that it did not refuse,
// until the last planned one has ended. Intervals are random, so a short run can take longer than its rate says.
func (r *Report) expectedRate(p *Point, rate float64) float64 {
	byID, total := requestsByID(r), 0.0
	for _, run := range p.Runs {
		n, last := len(run.Requests), -1.0
		for i, id := range run.Requests {
			q := byID[id]
			if q == nil {
				continue
			}
			if q.State == event.StateFailed.String() {
				n--
			}
			if i < len(run.SendDelays) {
				last = max(last, q.Enqueued.V-q.Connect.V-run.SendDelays[i]-run.Started.V)
			}
		}
		if last < 0 { // unknown
			last = float64(len(run.Requests)) / rate
		}
		total += float64(n) / (last + p.E2EL.Mean.V)
	}
	return total / float64(len(p.Runs))
}

// adviseCold compares cold requests with warm ones of the same prompts.
func adviseCold(r *Report, p *Point) []Verdict {
	if p.ColdTTFT == nil {
		return nil
	}
	for i := range r.Bench.Points {
		warm := &r.Bench.Points[i]
		if warm.prompts() != p.prompts() || warm.Concurrency != 1 || warm.TTFT == nil || !(p.ColdTTFT.P50.V >= coldRatio*warm.TTFT.P50.V) {
			continue
		}
		return []Verdict{{
			severityInfo, "cold start", fmt.Sprintf("%s: cold TTFT is %.1f times the warm one", p.prompts(), p.ColdTTFT.P50.V/warm.TTFT.P50.V),
			fmt.Sprintf("p50 %s vs. %s", p.ColdTTFT.cell("p50", metric.Seconds), warm.TTFT.cell("p50", metric.Seconds)), "keep the model loaded between requests",
		}}
	}
	return nil
}

// adviseMachine returns the recommendations for the machine as a whole.
func adviseMachine(r *Report) (out []Verdict) {
	if u := &r.Host.RunUsage; u.MemoryShare.OK() && u.MemoryShare.V >= fullShare {
		out = append(out, Verdict{severityWatch, "memory", "peak memory use was " + metric.Percent(u.MemoryShare.V), "peak " + metric.Bytes(u.MemoryPeak.V), "use a smaller quantisation or context"})
	}
	if p := r.Placement; p != nil && p.Chosen == nil && len(p.Curve) > 1 {
		if b := p.Curve[1]; b.Coverage.V >= minCoverageGain*b.Even.V {
			out = append(out, Verdict{
				severityInfo, "experts", fmt.Sprintf("%d of %d experts get %s of the routing (uniform baseline %s)", b.Experts, p.Experts, metric.Percent(b.Coverage.V), metric.Percent(b.Even.V)),
				plural(p.Picks, "pick"), "keep them on the faster device: --budget 25% lists them",
			})
		}
	}
	if c := r.Bench.Client; c != nil {
		for _, why := range c.Limits {
			out = append(out, Verdict{severityWatch, "client", "llmtop itself was a bottleneck: " + why, "", "use fewer concurrent requests, or run llmtop on another machine"})
		}
	}
	return out
}
