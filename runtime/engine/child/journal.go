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

	"github.com/llmtop/llmtop/profiler/clean"
	"github.com/llmtop/llmtop/profiler/event"
)

const (
	// maxLine is the maximum length of a log line, in bytes; the rest is dropped.
	maxLine = 1 << 10
	// maxLines is the number of log lines kept for a crash report.
	maxLines = 12
)

// journal converts lines of the process's standard output and error to events, and keeps the last lines.
type journal struct {
	now func() event.Time

	mu        sync.Mutex // guards the fields below
	sink      event.Sink // nil before Run
	lines     []string   // oldest first
	lastWords string     // reason given with LastWords; "" if none
	crash     string     // first line of a Go crash, which stack traces follow; "" if there was none
	streams   []*stream
}

// stream splits one of the two outputs into lines.
type stream struct {
	journal  *journal
	answered func(line []byte) // gets answers, which start with mark; nil: there are none
	part     []byte            // incomplete line
}

// stream adds an output of the process, whose answers are passed to answered; nil: it has none.
func (j *journal) stream(answered func(line []byte)) io.Writer {
	s := &stream{journal: j, answered: answered}
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
		most := maxLine
		if s.isAnswer(s.part) || len(s.part) == 0 && s.isAnswer(line) {
			most = maxAnswer
		}
		s.part = append(s.part, line[:min(len(line), most-len(s.part))]...)
		if !whole {
			return n, nil
		}
		s.flush()
		p = rest
	}
}

// flush ends the current line.
func (s *stream) flush() {
	if s.isAnswer(s.part) {
		s.answered(s.part[1:])
		s.part = nil // it may be large
		return
	}
	s.journal.line(plain(s.part))
	s.part = s.part[:0]
}

// isAnswer reports whether a line that begins so is an answer.
func (s *stream) isAnswer(line []byte) bool {
	return s.answered != nil && len(line) > 0 && line[0] == mark[1]
}

// end flushes incomplete last lines of the outputs.
func (j *journal) end() {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, s := range j.streams {
		s.flush()
	}
}

var (
	// escapes matches the sequences that colour terminals. Logs are full of them, so they are removed and not replaced.
	escapes = regexp.MustCompile(`\x1b\[[0-9;:?]*[ -/]*[@-~]`)
	// crashes matches the first line that Go prints when a program crashes.
	crashes = regexp.MustCompile(`^(SIG[A-Z0-9]+: |fatal error: |panic: |unexpected fault address )`)
)

// plain returns a line as printable text, "" for an empty one.
func plain(line []byte) string {
	return strings.TrimRight(clean.Line(strings.TrimSuffix(string(escapes.ReplaceAll(line, nil)), "\r")), " ")
}

// lastWordsPrefix starts the line of LastWords.
const lastWordsPrefix = "the engine gives up: "

// LastWords reports to the parent why the process that runs Serve is about to abort, as a native library does after a
// failed assertion. It may be called from any thread and returns after the line is written. It starts a new line,
// because the library may have left one incomplete.
func LastWords(why string) { fmt.Fprintf(os.Stderr, "\n%s%s\n", lastWordsPrefix, why) }

// line adds a line. After a Go crash, only stack traces follow and are dropped. The caller holds mu.
func (j *journal) line(text string) {
	switch {
	case text == "" || j.crash != "":
		return
	case crashes.MatchString(text):
		j.crash = text
		return
	}
	if words, ok := strings.CutPrefix(text, lastWordsPrefix); ok {
		j.lastWords = words
	}
	if len(j.lines) == maxLines {
		j.lines = slices.Delete(j.lines, 0, 1)
	}
	j.lines = append(j.lines, text)
	j.emit(text)
}

// emit emits a line as an event. The caller holds mu.
func (j *journal) emit(text string) {
	if j.sink != nil {
		j.sink.Emit(event.Event{Kind: event.KindLog, At: j.now(), Layer: -1, Text: text})
	}
}

// note emits a line that the process did not write.
func (j *journal) note(text string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.emit(text)
}

// setSink sets the sink for the following lines.
func (j *journal) setSink(sink event.Sink) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.sink = sink
}

// summary returns the reason given with LastWords, the first line of a crash ("" if none exists), and the last log
// lines.
func (j *journal) summary() (words, crash string, lines []string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.lastWords, j.crash, slices.Clone(j.lines)
}
