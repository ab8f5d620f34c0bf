package child

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode"

	"github.com/llmtop/llmtop/profiler/event"
)

const (
	// maxLine is how much of a line is kept, in bytes.
	maxLine = 1 << 10
	// maxLines is how many lines of the log are kept for the case that the process crashes.
	maxLines = 12
)

// journal makes events of what the process writes to its standard output and error, and keeps the last lines.
type journal struct {
	now func() event.Time

	mu      sync.Mutex // guards what follows
	sink    event.Sink // nil before Run
	lines   []string   // oldest first
	words   string     // why the engine gave up, by LastWords; "" if it did not
	crash   string     // how Go begins to tell of a crash, whose stacks follow; "" if there was none
	streams []*stream
}

// stream cuts one of the two outputs into lines.
type stream struct {
	journal *journal
	part    []byte // of a line whose end has not come, at most maxLine
}

// stream is another output of the process.
func (j *journal) stream() io.Writer {
	s := &stream{journal: j}
	j.streams = append(j.streams, s)
	return s
}

// Write implements io.Writer.
func (s *stream) Write(p []byte) (int, error) {
	s.journal.mu.Lock()
	defer s.journal.mu.Unlock()
	n := len(p)
	for {
		line, rest, whole := bytes.Cut(p, []byte{'\n'})
		s.part = append(s.part, line[:min(len(line), maxLine-len(s.part))]...)
		if !whole {
			return n, nil
		}
		s.flush()
		p = rest
	}
}

// flush takes a line.
func (s *stream) flush() {
	s.journal.line(plain(s.part))
	s.part = s.part[:0]
}

// end takes what stands at the end of the outputs without a line end.
func (j *journal) end() {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, s := range j.streams {
		s.flush()
	}
}

var (
	// escapes are the sequences that colour terminals.
	escapes = regexp.MustCompile(`\x1b\[[0-9;:?]*[ -/]*[@-~]`)
	// crashes are the first lines of what Go prints when it ends a program.
	crashes = regexp.MustCompile(`^(SIG[A-Z0-9]+: |fatal error: |panic: |unexpected fault address )`)
)

// plain is a line as text that may be shown.
func plain(line []byte) string {
	text := strings.ToValidUTF8(string(escapes.ReplaceAll(line, nil)), "\ufffd")
	return strings.TrimRight(strings.Map(func(r rune) rune {
		switch {
		case r == '\t':
			return ' '
		case unicode.IsControl(r), unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp):
			return -1
		}
		return r
	}, text), " ")
}

// givesUp begins the line of LastWords.
const givesUp = "the engine gives up: "

// LastWords tells the parent why the process that Serve runs in is about to abort, as a library in native code does when it finds
// its own state wrong. It may be called from any thread, and does not return before the parent can read it. The library may have left a
// line unended.
func LastWords(why string) { fmt.Fprintf(os.Stderr, "\n%s%s\n", givesUp, why) }

// line takes a line. Once Go tells of a crash there are only stacks left. The caller holds mu.
func (j *journal) line(text string) {
	switch {
	case text == "" || j.crash != "":
		return
	case crashes.MatchString(text):
		j.crash = text
		return
	}
	if words, ok := strings.CutPrefix(text, givesUp); ok {
		j.words = words
	}
	if len(j.lines) == maxLines {
		j.lines = slices.Delete(j.lines, 0, 1)
	}
	j.lines = append(j.lines, text)
	j.emit(text)
}

// emit passes a line on. The caller holds mu.
func (j *journal) emit(text string) {
	if j.sink != nil {
		j.sink.Emit(event.Event{Kind: event.KindLog, At: j.now(), Layer: -1, Text: text})
	}
}

// say adds a line that the process did not write.
func (j *journal) say(text string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.emit(text)
}

// to passes the lines to a sink from now on.
func (j *journal) to(sink event.Sink) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.sink = sink
}

// last is why the engine gave up, or else how the process crashed, "" where nobody told, and the last lines before.
func (j *journal) last() (words, crash string, lines []string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.words, j.crash, slices.Clone(j.lines)
}
