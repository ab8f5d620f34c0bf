package sanitize

// Partial cleans a piece from the middle of a stream like Text, but drops the bytes of characters cut off at either end
// instead of replacing them.
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

// runeLength returns the length of the UTF-8 sequence with this first byte.
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
