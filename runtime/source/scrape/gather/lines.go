package gather

import (
	"slices"
	"sync"
)

// maxLines limits the number of lines of a text that are known, 24 bytes each.
const maxLines = 1024

// knownLine is the meaning of a line of a text. Servers with the same lines share it.
type knownLine struct {
	head   uint64  // see prom.Scanner.Head; 0: unknown
	bound  float64 // of a bucket
	series uint32  // number of the series, from 1; 0: no metric has it
	part   part
}

// textLines knows the lines of the previous text: each text has the same lines, but for their values.
type textLines struct {
	known  []knownLine // never modified
	series []*series   // by their number
	at     int         // lines of this text so far
	next   []knownLine // of this text; nil: as known so far
}

// find returns the entry of the next line; nil: it has none, and the caller calls learn.
func (l *textLines) find(head uint64) *knownLine {
	i := l.at
	l.at++
	if head == 0 || i >= len(l.known) || l.known[i].head != head {
		return nil
	}
	if l.next != nil {
		l.next = append(l.next, l.known[i])
	}
	return &l.known[i]
}

// learn sets the meaning of the line that find did not know; s is the series of a line with k.part.
func (l *textLines) learn(k knownLine, s *series) {
	i := l.at - 1
	if i >= maxLines {
		return
	}
	if s != nil {
		k.series = l.number(s)
	}
	if l.next == nil {
		if i < len(l.known) && l.known[i] == k {
			return
		}
		l.next = append(make([]knownLine, 0, max(len(l.known), 64)), l.known[:min(i, len(l.known))]...)
	}
	l.next = append(l.next, k)
}

// number returns the number of a series.
func (l *textLines) number(s *series) uint32 {
	if s.number == 0 {
		l.series = append(l.series, s)
		s.number = uint32(len(l.series))
	}
	return s.number
}

// end ends a text. The series are numbered in the order of its lines.
func (l *textLines) end() {
	next, before := l.next, l.series
	if next == nil && l.at < len(l.known) {
		next = slices.Clone(l.known[:l.at])
	}
	if l.at, l.next = 0, nil; next == nil {
		return
	}
	for _, s := range before {
		s.number = 0
	}
	l.series = make([]*series, 0, len(before))
	for i := range next {
		if n := next[i].series; n > 0 {
			next[i].series = l.number(before[n-1])
		}
	}
	l.known = shareLines(next)
}

// maxTexts limits the number of different texts whose lines are shared, up to 24 KB each.
const maxTexts = 64

// texts holds shared lines by a hash of them.
var texts = struct {
	sync.Mutex
	lines map[uint64][]knownLine
}{lines: make(map[uint64][]knownLine)}

// shareLines returns lines that are equal to the given ones, and shared if possible.
func shareLines(lines []knownLine) []knownLine {
	hash := uint64(0)
	for i := range lines {
		hash = hash*0x9e3779b97f4a7c15 + lines[i].head
	}
	texts.Lock()
	defer texts.Unlock()
	if shared := texts.lines[hash]; slices.Equal(shared, lines) {
		return shared
	}
	if len(texts.lines) >= maxTexts {
		clear(texts.lines)
	}
	lines = slices.Clip(slices.Clone(lines))
	texts.lines[hash] = lines
	return lines
}
