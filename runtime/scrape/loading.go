package scrape

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
)

// loadMessage is one of those that a llama-server with several models sends to whoever follows /models/sse.
type loadMessage struct {
	Model string `json:"model"`
	Event string `json:"event"` // "model_status", "status_change", "download_progress", "download_finished", "download_failed", …
	Data  struct {
		Status   string          `json:"status"` // "loading", "loaded", "sleeping", "unloaded", "downloading"
		Exit     int             `json:"exit_code"`
		Progress json.RawMessage `json:"progress"`
	} `json:"data"`
}

// The stages that a server does not name itself. What it names are text_model, spec_model and mmproj_model.
const (
	stageStart    = "start"  // of the process, until that tells of its first part
	stageSetUp    = "set-up" // after a part: the context and the warm-up
	stageDownload = "download"
)

// The bounds of what is kept of loads.
const (
	maxLoads      = 16 // models at a time
	maxStages     = 8  // of one model
	maxStageName  = 24 // bytes
	maxModelName  = 96 // bytes that are shown
	maxModelKey   = 1 << 10
	retellAfter   = event.Time(250 * time.Millisecond)
	shortestSetUp = event.Time(time.Millisecond)
)

// loading makes the stages of loads out of what a server tells of them. The moments are those at which it was heard.
type loading struct {
	emit func(event.Event)
	say  func(format string, args ...any)
	of   map[string]*modelLoad // by the model's name, of which maxModelKey bytes count
	last *modelLoad            // the one that has told of itself last; nil: none is on its way
}

// modelLoad is the load of one model.
type modelLoad struct {
	name   string // as it is shown
	prefix string // before the names of its stages, where another model is being loaded at the same time
	began  event.Time
	whole  bool // its beginning was seen
	stage  string
	since  event.Time      // of stage
	share  float64         // of stage that is done, 0..1; below 0: not told
	told   event.Time      // when stage was told last
	first  bool            // stage is the first one
	done   map[string]bool // stages that have ended
}

// take takes in a message that came at a moment. It reports whether models have come or gone.
func (l *loading) take(m *loadMessage, at event.Time) (changed bool) {
	m.Model = cut(m.Model, maxModelKey)
	switch {
	case m.Event == "download_progress", m.Data.Status == "downloading":
		if on := l.begin(m.Model, stageDownload, at); on != nil {
			l.step(on, stageDownload, downloaded(m.Data.Progress), at)
		}
	case m.Event == "download_finished":
		return l.end(m.Model, at, "was downloaded in")
	case m.Event == "download_failed":
		return l.end(m.Model, at, "could not be downloaded: it broke off after")
	case m.Data.Status == "loading":
		l.loads(m, at)
	case m.Data.Status == "loaded":
		l.end(m.Model, at, "was loaded in")
		return true
	case m.Data.Status == "unloaded" && l.of[m.Model] != nil:
		if m.Data.Exit != 0 {
			return l.end(m.Model, at, "could not be loaded: its process ended after")
		}
		return l.end(m.Model, at, "was unloaded before it was loaded, after")
	case m.Data.Status != "", m.Event == "model_remove", m.Event == "models_reload":
		return true
	}
	return false
}

// loads takes in that a model is being loaded, and how far.
func (l *loading) loads(m *loadMessage, at event.Time) {
	var p struct {
		Current string  `json:"current"`
		Value   float64 `json:"value"`
	}
	_ = json.Unmarshal(m.Data.Progress, &p) // without progress nothing but the load's beginning is told
	if on := l.of[m.Model]; on != nil && on.stage == stageDownload {
		l.end(m.Model, at, "was downloaded in")
	}
	first := stageStart
	if p.Current != "" {
		first = stageName(p.Current)
	}
	on := l.begin(m.Model, first, at)
	if on != nil && p.Current != "" {
		l.step(on, stageName(p.Current), min(max(p.Value, 0), 1), at)
	}
}

// cut is the beginning of a text, of whole characters.
func cut(text string, most int) string {
	return strings.ToValidUTF8(text[:min(len(text), most)], "")
}

// stageName is a name of the server's with nothing in it but what such names are made of.
func stageName(told string) string {
	name := []byte(told[:min(len(told), maxStageName)])
	for i, b := range name {
		if (b < 'a' || b > 'z') && (b < 'A' || b > 'Z') && (b < '0' || b > '9') && b != '-' {
			name[i] = '_'
		}
	}
	return string(name)
}

// downloaded is the share of all files that has come; below 0 if that is not told.
func downloaded(progress json.RawMessage) float64 {
	var files map[string]struct {
		Done  float64 `json:"done"`
		Total float64 `json:"total"`
	}
	if json.Unmarshal(progress, &files) != nil {
		return -1
	}
	done, total := 0.0, 0.0
	for _, f := range files {
		done, total = done+max(f.Done, 0), total+max(f.Total, 0)
	}
	if total <= 0 {
		return -1
	}
	return min(done/total, 1)
}

// begin is the load of a model, a new one in its first stage if none is known; nil if there are too many.
func (l *loading) begin(model, stage string, at event.Time) *modelLoad {
	on := l.of[model]
	switch {
	case on != nil:
	case len(l.of) >= maxLoads:
		return nil
	default:
		on = &modelLoad{
			name: cut(model, maxModelName), began: at, whole: stage == stageStart || stage == stageDownload,
			stage: stage, since: at, share: -1, first: len(l.of) == 0, done: make(map[string]bool),
		}
		if len(l.of) > 0 {
			on.prefix = on.name + ": "
		}
		if l.of == nil {
			l.of = make(map[string]*modelLoad)
		}
		l.of[model] = on
	}
	l.last = on
	return on
}

// step says how far a stage is, which another one may have preceded.
func (l *loading) step(on *modelLoad, stage string, share float64, at event.Time) {
	if on.done[stage] || len(on.done) >= maxStages {
		return
	}
	if on.stage != stage {
		l.close(on, at)
		on.stage, on.since = stage, at
	}
	on.share = share
	switch {
	case share >= 1 && stage != stageDownload: // files of a download come one after another
		l.close(on, at)
		on.stage, on.since, on.share = stageSetUp, at, -1
	case at-on.told >= retellAfter:
		l.tell(on, at)
	}
}

// close ends the stage that a load is in.
func (l *loading) close(on *modelLoad, at event.Time) {
	if on.stage == stageSetUp && at-on.since < shortestSetUp {
		return
	}
	l.tell(on, at)
	on.first = false
	if on.stage != stageSetUp { // which follows each of the others
		on.done[on.stage] = true
	}
}

// tell tells the stage that a load is in as it is by now.
func (l *loading) tell(on *modelLoad, at event.Time) {
	on.told = at
	name := on.prefix + on.stage
	if on.stage == stageStart {
		name = stageStart + " of " + on.name
	}
	e := event.Event{Kind: event.KindStage, Stage: event.StageLoadPart, Layer: -1, Text: name, At: at, Dur: int64(at - on.since)}
	if on.first {
		e.Stage = event.StageLoadOpen // with which a waterfall begins
	}
	l.emit(e)
}

// end ends the load of a model with a word on how.
func (l *loading) end(model string, at event.Time, how string) bool {
	on := l.of[model]
	if on == nil {
		return false
	}
	l.close(on, at)
	delete(l.of, model)
	l.last = nil
	e := event.Event{Kind: event.KindStage, Stage: event.StageLoad, Layer: -1, At: at, Dur: int64(at - on.began)}
	for _, other := range l.of { // then the waterfall goes on
		l.last, e.Stage, e.Text = other, event.StageLoadPart, on.name+": in all"
	}
	l.emit(e)
	seen := ""
	if !on.whole {
		seen = ", of which the beginning was not seen"
	}
	l.say("%s %s %.3g s%s", on.name, how, time.Duration(at-on.began).Seconds(), seen)
	return true
}

// far is the load that has told of itself last: how much of its stage is done. False if none is on its way, or it has not told.
func (l *loading) far() (stage string, share float64, ok bool) {
	if l.last == nil || l.last.share < 0 {
		return "", 0, false
	}
	return l.last.stage, l.last.share, true
}
