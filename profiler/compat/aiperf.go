package compat

import "math"

// aiperf follows aiperf/metrics/types. Every message with text counts. Its inter token latency is the mean of a
// request, and its benchmark lasts from the first request to the last message with text.
func aiperf(runs []Run) []Row {
	var v struct{ ttft, ttst, ttfo, latency, itl, user, prefill, osl, isl []float64 }
	var duration, tokens float64
	for _, r := range runs {
		from, to := math.Inf(1), math.Inf(-1)
		for i := range r.Streams {
			st := &r.Streams[i]
			first, second, output, last, n := contentTimes(st)
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
	rows := statisticRows(nil, "Time to First Token (ms)", "ttft_s", v.ttft, 1000)
	rows = statisticRows(rows, "Time to Second Token (ms)", "", v.ttst, 1000)
	rows = statisticRows(rows, "Time to First Output Token (ms)", "", v.ttfo, 1000)
	rows = statisticRows(rows, "Request Latency (ms)", "e2el_s", v.latency, 1000)
	rows = statisticRows(rows, "Inter Token Latency (ms)", "tpot_s", v.itl, 1000)
	rows = statisticRows(rows, "Output Token Throughput Per User (tokens/sec/user)", "decode_tokens_per_s", v.user, 1)
	rows = statisticRows(rows, "Prefill Throughput Per User (tokens/sec/user)", "", v.prefill, 1)
	rows = statisticRows(rows, "Output Sequence Length (tokens)", "", v.osl, 1)
	rows = statisticRows(rows, "Input Sequence Length (tokens)", "", v.isl, 1)
	return append(rows,
		Row{"Output Token Throughput (tokens/sec)", perSecond(tokens, duration), Counterpart{"output_tokens_per_s", "mean", 1}},
		Row{"Request Throughput (requests/sec)", perSecond(float64(len(v.latency)), duration), Counterpart{"finished_requests_per_s", "mean", 1}},
		Row{Name: "Request Count (requests)", Value: float64(len(v.latency))})
}

// contentTimes returns the times of the first, second and last message with text, and of the first with text other than
// reasoning (NaN if absent). n is the number of messages with text.
func contentTimes(st *Stream) (first, second, output, last float64, n int) {
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

// statisticRows adds the columns of AIPerf's table as rows, none if there are no values.
func statisticRows(rows []Row, name, metric string, v []float64, scale float64) []Row {
	if len(v) == 0 {
		return rows
	}
	counterpart := func(statistic string) Counterpart {
		if metric == "" {
			return Counterpart{}
		}
		return Counterpart{metric, statistic, scale}
	}
	return append(rows,
		Row{name + " avg", mean(v) * scale, counterpart("mean")},
		Row{name + " min", percentile(v, 0) * scale, counterpart("min")},
		Row{name + " max", percentile(v, 100) * scale, counterpart("max")},
		Row{name + " p99", percentile(v, 99) * scale, counterpart("p99")},
		Row{name + " p90", percentile(v, 90) * scale, counterpart("p90")},
		Row{name + " p50", percentile(v, 50) * scale, counterpart("p50")},
		Row{name + " std", deviation(v) * scale, counterpart("stddev")})
}
