package streamed

// maxHeld is how many messages that name no response are held back: those of a load of some 20 minutes.
const maxHeld = 4096

// Unnamed holds back the first messages with text that name no response (no id, object, time or model, and no token ids), until one does:
// programs that load a model on demand stream in such messages what they do, before the model answers. They hold its tokens
// only if no message ever names a response. Set Count before the first message.
type Unnamed[T any] struct {
	Count func(T) // counts the tokens of a message

	held []T
	done bool
}

// Add counts a message or holds it back. text: it has text; named: it names its response.
func (u *Unnamed[T]) Add(m T, text, named bool) {
	switch {
	case !text && !named:
		return
	case !named && !u.done && len(u.held) < maxHeld:
		u.held = append(u.held, m)
		return
	}
	u.End(!named)
	if text {
		u.Count(m)
	}
}

// End counts the messages that are held back, or drops them if they are not the model's.
func (u *Unnamed[T]) End(counts bool) {
	if counts {
		for _, m := range u.held {
			u.Count(m)
		}
	}
	u.held, u.done = nil, true
}
