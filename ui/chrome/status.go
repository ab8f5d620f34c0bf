package chrome

import (
	"github.com/llmtop/llmtop/profiler/alert"
	"github.com/llmtop/llmtop/profiler/recording"
	"github.com/llmtop/llmtop/ui/grid"
)

// Status is what the top row shows beside the snapshot: the state of llmtop itself.
type Status struct {
	FPS    int
	Paused bool
	Engine string // position and name of the engine, for example "2/3 box:9000"; "" if there is only one
	Record Note
	Replay *recording.PlayStatus // nil: live
	Alerts []alert.Status
	Output Note // on the output rate of the terminal, if it is limited
}

// Note is what the header shows of a recording or of the terminal; Words is "" if there is nothing to show.
type Note struct {
	Words string
	Why   string // reason, sanitised, shown if there is room
	Style grid.Style
}
