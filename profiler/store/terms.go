package store

// Term defines what numbers.go and latencies.go do not: numbers of one request, of the router and of the screen that are
// neither exported nor in alerts. It is a row of the catalogue that the screen's help and docs/metrics.md share.
type Term struct {
	Name   string // in documents; "": only on the screen
	Title  string // in the screen's help; "": only in documents
	JSON   string // names in the report, in Markdown
	Unit   string
	Help   string // definition; no period at the end
	Detail string // the rest of the definition for docs/metrics.md, in Markdown
	Absent string // when it is absent, for docs/metrics.md
}

// Terms holds the terms by the part of docs/metrics.md that lists them, in display order; those of the last part are not
// in it.
var Terms = [...]struct {
	Part string
	Rows []Term
}{
	{"request", []Term{
		{Name: "probe", JSON: "`probe`", Help: "a request of llmtop's own, made to measure", Detail: "For a watched server it is in no percentile and no total"},
		{
			Name: "prefill time", JSON: "`prefill_s`", Unit: "s", Help: "time of the forward passes that processed the prompt, without embedding lookup and LM head",
			Detail: "The component *prompt*; if it is not stamped, first token - dispatched without other stages, or [derived](#derived-numbers)",
			Absent: "nothing of this was stamped",
		},
		{Name: "decode time, token generation time", JSON: "`decode_s`", Unit: "s", Help: "last token - first token - pacing", Absent: "n < 2"},
		{Name: "paced", JSON: "`paced_s`", Unit: "s", Help: "time waited on purpose between tokens"},
		{
			Name: "prefill", JSON: "`prefill_tokens_per_s`", Unit: "tokens/s", Help: "computed prompt tokens (cached tokens excluded) / prefill time",
			Detail: "[Derived](#derived-numbers) for a request that came to an idle engine, if cached tokens are not reported",
			Absent: "the prefill time is absent; the number of cached tokens is unknown",
		},
		{
			Name: "decode", JSON: "`decode_tokens_per_s`", Unit: "tokens/s", Help: "the tokens that TPOT counts / decode time = 1 / TPOT",
			Detail: "The first token belongs to TTFT. With several choices the sum over all", Absent: "TPOT is absent",
		},
		{
			Name: "TPS", Title: "TPS", JSON: "`tps`", Unit: "tokens/s", Help: "tokens per second of a request or group: generated tokens / E2EL of its requests",
			Detail: "Of a running request: over the time until its last token", Absent: "no token came",
		},
		{Name: "overall throughput", JSON: "`overall_tokens_per_s`", Unit: "tokens/s", Help: "(prompt + n) / E2EL", Absent: "no token came; the number of prompt tokens is unknown"},
		{Name: "prompt", JSON: "`prompt_tokens`", Unit: "tokens", Help: "tokens of the prompt, cached ones included", Absent: "the request ended before the server reported them"},
		{Name: "cached", JSON: "`cached_tokens`", Unit: "tokens", Help: "prompt tokens whose keys and values came from a cache and were not computed", Absent: "not reported, and there may be a cache; in totals: of one request"},
		{Name: "choices", JSON: "`choices`", Help: "answers that the request asked for and that were generated together", Detail: "Gaps are between tokens of one choice", Absent: "one choice"},
		{Name: "padding", JSON: "`padding_tokens`", Unit: "tokens", Help: "tokens that only fill up a batch", Detail: "The built-in engine needs none: 0"},
		{
			Name: "reasoning", Title: "reasoning", JSON: "`reasoning_tokens`", Unit: "tokens", Help: "of n, tokens of reasoning: the server's count, or else those streamed as reasoning",
			Absent: "the request did not reason, or the server does not show it; messages hold several tokens and the server does not count them",
		},
		{
			Name: "reasoning rate", JSON: "`reasoning_tokens_per_s`", Unit: "tokens/s", Help: "reasoning tokens / thinking time", Absent: "one of both is absent; no answer followed",
		},
		{Name: "generated", JSON: "`generated_tokens`", Unit: "tokens", Help: "n, the token that ends the text included"},
		{Name: "network", Title: "network", JSON: "`rtt_s`", Unit: "s", Help: "round-trip time between client and server, of the handshake of their connection", Detail: "By [tap](tap.md)", Absent: "the handshake was not captured"},
		{Name: "enqueued", JSON: "`enqueued_s`", Unit: "s", Help: "since the session began"},
	}},
	{"components", Components[:]},
	{"experts", []Term{
		{Name: "share", Title: "share", JSON: "(count / `total`)", Unit: "0..1", Help: "router picks of one expert / all picks of its layer"},
		{Name: "max/mean", Title: "max/mean", JSON: "`max_mean`", Help: "load imbalance: picks of a layer's hottest expert / mean picks; 1 is balanced"},
		{Name: "CV", Title: "CV", JSON: "`cv`", Help: "coefficient of variation of a layer's picks: standard deviation / mean; 0 is balanced"},
		{
			Name: "entropy", Title: "entropy", JSON: "`entropy`", Unit: "0..1", Help: "entropy of a layer's shares / maximum entropy; 1 is balanced",
			Detail: "Shannon entropy / log(number of experts); 0: one expert gets all picks",
		},
		{Name: "idle", Title: "idle", JSON: "`dead`", Unit: "experts", Help: "experts of a layer without a pick in the window"},
		{
			Name: "in memory", Title: "in memory", JSON: "`layers` of `in_memory`", Unit: "0..1",
			Help:   "share of an expert's bytes that is in the page cache",
			Detail: "of the pages that it overlaps, in the last sweep; see [Experts](experts.md)",
		},
		{
			Name: "picks in memory", Title: "picks resident", JSON: "`picks_share`", Unit: "0..1",
			Help: "picks while decoding x share of their expert in memory / picks",
		},
		{
			Name: "hot but not resident", Title: "not resident", JSON: "`hot_not_resident`", Unit: "experts",
			Help: "experts picked more often than evenly, with less than half of their bytes in memory",
		},
		{Name: "hot, cold", Title: "hot cold", JSON: "`hot`, `cold`", Help: "the three most and the three least picked; of equals the lower number"},
	}},
	{"router", []Term{
		{Name: "rank", Help: "place of the expert among those of its layer by picks, 1 the most picked; of equals the lower number first"},
		{Name: "uniform share", Title: "uniform share", Help: "share of the expert x experts of the layer; 1 is what a balanced router would give it"},
		{
			Name: "routing drift since a mark", Title: "drift", Unit: "0..1",
			Help:   "routing drift since the mark, per layer: half the sum of the differences of the experts' shares; 0: identical, 1: no expert in common",
			Detail: "Total variation distance: the current window against that at the mark, or the picks since it",
		},
		{
			Name: "chance", Title: "chance", Unit: "0..1", Help: "mean drift without any change",
			Detail: "Drift of up to twice that is not marked",
		},
		{
			Name: "budget", Title: "budget", Unit: "experts, B", Help: "capacity of the faster device, in experts of all layers",
			Detail: "In steps of 1/32; bytes as `expert_bytes`",
		},
		{
			Name: "routing covered", Title: "covered", Unit: "0..1", Help: "picks of the N most picked experts / all picks: share of routing served by a device with a capacity of N experts",
			Detail: "`kept`: how many of a layer are among them",
		},
		{
			Name: "expert cache", Title: "static LRU LFU", Unit: "0..1",
			Help:   "share of picks that N slots per layer serve: a static set, or a cache that evicts the least recent or the least picked expert",
			Detail: "The first half of the tokens chooses the set and fills the caches, the second half judges; see [Experts](experts.md)",
		},
	}},
	{"picks", []Term{
		{
			Name: "by kind, by group", Unit: "picks", Help: "picks of the tokens of requests with this label or group",
			Detail: "At most 12 of each, further ones are counted and the count is shown",
		},
		{
			Name: "difference of a kind", Title: "diff", Unit: "0..1",
			Help: "difference between the picks of one prompt kind and of all prompts: half the sum of the differences of the experts' shares",
		},
		{
			Name: "picked together", Title: "picked together", Help: "share of tokens that picked both experts: those / all tokens with reported picks",
			Detail: "The 20 most frequent of each layer; from 65,536 pairs on of the first 64 tokens of each second, beyond 4,194,304 not counted",
		},
		{
			Name: "lift", Title: "lift", Help: "ratio to independent picks: share of tokens that picked both / product of their shares; 1 is independent",
		},
	}},
	{"", []Term{
		{Title: "p50 p95 p99", Unit: "s", Help: "percentiles of ITL or TTFT over the window in the title; histogram error at most 1/64"},
		{Title: "ITL over time", Unit: "0..1", Help: "tokens after a gap of this length / all tokens, per second; four steps per octave, one column per second"},
		{Title: "outliers", Help: "histograms: the three longest times, each with its request and token; TTFT above its target, ITL from 3 times the median"},
		{Title: "target", Help: "limit that you set with --slo; for an engine that llmtop runs itself, TTFT has one of 200 ms"},
		{Title: "session", Unit: "tokens", Help: "generated (out) and prompt tokens (in) since the session began, and requests by how they ended"},
		{Title: "load", Help: "load average of the machine over 1 minute: tasks that run or wait"},
		{Title: "KV held", Unit: "s", Help: "residency: how long a request's cells stayed pinned"},
		{Title: "operations", Unit: "s", Help: "time per forward pass, by operation type and layer: total time / profiled passes"},
		{Title: "typical", Help: "median of a gauge over the window; next to it the value in the second of the selected token"},
		{Title: "ρ ITL", Unit: "-1..1", Help: "Spearman's rank correlation of a gauge with the mean ITL per second; needs 12 seconds with tokens; a hint, not proof of a cause"},
		{Title: "missed events", Unit: "events", Help: "events of an attached engine that neither arrived nor were counted as dropped; below 0: more arrived than were sent"},
		{Title: "malformed", Unit: "lines", Help: "lines of an attached engine that could not be parsed"},
		{Title: "paced", Unit: "tok/s", Help: "rate limit: the engine waits between tokens; the wait is excluded from rates and latencies"},
		{Title: "not reported", Help: "the engine does not provide this number; it is never shown as 0"},
	}},
}

// Components are the components of TTFT, in the order of event.Components, and at the end the rest.
var Components = [...]Term{
	{
		Name: "model load", Title: "load", JSON: "`model_load`", Unit: "s", Help: "opening and mapping the model's file, tokenizer, tensors, warm-up; of the cold request all of it",
		Detail: "Of a later request, its wait for a load",
	},
	{
		Name: "receiving", Title: "receive", JSON: "`receive`", Unit: "s", Help: "from the first byte of the request to its tokenization",
		Detail: "By [probes](probes.md), parsing and chat template included",
	},
	{Name: "queue", Title: "queue", JSON: "`queue`", Unit: "s", Help: "waiting for a slot after the model was ready, without the time paced by others"},
	{
		Name: "paced by others", Title: "paced wait", JSON: "`paced_by_others`", Unit: "s",
		Help:   "waiting for a slot while paced requests held them all and waited on purpose (`--pace`)",
		Detail: "or while the engine was paused",
	},
	{Name: "tokenization", Title: "tokenize", JSON: "`tokenize`", Unit: "s", Help: "converting the prompt's text into token ids"},
	{Name: "embedding lookup", Title: "embed", JSON: "`embed`", Unit: "s", Help: "looking up the embeddings of the prompt's tokens"},
	{
		Name: "prompt processing", Title: "prompt", JSON: "`prompt`", Unit: "s", Help: "prefill: the forward pass of the prompt through all layers",
		Detail: "Without copies to and from the GPU. The time of a batch counts for each request with prompt tokens in it, since each waited for all of it",
	},
	{Name: "first token", Title: "first", JSON: "`first_token`", Unit: "s", Help: "LM head and sampling of the first token"},
	{
		Name: "transfer to the device", Title: "H2D copies", JSON: "`host_to_device`", Unit: "s", Help: "copying from memory to the GPU (host to device); not in *prompt*",
		Detail: "By [probes](gpu.md#per-pass-and-token): the sum over the passes of the prompt. An engine on the CPU has no transfers: the screen says \"no device\"",
	},
	{
		Name: "transfer from the device", Title: "D2H copies", JSON: "`device_to_host`", Unit: "s", Help: "copying from the GPU to memory (device to host); not in *prompt*",
		Detail: "Without what waits for the end of the computation",
	},
	{
		Name: "sending", Title: "send", JSON: "`send`", Unit: "s", Help: "from the first token to the next byte of its answer that leaves the process",
		Detail: "By [probes](probes.md), for streamed answers; TTFT then ends with that byte",
	},
	{Name: "other", Title: "other", JSON: "`other`", Unit: "s", Help: "TTFT minus all named components; always shown"},
}
