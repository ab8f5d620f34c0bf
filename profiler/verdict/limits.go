package verdict

import "time"

// Limits are the thresholds of all verdicts, in one place.
type Limits struct {
	RealTime, Interactive time.Duration // TTFT of the two classes that a verdict names
	Comfortable, Slow     float64       // decode tokens/s for one reader
	BusyCPU               float64       // share of the machine's cores below which decoding waits for something else
	MemoryBound           float64       // share of the copy bandwidth from which decoding is memory-bound
	MemoryFull            float64       // share of the memory from which swapping threatens
	Lopsided              float64       // max/mean load of a layer's experts
	LopsidedPicks         uint64        // picks that a layer must have had before it is judged
	KVFull                float64       // share of the KV cache
	TailFactor            float64       // p99/p50 of ITL from which the tail is worth a word
	TailSamples           uint64        // gaps that a p99 must rest on
	ServedRequests        uint64        // requests that a server must have counted before its TTFT is judged
}

// Defaults are the limits that llmtop starts with.
func Defaults() Limits {
	return Limits{
		RealTime: 50 * time.Millisecond, Interactive: 100 * time.Millisecond,
		Comfortable: 20, Slow: 5,
		BusyCPU: 0.5, MemoryBound: 0.6, MemoryFull: 0.9,
		Lopsided: 3, LopsidedPicks: 200,
		KVFull:     0.95,
		TailFactor: 3, TailSamples: 100,
		ServedRequests: 5,
	}
}
