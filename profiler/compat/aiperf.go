package compat

import "math"

// aiperf follows aiperf/metrics/types: what counts is every message with text; what it calls inter token latency is a request's mean, and its
// benchmark lasts from the first request to the last message with text.
func aiperf(runs []Run) []Row {
	var v struct{ ttft, ttst, ttfo, latency, itl, user, prefill, osl, isl []float64 }
	var duration, tokens float64
	for _, r := range runs {
		from, to := math.Inf(1), math.Inf(-1)
		for i := range r.Streams {
			st := &r.Streams[i]
			first, second, output, last, n := contents(st)
			if st.Failed || n == 0 {
				continue
			}
			from, to = min(from, st.Began), max(to, last)
			tokens += float64(st.Generated)
			v.isl, v.osl = append(v.isl, float64(st.Prompt)), append(v.osl, float64(st.Generated))
			ttft, latency := first-st.Began, last-st.Began
			v.ttft, v.latency = append(v.ttft, ttft), append(v.latency, latency)
			if n > 1 {
				v.ttst = append(v.ttst, second-first)
			}
			if !math.IsNaN(output) {
				v.ttfo = append(v.ttfo, output-st.Began)
			}
			if ttft > 0 {
				v.prefill = append(v.prefill, float64(st.Prompt)/ttft)
			}
			if st.Generated >= 2 {
				itl := (latency - ttft) / float64(st.Generated-1)
				v.itl = append(v.itl, itl)
				if itl > 0 {
					v.user = append(v.user, 1/itl)
				}
			}
		}
		duration += max(to-from, 0)
	}
	rows := columns(nil, "Time to First Token (ms)", "ttft_s", v.ttft, 1000)
	rows = columns(rows, "Time to Second Token (ms)", "", v.ttst, 1000)
	rows = columns(rows, "Time to First Output Token (ms)", "", v.ttfo, 1000)
	rows = columns(rows, "Request Latency (ms)", "e2el_s", v.latency, 1000)
	rows = columns(rows, "Inter Token Latency (ms)", "tpot_s", v.itl, 1000)
	rows = columns(rows, "Output Token Throughput Per User (tokens/sec/user)", "decode_tokens_per_s", v.user, 1)
	rows = columns(rows, "Prefill Throughput Per User (tokens/sec/user)", "", v.prefill, 1)
	rows = columns(rows, "Output Sequence Length (tokens)", "", v.osl, 1)
	rows = columns(rows, "Input Sequence Length (tokens)", "", v.isl, 1)
	return append(rows,
		Row{"Output Token Throughput (tokens/sec)", over(tokens, duration), Of{"output_tokens_per_s", "mean", 1}},
		Row{"Request Throughput (requests/sec)", over(float64(len(v.latency)), duration), Of{"finished_requests_per_s", "mean", 1}},
		Row{Name: "Request Count (requests)", Value: float64(len(v.latency))})
}

// contents finds the moments of the first, the second and the last message with text, and of the first with text that is no reasoning: NaN if
// there is none. n is how many hold text.
func contents(st *Stream) (first, second, output, last float64, n int) {
	output = math.NaN()
	for i := range st.Messages {
		m := &st.Messages[i]
		if !m.text() {
			continue
		}
		switch n++; n {
		case 1:
			first = m.At
		case 2:
			second = m.At
		}
		if m.Output && math.IsNaN(output) {
			output = m.At
		}
		last = m.At
	}
	return first, second, output, last, n
}

// columns adds the columns of AIPerf's table as rows; nothing where there are no values.
func columns(rows []Row, name, metric string, v []float64, scale float64) []Row {
	if len(v) == 0 {
		return rows
	}
	of := func(statistic string) Of {
		if metric == "" {
			return Of{}
		}
		return Of{metric, statistic, scale}
	}
	return append(rows,
		Row{name + " avg", mean(v) * scale, of("mean")},
		Row{name + " min", percentile(v, 0) * scale, of("min")},
		Row{name + " max", percentile(v, 100) * scale, of("max")},
		Row{name + " p99", percentile(v, 99) * scale, of("p99")},
		Row{name + " p90", percentile(v, 90) * scale, of("p90")},
		Row{name + " p50", percentile(v, 50) * scale, of("p50")},
		Row{name + " std", deviation(v) * scale, of("stddev")})
}
