package event

// Reading is a number that may be absent. Its zero value is "not reported".
type Reading struct {
	V      float64
	Origin Origin
}

// Origin is where a number comes from, or why it is absent.
type Origin uint8

// The origins. Those below Measured are reasons for absence.
const (
	NotReported Origin = iota
	NotPermitted
	NoDevice
	NotYet    // needs more samples
	Undefined // has no meaning here, for example TPOT of one token
	Measured
	Reported // by the engine
	Derived
)

var originNames = [...]string{
	"not reported", "not permitted", "no device", "not yet", "undefined", "measured", "reported", "derived",
}

// String returns the text for an absence, or the name of the origin.
func (o Origin) String() string {
	if int(o) < len(originNames) {
		return originNames[o]
	}
	return originNames[0]
}

// OK reports whether there is a number. An implausible number counts as absent, whatever its origin.
func (r Reading) OK() bool { return r.Origin >= Measured && Plausible(r.V) }

// Absence returns the text for the absence of a number.
func (r Reading) Absence() string {
	if r.Origin >= Measured {
		return Undefined.String()
	}
	return r.Origin.String()
}

// MeasuredValue returns a measured reading.
func MeasuredValue(v float64) Reading { return Reading{v, Measured} }

// ReportedValue returns a reading that the engine reported.
func ReportedValue(v float64) Reading { return Reading{v, Reported} }

// DerivedValue returns a derived reading.
func DerivedValue(v float64) Reading { return Reading{v, Derived} }

// Absent returns a missing reading with the reason.
func Absent(why Origin) Reading { return Reading{Origin: why} }

// Host is one sample of the machine and of two processes: the engine's and llmtop's own (one process if the engine runs
// inside llmtop). Rates are averaged over Interval, the time since the previous sample.
type Host struct {
	Interval int64 // ns

	Cores     []float64 // utilisation per core, 0..1
	Clocks    []float64 // Hz per core; empty if the system does not report it
	CPU       Reading   // utilisation of the machine, 0..1
	Frequency Reading   // Hz, mean over the cores
	Load1     Reading   // load average over one minute
	MemTotal  Reading   // bytes; the cgroup's limit if that is lower
	MemUsed   Reading   // bytes
	Limited   bool      // MemTotal or CPU is a cgroup's limit, not the machine's

	CopyBandwidth Reading // B/s of memory copies by all cores, measured once; NotYet until then
	CPULimit      Reading // cores that the cgroup may use
	Throttled     Reading // share of wall time in which the cgroup was throttled at its CPU limit, 0..1

	Received, Sent                       Reading // B/s over all network interfaces but loopback
	CPUPressure, MemPressure, IOPressure Reading // share of wall time some task waited for a core, memory, storage
	Power                                Reading // W of the processor packages

	ModelBytes, ModelCached Reading // bytes of the model file, and of it in the page cache; not in every sample

	Engine, Self Process
	GPUs         []GPU
	NoGPU        string // why GPUs is empty: "no GPU", "nvidia-smi failed: …"
}

// Process is one process in a Host sample.
type Process struct {
	PID              int
	CPU              Reading // cores in use: CPU time / wall time
	RunWait          Reading // share of wall time a runnable thread waited for a core, summed over threads
	RSS, Peak        Reading // bytes
	Read, Write      Reading // B/s from and to storage
	ReadOps          Reading // operations/s
	WriteOps         Reading // operations/s
	ReadSum          Reading // bytes since the process started
	WriteSum         Reading // bytes since the process started
	PSS              Reading // bytes, shared pages divided among the processes; not in every sample
	Faults           Reading // major page faults/s, which wait for storage
	MinorFaults      Reading // minor page faults/s
	Voluntary        Reading // context switches/s of threads that wait
	Involuntary      Reading // context switches/s of threads that were preempted
	Threads          Reading
	OutsideEngine    Reading // cores used by llmtop itself, without the engine's threads in the same process
	GCPause, GCCount Reading // Self only: ns of stop-the-world, and collections, within Interval
}

// GPU is one accelerator in a Host sample.
type GPU struct {
	Name               string
	Util               Reading // 0..1
	MemUsed, MemTotal  Reading // bytes
	Power, Temperature Reading // W, °C
	Clock              Reading // Hz
}
