package wire

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/llmtop/llmtop/profiler/event"
)

// SessionType says what a line about the connection itself says.
type SessionType uint8

// The types of lines about the connection. What they say is in the fields of Session that are named.
const (
	None   SessionType = iota
	Hello              // Version, Run, At, Wall; Engine and Model are events
	Auth               // the engine wants a token
	Clock              // At, Wall, Events
	Lost               // At, Events; the counts are an event
	Sync               // the state follows
	Synced             // the state is complete
	Reply              // Call, OK, Why, Req
	Bye                // Why
)

var sessionNames = [...]string{"", "hello", "auth", "clock", "lost", "sync", "synced", "reply", "bye"}

// Session is what a line says about the connection.
type Session struct {
	Type    SessionType
	Version string
	Run     string
	At      event.Time
	Wall    int64 // Unix ns; 0: not told
	Events  uint64
	Counted bool // Events is told
	Call    uint64
	OK      bool
	Why     string
	Req     event.RequestID
}

// check refuses versions that this program cannot read.
func (s *Session) check() error {
	number, _, _ := strings.Cut(s.Version, ".")
	v, err := strconv.Atoi(number)
	if err != nil || v < 0 {
		return fmt.Errorf("%w: version %q", ErrMalformed, s.Version)
	}
	if v > major {
		return fmt.Errorf("%w: %s, this program reads up to %d.x", ErrVersion, s.Version, major)
	}
	return nil
}

// readSession reads the lines that are about the connection. An unknown line is none.
func (d *Decoder) readSession() bool {
	i := slices.IndexFunc(sessionNames[:], func(name string) bool { return name == string(d.kind) })
	if i <= 0 {
		d.members(none)
		return false
	}
	p := &d.session
	p.Type = SessionType(i)
	if p.Type == Hello {
		return d.readHello()
	}
	lost := new(event.Lost)
	d.members(func(key []byte) bool {
		switch string(key) {
		case "wall":
			p.Wall = d.count()
		case "q":
			p.Events, p.Counted = d.scan.unsigned()
		case "by":
			d.readLost(lost)
		case "c":
			p.Call, _ = d.scan.unsigned()
		case "ok":
			p.OK = d.scan.boolean()
		case "why":
			p.Why = d.string()
		case "r":
			v, _ := d.scan.unsigned()
			p.Req = event.RequestID(v)
		default:
			return false
		}
		return true
	})
	p.At = d.event.At
	if p.Type == Lost {
		d.event.Kind, d.event.Data = event.KindLost, lost
		return d.need(true, "")
	}
	return false
}

func (d *Decoder) readLost(p *event.Lost) {
	s := &d.scan
	if !s.open('{') {
		return
	}
	for s.more('}') {
		k := kindByName(s.key())
		v, _ := s.unsigned()
		p[k] += v
	}
}

// readHello reads an introduction: an engine, and perhaps its model.
func (d *Decoder) readHello() bool {
	p, s := &d.session, &d.scan
	engine := d.engine(func(key []byte) bool {
		switch string(key) {
		case "v":
			p.Version = d.string()
		case "run":
			p.Run = d.string()
		case "model":
			if s.open('{') {
				d.model = new(event.Model)
				for s.more('}') {
					d.loaded(s.key())
				}
			}
		default:
			return false
		}
		return true
	})
	p.At = d.event.At
	if engine.Epoch != 0 {
		p.Wall = engine.Epoch + int64(p.At)
	}
	return d.need(p.Version != "", "version")
}

// loaded reads a member of the model of a hello.
func (d *Decoder) loaded(key []byte) {
	if string(key) == "dur" {
		d.took = d.count()
	} else if !d.modelMember(d.model, key) {
		d.scan.skip()
	}
}

func (d *Decoder) readEngine() bool {
	d.engine(none)
	return d.need(true, "")
}

// engine reads the members of an engine, and leaves those that it does not know to other.
func (d *Decoder) engine(other func(name []byte) bool) *event.Engine {
	p := &event.Engine{State: event.EngineReady}
	d.event.Kind, d.event.Data = event.KindEngine, p
	s, wall := &d.scan, int64(0)
	d.members(func(key []byte) bool {
		switch string(key) {
		case "name":
			p.Name = d.string()
		case "version":
			p.Version = d.string()
		case "pid":
			p.PID = int(d.int32())
		case "wall":
			wall = d.count()
		case "device":
			d.readDevice(&p.Device)
		case "caps":
			p.Caps = d.readCaps()
		case "slots":
			p.Slots = int(d.int32())
		case "pace":
			p.Pace = max(d.real(event.Reported).V, 0)
		case "state":
			p.State = engineState(s.str())
		case "why":
			p.Reason = d.string()
		case "remote":
			d.readRemote(&p.Remote)
		default:
			return other(key)
		}
		return true
	})
	if wall != 0 {
		p.Epoch = wall - int64(d.event.At)
	}
	return p
}

// engineState is the state of a name: ready if the engine does not tell, since it speaks.
func engineState(name []byte) event.EngineState {
	for state := event.EngineStarting; state <= event.EnginePaused; state++ {
		if state.String() == string(name) {
			return state
		}
	}
	return event.EngineReady
}

func (d *Decoder) readDevice(p *event.Device) {
	*p = event.Device{}
	d.object(nil, nil, func(name []byte) bool {
		switch string(name) {
		case "name":
			p.Name = d.string()
		case "kernels":
			p.Kernels = d.string()
		case "host":
			p.Host = d.scan.boolean()
		case "threads":
			p.Threads = int(d.int32())
		default:
			return false
		}
		return true
	})
}

func (d *Decoder) readCaps() (c event.Caps) {
	s := &d.scan
	if s.open('[') {
		for s.more(']') {
			if i := slices.Index(caps[:], string(s.str())); i >= 0 {
				c |= 1 << i
			}
		}
	}
	return c
}

func (d *Decoder) readRemote(p *event.Remote) {
	*p = event.Remote{}
	d.object(nil, nil, func(name []byte) bool {
		switch string(name) {
		case "address":
			p.Address = d.string()
		case "link":
			link := d.string()
			for l := event.LinkNone; l <= event.LinkRefused; l++ {
				if l.String() == link {
					p.Link = l
				}
			}
		case "since":
			v, _ := d.scan.signed()
			p.Since = event.Time(v)
		case "why":
			p.Why = d.string()
		case "restarts":
			p.Restarts = int(d.int32())
		case "missing":
			p.Missing, _ = d.scan.signed()
		case "garbage":
			p.Garbage, _ = d.scan.unsigned()
		default:
			return false
		}
		return true
	})
}
