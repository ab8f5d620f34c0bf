package event

// Usage is what the engine's threads did and waited for over one short interval, the evidence for causes of slow tokens.
// It is sampled only while requests run. Sums are over threads: two threads that wait for 5 ms each waited for 10 ms.
type Usage struct {
	Interval int64 `wire:"interval"` // ns since the previous sample, or since the engine had nothing to do

	Running, Waiting Reading // ns on a core, ns runnable without a core; sums over threads
	Outside          Reading // ns on a core of other threads of the process; only with the engine in llmtop's process
	Threads          Reading // threads that ran
	Cores            Reading // cores that the threads may use: see UsageFields
	Faults           Reading // major page faults
	Read             Reading // bytes from storage
	Reread           Reading // bytes from storage that had been in memory before
	Blocked          Reading // ns in which some task waited for storage; derived if it may be one of another process
	Throttled        Reading // ns, summed over cores
	Stopped          Reading // ns
	MemoryStall      Reading // ns in which some task waited for memory; derived if it may be one of another process
	LimitHits        Reading // times that a control group reached its memory limit
	GCPause          Reading // ns
}

// Add adds the readings of another sample. Threads and Cores are those of the sample with the most threads; Interval stays.
func (u *Usage) Add(o *Usage) {
	threads, cores := u.Threads, u.Cores
	if o.Threads.V > threads.V || !cores.OK() {
		threads, cores = o.Threads, o.Cores
	}
	for f := range UsageFields {
		at := UsageFields[f].At
		*at(u) = at(u).Plus(*at(o))
	}
	u.Threads, u.Cores = threads, cores
}

// UsageFields is the catalogue of the readings of a Usage: event protocol and docs/metrics.md come from these rows.
var UsageFields = [...]Field[Usage]{
	{
		Key: "run", Unit: "ns",
		Name: "on a core", Help: "time that the engine's threads ran, summed over threads",
		At: func(u *Usage) *Reading { return &u.Running },
	},
	{
		Key: "wait", Unit: "ns",
		Name: "waiting for a core", Help: "time that the engine's threads were runnable without a core, summed over threads",
		At: func(u *Usage) *Reading { return &u.Waiting },
	},
	{
		Key: "outside", Unit: "ns",
		Name: "outside the engine", Help: "time that llmtop's other threads ran",
		At: func(u *Usage) *Reading { return &u.Outside },
	},
	{
		Key: "threads", Unit: "{thread}",
		Name: "threads that ran", Help: "threads of the engine that ran in the interval",
		At: func(u *Usage) *Reading { return &u.Threads },
	},
	{
		Key: "cores", Unit: "{core}",
		Name: "cores available", Help: "cores that the process may use",
		At: func(u *Usage) *Reading { return &u.Cores },
	},
	{
		Key: "faults", Unit: "{fault}",
		Name: "major faults", Help: "page faults of the process that waited for storage",
		At: func(u *Usage) *Reading { return &u.Faults },
	},
	{
		Key: "read", Unit: "By",
		Name: "read from storage", Help: "bytes that the process read from storage",
		At: func(u *Usage) *Reading { return &u.Read },
	},
	{
		Key: "reread", Unit: "By",
		Name: "read again", Help: "bytes from storage that the system had evicted from memory before",
		At: func(u *Usage) *Reading { return &u.Reread },
	},
	{
		Key: "blocked", Unit: "ns",
		Name: "blocked on storage", Help: "time in which some task waited for storage",
		At: func(u *Usage) *Reading { return &u.Blocked },
	},
	{
		Key: "throttled", Unit: "ns",
		Name: "throttled", Help: "time that the control group held the process at its CPU quota",
		At: func(u *Usage) *Reading { return &u.Throttled },
	},
	{
		Key: "stopped", Unit: "ns",
		Name: "stopped", Help: "time that the process was stopped by a signal or a debugger",
		At: func(u *Usage) *Reading { return &u.Stopped },
	},
	{
		Key: "memory_stall", Unit: "ns",
		Name: "memory pressure", Help: "time in which some task waited for memory",
		At: func(u *Usage) *Reading { return &u.MemoryStall },
	},
	{
		Key: "limit_hits", Unit: "{event}",
		Name: "memory limit reached", Help: "times that a control group of the process reached its memory limit",
		At: func(u *Usage) *Reading { return &u.LimitHits },
	},
	{
		Key: "gc_pause", Unit: "ns",
		Name: "GC pause", Help: "time in which llmtop's garbage collector stopped the engine",
		At: func(u *Usage) *Reading { return &u.GCPause },
	},
}
