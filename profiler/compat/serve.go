package compat

import "math"

// outcome is one stream as the benchmarks of vLLM and SGLang evaluate it. Times are in s.
type outcome struct {
	ok             bool
	start          float64
	ttft, latency  float64
	itl            []float64
	prompt, tokens int
	begun          bool
}

// totals sums up runs as calculate_metrics of both tools does.
type totals struct {
	ok, failed          int
	prompt, tokens      int
	duration            float64
	ttft, tpot          []float64
	itl, latency        []float64
	peakRate, peakCount float64
}

// sumStreams evaluates each stream and sums up the outcomes.
func sumStreams(runs []Run, evaluate func(*Stream) outcome) (s totals) {
	for _, r := range runs {
		var good []outcome
		s.duration += r.Duration
		for i := range r.Streams {
			o := evaluate(&r.Streams[i])
			if !o.ok {
				s.failed++
				continue
			}
			good = append(good, o)
			s.ok++
			s.prompt, s.tokens = s.prompt+o.prompt, s.tokens+o.tokens
			s.ttft, s.latency, s.itl = append(s.ttft, o.ttft), append(s.latency, o.latency), append(s.itl, o.itl...)
			if o.tokens > 1 {
				s.tpot = append(s.tpot, (o.latency-o.ttft)/float64(o.tokens-1))
			}
		}
		rate, count := peaks(good)
		s.peakRate, s.peakCount = max(s.peakRate, rate), max(s.peakCount, count)
	}
	return s
}

// peaks returns the largest number of messages, which the tools call tokens, and of open requests per second, counted
// from the first request.
func peaks(outcomes []outcome) (rate, count float64) {
	if len(outcomes) == 0 {
		return 0, 0
	}
	from, to := math.Inf(1), math.Inf(-1)
	for i := range outcomes {
		from, to = min(from, outcomes[i].start), max(to, outcomes[i].start+outcomes[i].latency)
	}
	n := int(min(math.Ceil(to-from), maxSeconds)) + 1
	messages, open := make([]float64, n), make([]float64, n)
	for i := range outcomes {
		o := &outcomes[i]
		at := o.start + o.ttft
		messages[bucket(at-from, n)]++
		for _, gap := range o.itl {
			at += gap
			messages[bucket(at-from, n)]++
		}
		for second := bucket(o.start-from, n); second <= bucket(o.start+o.latency-from, n); second++ {
			open[second]++
		}
	}
	for i := range messages {
		rate, count = max(rate, messages[i]), max(count, open[i])
	}
	return rate, count
}

// maxSeconds bounds the number of buckets against malformed times.
const maxSeconds = 1 << 20

// bucket returns the second of a time, limited to n seconds.
func bucket(at float64, n int) int { return int(min(max(at, 0), float64(n-1))) }

// counterpartMS names a distribution of the report, converted to ms.
func counterpartMS(metric, statistic string) Counterpart { return Counterpart{metric, statistic, 1000} }

// latencyRows adds the statistics of a latency under the names that the tools use.
func latencyRows(rows []Row, name, metric string, v []float64, percents ...float64) []Row {
	rows = append(rows,
		Row{"Mean " + name + " (ms)", mean(v) * 1000, counterpartMS(metric, "mean")},
		Row{"Median " + name + " (ms)", percentile(v, 50) * 1000, counterpartMS(metric, "p50")})
	for _, p := range percents {
		label, statistic := percentName(p)
		rows = append(rows, Row{label + " " + name + " (ms)", percentile(v, p) * 1000, counterpartMS(metric, statistic)})
	}
	return rows
}

func percentName(p float64) (label, statistic string) {
	switch p {
	case 90:
		return "P90", "p90"
	case 95:
		return "P95", "p95"
	}
	return "P99", "p99"
}

// vllm follows vllm/benchmarks/lib/endpoint_request_func.py and vllm/benchmarks/serve.py. Every message with choices
// counts, even without text. In a chat, messages without choices advance the clock too, so the latency ends with the
// message that holds the usage.
func vllm(runs []Run) []Row {
	s := sumStreams(runs, func(st *Stream) outcome {
		o := outcome{start: st.Began, prompt: st.Prompt, tokens: st.Generated}
		recent := st.Began
		for _, m := range st.Messages {
			switch {
			case m.Done:
				continue
			case m.Choices && !o.begun:
				o.ttft, o.begun = m.At-st.Began, true
			case m.Choices:
				o.itl = append(o.itl, m.At-recent)
			}
			if m.Choices || st.Chat {
				recent = m.At
			}
		}
		o.latency = recent - st.Began
		o.ok = !st.Failed && (o.begun || st.Chat)
		return o
	})
	tokens, all := float64(s.tokens), float64(s.prompt+s.tokens)
	rows := []Row{
		{Name: "Successful requests", Value: float64(s.ok)},
		{Name: "Failed requests", Value: float64(s.failed)},
		{Name: "Benchmark duration (s)", Value: s.duration},
		{Name: "Total input tokens", Value: float64(s.prompt)},
		{Name: "Total generated tokens", Value: tokens},
		{"Request throughput (req/s)", perSecond(float64(s.ok), s.duration), Counterpart{"finished_requests_per_s", "mean", 1}},
		{"Output token throughput (tok/s)", perSecond(tokens, s.duration), Counterpart{"output_tokens_per_s", "mean", 1}},
		{Name: "Peak output token throughput (tok/s)", Value: s.peakRate},
		{Name: "Peak concurrent requests", Value: s.peakCount},
		{"Total Token throughput (tok/s)", perSecond(all, s.duration), Counterpart{"total_tokens_per_s", "mean", 1}},
	}
	rows = latencyRows(rows, "TTFT", "ttft_s", s.ttft, 99)
	rows = latencyRows(rows, "TPOT", "tpot_s", s.tpot, 99)
	rows = latencyRows(rows, "ITL", "itl_s", s.itl, 99)
	return latencyRows(rows, "E2EL", "e2el_s", s.latency, 99)
}

// sglang follows sglang/benchmark/serving.py for the OpenAI interfaces. Every message with text counts, and the latency
// ends with the last message, the end mark included.
func sglang(runs []Run) []Row {
	s := sumStreams(runs, func(st *Stream) outcome {
		o := outcome{ok: !st.Failed, start: st.Began, prompt: st.Prompt, tokens: st.Generated}
		recent := st.Began
		for _, m := range st.Messages {
			o.latency = m.At - st.Began
			if !m.text() {
				continue
			}
			if !o.begun {
				o.ttft, o.begun = m.At-st.Began, true
			} else {
				o.itl = append(o.itl, m.At-recent)
			}
			recent = m.At
		}
		return o
	})
	tokens, all := float64(s.tokens), float64(s.prompt+s.tokens)
	rows := []Row{
		{Name: "Successful requests", Value: float64(s.ok)},
		{Name: "Benchmark duration (s)", Value: s.duration},
		{Name: "Total input tokens", Value: float64(s.prompt)},
		{Name: "Total generated tokens", Value: tokens},
		{"Request throughput (req/s)", perSecond(float64(s.ok), s.duration), Counterpart{"finished_requests_per_s", "mean", 1}},
		{Name: "Input token throughput (tok/s)", Value: perSecond(float64(s.prompt), s.duration)},
		{"Output token throughput (tok/s)", perSecond(tokens, s.duration), Counterpart{"output_tokens_per_s", "mean", 1}},
		{Name: "Peak output token throughput (tok/s)", Value: s.peakRate},
		{Name: "Peak concurrent requests", Value: s.peakCount},
		{"Total token throughput (tok/s)", perSecond(all, s.duration), Counterpart{"total_tokens_per_s", "mean", 1}},
		{Name: "Concurrency", Value: perSecond(mean(s.latency)*float64(s.ok), s.duration)},
	}
	rows = latencyRows(rows, "E2E Latency", "e2el_s", s.latency, 90, 99)
	rows = latencyRows(rows, "TTFT", "ttft_s", s.ttft, 99)
	rows = latencyRows(rows, "TPOT", "tpot_s", s.tpot, 99)
	rows = latencyRows(rows, "ITL", "itl_s", s.itl, 95, 99)
	return append(rows, Row{"Max ITL (ms)", percentile(s.itl, 100) * 1000, counterpartMS("itl_s", "max")})
}
