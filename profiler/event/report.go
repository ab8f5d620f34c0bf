package event

// Report is what an engine tells of itself in sum rather than request by request: where it stands, and what has come over Interval. It is how
// servers are seen that are asked from outside. What is not told is absent.
type Report struct {
	Interval int64 // ns since the report before; 0: this is the first one, and nothing can be said of what has come

	Running, Waiting Reading // requests
	Decode, Prefill  Reading // tokens/s over Interval: generated ones, and those of prompts that were computed

	KVUsage, KVUsed, KVTotal Reading // 0..1, cells, cells
	CacheHits                Reading // share of the prompt tokens over Interval that came from a cache, 0..1

	Finished, Failed          Reading // requests over Interval
	Prompt, Cached, Generated Reading // tokens over Interval; Prompt holds the cached ones

	Times []Times
	Slots []Slot   // what is seen of single requests
	More  []Number // what else the engine counts, ascending by name

	Sources []Source // where the numbers come from, and where they could come from and do not
}

// Source is one of the places at which an engine tells of itself.
type Source struct {
	Name string // for example "/metrics"
	Why  string // it is not read; "": it is
}

// Times are durations that an engine has counted over the interval of a report, in buckets of its own.
type Times struct {
	Name   string // one of those in docs/event-protocol.md, or the engine's own
	Count  uint64
	Sum    int64    // ns
	Bounds []int64  // ns, ascending: upper ends of the buckets, that of the last one left out, which has none
	Counts []uint64 // of each bucket, one more than Bounds; nil if only count and sum are known
}

// Slot is a place in which an engine works on a request, as it was when somebody looked: neither the request's beginning nor its end was
// stamped.
type Slot struct {
	Slot      int
	Request   RequestID // 0: it is idle
	Prompt    int       // tokens of the prompt; 0 unknown
	Processed int       // of Prompt, in the cache by now
	Cached    int       // of Processed, that were there before
	Generated int
	Max       int // tokens to generate at most; 0 unknown
	Used      int // cells of the KV cache
	Context   int // cells that it may use
}

// Number is a reading with a name, whose end says the unit as in reports: "_share", "_bytes", "_per_s", "_s"; otherwise it is a count.
type Number struct {
	Name string
	Reading
}

// The names of Times that mean the same for all engines.
const (
	TimesTTFT      = "ttft"      // arrival to first token
	TimesITL       = "itl"       // between tokens; some engines count a step with several tokens once
	TimesTPOT      = "tpot"      // per request: decode time / (tokens - 1)
	TimesE2EL      = "e2el"      // arrival to last token
	TimesQueue     = "queue"     // arrival to the first work on the prompt
	TimesPrefill   = "prefill"   // first work on the prompt to first token
	TimesDecode    = "decode"    // first to last token
	TimesInference = "inference" // first work on the prompt to last token
	TimesPerToken  = "per_token" // decode time of ended requests by their tokens: a mean over tokens and not over requests
)
