package wire

import "github.com/llmtop/llmtop/profiler/event"

// absences are the origins of missing numbers; origins those of present ones.
var (
	absences = []event.Origin{event.NotReported, event.NotPermitted, event.NoDevice, event.NotYet, event.Undefined}
	origins  = []event.Origin{event.Measured, event.Reported, event.Derived}
)

// originByName returns the origin with a name, or the first of the list.
func originByName(list []event.Origin, name []byte) event.Origin {
	for _, o := range list {
		if o.String() == string(name) {
			return o
		}
	}
	return list[0]
}

// readReading reads a number with its origin, or the reason for its absence.
func (d *Decoder) readReading() (r event.Reading) {
	s := &d.scan
	switch s.peek() {
	case '"':
		return event.Absent(originByName(absences, s.quoted()))
	case '[':
		s.open('[')
		for i := 0; s.more(']'); i++ {
			switch i {
			case 0:
				r = d.bareReading(event.Measured)
			case 1:
				if o := originByName(origins, s.str()); r.OK() {
					r.Origin = o
				}
			default:
				s.skip()
			}
		}
		return r
	}
	return d.bareReading(event.Measured)
}

// bareReading reads a number without an origin; absent if it is no reading.
func (d *Decoder) bareReading(from event.Origin) event.Reading {
	if v, ok := d.float(); ok && event.PlausibleReading(v) {
		return event.Reading{V: v, Origin: from}
	}
	return event.Reading{}
}

// object reads an object and passes the names of its members to read, which reports whether it knows them.
func (d *Decoder) object(read func(name []byte) bool) {
	s := &d.scan
	if !s.open('{') {
		return
	}
	for s.more('}') {
		if !read(s.key()) {
			s.skip()
		}
	}
}

// unknownMember accepts no member.
func unknownMember([]byte) bool { return false }

func (d *Decoder) readHost() bool {
	p := new(event.Host)
	d.event.Kind, d.event.Data = event.KindHost, p
	d.members(func(key []byte) bool {
		switch string(key) {
		case "interval":
			p.Interval = d.count()
		case "cores":
			p.Cores = d.readNumbers()
		case "core_hz":
			p.Clocks = d.readNumbers()
		case "read_bandwidth":
			p.ReadBandwidth = d.readNumbers()
		case "experts_cached":
			p.ExpertsCached = d.shares()
		case "limited":
			p.Limited = d.scan.boolean()
		case "no_gpu":
			p.NoGPU = d.string()
		case "engine":
			d.readProcess(&p.Engine)
		case "self":
			d.readProcess(&p.Self)
		case "gpus":
			p.GPUs = d.readGPUs()
		default:
			return readField(d, event.MachineFields[:], p, key)
		}
		return true
	})
	return d.require(true, "")
}

func (d *Decoder) readUsage() bool {
	p := new(event.Usage)
	d.event.Kind, d.event.Data = event.KindUsage, p
	d.members(func(key []byte) bool {
		if string(key) == "interval" {
			p.Interval = d.count()
			return true
		}
		return readField(d, event.UsageFields[:], p, key)
	})
	return d.require(true, "")
}

// readField reads a reading of the catalogue; false if it has none of that name.
func readField[T any](d *Decoder, rows []event.Field[T], into *T, name []byte) bool {
	for i := range rows {
		if rows[i].Key == string(name) {
			*rows[i].At(into) = d.readReading()
			return true
		}
	}
	return false
}

// shares reads an array of percentages. Other numbers are unknown shares.
func (d *Decoder) shares() (list []uint8) {
	for _, v := range d.counts() {
		if v > 100 {
			v = event.UnknownShare
		}
		list = append(list, uint8(v))
	}
	return list
}

// readNumbers reads an array of readings; nil if one is absent: the list has no place for the reason.
func (d *Decoder) readNumbers() (list []float64) {
	s, known := &d.scan, true
	if s.open('[') {
		for s.more(']') {
			r := d.bareReading(event.Measured)
			known = known && r.OK()
			if len(list) < MaxBatch {
				list = append(list, r.V)
			}
		}
	}
	if !known {
		return nil
	}
	return list
}

func (d *Decoder) readProcess(p *event.Process) {
	*p = event.Process{}
	d.object(func(name []byte) bool {
		switch string(name) {
		case "pid":
			p.PID = int(d.int32())
		case "interval":
			p.Interval = d.count()
		default:
			return readField(d, event.ProcessFields[:], p, name)
		}
		return true
	})
}

func (d *Decoder) readGPUs() (list []event.GPU) {
	s := &d.scan
	if !s.open('[') {
		return nil
	}
	var g event.GPU
	member := func(name []byte) bool {
		if string(name) != "name" {
			return readField(d, event.GPUFields[:], &g, name)
		}
		g.Name = d.string()
		return true
	}
	for s.more(']') {
		g = event.GPU{}
		d.object(member)
		if len(list) < MaxCount {
			list = append(list, g)
		}
	}
	return list
}
