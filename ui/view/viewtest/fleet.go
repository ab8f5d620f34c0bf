package viewtest

import (
	"fmt"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/store"
)

// Remote returns the live session on an attached engine with the given connection.
func Remote(r event.Remote) *store.Snapshot {
	s := *LiveSnapshot()
	r.Since = s.Now - event.Time(75*time.Second)
	s.Engine.Remote = r
	s.Engine.Caps |= event.CapCancel
	return &s
}

// Links are the states of a connection and its counters.
var Links = []struct {
	Name string
	event.Remote
}{
	{"connected", event.Remote{Address: "unix:/run/user/1000/llmtop/4242.sock", Link: event.LinkConnected}},
	{"stale", event.Remote{Address: "unix:/run/user/1000/llmtop/4242.sock", Link: event.LinkStale}},
	{"disconnected", event.Remote{
		Address: "tcp:127.0.0.1:9000", Link: event.LinkDisconnected, Reason: "connect to 127.0.0.1:9000: connection refused", Missed: 7, Malformed: 3,
	}},
	{"restarted", event.Remote{Address: "tcp:127.0.0.1:9000", Link: event.LinkConnected, Restarts: 2, Missed: -4}},
	{"refused", event.Remote{Address: "tcp:127.0.0.1:9000", Link: event.LinkRefused, Reason: "the engine speaks version 2 of the protocol, llmtop 1"}},
}

// Engine is one of several engines.
type Engine struct {
	Name     string
	Snapshot *store.Snapshot
}

// SeveralEngines returns engines in every state of a connection, with hostile names.
func SeveralEngines() (out []Engine) {
	for _, l := range Links {
		out = append(out, Engine{l.Name + "@" + l.Address, Remote(l.Remote)})
	}
	quiet := *Dense().Snapshot()
	quiet.Engine.Remote = event.Remote{Address: "unix:quiet", Link: event.LinkConnected}
	quiet.Engine.Caps = event.CapTokens
	quiet.Throughput.Decode = event.Absent(event.NotReported)
	return append(out, Engine{"quiet", &quiet}, Engine{"\x1b[31mevil\r\n日本語", Hostile().Snapshot()})
}

// replicaOf returns one replica of a fleet: the 8th is three times as slow as the others, the 4th is disconnected, the
// 6th has another model.
func replicaOf(i int) *store.Snapshot {
	const ms = int64(Millisecond)
	s := NewScene()
	model := "Qwen/Qwen3-30B-A3B"
	if i == 5 {
		model = "meta-llama/Llama-3.1-8B-Instruct"
	}
	s.Server("vLLM", event.Model{Name: model})
	slow, queue := int64(1), 1.0
	if i == 7 {
		slow, queue = 3, 14
	}
	for range 8 {
		s.Now += event.Time(time.Second)
		p := &event.Aggregates{
			Interval: int64(time.Second), Running: Reading(float64(6 + i%3)), Waiting: Reading(queue), Decode: event.DerivedValue(float64(900+11*(i%9)) / float64(slow)),
			KVUsage: Reading(0.4 + 0.01*float64(i%7)), CacheHits: event.DerivedValue(0.5), Generated: event.DerivedValue(900),
			Histograms: []event.Histogram{
				{Name: event.HistogramTTFT, Count: 10, Sum: 1500 * slow * ms, Bounds: []int64{50 * slow * ms, 150 * slow * ms, 250 * slow * ms}, Counts: []uint64{0, 8, 2, 0}},
				{Name: event.HistogramITL, Count: 100, Sum: 900 * ms, Bounds: []int64{10 * ms, 25 * ms}, Counts: []uint64{90, 9, 1}},
			},
		}
		s.Emit(event.Event{Kind: event.KindAggregates, Layer: -1, Data: p})
	}
	if i == 3 {
		s.Emit(event.Event{Kind: event.KindEngine, Layer: -1, Data: &event.EngineInfo{
			Name: "vLLM", Caps: event.CapAggregates, State: event.EngineReady,
			Remote: event.Remote{Address: "10.0.0.4:8000", Link: event.LinkDisconnected, Since: s.Now, Reason: "Prometheus cannot scrape it"},
		}})
	}
	return s.Snapshot()
}

// Replicas returns the engines of a fleet.
func Replicas(n int) (out []Engine) {
	for i := range n {
		out = append(out, Engine{fmt.Sprintf("10.0.0.%d:8000", i+1), replicaOf(i)})
	}
	return out
}
