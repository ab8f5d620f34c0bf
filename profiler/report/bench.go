package report

import (
	"fmt"
	"strings"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
)

// Bench says which of the requests a benchmark made for what, and what came of it. Requests of its warm-up are in no run.
type Bench struct {
	Targets   string     `json:"targets"` // that goodput and compliance judge by
	Points    []Point    `json:"points"`
	Failed    int        `json:"failed_requests"` // or refused, those of the warm-up too
	Economics *Economics `json:"economics"`       // null: nobody has counted
	Client    *Client    `json:"client"`          // null: the engine ran in this program's own process
	Compat    *Compat    `json:"compat"`          // null: not asked for
}

// Point is one point of a benchmark's workload: so many requests side by side or a second, of prompts of one kind.
type Point struct {
	Name        string `json:"name"`
	Concurrency int    `json:"concurrency"`         // 0: open loop
	Rate        Number `json:"rate_requests_per_s"` // null: closed loop
	Runs        []Run  `json:"runs"`                // the repeats, in order

	// Distributions over the requests of all runs; null where none has the number.
	TTFT     *Statistics `json:"ttft_s"` // warm
	ColdTTFT *Statistics `json:"cold_ttft_s"`
	STIL     *Statistics `json:"stil_s"`
	TPOT     *Statistics `json:"tpot_s"`
	ITL      *Statistics `json:"itl_s"` // over tokens
	E2EL     *Statistics `json:"e2el_s"`
	Prefill  *Statistics `json:"prefill_tokens_per_s"`
	Decode   *Statistics `json:"decode_tokens_per_s"`

	// Distributions over runs.
	Output   *Statistics `json:"output_tokens_per_s"`
	Total    *Statistics `json:"total_tokens_per_s"` // prompt and output
	Finished *Statistics `json:"finished_requests_per_s"`
	Goodput  *Statistics `json:"goodput_requests_per_s"`

	Compliance Compliance `json:"compliance"`

	// What the model's shape makes of the rates, for one request at a time; null for more, which share what is read.
	Bandwidth Number `json:"decode_bytes_per_s"` // weights and KV that decode touches
	Compute   Number `json:"prefill_flop_per_s"` // multiplications and additions of the weights that a prompt meets

	// Late is by how much requests of an open loop were sent after their time: what the sender, or a full queue, added. Null: closed loop.
	Late *Statistics `json:"late_s"`

	length struct { // tokens in the KV cache in the middle of each request's decoding
		sum float64
		n   int
	}
}

// Run is one repeat of a point.
type Run struct {
	Requests []event.RequestID `json:"requests"`
	Started  Number            `json:"started_s"` // since the session began
	Duration Number            `json:"duration_s"`
	Late     []float64         `json:"-"` // of each request of an open loop, in s
}

// AddBench adds a benchmark to a report of the session that it was made in. Points come with their runs, and are described here.
func (r *Report) AddBench(points []Point, failed int, targets Targets) {
	r.Bench = &Bench{Targets: targets.Name, Points: []Point{}, Failed: failed}
	for _, p := range points {
		r.AddPoint(p, targets)
	}
}

// AddPoint adds one more point to a benchmark.
func (r *Report) AddPoint(p Point, targets Targets) {
	byID := make(map[event.RequestID]*Request, len(r.Requests))
	for i := range r.Requests {
		byID[r.Requests[i].ID] = &r.Requests[i]
	}
	p.describe(byID, targets)
	p.touch(r.Model)
	r.Bench.Points = append(r.Bench.Points, p)
}

// samples gathers the values of one metric.
type samples struct {
	all  []float64
	runs [][]float64 // the same by run
}

func (s *samples) add(run int, n Number) {
	if !n.OK() {
		return
	}
	for len(s.runs) <= run {
		s.runs = append(s.runs, nil)
	}
	s.all, s.runs[run] = append(s.all, n.V), append(s.runs[run], n.V)
}

func (p *Point) describe(byID map[event.RequestID]*Request, targets Targets) {
	judged := tally{targets: targets}
	var ttft, cold, stil, tpot, itl, e2el, prefill, decode, output, total, finished, goodput, late samples
	for i, run := range p.Runs {
		var tokens, prompts, ended, good float64
		for _, id := range run.Requests {
			q := byID[id]
			if judged.add(q) {
				good++
			}
			if q == nil || q.State != event.StateFinished.String() {
				continue
			}
			first := &ttft
			if q.Cold {
				first = &cold
			}
			first.add(i, q.TTFT)
			stil.add(i, q.STIL)
			tpot.add(i, q.TPOT)
			e2el.add(i, q.E2EL)
			prefill.add(i, q.PrefillRate)
			decode.add(i, q.DecodeRate)
			for _, t := range q.Tokens {
				for range max(t.N, 1) {
					itl.add(i, t.Gap)
				}
			}
			p.length.sum += float64(q.Prompt) + float64(q.Generated)/2
			p.length.n++
			tokens, prompts, ended = tokens+float64(q.Generated), prompts+float64(q.Prompt), ended+1
		}
		if d, ok := run.Duration.Positive(); ok {
			output.add(i, Number(event.From(tokens/d)))
			total.add(i, Number(event.From((tokens+prompts)/d)))
			finished.add(i, Number(event.From(ended/d)))
			goodput.add(i, Number(event.From(good/d)))
		}
		for _, v := range run.Late {
			late.add(i, Number(event.From(v)))
		}
	}
	p.TTFT, p.ColdTTFT, p.STIL, p.TPOT = ttft.describe(), cold.describe(), stil.describe(), tpot.describe()
	p.ITL, p.E2EL, p.Prefill, p.Decode = itl.describe(), e2el.describe(), prefill.describe(), decode.describe()
	p.Output, p.Total, p.Finished, p.Goodput = output.describe(), total.describe(), finished.describe(), goodput.describe()
	p.Late, p.Compliance = late.describe(), judged.compliance()
}

// touch works out what decode reads and what prefill computes a second. A token of decode meets all active weights and the keys and values of the
// tokens before it, one of a prompt two operations for every active weight.
func (p *Point) touch(m *Model) {
	if p.Concurrency != 1 || m == nil {
		return
	}
	if p.TPOT != nil && m.WeightBytes.OK() && p.length.n > 0 {
		bytes := m.WeightBytes.V + m.KVBytes.V*p.length.sum/float64(p.length.n)
		if tpot, ok := p.TPOT.Mean.Positive(); ok {
			p.Bandwidth = Measured(bytes / tpot)
		}
	}
	if p.Prefill != nil && m.Active.OK() {
		p.Compute = Measured(2 * m.Active.V * p.Prefill.Mean.V)
	}
}

// writeLimits says of points of one request at a time how near they come to what the machine copies.
func (r *Report) writeLimits(w writer) {
	copied, known := r.Throughput.CopyBandwidth.Positive()
	for i := range r.Bench.Points {
		p := &r.Bench.Points[i]
		if !p.Bandwidth.OK() {
			continue
		}
		words := ""
		if known {
			words = ", " + metric.Percent(p.Bandwidth.V/copied) + " of what this machine copies"
		}
		compute := ""
		if p.Compute.OK() {
			compute = "; prefill computes " + metric.Flops(p.Compute.V)
		}
		w.line("%s: decode touches %s/s%s%s", p.Name, metric.Bytes(p.Bandwidth.V), words, compute)
	}
}

// writeBench writes a table of the points, then what each of them needs to be told.
func (r *Report) writeBench(w writer) {
	if r.Bench == nil {
		return
	}
	w.title("%-26s %8s %10s %10s %10s %10s %18s %8s %8s", "benchmark", "requests", "TTFT p50", "p99", "TPOT p50", "p99", "output tokens/s", "req/s", "goodput")
	for i := range r.Bench.Points {
		p := &r.Bench.Points[i]
		ttft := p.TTFT
		if ttft == nil {
			ttft = p.ColdTTFT
		}
		w.line("%-26s %8d %10s %10s %10s %10s %18s %8s %8s", p.Name, p.count(),
			ttft.cell(medianOf, metric.Seconds), ttft.cell(tailOf, metric.Seconds), p.TPOT.cell(medianOf, metric.Seconds), p.TPOT.cell(tailOf, metric.Seconds),
			strings.Replace(p.Output.margin(), "±", "+-", 1), p.Finished.cell(meanOf, metric.Rate), p.Goodput.cell(meanOf, metric.Rate))
	}
	w.line("goodput: requests/s that met %s", r.Bench.Targets)
	w.line("(? after a percentile: too few samples for it; +- is the 95 %% interval of the mean)")
	for i := range r.Bench.Points {
		if p := &r.Bench.Points[i]; p.Late != nil && p.Late.Max.V > lateMatters {
			w.line("%s: requests were sent up to %s after their time (p50 %s): TTFT does not hold that",
				p.Name, metric.Seconds(p.Late.Max.V), metric.Seconds(p.Late.P50.V))
		}
	}
	r.writeLimits(w)
	r.writeSection(w, r.economicsSection())
	r.writeSection(w, r.clientSection())
	for _, s := range r.compatSections() {
		r.writeSection(w, s)
	}
	if n := r.Bench.Failed; n > 0 {
		w.line("%d requests failed", n)
	}
}

// lateMatters is from which delay on, in s, the text tells that requests were sent late.
const lateMatters = 0.001

func (p *Point) count() int {
	n := 0
	for _, run := range p.Runs {
		n += len(run.Requests)
	}
	return n
}

func medianOf(s *Statistics) (Number, string) { return s.P50, "p50" }
func tailOf(s *Statistics) (Number, string)   { return s.P99, "p99" }
func meanOf(s *Statistics) (Number, string)   { return s.Mean, "mean" }

// cell is one number of a distribution as text; "-" where there is none.
func (s *Statistics) cell(of func(*Statistics) (Number, string), f func(float64) string) string {
	if s == nil {
		return "-"
	}
	n, name := of(s)
	for _, few := range s.TooFew {
		if few == name {
			return f(n.V) + "?"
		}
	}
	return format(n, f)
}

// margin is the mean with half its interval.
func (s *Statistics) margin() string {
	if s == nil {
		return "-"
	}
	if s.High == (Number{}) {
		return metric.Rate(s.Mean.V)
	}
	return fmt.Sprintf("%s ±%s", metric.Rate(s.Mean.V), metric.Rate((s.High.V-s.Low.V)/2))
}
