package wire

import (
	"strconv"

	"github.com/llmtop/llmtop/profiler/event"
)

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
		if s.Req != 0 {
			dst = strconv.AppendUint(key(dst, "r"), uint64(s.Req), 10)
		}
	}
	return append(word(dst, "why", s.Reason), '}')
}
