package event

// Usage is what the engine's threads did and waited for over one short interval, the evidence for causes of slow tokens.
// It is sampled only while requests run. Sums are over threads: two threads that wait for 5 ms each waited for 10 ms.
type Usage struct {
	Interval int64 // ns since the previous sample, or since the engine had nothing to do

	Running, Waiting Reading // ns on a core, ns runnable without a core; sums over threads
	Outside          Reading // ns on a core of other threads of the process; only with the engine in llmtop's process
	Threads          Reading // threads that ran
	Cores            Reading // cores that the threads may use: see UsageFields
	Faults           Reading // major page faults
	Read             Reading // bytes from storage
	Blocked          Reading // ns that threads waited for storage, summed over threads
	Throttled        Reading // ns
	Stopped          Reading // ns
	MemoryStall      Reading // ns
	GCPause          Reading // ns
}

// UsageFields is the catalogue of the readings of a Usage: event protocol and docs/metrics.md come from these rows.
var UsageFields = [...]Field[Usage]{
	{
		Key: "run", Unit: "ns",
		Name: "on a core", Help: "time that the engine's threads ran, summed over threads",
		Detail: "Of the native engine inside llmtop only its worker threads, where the system lists them; otherwise all threads of the process",
		At:     func(u *Usage) *Reading { return &u.Running },
	},
	{
		Key: "wait", Unit: "ns",
		Name: "waiting for a core", Help: "time that the engine's threads were runnable without a core, summed over threads",
		Detail: "From schedstat; only on Linux", At: func(u *Usage) *Reading { return &u.Waiting },
	},
	{
		Key: "outside", Unit: "ns",
		Name: "outside the engine", Help: "time that llmtop's other threads ran",
		Detail: "Screen and garbage collector among them; only if the engine runs inside llmtop", At: func(u *Usage) *Reading { return &u.Outside },
	},
	{
		Key: "threads", Unit: "{thread}",
		Name: "threads that ran", Help: "threads of the engine that ran in the interval",
		At: func(u *Usage) *Reading { return &u.Threads },
	},
	{
		Key: "cores", Unit: "{core}",
		Name: "cores available", Help: "cores that the process may use",
		Detail: "The lowest of its affinity, the cpuset of its control group, and the CPU quota of that and all groups above",
		At:     func(u *Usage) *Reading { return &u.Cores },
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
		Key: "blocked", Unit: "ns",
		Name: "blocked on storage", Help: "time that threads waited for storage, summed over threads",
		Detail: "In steps of 10 ms; only if the kernel accounts it (`kernel.task_delayacct` is 1)", At: func(u *Usage) *Reading { return &u.Blocked },
	},
	{
		Key: "throttled", Unit: "ns",
		Name: "throttled", Help: "time that the control group held the process at its CPU quota",
		Detail: "Of the groups with a quota, the one that was throttled longest; summed over the cores on which it had runnable threads",
		At:     func(u *Usage) *Reading { return &u.Throttled },
	},
	{
		Key: "stopped", Unit: "ns",
		Name: "stopped", Help: "time that the process was stopped by a signal or a debugger",
		Detail: "From the state of the process at both ends of the interval. Of llmtop's own process: the delay of the sample, if no thread ran or waited for a core meanwhile",
		At:     func(u *Usage) *Reading { return &u.Stopped },
	},
	{
		Key: "memory_stall", Unit: "ns",
		Name: "memory pressure", Help: "time in which some task waited for memory",
		Detail: "PSI, line `some`, of the control group of the process; of the machine where the group has none",
		At:     func(u *Usage) *Reading { return &u.MemoryStall },
	},
	{
		Key: "gc_pause", Unit: "ns",
		Name: "GC pause", Help: "time in which llmtop's garbage collector stopped the engine",
		Detail: "Only if the engine runs inside llmtop", At: func(u *Usage) *Reading { return &u.GCPause },
	},
}
