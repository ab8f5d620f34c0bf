package event

import "math"

// Reading is a number that may be absent. Its zero value is "not reported".
type Reading struct {
	V      float64
	Origin Origin
}

// Origin says where a number comes from, or in which way it is absent.
type Origin uint8

// The origins. Those below Measured are kinds of absence.
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

// String is the word for an absence, or names the origin.
func (o Origin) String() string {
	if int(o) < len(originNames) {
		return originNames[o]
	}
	return originNames[0]
}

// OK reports whether there is a number. Infinity and NaN are none, whatever their origin.
func (r Reading) OK() bool { return r.Origin >= Measured && !math.IsNaN(r.V) && !math.IsInf(r.V, 0) }

// Why is the word for the absence of a number.
func (r Reading) Why() string {
	if r.Origin >= Measured {
		return Undefined.String()
	}
	return r.Origin.String()
}

// Of is a measured reading.
func Of(v float64) Reading { return Reading{v, Measured} }

// Told is a reading that the engine reports of itself.
func Told(v float64) Reading { return Reading{v, Reported} }

// From is a derived reading.
func From(v float64) Reading { return Reading{v, Derived} }

// Absent is a reading that is missing for the given reason.
func Absent(why Origin) Reading { return Reading{Origin: why} }

// Host is one sample of the machine and of two processes: the engine's and llmtop's own (the same one when the engine runs
// inside llmtop). Rates are over Interval, the time since the previous sample.
type Host struct {
	Interval int64 // ns

	Cores     []float64 // utilisation of each core of the machine, 0..1
	Clocks    []float64 // Hz of each core; empty where the system does not tell
	CPU       Reading   // machine, 0..1
	Frequency Reading   // Hz, mean over cores
	Load1     Reading
	MemTotal  Reading // bytes, the cgroup's limit where that is lower
	MemUsed   Reading // bytes
	Limited   bool    // MemTotal or CPU is a cgroup's limit and not the machine's

	CopyBandwidth Reading // B/s that this machine copies, all cores together, measured once; NotYet until then
	CPULimit      Reading // cores granted by the cgroup
	Throttled     Reading // share of wall in which the cgroup was held back because it had used up what it is granted

	Received, Sent                       Reading // B/s of all network interfaces but the loopback
	CPUPressure, MemPressure, IOPressure Reading // share of wall in which some task waited for a core, for memory, for storage
	Power                                Reading // W of the processors' packages

	ModelBytes, ModelCached Reading // bytes of the model's file, and how many of them are in the page cache; told when they were looked at

	Engine, Self Process
	GPUs         []GPU
	NoGPU        string // why GPUs is empty: "no GPU", "nvidia-smi failed: …"
}

// Process is one process in a Host sample.
type Process struct {
	PID              int
	CPU              Reading // cores in use: CPU time / wall
	RunWait          Reading // share of wall that a runnable thread waited for a core, summed over threads
	RSS, Peak        Reading // bytes
	Read, Write      Reading // bytes per second from and to disk
	ReadOps          Reading // operations per second
	WriteOps         Reading
	ReadSum          Reading // bytes since the process began
	WriteSum         Reading
	PSS              Reading // bytes, those that are shared with other processes counted in part; told when it was asked for
	Faults           Reading // major page faults per second, those that waited for storage
	MinorFaults      Reading // those that did not
	Voluntary        Reading // context switches per second of threads that waited for something
	Involuntary      Reading // those of threads that were made to stop
	Threads          Reading
	OutsideEngine    Reading // cores spent by llmtop itself: all of it less the engine's threads
	GCPause, GCCount Reading // Self only: ns of stop-the-world and collections within Interval
}

// GPU is one accelerator in a Host sample.
type GPU struct {
	Name               string
	Util               Reading // 0..1
	MemUsed, MemTotal  Reading // bytes
	Power, Temperature Reading // W, °C
	Clock              Reading // Hz
}
