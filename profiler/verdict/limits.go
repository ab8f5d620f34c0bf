package verdict

import "time"

// The thresholds of all verdicts.
const (
	realTime       = 50 * time.Millisecond  // TTFT below which a verdict calls it real time
	interactive    = 100 * time.Millisecond // TTFT below which a verdict calls it interactive
	ReadingSpeed   = 20.0                   // decode tokens/s per request: less is a warning
	slowSpeed      = 5.0                    // decode tokens/s per request: less is bad
	busyCPU        = 0.5                    // share of the machine's cores below which decoding waits for memory or I/O
	MemoryBound    = 0.6                    // share of the read bandwidth from which decoding is memory-bound
	memoryFull     = 0.9                    // share of memory in use above which the machine may swap
	imbalanced     = 3.0                    // max/mean load of a layer's experts from which the layer is imbalanced
	imbalancePicks = 1000                   // minimum number of picks of a layer for that check
	cacheGain      = 0.05                   // share of the picks that a cache of experts must serve beyond even picks to be a gain
	cachePicks     = 4                      // minimum number of judged picks per expert for a verdict on a cache of experts
	cacheDrift     = 2                      // multiple of the drift by chance from which the routing has moved
	fullKV         = 0.95                   // share of the KV cache above which a verdict warns
	tailFactor     = 3.0                    // p99/p50 of ITL from which a verdict reports the tail
	tailSamples    = 100                    // minimum number of gaps for a p99
	speedSamples   = 10                     // minimum number of gaps for the speed of decoding, if it took at least speedTime
	speedTime      = 10 * time.Second       // decoding from which fewer gaps than tailSamples show its speed
	leastTail      = 10 * time.Millisecond  // p99 - p50 of ITL from which a verdict reports the tail
	leastExplained = 0.5                    // share of lost time that a cause must explain to be named
	LostShare      = 0.1                    // share of the time from which a second is slow, and a cause is named for a window or a session
	leastLoss      = 100 * time.Millisecond // lost time from which a cause is named for a window or a session
	slowClock      = 0.5                    // share of the highest frequency below which busy cores are slow
	SlowerShare    = 0.25                   // share by which ten seconds are slower than the session before them to be slow
	leastProfit    = 0.05                   // share by which speculation must change the speed to be a gain or a loss
	rankQueue      = 2                      // waiting requests from which a rank is compared with the others
	ServedRequests = 5                      // minimum number of requests for the TTFT of a server
)
