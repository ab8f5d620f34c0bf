package verdict

import "time"

// Limits are the thresholds of all verdicts.
type Limits struct {
	RealTime, Interactive time.Duration // TTFT below which a verdict calls it real time or interactive
	Comfortable, Slow     float64       // decode tokens/s per request: below Comfortable is a warning, below Slow is bad
	BusyCPU               float64       // share of the machine's cores below which decoding waits for memory or I/O
	MemoryBound           float64       // share of the read bandwidth from which decoding is memory-bound
	MemoryFull            float64       // share of memory in use above which the machine may swap
	Imbalance             float64       // max/mean load of a layer's experts from which the layer is imbalanced
	ImbalancePicks        uint64        // minimum number of picks of a layer for that check
	CacheGain             float64       // share of the picks that a cache of experts must serve beyond even picks to be a gain
	CachePicks            uint64        // minimum number of judged picks per expert for a verdict on a cache of experts
	CacheDrift            float64       // multiple of the drift by chance from which the routing has moved
	KVFull                float64       // share of the KV cache above which a verdict warns
	TailFactor            float64       // p99/p50 of ITL from which a verdict reports the tail
	TailSamples           uint64        // minimum number of gaps for a p99
	SpeedSamples          uint64        // minimum number of gaps for the speed of decoding, if it took at least SpeedTime
	SpeedTime             time.Duration // decoding from which fewer gaps than TailSamples show its speed
	LeastTail             time.Duration // p99 - p50 of ITL from which a verdict reports the tail
	Explains              float64       // share of lost time that a cause must explain to be named
	Lost                  float64       // share of the time from which a second is slow, and a cause is named for a window or a session
	LeastLoss             time.Duration // lost time from which a cause is named for a window or a session
	SlowClock             float64       // share of the highest frequency below which busy cores are slow
	Slower                float64       // share by which ten seconds are slower than the session before them to be slow
	Profit                float64       // share by which speculation must change the speed to be a gain or a loss
	RankQueue             float64       // waiting requests from which a rank is compared with the others
	ServedRequests        uint64        // minimum number of requests for the TTFT of a server
}

// Defaults returns the default limits.
func Defaults() Limits {
	return Limits{
		RealTime: 50 * time.Millisecond, Interactive: 100 * time.Millisecond,
		Comfortable: 20, Slow: 5,
		BusyCPU: 0.5, MemoryBound: 0.6, MemoryFull: 0.9,
		Imbalance: 3, ImbalancePicks: 1000,
		CacheGain: 0.05, CachePicks: 4, CacheDrift: 2,
		KVFull:     0.95,
		TailFactor: 3, TailSamples: 100, SpeedSamples: 10, SpeedTime: 10 * time.Second, LeastTail: 10 * time.Millisecond,
		Explains: 0.5, Lost: 0.1, LeastLoss: 100 * time.Millisecond, SlowClock: 0.5, Slower: 0.25,
		Profit: 0.05, RankQueue: 2, ServedRequests: 5,
	}
}
