package sanitize

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
