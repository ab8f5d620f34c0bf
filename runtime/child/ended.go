package child

import (
	"fmt"
	"strings"

	"github.com/llmtop/llmtop/profiler/event"
)

// ExitMistake is the exit code of a child whose user has asked for what cannot be, for example for a model file that is none.
const ExitMistake = 2

// Ended is the error of an engine whose process has ended unasked.
type Ended struct {
	Reason  string   // in one line
	Mistake bool     // the engine has said so itself, and that the user's input is to blame
	Log     []string // the last lines of its log, of a process that has crashed
}

// Error implements error. What follows the first line is the log.
func (e *Ended) Error() string {
	if len(e.Log) == 0 {
		return e.Reason
	}
	return e.Reason + "; its log ended:\n  " + strings.Join(e.Log, "\n  ")
}

// ended says why the process has ended: the engine has told, or else Go, or the system.
func (p *Process) ended(engine *event.Engine) *Ended {
	exit := p.cmd.ProcessState
	if engine.State == event.EngineFailed {
		return &Ended{Reason: engine.Reason, Mistake: exit.ExitCode() == ExitMistake}
	}
	words, crash, log := p.journal.last()
	e := &Ended{Log: log}
	switch {
	case words != "":
		e.Reason = "the engine gave up: " + words
	case signal(exit) == "SIGKILL":
		e.Reason = "the engine's process was killed (SIGKILL), by somebody or by the system for want of memory"
	case signal(exit) != "":
		e.Reason = fmt.Sprintf("the engine's process was ended by %s", signal(exit))
	case crash != "":
		e.Reason = fmt.Sprintf("the engine's process crashed: %s (%v)", crash, exit)
	default:
		e.Reason = fmt.Sprintf("the engine's process ended by itself (%v)", exit)
	}
	return e
}
