package chrome

import (
	"github.com/llmtop/llmtop/profiler/alert"
	"github.com/llmtop/llmtop/profiler/recording"
)

// Status is what the top row shows beside the snapshot: the state of llmtop itself.
type Status struct {
	FPS        int
	Paused     bool
	Engine     string // position and name of the engine, for example "2/3 box:9000"; "" if there is only one
	Record     RecordNote
	Replay     *recording.PlayStatus // nil: live
	Alerts     []alert.Status
	OutputNote string // note on the output rate of the terminal; "" if it is not limited
}
