package cmd

import (
	"sync"

	"github.com/llmtop/llmtop/profiler/compat"
	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/report"
	"github.com/llmtop/llmtop/runtime/api"
	"github.com/llmtop/llmtop/runtime/bench"
)

// streams keeps how answers came, for the numbers of other tools.
type streams struct {
	mu   sync.Mutex
	byID map[event.RequestID]compat.Stream
}

// record takes the answer to one request.
func (s *streams) record(in *api.Stream) {
	out := compat.Stream{
		Began: seconds(in.Began), Chat: in.Chat, Prompt: in.Prompt, Generated: in.Generated, Failed: in.Failed,
		Messages: make([]compat.Message, len(in.Messages)),
	}
	for i, m := range in.Messages {
		out.Messages[i] = compat.Message{
			At: seconds(m.At), Choices: m.Kind&api.HasChoices != 0, Output: m.Kind&api.HasOutput != 0,
			Reasoning: m.Kind&api.HasReasoning != 0, Done: m.Kind&api.IsDone != 0,
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.byID == nil {
		s.byID = map[event.RequestID]compat.Stream{}
	}
	s.byID[in.Request] = out
}

func seconds(t event.Time) float64 { return float64(t) / 1e9 }

// of is the answer to a request, made of its tokens where nothing else came: of engines that are not asked over HTTP.
func (s *streams) of(q *report.Request) compat.Stream {
	s.mu.Lock()
	defer s.mu.Unlock()
	if out, ok := s.byID[q.ID]; ok {
		return out
	}
	out := compat.Stream{Began: q.Enqueued.V, Prompt: q.Prompt, Generated: q.Generated, Failed: q.State != event.StateFinished.String()}
	for _, t := range q.Tokens {
		out.Messages = append(out.Messages, compat.Message{At: q.Enqueued.V + t.At.V, Choices: true, Output: true})
	}
	return out
}

// addTo adds to a report with a benchmark the numbers of a tool.
func (s *streams) addTo(r *report.Report, tool compat.Tool, log *bench.Log) {
	byID := make(map[event.RequestID]*report.Request, len(r.Requests))
	for i := range r.Requests {
		byID[r.Requests[i].ID] = &r.Requests[i]
	}
	out := &report.Compat{Tool: tool.Full, Points: []report.CompatPoint{}}
	for i, p := range log.Points {
		var runs []compat.Run
		for _, run := range p.Runs {
			in := compat.Run{Duration: seconds(run.End - run.Start)}
			for _, id := range run.Requests {
				if q := byID[id]; q != nil {
					in.Streams = append(in.Streams, s.of(q))
				}
			}
			runs = append(runs, in)
		}
		point := report.CompatPoint{Name: p.Point.Name, Values: []report.CompatValue{}}
		for _, row := range tool.Rows(runs) {
			point.Values = append(point.Values, report.CompatValue{
				Name: row.Name, Value: report.Measured(row.Value), Ours: r.Bench.Points[i].Of(row.Of.Metric, row.Of.Statistic, row.Of.Scale),
			})
		}
		out.Points = append(out.Points, point)
	}
	r.Bench.Compat = out
}
