package compat

import "math"

// outcome is what the benchmarks of vLLM and SGLang make of one stream. Times are in s.
type outcome struct {
	ok             bool
	start          float64
	ttft, latency  float64
	itl            []float64
	prompt, tokens int
	begun          bool
}

// served sums up runs as calculate_metrics of either tool does.
type served struct {
	ok, failed          int
	prompt, tokens      int
	duration            float64
	ttft, tpot          []float64
	itl, latency        []float64
	peakRate, peakCount float64
}

// serve sums up what outcome makes of each stream.
func serve(runs []Run, of func(*Stream) outcome) (s served) {
	for _, r := range runs {
		var good []outcome
		s.duration += r.Duration
		for i := range r.Streams {
			o := of(&r.Streams[i])
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

// peaks counts messages, which the tools call tokens, and requests in buckets of a second from the first request on.
func peaks(outcomes []outcome) (rate, count float64) {
	if len(outcomes) == 0 {
		return 0, 0
	}
	from, to := math.Inf(1), math.Inf(-1)
	for i := range outcomes {
		from, to = min(from, outcomes[i].start), max(to, outcomes[i].start+outcomes[i].latency)
	}
	n := int(min(math.Ceil(to-from), mostSeconds)) + 1
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

// mostSeconds bounds the buckets, for streams whose moments make no sense.
const mostSeconds = 1 << 20

// bucket is the second that a moment lies in, within n of them.
func bucket(at float64, n int) int { return int(min(max(at, 0), float64(n-1))) }

// inMS is a distribution of the report in ms.
func inMS(metric, statistic string) Of { return Of{metric, statistic, 1000} }

// family adds the statistics of one kind of latency, named as the tools name them.
func family(rows []Row, name, metric string, v []float64, percents ...float64) []Row {
	rows = append(rows,
		Row{"Mean " + name + " (ms)", mean(v) * 1000, inMS(metric, "mean")},
		Row{"Median " + name + " (ms)", percentile(v, 50) * 1000, inMS(metric, "p50")})
	for _, p := range percents {
		label, statistic := percentName(p)
		rows = append(rows, Row{label + " " + name + " (ms)", percentile(v, p) * 1000, inMS(metric, statistic)})
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

// vllm follows vllm/benchmarks/lib/endpoint_request_func.py and vllm/benchmarks/serve.py: what counts is every message with choices, those
// without text included. In a chat, time also goes on with messages without choices, so that the latency ends with the one that holds the usage.
func vllm(runs []Run) []Row {
	s := serve(runs, func(st *Stream) outcome {
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
		{"Request throughput (req/s)", over(float64(s.ok), s.duration), Of{"finished_requests_per_s", "mean", 1}},
		{"Output token throughput (tok/s)", over(tokens, s.duration), Of{"output_tokens_per_s", "mean", 1}},
		{Name: "Peak output token throughput (tok/s)", Value: s.peakRate},
		{Name: "Peak concurrent requests", Value: s.peakCount},
		{"Total Token throughput (tok/s)", over(all, s.duration), Of{"total_tokens_per_s", "mean", 1}},
	}
	rows = family(rows, "TTFT", "ttft_s", s.ttft, 99)
	rows = family(rows, "TPOT", "tpot_s", s.tpot, 99)
	rows = family(rows, "ITL", "itl_s", s.itl, 99)
	return family(rows, "E2EL", "e2el_s", s.latency, 99)
}

// sglang follows sglang/benchmark/serving.py for the interfaces of OpenAI: what counts is every message with text, and the latency ends with the
// last message, that which marks the end included.
func sglang(runs []Run) []Row {
	s := serve(runs, func(st *Stream) outcome {
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
		{"Request throughput (req/s)", over(float64(s.ok), s.duration), Of{"finished_requests_per_s", "mean", 1}},
		{Name: "Input token throughput (tok/s)", Value: over(float64(s.prompt), s.duration)},
		{"Output token throughput (tok/s)", over(tokens, s.duration), Of{"output_tokens_per_s", "mean", 1}},
		{Name: "Peak output token throughput (tok/s)", Value: s.peakRate},
		{Name: "Peak concurrent requests", Value: s.peakCount},
		{"Total token throughput (tok/s)", over(all, s.duration), Of{"total_tokens_per_s", "mean", 1}},
		{Name: "Concurrency", Value: over(mean(s.latency)*float64(s.ok), s.duration)},
	}
	rows = family(rows, "E2E Latency", "e2el_s", s.latency, 90, 99)
	rows = family(rows, "TTFT", "ttft_s", s.ttft, 99)
	rows = family(rows, "TPOT", "tpot_s", s.tpot, 99)
	rows = family(rows, "ITL", "itl_s", s.itl, 95, 99)
	return append(rows, Row{"Max ITL (ms)", percentile(s.itl, 100) * 1000, inMS("itl_s", "max")})
}
