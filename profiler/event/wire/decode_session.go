package wire

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/llmtop/llmtop/profiler/clean"
	"github.com/llmtop/llmtop/profiler/event"
)

// SessionType is the type of a line about the connection.
type SessionType uint8

// The types of lines about the connection. The comments name the fields of Session that are set.
const (
	None    SessionType = iota
	Hello               // Version, Run, At, Wall; Engine and Model are events
	Auth                // no fields: the engine requires a token
	Clock               // At, Wall, Events
	Dropped             // At, Events; the drop counts are an event
	Sync                // no fields: the current state follows
	Synced              // no fields: the current state is complete
	Reply               // Call, OK, Reason, Req
	Bye                 // Reason
)

var sessionNames = [...]string{"", "hello", "auth", "clock", "lost", "sync", "synced", "reply", "bye"}

// Session is the content of a line about the connection.
type Session struct {
	Type      SessionType
	Version   string
	Run       string
	At        event.Time
	Wall      int64 // Unix ns; 0: missing
	Events    uint64
	HasEvents bool // Events is set
	Call      uint64
	OK        bool
	Reason    string
	Req       event.RequestID
}

// check rejects versions that this package cannot read.
func (s *Session) check() error {
	number, _, _ := strings.Cut(s.Version, ".")
	v, err := strconv.Atoi(number)
	if err != nil || v < 0 {
		return fmt.Errorf("%w: version %s", ErrMalformed, clean.Quote(s.Version))
	}
	if v > major {
		return fmt.Errorf("%w: %s, this program reads up to %d.x", ErrVersion, clean.Name(s.Version), major)
	}
	return nil
}

// readSession reads a line about the connection. It ignores unknown types.
func (d *Decoder) readSession() bool {
	i := slices.IndexFunc(sessionNames[:], func(name string) bool { return name == string(d.lineType) })
	if i <= 0 {
		d.members(unknownMember)
		return false
	}
	p := &d.session
	p.Type = SessionType(i)
	if p.Type == Hello {
		return d.readHello()
	}
	drops := new(event.Drops)
	d.members(func(key []byte) bool {
		switch string(key) {
		case "wall":
			p.Wall = d.wall()
		case "q":
			p.Events, p.HasEvents = d.unsigned()
		case "by":
			d.readDrops(drops)
		case "c":
			p.Call, _ = d.scan.unsigned()
		case "ok":
			p.OK = d.scan.boolean()
		case "why":
			p.Reason = d.string()
		case "r":
			v, _ := d.scan.unsigned()
			p.Req = event.RequestID(v)
		default:
			return false
		}
		return true
	})
	p.At = d.event.At
	if p.Type == Dropped {
		d.event.Kind, d.event.Data = event.KindDrops, drops
		return d.require(true, "")
	}
	return false
}

func (d *Decoder) readDrops(p *event.Drops) {
	s := &d.scan
	if !s.open('{') {
		return
	}
	for s.more('}') {
		k := kindByName(s.key())
		v, _ := d.unsigned()
		p[k] = event.AddCount(p[k], v)
	}
}

// readHello reads an engine and, if present, its model.
func (d *Decoder) readHello() bool {
	p, s := &d.session, &d.scan
	engine := d.readEngineMembers(func(key []byte) bool {
		switch string(key) {
		case "v":
			p.Version = d.string()
		case "run":
			p.Run = d.string()
		case "model":
			if s.open('{') {
				d.model = new(event.Model)
				for s.more('}') {
					d.helloModelMember(s.key())
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
	return d.require(p.Version != "", "version")
}

// helloModelMember reads a member of the model of a hello.
func (d *Decoder) helloModelMember(key []byte) {
	if string(key) == "dur" {
		d.loadTime = d.count()
	} else if !d.modelMember(d.model, key) {
		d.scan.skip()
	}
}

func (d *Decoder) readEngine() bool {
	d.readEngineMembers(unknownMember)
	return d.require(true, "")
}

// readEngineMembers reads the members of an engine and passes other names to other.
func (d *Decoder) readEngineMembers(other func(name []byte) bool) *event.EngineInfo {
	p := &event.EngineInfo{State: event.EngineReady}
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
			wall = d.wall()
		case "device":
			d.readDevice(&p.Device)
		case "caps":
			p.Caps = d.readCaps()
		case "slots":
			p.Slots = int(d.int32())
		case "pace":
			p.Pace = max(d.bareReading(event.Reported).V, 0)
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

// engineState returns the state with a name. An engine that reports no state is ready.
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
			p.Since, _ = d.time()
		case "why":
			p.Reason = d.string()
		case "restarts":
			p.Restarts = int(d.int32())
		case "missing":
			if p.Missed, _ = d.scan.signed(); !plausibleNumber(p.Missed) {
				d.implausible()
			}
		case "garbage":
			p.Malformed, _ = d.unsigned()
		default:
			return false
		}
		return true
	})
}
