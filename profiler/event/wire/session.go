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

// AppendHello appends the first line of a connection: engine and, unless it is nil, model with its load time in ns. at
// is on the engine's monotonic clock; engine.Epoch maps it to the wall clock. run identifies the run of the engine.
func AppendHello(dst []byte, at event.Time, run string, engine *event.EngineInfo, model *event.Model, loadTime int64) []byte {
	dst = append(dst, `{"t":"hello"`...)
	dst = word(word(dst, "v", Version), "run", run)
	dst = appendTime(key(dst, "a"), at)
	dst = appendEngine(dst, at, engine)
	if model != nil {
		dst = append(appendModel(append(key(dst, "model"), '{'), loadTime, model), '}')
	}
	return append(dst, '}')
}

// AppendSession appends a line about the connection. For Hello use AppendHello. drops is used by Dropped only.
func AppendSession(dst []byte, s *Session, drops *event.Drops) []byte {
	dst = word(append(dst, '{'), "t", sessionNames[s.Type])
	switch s.Type {
	case Clock, Dropped:
		dst = appendTime(key(dst, "a"), s.At)
		if s.Type == Dropped {
			dst = appendDrops(dst, drops)
		} else {
			dst = moment(dst, "wall", event.Time(s.Wall))
		}
		dst = appendCount(key(dst, "q"), s.Events)
	case Reply:
		dst = strconv.AppendUint(key(dst, "c"), s.Call, 10)
		dst = strconv.AppendBool(key(dst, "ok"), s.OK)
		dst = identifier(dst, "r", uint64(s.Req))
	}
	return append(word(dst, "why", s.Reason), '}')
}

// readSession reads a line about the connection. It ignores unknown types.
func readSession(d *Decoder) bool {
	i := slices.IndexFunc(sessionNames[:], func(name string) bool { return name == string(d.lineType) })
	if i <= 0 {
		d.members(unknownMember)
		return false
	}
	p := &d.session
	p.Type = SessionType(i)
	if p.Type == Hello {
		return readHello(d)
	}
	drops := new(event.Drops)
	d.members(func(key []byte) bool {
		switch string(key) {
		case "wall":
			p.Wall = d.wall()
		case "q":
			p.Events, p.HasEvents = d.unsigned()
		case "by":
			readDrops(d, drops)
		case "c":
			p.Call = d.identifier()
		case "ok":
			p.OK = d.scan.boolean()
		case "why":
			p.Reason = d.string()
		case "r":
			p.Req = event.RequestID(d.identifier())
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

// readHello reads an engine and, if present, its model.
func readHello(d *Decoder) bool {
	p := &d.session
	engine := readEngine(d, func(key []byte) bool {
		switch string(key) {
		case "v":
			p.Version = d.string()
		case "run":
			p.Run = d.string()
		case "model":
			if d.scan.open('{') {
				d.model = new(event.Model)
				d.loadTime = readModel(d, d.model)
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
