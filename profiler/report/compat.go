package report

import (
	"fmt"
	"math"

	"github.com/llmtop/llmtop/profiler/compat"
	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
)

// Compat holds the numbers of a run as another tool defines them.
type Compat struct {
	Tool   string        `json:"tool"`
	Points []CompatPoint `json:"points"`
}

// CompatPoint holds the numbers of one point, over all its runs.
type CompatPoint struct {
	Name   string        `json:"name"`
	Values []CompatValue `json:"values"`
}

// CompatValue is one number, named as in the tool.
type CompatValue struct {
	Name  string `json:"name"`
	Value Number `json:"value"`
	Ours  Number `json:"llmtop"` // closest number of llmtop, in the same unit; null: there is none
}

// Answer holds the messages of an HTTP response with their times.
type Answer struct {
	Began Number   `json:"began_s"` // before the connection was opened; since the request was enqueued, so at most 0
	Chat  bool     `json:"chat"`
	Times []Number `json:"message_times_s"` // since the request was enqueued
	Kinds []int    `json:"message_kinds"`   // content of each message, a sum of: 1 choices, 2 output, 4 reasoning, 8 counts, 16 end marker
}

// answer converts an answer to times since the request was enqueued; nil for none.
func answer(a *event.Answer, enqueued event.Time) *Answer {
	if a == nil {
		return nil
	}
	out := &Answer{Began: nanos(int64(a.Began - enqueued)), Chat: a.Chat, Times: []Number{}, Kinds: []int{}}
	for _, m := range a.Messages {
		out.Times, out.Kinds = append(out.Times, nanos(int64(m.At-enqueued))), append(out.Kinds, int(m.Kind))
	}
	return out
}

// stream returns the answer as other tools see it. For engines without HTTP it is made from the tokens.
func (q *Request) stream() compat.Stream {
	out := compat.Stream{Began: q.Enqueued.V, Prompt: int(q.Prompt.V), Generated: q.Generated, Failed: q.State != event.StateFinished.String()}
	if a := q.Answer; a != nil {
		out.Began, out.Chat = q.Enqueued.V+a.Began.V, a.Chat
		for i := range min(len(a.Times), len(a.Kinds)) {
			kind := event.MessageKind(a.Kinds[i])
			out.Messages = append(out.Messages, compat.Message{
				At: q.Enqueued.V + a.Times[i].V, Choices: kind&event.HasChoices != 0, Output: kind&event.HasOutput != 0,
				Reasoning: kind&event.HasReasoning != 0, Done: kind&event.IsDone != 0,
			})
		}
		return out
	}
	for _, t := range q.Tokens {
		out.Messages = append(out.Messages, compat.Message{At: q.Enqueued.V + t.At.V, Choices: true, Output: true})
	}
	return out
}

// endedRequests returns all ended requests as one run.
func endedRequests(r *Report) []compat.Run {
	var run compat.Run
	from, to := math.Inf(1), math.Inf(-1)
	for i := range r.Requests {
		q := &r.Requests[i]
		switch q.State {
		case event.StateFinished.String():
			from, to = min(from, q.Enqueued.V), max(to, q.Enqueued.V+q.E2EL.V)
		case event.StateFailed.String():
		default:
			continue
		}
		run.Streams = append(run.Streams, q.stream())
	}
	run.Duration = max(to-from, 0)
	return []compat.Run{run}
}

// compatPoint returns the tool's numbers with those of the point.
func compatPoint(name string, rows []compat.Row, ours *Point) CompatPoint {
	out := CompatPoint{Name: name, Values: []CompatValue{}}
	for _, row := range rows {
		out.Values = append(out.Values, CompatValue{Name: row.Name, Value: Measured(row.Value), Ours: ours.Statistic(row.Counterpart.Metric, row.Counterpart.Statistic, row.Counterpart.Scale)})
	}
	return out
}

// requestsByID returns the requests by id.
func requestsByID(r *Report) map[event.RequestID]*Request {
	out := make(map[event.RequestID]*Request, len(r.Requests))
	for q := range r.all() {
		out[q.ID] = q
	}
	return out
}

// Statistic returns one statistic of one of the point's distributions, by JSON names, times scale. It is absent for
// unknown names.
func (p *Point) Statistic(distribution, statistic string, scale float64) Number {
	for _, d := range distributions {
		if s := *d.field(p); d.json == distribution && s != nil {
			n := s.value(statistic)
			n.V *= scale
			return n
		}
	}
	return Number{}
}

// compatSections returns a table per point.
func compatSections(r *Report) (out []section) {
	c := r.Compat
	if r.Bench != nil {
		c = r.Bench.Compat
	}
	if c == nil {
		return nil
	}
	two := func(v float64) string {
		if v < 1 { // two decimals are too few
			return metric.Rate(v)
		}
		return fmt.Sprintf("%.2f", v)
	}
	for _, p := range c.Points {
		s := section{title: p.Name + ", as measured by " + c.Tool, left: 1, header: []string{"", "tool", "llmtop"}}
		for _, v := range p.Values {
			s.rows = append(s.rows, []string{v.Name, two(v.Value.V), short(v.Ours, two)})
		}
		out = append(out, s)
	}
	return out
}
