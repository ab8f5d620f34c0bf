//go:build !nollama && (linux || darwin || windows) && (amd64 || arm64)

package llama

import (
	"strings"
	"sync"

	"github.com/ebitengine/purego"
)

// journal takes the library's log, which is one for the whole process: it makes lines of it, hands them on, and keeps the last
// ones for error messages.
type journal struct {
	mu    sync.Mutex
	to    func(level LogLevel, line string)
	fatal func(line string) // takes the last words before the process ends; nil: to does
	spy   func(line string) // sees the lines, too; nil: nobody
	quiet bool              // only the spy does
	level LogLevel          // of the line in progress
	part  strings.Builder
	lines []string // what the library has complained of since the last mark, the oldest first
}

// log is the journal of this process.
var log journal

// mostComplaints bounds journal.lines.
const mostComplaints = 6

// logContinue is the level of text that goes on with the line before it.
const logContinue = 5

// logCallback is log.write for the library. There is one, since callbacks are never freed.
var logCallback = sync.OnceValue(func() uintptr {
	return purego.NewCallback(func(level int32, text uintptr, _ uintptr) uintptr {
		log.write(level, goString(text))
		return 0
	})
})

// abortCallback is log.abort for the library, which aborts the process once it returns.
var abortCallback = sync.OnceValue(func() uintptr {
	return purego.NewCallback(func(text uintptr) uintptr {
		log.abort(strings.TrimSpace(goString(text)))
		return 0
	})
})

// goString copies a C string.
func goString(address uintptr) string {
	if address == 0 {
		return ""
	}
	var n uintptr
	for at[byte](address, n) != 0 {
		n++
	}
	var b strings.Builder
	for i := range n {
		b.WriteByte(at[byte](address, i))
	}
	return b.String()
}

// write takes a piece of the log.
func (j *journal) write(level int32, text string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for piece := range strings.Lines(text) {
		if level != logContinue {
			j.level = LogLevel(min(max(level, 0), int32(LogError)))
		}
		whole, ended := strings.CutSuffix(piece, "\n")
		j.part.WriteString(strings.TrimRight(whole, "\r"))
		if ended {
			j.line(j.part.String())
			j.part.Reset()
		}
	}
}

// line takes a whole line.
func (j *journal) line(line string) {
	if strings.Trim(line, ". ") == "" { // dots for progress
		return
	}
	if j.level >= LogError {
		j.lines = append(j.lines, strings.TrimSpace(line))
		j.lines = j.lines[max(len(j.lines)-mostComplaints, 0):]
	}
	if j.spy != nil {
		j.spy(line)
	}
	if j.to != nil && !j.quiet {
		j.to(j.level, line)
	}
}

// abort takes the library's last words.
func (j *journal) abort(line string) {
	j.mu.Lock()
	fatal, to := j.fatal, j.to
	j.mu.Unlock()
	switch {
	case fatal != nil:
		fatal(line)
	case to != nil:
		to(LogError, line)
	}
}

// mark forgets what has been complained of.
func (j *journal) mark() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = nil
}

// complaints are the errors in the log since the mark, as one line; otherwise if there were none.
func (j *journal) complaints(otherwise string) string {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.lines) == 0 {
		return otherwise
	}
	return strings.Join(j.lines, "; ")
}

// during shows each line to somebody while f runs, and to nobody else if it is quiet.
func (j *journal) during(spy func(line string), quiet bool, f func()) {
	j.mu.Lock()
	j.spy, j.quiet = spy, quiet
	j.mu.Unlock()
	f()
	j.mu.Lock()
	j.spy, j.quiet = nil, false
	j.mu.Unlock()
}

// listen hands the log, and the last words, to somebody else from now on.
func (j *journal) listen(to func(level LogLevel, line string), fatal func(line string)) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.to, j.fatal = to, fatal
}
