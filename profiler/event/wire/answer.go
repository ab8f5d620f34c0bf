package wire

import (
	"strconv"

	"github.com/llmtop/llmtop/profiler/event"
)

// appendAnswer appends how an answer came: moments as differences to the one before, kinds as the sums of their bits. One of too many messages is
// left out.
func appendAnswer(dst []byte, a *event.Answer) []byte {
	if a == nil || len(a.Messages) > event.MaxMessages {
		return dst
	}
	dst = append(key(dst, "sse"), '{')
	dst = strconv.AppendInt(key(dst, "from"), int64(a.Began), 10)
	dst = flag(dst, "chat", a.Chat)
	dst = append(key(dst, "m"), '[')
	before := a.Began
	for i, m := range a.Messages {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = strconv.AppendInt(dst, int64(m.At-before), 10)
		before = m.At
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

// answer reads what appendAnswer has written. Lists of different lengths make the line malformed.
func (d *Decoder) answer() *event.Answer {
	s := &d.scan
	a := new(event.Answer)
	var gaps []int64
	var kinds []event.MessageKind
	d.object(nil, nil, func(name []byte) bool {
		switch string(name) {
		case "from":
			v, _ := s.signed()
			a.Began = event.Time(v)
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
		s.fail("an answer whose messages lack moments or kinds")
		return nil
	}
	at := a.Began
	for i, gap := range gaps {
		at += event.Time(gap)
		a.Messages = append(a.Messages, event.Message{At: at, Kind: kinds[i]})
	}
	return a
}

// integers reads a list of them.
func (d *Decoder) integers(list []int64) []int64 {
	s := &d.scan
	list = list[:0]
	if !s.open('[') {
		return nil
	}
	for s.more(']') {
		v, ok := s.signed()
		if !ok {
			s.fail("a number that is none")
		}
		list = append(list, v)
	}
	return list
}
