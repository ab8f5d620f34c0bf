package wire

import (
	"slices"

	"github.com/llmtop/llmtop/profiler/event"
)

// The members of an engine. Between the two tables stands "wall", the wall clock at the time of the line.
var (
	programFields = fields[event.EngineInfo]{
		member("name", names, func(p *event.EngineInfo) *string { return &p.Name }),
		member("provider", texts, func(p *event.EngineInfo) *string { return &p.Provider }),
		member("version", texts, func(p *event.EngineInfo) *string { return &p.Version }),
		member("pid", sizes, func(p *event.EngineInfo) *int { return &p.PID }),
	}
	engineFields = fields[event.EngineInfo]{
		object("device", deviceFields, false, func(p *event.EngineInfo) *event.Device { return &p.Device }),
		member("caps", capabilities, func(p *event.EngineInfo) *event.Caps { return &p.Caps }),
		member("slots", sizes, func(p *event.EngineInfo) *int { return &p.Slots }),
		member("pace", paces, func(p *event.EngineInfo) *float64 { return &p.Pace }),
		member("state", engineStates, func(p *event.EngineInfo) *event.EngineState { return &p.State }),
		member("why", texts, func(p *event.EngineInfo) *string { return &p.Reason }),
		object("remote", remoteFields, false, func(p *event.EngineInfo) *event.Remote { return &p.Remote }),
	}
)

// The types of values that only these objects have.
var (
	capabilities = value[event.Caps]{appendCaps, readCaps}
	paces        = value[float64]{appendPace, (*Decoder).positive}
	engineStates = enum(event.EngineReady, event.EnginePaused)
	links        = enum(event.LinkNone, event.LinkRefused)
	differences  = value[int64]{number[int64], readDifference}
	garbage      = value[uint64]{appendGarbage, unsigned.read}
)

var deviceFields = fields[event.Device]{
	member("name", texts, func(p *event.Device) *string { return &p.Name }),
	member("kernels", texts, func(p *event.Device) *string { return &p.Kernels }),
	member("host", flags, func(p *event.Device) *bool { return &p.Host }),
	member("threads", sizes, func(p *event.Device) *int { return &p.Threads }),
}

var remoteFields = fields[event.Remote]{
	member("address", texts, func(p *event.Remote) *string { return &p.Address }),
	member("link", links, func(p *event.Remote) *event.Link { return &p.Link }),
	member("since", moments, func(p *event.Remote) *event.Time { return &p.Since }),
	member("why", texts, func(p *event.Remote) *string { return &p.Reason }),
	member("restarts", sizes, func(p *event.Remote) *int { return &p.Restarts }),
	member("missing", differences, func(p *event.Remote) *int64 { return &p.Missed }),
	member("garbage", garbage, func(p *event.Remote) *uint64 { return &p.Malformed }),
}

var modelFields = fields[event.Model]{
	member("name", texts, func(p *event.Model) *string { return &p.Name }),
	member("path", texts, func(p *event.Model) *string { return &p.Path }),
	member("architecture", texts, func(p *event.Model) *string { return &p.Architecture }),
	member("quantisation", texts, func(p *event.Model) *string { return &p.Quantisation }),
	member("parameters", counts, func(p *event.Model) *int64 { return &p.Parameters }),
	member("active_parameters", counts, func(p *event.Model) *int64 { return &p.Active }),
	member("bytes", counts, func(p *event.Model) *int64 { return &p.Bytes }),
	member("layers", sizes, func(p *event.Model) *int { return &p.Layers }),
	member("width", sizes, func(p *event.Model) *int { return &p.Width }),
	member("heads", sizes, func(p *event.Model) *int { return &p.Heads }),
	member("kv_heads", sizes, func(p *event.Model) *int { return &p.KVHeads }),
	member("head_dim", sizes, func(p *event.Model) *int { return &p.HeadDim }),
	member("vocabulary", sizes, func(p *event.Model) *int { return &p.Vocab }),
	member("experts", sizes, func(p *event.Model) *int { return &p.Experts }),
	member("experts_used", sizes, func(p *event.Model) *int { return &p.ExpertsUsed }),
	member("feed_forward", sizes, func(p *event.Model) *int { return &p.FeedForward }),
	member("context", sizes, func(p *event.Model) *int { return &p.Context }),
	member("trained_context", sizes, func(p *event.Model) *int { return &p.TrainContext }),
	member("kv_bytes", counts, func(p *event.Model) *int64 { return &p.KVBytes }),
	member("weight_bytes", counts, func(p *event.Model) *int64 { return &p.WeightBytes }),
}

func appendEngine(dst []byte, at event.Time, p *event.EngineInfo) []byte {
	dst = programFields.append(dst, p)
	if p.Epoch != 0 {
		dst = appendTime(key(dst, "wall"), event.Time(event.Add(p.Epoch, int64(bounded(at)))))
	}
	return engineFields.append(dst, p)
}

func appendEngineLine(dst []byte, e *event.Event, p *event.EngineInfo) ([]byte, bool) {
	return appendEngine(dst, e.At, p), true
}

func readEngineLine(d *Decoder) bool {
	readEngine(d, unknownMember)
	return d.require(true, "")
}

// readEngine reads the members of an engine and passes other names to other.
func readEngine(d *Decoder, other func(name []byte) bool) *event.EngineInfo {
	p, wall, next := &event.EngineInfo{State: event.EngineReady}, int64(0), 0
	d.event.Kind, d.event.Data = event.KindEngine, p
	programFields.members(d, p, func(name []byte) bool {
		if string(name) == "wall" {
			wall = d.wall()
			return true
		}
		return engineFields.member(d, p, name, &next) || other(name)
	})
	if wall != 0 {
		p.Epoch = wall - int64(d.event.At)
	}
	return p
}

func appendModel(dst []byte, loadTime int64, p *event.Model) []byte {
	return modelFields.append(natural(dst, "dur", loadTime), p)
}

func appendModelLine(dst []byte, e *event.Event, p *event.Model) ([]byte, bool) {
	return appendModel(dst, e.Dur, p), true
}

func readModelLine(d *Decoder) bool {
	p := new(event.Model)
	d.event.Kind, d.event.Data, d.event.Dur = event.KindModel, p, readModel(d, p)
	return d.require(true, "")
}

// readModel reads the members of the open object and returns the load time in ns.
func readModel(d *Decoder, p *event.Model) (loadTime int64) {
	modelFields.members(d, p, func(name []byte) bool {
		if string(name) != "dur" {
			return false
		}
		loadTime = d.count()
		return true
	})
	return loadTime
}

func appendPace(dst []byte, name string, v float64) []byte {
	if v <= 0 || !event.Plausible(v) {
		return dst
	}
	return appendFloat(key(dst, name), v, 64)
}

func appendGarbage(dst []byte, name string, v uint64) []byte {
	if v == 0 {
		return dst
	}
	return unsigned.append(dst, name, v)
}

// readDifference reads a number that may be negative.
func readDifference(d *Decoder) int64 {
	v, _ := d.scan.signed()
	if !event.Plausible(float64(v)) {
		d.implausible()
	}
	return v
}

func appendCaps(dst []byte, name string, c event.Caps) []byte {
	dst = append(key(dst, name), '[')
	for i, capability := range caps {
		if c.Has(1 << i) {
			if dst[len(dst)-1] != '[' {
				dst = append(dst, ',')
			}
			dst = appendString(dst, capability)
		}
	}
	return append(dst, ']')
}

func readCaps(d *Decoder) (c event.Caps) {
	for range d.elements() {
		if i := slices.Index(caps[:], string(d.scan.str())); i >= 0 {
			c |= 1 << i
		}
	}
	return c
}

// enum is the names of the values up to last. Unknown names read as unknown.
func enum[E interface {
	~uint8
	String() string
}](unknown, last E) value[E] {
	return value[E]{
		func(dst []byte, name string, v E) []byte { return word(dst, name, v.String()) },
		func(d *Decoder) E {
			name := d.scan.str()
			for v := E(0); v <= last; v++ {
				if v.String() == string(name) {
					return v
				}
			}
			return unknown
		},
	}
}
