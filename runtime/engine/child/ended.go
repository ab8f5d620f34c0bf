package child

import (
	"fmt"
	"strings"

	"github.com/llmtop/llmtop/profiler/event"
)

// ExitMistake is the exit code of a child that cannot do what the user asked for, for example because of an invalid
// model file.
const ExitMistake = 2

// Ended is the error of an engine whose process ended unexpectedly.
type Ended struct {
	Reason  string   // one line
	Mistake bool     // the engine reported the reason itself, and the user's input is the cause
	Log     []string // last lines of the log, if the process crashed
}

// Error returns the reason, followed by the log on separate lines.
func (e *Ended) Error() string {
	if len(e.Log) == 0 {
		return e.Reason
	}
	return e.Reason + "; its log ended:\n  " + strings.Join(e.Log, "\n  ")
}

// ended returns why the process ended, as reported by the engine, by Go's runtime or by the system.
func (p *Process) ended(engine *event.EngineInfo) *Ended {
	exit := p.cmd.ProcessState
	if engine.State == event.EngineFailed {
		return &Ended{Reason: engine.Reason, Mistake: exit.ExitCode() == ExitMistake}
	}
	words, crash, log := p.journal.summary()
	e := &Ended{Log: log}
	switch {
	case words != "":
		e.Reason = "the engine gave up: " + words
	case signal(exit) == "SIGKILL":
		e.Reason = "the engine's process was killed (SIGKILL), by a user or because memory ran out"
	case signal(exit) != "":
		e.Reason = fmt.Sprintf("the engine's process was ended by %s", signal(exit))
	case crash != "":
		e.Reason = fmt.Sprintf("the engine's process crashed: %s (%v)", crash, exit)
	default:
		e.Reason = fmt.Sprintf("the engine's process exited unexpectedly (%v)", exit)
	}
	return e
}
