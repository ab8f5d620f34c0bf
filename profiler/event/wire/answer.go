package wire

import (
	"strconv"

	"github.com/llmtop/llmtop/profiler/event"
)

// appendAnswer appends an HTTP response: times as differences from the previous one, kinds as bit masks. It omits
// responses of more than event.MaxMessages messages.
func appendAnswer(dst []byte, a *event.Answer) []byte {
	if a == nil || len(a.Messages) > event.MaxMessages {
		return dst
	}
	dst = append(key(dst, "sse"), '{')
	previous := bounded(a.Began)
	dst = appendTime(key(dst, "from"), previous)
	dst = flag(dst, "chat", a.Chat)
	dst = append(key(dst, "m"), '[')
	for i, m := range a.Messages {
		if i > 0 {
			dst = append(dst, ',')
		}
		at := bounded(m.At)
		dst = strconv.AppendInt(dst, int64(at-previous), 10)
		previous = at
	}
	dst = append(key(append(dst, ']'), "k"), '[')
	for i, m := range a.Messages {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = strconv.AppendUint(dst, uint64(m.Kind), 10)
	}
	return append(dst, ']', '}')
}

// readAnswer reads what appendAnswer wrote. Lists of different lengths make the line malformed.
func (d *Decoder) readAnswer() *event.Answer {
	s := &d.scan
	a := new(event.Answer)
	var gaps []int64
	var kinds []event.MessageKind
	d.object(nil, nil, func(name []byte) bool {
		switch string(name) {
		case "from":
			a.Began, _ = d.time()
		case "chat":
			a.Chat = s.boolean()
		case "m":
			gaps = d.integers(gaps)
		case "k":
			for _, v := range d.integers(nil) {
				kinds = append(kinds, event.MessageKind(v))
			}
		default:
			return false
		}
		return true
	})
	if len(gaps) != len(kinds) || len(gaps) > event.MaxMessages {
		s.fail("messages without times or kinds")
		return nil
	}
	at := a.Began
	for i, gap := range gaps {
		if at = event.Time(event.Add(int64(at), gap)); !at.Plausible() {
			d.implausible()
			return nil
		}
		a.Messages = append(a.Messages, event.Message{At: at, Kind: kinds[i]})
	}
	return a
}

// integers reads an array of integers into list.
func (d *Decoder) integers(list []int64) []int64 {
	s := &d.scan
	list = list[:0]
	if !s.open('[') {
		return nil
	}
	for s.more(']') {
		v, ok := s.signed()
		if !ok {
			s.fail("expected a number")
		}
		list = append(list, v)
	}
	return list
}
