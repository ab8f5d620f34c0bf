package prompts

import (
	"strings"
)

// maxWord is the largest number of bytes that are hashed together.
const maxWord = 32

// nextWord returns how many bytes of a text its first word has: letters and digits, and what follows them until the next
// word. Longer words are cut. changes reports whether it has a digit or is a month, as texts that change often have.
func nextWord(text string) (bytes int, changes bool) {
	inside := true
	for bytes < min(len(text), maxWord) {
		c := text[bytes]
		digit := '0' <= c && c <= '9'
		letter := digit || c >= 0x80 || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || strings.IndexByte("_-:.+", c) >= 0
		if letter && !inside {
			break
		}
		inside, changes = letter, changes || digit
		bytes++
	}
	return bytes, changes || month(text[:bytes])
}

// month reports whether a word begins like an English month.
func month(word string) bool {
	return len(word) > 2 && strings.Contains("Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec", word[:3])
}
