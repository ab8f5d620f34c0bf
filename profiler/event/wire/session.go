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
	Wall      int64 `wire:"wall,time"` // Unix ns; 0: missing
	Events    uint64
	HasEvents bool            // Events is set
	Call      uint64          `wire:"c,id"`
	OK        bool            `wire:"ok"`
	Reason    string          `wire:"why"`
	Req       event.RequestID `wire:"r"`
}

// sessionLine is a line about the connection with its counts.
type sessionLine struct {
	Session
	Events int64       `wire:"q,optional"`
	By     event.Drops `wire:"by,always"` // drops by kind
}

// helloLine is the first line of a connection.
type helloLine struct {
	Version string `wire:"v"`
	Run     string `wire:"run"`
	event.EngineInfo
	Model *modelLine `wire:"model"`
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
	p := &helloLine{Version, run, *engineOf(&event.Event{At: at, Data: engine}), nil}
	if model != nil {
		p.Model = &modelLine{loadTime, *model}
	}
	return append(appendMembers(appendTime(append(dst, `{"t":"hello","a":`...), at), p), '}')
}

// AppendSession appends a line about the connection. For Hello use AppendHello. drops is used by Dropped only.
func AppendSession(dst []byte, s *Session, drops *event.Drops) []byte {
	dst = appendString(append(dst, `{"t":`...), sessionNames[s.Type])
	switch s.Type {
	case Clock, Dropped:
		dst = appendTime(key(dst, "a"), s.At)
		if s.Type == Dropped {
			dst = appendDrops(key(dst, "by"), drops)
		} else if s.Wall != 0 {
			dst = appendTime(key(dst, "wall"), event.Time(s.Wall))
		}
		dst = appendCount(key(dst, "q"), s.Events)
	case Reply:
		dst = strconv.AppendUint(key(dst, "c"), s.Call, 10)
		dst = strconv.AppendBool(key(dst, "ok"), s.OK)
		if s.Req != 0 {
			dst = strconv.AppendUint(key(dst, "r"), uint64(s.Req), 10)
		}
	}
	if s.Reason != "" {
		dst = appendString(key(dst, "why"), s.Reason)
	}
	return append(dst, '}')
}

// readSession reads a line about the connection. It ignores unknown types.
func readSession(d *Decoder) {
	switch kind := SessionType(max(slices.Index(sessionNames[:], string(d.lineType)), 0)); kind {
	case None:
		d.silent = true
		d.readMembers(new(struct{}))
	case Hello:
		p := &helloLine{EngineInfo: event.EngineInfo{State: event.EngineReady}}
		d.readMembers(p)
		d.session = Session{Type: kind, Version: p.Version, Run: p.Run, At: d.event.At, Wall: p.Epoch}
		setEngine(d, &p.EngineInfo)
		d.model = p.Model
		if p.Version == "" {
			d.scan.fail("no version")
		}
		d.require("")
	default:
		d.silent = true
		p := &sessionLine{Events: -1}
		d.readMembers(p)
		d.setSession(kind, p)
	}
}

func (d *Decoder) setSession(kind SessionType, p *sessionLine) {
	d.session = p.Session
	d.session.Type, d.session.At = kind, d.event.At
	if d.session.HasEvents = p.Events >= 0; d.session.HasEvents {
		d.session.Events = uint64(p.Events)
	}
}

// A lost line is an event, and about the connection.

func dropsOf(e *event.Event) *sessionLine {
	if p := dataOf[event.Drops](e); p != nil {
		return &sessionLine{Events: -1, By: *p}
	}
	return nil
}

func setDrops(d *Decoder, p *sessionLine) string {
	d.event.Data = &p.By
	d.setSession(Dropped, p)
	return ""
}
