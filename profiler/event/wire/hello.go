package wire

import (
	"strconv"

	"github.com/llmtop/llmtop/profiler/event"
)

// AppendHello appends the first line of a connection: engine and, unless it is nil, model, which took so many ns to load. The engine's Epoch ties at, the time on its
// monotonic clock, to the wall. run names the run of the engine.
func AppendHello(dst []byte, at event.Time, run string, engine *event.Engine, model *event.Model, took int64) []byte {
	dst = append(dst, `{"t":"hello"`...)
	dst = word(word(dst, "v", Version), "run", run)
	dst = strconv.AppendInt(key(dst, "a"), int64(at), 10)
	dst = appendEngine(dst, at, engine)
	if model != nil {
		dst = append(appendModel(append(key(dst, "model"), '{'), took, model), '}')
	}
	return append(dst, '}')
}

// AppendSession appends a line about the connection; Hello has a function of its own, and Lost says what was lost by kind.
func AppendSession(dst []byte, s *Session, lost *event.Lost) []byte {
	dst = word(append(dst, '{'), "t", sessionNames[s.Type])
	switch s.Type {
	case Clock, Lost:
		dst = strconv.AppendInt(key(dst, "a"), int64(s.At), 10)
		if s.Type == Lost {
			dst = appendLost(dst, lost)
		} else {
			dst = number(dst, "wall", s.Wall)
		}
		dst = strconv.AppendUint(key(dst, "q"), s.Events, 10)
	case Reply:
		dst = strconv.AppendUint(key(dst, "c"), s.Call, 10)
		dst = strconv.AppendBool(key(dst, "ok"), s.OK)
		if s.Req != 0 {
			dst = strconv.AppendUint(key(dst, "r"), uint64(s.Req), 10)
		}
	}
	return append(word(dst, "why", s.Why), '}')
}
