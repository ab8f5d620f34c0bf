//go:build !nollama && (linux || darwin || windows) && (amd64 || arm64)

package llama

import (
	"slices"
	"strings"
	"sync"

	"github.com/ebitengine/purego"
)

// journal receives the library's log, of which a process has one: it joins pieces to lines, forwards them, and keeps
// the last ones for error messages.
type journal struct {
	mu    sync.Mutex
	to    func(line string) // receives lines of logInfo and above; may be nil
	fatal func(line string) // receives the message of an abort; nil: to does
	spy   func(line string) // also receives the lines; may be nil
	quiet bool              // only spy receives the lines
	level int32             // level of the incomplete line
	part  strings.Builder
	lines []string // warnings and errors since the last mark, oldest first
}

// log is the journal of this process.
var log journal

// noReason is the cause in error messages if the library has logged no error.
const noReason = "the library logged no error"

// maxComplaints is the maximum length of journal.lines.
const maxComplaints = 6

// Levels of text, as in ggml.h: logContinue continues the previous line.
const logInfo, logError, logContinue = 2, 4, 5

// logCallback is log.write as a C callback. There is only one, since callbacks are never freed.
var logCallback = sync.OnceValue(func() uintptr {
	return purego.NewCallback(func(level int32, text uintptr, _ uintptr) uintptr {
		log.write(level, goString(text))
		return 0
	})
})

// abortCallback is log.abort as a C callback. The library aborts the process after it returns.
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

// write adds a piece of the log.
func (j *journal) write(level int32, text string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for piece := range strings.Lines(text) {
		if level != logContinue {
			j.level = level
		}
		whole, ended := strings.CutSuffix(piece, "\n")
		j.part.WriteString(strings.TrimRight(whole, "\r"))
		if ended {
			j.line(j.part.String())
			j.part.Reset()
		}
	}
}

// line adds a complete line.
func (j *journal) line(line string) {
	if strings.Trim(line, ". ") == "" { // dots show progress
		return
	}
	if j.level >= logError {
		j.lines = append(j.lines, strings.TrimSpace(line))
		j.lines = j.lines[max(len(j.lines)-maxComplaints, 0):]
	}
	if j.spy != nil {
		j.spy(line)
	}
	if j.to != nil && !j.quiet && j.level >= logInfo {
		j.to(line)
	}
}

// abort receives the library's last message before it aborts.
func (j *journal) abort(line string) {
	j.mu.Lock()
	fatal, to := j.fatal, j.to
	j.mu.Unlock()
	switch {
	case fatal != nil:
		fatal(line)
	case to != nil:
		to(line)
	}
}

// mark clears the kept lines.
func (j *journal) mark() {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.lines = nil
}

// maxComplaint is how many bytes of a line stand in an error: a name from a model file may be as long as the file.
const maxComplaint = 200

// complaints returns the kept lines as one line, or noReason.
func (j *journal) complaints() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(j.lines) == 0 {
		return noReason
	}
	out := slices.Clone(j.lines)
	for i, line := range out {
		if len(line) > maxComplaint {
			out[i] = strings.ToValidUTF8(line[:maxComplaint], "") + "…"
		}
	}
	return strings.Join(out, "; ")
}

// during passes each line to spy while f runs, and only to spy if quiet is set.
func (j *journal) during(spy func(line string), quiet bool, f func()) {
	j.mu.Lock()
	j.spy, j.quiet = spy, quiet
	j.mu.Unlock()
	f()
	j.mu.Lock()
	j.spy, j.quiet = nil, false
	j.mu.Unlock()
}

// listen sets the receivers of the log and of the message of an abort.
func (j *journal) listen(to, fatal func(line string)) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.to, j.fatal = to, fatal
}
