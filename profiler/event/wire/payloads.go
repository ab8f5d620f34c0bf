package wire

import (
	"slices"

	"github.com/llmtop/llmtop/profiler/event"
)

// absences are the words for the reasons why a number is missing, and origins those for where one comes from.
var (
	absences = []event.Origin{event.NotReported, event.NotPermitted, event.NoDevice, event.NotYet, event.Undefined}
	origins  = []event.Origin{event.Measured, event.Reported, event.Derived}
)

// originByName is the origin of a list that is called so, the first one if none is.
func originByName(list []event.Origin, name []byte) event.Origin {
	for _, o := range list {
		if o.String() == string(name) {
			return o
		}
	}
	return list[0]
}

// readReading reads a reading that comes with its origin, or with the reason for its absence.
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
				r = d.real(event.Measured)
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
	return d.real(event.Measured)
}

// real reads a number; absent if there is none.
func (d *Decoder) real(from event.Origin) event.Reading {
	v, ok := d.scan.float()
	if r := (event.Reading{V: v, Origin: from}); ok && r.OK() {
		return r
	}
	return event.Reading{}
}

// fill reads the reading of a name.
func (d *Decoder) fill(list []named, name []byte, read func() event.Reading) bool {
	for _, n := range list {
		if n.name == string(name) {
			*n.r = read()
			return true
		}
	}
	return false
}

// object reads an object of readings, and leaves names that are none to other.
func (d *Decoder) object(list []named, read func() event.Reading, other func(name []byte) bool) {
	s := &d.scan
	if !s.open('{') {
		return
	}
	for s.more('}') {
		name := s.key()
		if !d.fill(list, name, read) && !other(name) {
			s.skip()
		}
	}
}

func none([]byte) bool { return false }

func (d *Decoder) readPass() *event.Pass {
	p := new(event.Pass)
	reported := func() event.Reading { return d.real(event.Reported) }
	d.object(passReadings(p), reported, func(name []byte) bool {
		switch string(name) {
		case "worker_id":
			p.Worker = d.string()
		case "scheduled_requests":
			d.object(loadReadings(&p.Scheduled), reported, none)
		case "queued_requests":
			d.object(loadReadings(&p.Queued), reported, none)
		default:
			return false
		}
		return true
	})
	return p
}

func (d *Decoder) readHost() bool {
	p := new(event.Host)
	d.event.Kind, d.event.Data = event.KindHost, p
	readings := hostReadings(p)
	d.members(func(key []byte) bool {
		switch string(key) {
		case "interval":
			p.Interval = d.count()
		case "cores":
			p.Cores = d.cores()
		case "core_hz":
			p.Clocks = d.cores()
		case "limited":
			p.Limited = d.scan.boolean()
		case "no_gpu":
			p.NoGPU = d.string()
		case "engine":
			d.readProcess(&p.Engine)
		case "self":
			d.readProcess(&p.Self)
		case "gpus":
			p.GPUs = d.gpus()
		default:
			return d.fill(readings, key, d.readReading)
		}
		return true
	})
	return d.need(true, "")
}

func (d *Decoder) cores() (list []float64) {
	s := &d.scan
	if s.open('[') {
		for s.more(']') {
			if r := d.real(event.Measured); len(list) < MaxBatch {
				list = append(list, r.V)
			}
		}
	}
	return list
}

func (d *Decoder) readProcess(p *event.Process) {
	*p = event.Process{}
	d.object(processReadings(p), d.readReading, func(name []byte) bool {
		if string(name) != "pid" {
			return false
		}
		p.PID = int(d.int32())
		return true
	})
}

func (d *Decoder) gpus() (list []event.GPU) {
	s := &d.scan
	if !s.open('[') {
		return nil
	}
	for s.more(']') {
		var g event.GPU
		d.object(gpuReadings(&g), d.readReading, func(name []byte) bool {
			if string(name) != "name" {
				return false
			}
			g.Name = d.string()
			return true
		})
		if len(list) < MaxCount {
			list = append(list, g)
		}
	}
	return list
}

func (d *Decoder) readModel() bool {
	p := new(event.Model)
	d.event.Kind, d.event.Data = event.KindModel, p
	d.members(func(key []byte) bool {
		if string(key) == "dur" {
			d.event.Dur = d.count()
			return true
		}
		return d.modelMember(p, key)
	})
	return d.need(true, "")
}

// modelMember reads a member of a model.
func (d *Decoder) modelMember(p *event.Model, key []byte) bool {
	switch string(key) {
	case "name":
		p.Name = d.string()
	case "path":
		p.Path = d.string()
	case "architecture":
		p.Architecture = d.string()
	case "quantisation":
		p.Quantisation = d.string()
	default:
		numbers := modelNumbers(p)
		i := slices.IndexFunc(numbers[:], func(n modelNumber) bool { return n.name == string(key) })
		if i < 0 {
			return false
		}
		if n := numbers[i]; n.whole != nil {
			*n.whole = int(d.int32())
		} else {
			*n.large = d.count()
		}
	}
	return true
}
