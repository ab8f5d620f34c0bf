package store

import "slices"

// Term defines what numbers.go and latencies.go do not: a number of one request, of the router or of the screen that is
// neither exported nor in alerts, for the screen's help.
type Term struct {
	Title string
	Unit  string
	Help  string // definition; no period at the end
}

// Terms are the terms whose definitions docs/metrics.md has as well, in display order.
var Terms = slices.Concat(
	[]Term{
		{"TPS", "tokens/s", "tokens per second of a request or group: generated tokens / E2EL of its requests"},
		{"reasoning", "tokens", "of n, tokens of reasoning: the server's count, or else those streamed as reasoning"},
		{"network", "s", "round-trip time between client and server, of the handshake of their connection"},
	},
	Components[:],
	[]Term{
		{"share", "0..1", "router picks of one expert / all picks of its layer"},
		{"max/mean", "", "load imbalance: picks of a layer's hottest expert / mean picks; 1 is balanced"},
		{"CV", "", "coefficient of variation of a layer's picks: standard deviation / mean; 0 is balanced"},
		{"entropy", "0..1", "entropy of a layer's shares / maximum entropy; 1 is balanced"},
		{"idle", "experts", "experts of a layer without a pick in the window"},
		{"in memory", "0..1", "share of an expert's bytes that is in the page cache"},
		{"picks resident", "0..1", "picks while decoding x share of their expert in memory / picks"},
		{"not resident", "experts", "experts picked more often than evenly, with less than half of their bytes in memory"},
		{"hot cold", "", "the three most and the three least picked; of equals the lower number"},
		{"uniform share", "", "share of the expert x experts of the layer; 1 is what a balanced router would give it"},
		{"drift", "0..1", "routing drift since the mark, per layer: half the sum of the differences of the experts' shares; 0: identical, 1: no expert in common"},
		{"chance", "0..1", "mean drift without any change"},
		{"budget", "experts, B", "capacity of the faster device, in experts of all layers"},
		{"covered", "0..1", "picks of the N most picked experts / all picks: share of routing served by a device with a capacity of N experts"},
		{"static LRU LFU", "0..1", "share of picks that N slots per layer serve: a static set, or a cache that evicts the least recent or the least picked expert"},
		{"diff", "0..1", "difference between the picks of one prompt kind and of all prompts: half the sum of the differences of the experts' shares"},
		{"picked together", "", "share of tokens that picked both experts: those / all tokens with reported picks"},
		{"lift", "", "ratio to independent picks: share of tokens that picked both / product of their shares; 1 is independent"},
	},
)

// ScreenTerms are the terms of the screen alone.
var ScreenTerms = []Term{
	{"p50 p95 p99", "s", "percentiles of ITL or TTFT over the window in the title; histogram error at most 1/64"},
	{"ITL over time", "0..1", "tokens after a gap of this length / all tokens, per second; four steps per octave, one column per second"},
	{"outliers", "", "histograms: the three longest times, each with its request and token; TTFT above its target, ITL from 3 times the median"},
	{"target", "", "limit that you set with --slo; for an engine that llmtop runs itself, TTFT has one of 200 ms"},
	{"session", "tokens", "generated (out) and prompt tokens (in) since the session began, and requests by how they ended"},
	{"load", "", "load average of the machine over 1 minute: tasks that run or wait"},
	{"KV held", "s", "residency: how long a request's cells stayed pinned"},
	{"operations", "s", "time per forward pass, by operation type and layer: total time / profiled passes"},
	{"typical", "", "median of a gauge over the window; next to it the value in the second of the selected token"},
	{"ρ ITL", "-1..1", "Spearman's rank correlation of a gauge with the mean ITL per second; needs 12 seconds with tokens; a hint, not proof of a cause"},
	{"missed events", "events", "events of an attached engine that neither arrived nor were counted as dropped; below 0: more arrived than were sent"},
	{"malformed", "lines", "lines of an attached engine that could not be parsed"},
	{"paced", "tok/s", "rate limit: the engine waits between tokens; the wait is excluded from rates and latencies"},
	{"not reported", "", "the engine does not provide this number; it is never shown as 0"},
}

// Components are the components of TTFT, in the order of event.Components, and at the end the rest.
var Components = [...]Term{
	{"load", "s", "opening and mapping the model's file, tokenizer, tensors, warm-up; of the cold request all of it"},
	{"receive", "s", "from the first byte of the request to its tokenization"},
	{"queue", "s", "waiting for a slot after the model was ready, without the time paced by others"},
	{"paced wait", "s", "waiting for a slot while paced requests held them all and waited on purpose (`--pace`)"},
	{"tokenize", "s", "converting the prompt's text into token ids"},
	{"embed", "s", "looking up the embeddings of the prompt's tokens"},
	{"prompt", "s", "prefill: the forward pass of the prompt through all layers"},
	{"first", "s", "LM head and sampling of the first token"},
	{"H2D copies", "s", "copying from memory to the GPU (host to device); not in *prompt*"},
	{"D2H copies", "s", "copying from the GPU to memory (device to host); not in *prompt*"},
	{"send", "s", "from the first token to the next byte of its answer that leaves the process"},
	{"other", "s", "TTFT minus all named components; always shown"},
}
