package sanitize

// maxPending bounds what Stream holds back, in bytes; a longer run of marks without end is given up.
const maxPending = 2 * maxSequence

// Stream sanitises text that arrives in pieces, which may be cut inside a UTF-8 sequence, an escape sequence or a character
// with its combining marks. It holds back what is undecided, so that the pieces it returns add up to Text over the whole.
// The zero value is ready to use.
type Stream struct{ pending string }

// Write takes the next piece and returns what is certain by now.
func (s *Stream) Write(piece string) string {
	all := s.pending + piece
	w := writer{lines: true, more: true}
	n := w.all(all)
	s.pending = all[n:]
	if len(s.pending) > maxPending {
		return w.String() + s.Flush()
	}
	return w.String()
}

// Flush returns what was held back, as it stands, and empties the stream.
func (s *Stream) Flush() string {
	rest := s.pending
	s.pending = ""
	return Text(rest)
}

// Partial is Text for a piece out of the middle of a stream: bytes at either end that belong to characters cut off there
// are left out and not replaced.
func Partial(s string, cutStart bool) string {
	for i := 0; cutStart && i < 3 && len(s) > 0 && s[0]&0xc0 == 0x80; i++ {
		s = s[1:]
	}
	for i := 1; i <= 3 && i <= len(s); i++ {
		if c := s[len(s)-i]; c >= 0xc0 {
			if need := runeLength(c); need > i {
				s = s[:len(s)-i]
			}
			break
		} else if c < 0x80 {
			break
		}
	}
	return Text(s)
}

// runeLength is the number of bytes that a UTF-8 sequence with this first byte has.
func runeLength(first byte) int {
	switch {
	case first >= 0xf0:
		return 4
	case first >= 0xe0:
		return 3
	default:
		return 2
	}
}
