package wire

import (
	"strconv"

	"github.com/llmtop/llmtop/profiler/event"
)

var answers = value[*event.Answer]{appendAnswer, readAnswer}

// appendAnswer appends an HTTP response: times as differences from the previous one, kinds as bit masks. It omits
// responses of more than event.MaxMessages messages.
func appendAnswer(dst []byte, name string, a *event.Answer) []byte {
	if a == nil || len(a.Messages) > event.MaxMessages {
		return dst
	}
	previous := bounded(a.Began)
	dst = flag(appendTime(key(append(key(dst, name), '{'), "from"), previous), "chat", a.Chat)
	dst = appendArray(key(dst, "m"), a.Messages, func(dst []byte, m event.Message) []byte {
		at := bounded(m.At)
		dst = strconv.AppendInt(dst, int64(at-previous), 10)
		previous = at
		return dst
	})
	dst = appendArray(key(dst, "k"), a.Messages, func(dst []byte, m event.Message) []byte {
		return strconv.AppendUint(dst, uint64(m.Kind), 10)
	})
	return append(dst, '}')
}

// readAnswer reads what appendAnswer wrote. Lists of different lengths make the line malformed.
func readAnswer(d *Decoder) *event.Answer {
	a := new(event.Answer)
	var gaps, kinds []int64
	for name := range d.names() {
		switch string(name) {
		case "from":
			a.Began, _ = d.time()
		case "chat":
			a.Chat = d.scan.boolean()
		case "m":
			gaps = d.integers()
		case "k":
			kinds = d.integers()
		default:
			d.scan.skip()
		}
	}
	if len(gaps) != len(kinds) || len(gaps) > event.MaxMessages {
		d.scan.fail("messages without times or kinds")
		return nil
	}
	at := a.Began
	for i, gap := range gaps {
		if at = event.Time(event.Add(int64(at), gap)); !at.Plausible() {
			d.implausible()
			return nil
		}
		a.Messages = append(a.Messages, event.Message{At: at, Kind: event.MessageKind(kinds[i])})
	}
	return a
}
