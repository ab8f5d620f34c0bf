package prompts

import (
	"regexp"
	"unicode/utf8"

	"github.com/llmtop/llmtop/profiler/event"
)

// volatile are texts that change between two requests, the longest first.
var volatile = []struct {
	kind event.BreakKind
	text *regexp.Regexp
}{
	{event.BreakTimestamp, regexp.MustCompile(`\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d)?)?|\b\d{1,2}:\d\d(:\d\d)?\b|\b1[5-9]\d{8}(\d{3})?\b|\b\d{1,2} (Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]* \d{4}\b|\b(Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]* \d{1,2},? \d{4}\b`)},
	{event.BreakIdentifier, regexp.MustCompile(`\b[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\b|\b[0-9a-fA-F]*\d[0-9a-fA-F]{11,}\b|\b(req|call|chat|session|sess|run|msg|id)[-_][0-9A-Za-z]{6,}\b`)},
	{event.BreakNumber, regexp.MustCompile(`\d+(\.\d+)?`)},
}

// reach is how far around the word that differs a volatile text is looked for, in bytes.
const reach = 64

// volatileAt returns the volatile text of which the word text[begin:end] is a part, with its first character.
func volatileAt(text string, begin, end int) (event.BreakKind, int) {
	from, to := max(begin-reach, 0), min(end+reach, len(text))
	for from > 0 && !utf8.RuneStart(text[from]) {
		from--
	}
	for _, v := range volatile {
		for _, span := range v.text.FindAllStringIndex(text[from:to], -1) {
			if first, last := from+span[0], from+span[1]; first < end && last > begin {
				return v.kind, utf8.RuneCountInString(text[:first])
			}
		}
	}
	return event.BreakNone, 0
}
