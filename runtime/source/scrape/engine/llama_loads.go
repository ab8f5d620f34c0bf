package engine

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
)

// loadMessage is a message from /models/sse of a llama-server with several models.
type loadMessage struct {
	Model string `json:"model"`
	Event string `json:"event"` // "model_status", "status_change", "download_progress", "download_finished", "download_failed", …
	Data  struct {
		Status   string          `json:"status"` // "loading", "loaded", "sleeping", "unloaded", "downloading"
		Exit     int             `json:"exit_code"`
		Progress json.RawMessage `json:"progress"`
	} `json:"data"`
}

// Stages that the server does not name itself. It names text_model, spec_model and mmproj_model.
const (
	stageStart    = "start"  // of the process, until it reports its first part
	stageSetUp    = "set-up" // after a part: context creation and warm-up
	stageDownload = "download"
)

// Limits of the model loads that are kept.
const (
	maxLoads     = 16 // concurrent loads
	maxStages    = 8  // per model
	maxStageName = 24 // bytes
	maxModelName = 96 // bytes shown
	maxModelKey  = 1 << 10
	reportEvery  = event.Time(250 * time.Millisecond)
	minSetUp     = event.Time(time.Millisecond)
)

// loadTracker derives load stages from the messages of a server. Times are those at which messages arrived.
type loadTracker struct {
	emit    func(event.Event)
	logf    func(format string, args ...any)
	byModel map[string]*modelLoad // by model name, at most maxModelKey bytes of it
	last    *modelLoad            // the load with the latest message; nil: none in progress
}

// modelLoad is the load of one model.
type modelLoad struct {
	name       string // as shown
	prefix     string // of its stage names, if another model loads at the same time; "" otherwise
	began      event.Time
	startSeen  bool // the start of the load was seen
	stage      string
	stageBegan event.Time      // start of the current stage
	share      float64         // completed share of the stage, 0..1; below 0: not reported
	emitted    event.Time      // when the stage was emitted last
	firstStage bool            // the current stage is the first one
	ended      map[string]bool // names of completed stages
}

// handle processes a message that arrived at the given time. It reports whether the set of loaded models has changed.
func (l *loadTracker) handle(m *loadMessage, at event.Time) (changed bool) {
	m.Model = truncate(m.Model, maxModelKey)
	switch {
	case m.Event == "download_progress", m.Data.Status == "downloading":
		if load := l.begin(m.Model, stageDownload, at); load != nil {
			l.advance(load, stageDownload, downloadShare(m.Data.Progress), at)
		}
	case m.Event == "download_finished":
		return l.end(m.Model, at, "downloaded in")
	case m.Event == "download_failed":
		return l.end(m.Model, at, "download failed after")
	case m.Data.Status == "loading":
		l.progressed(m, at)
	case m.Data.Status == "loaded":
		l.end(m.Model, at, "loaded in")
		return true
	case m.Data.Status == "unloaded" && l.byModel[m.Model] != nil:
		if m.Data.Exit != 0 {
			return l.end(m.Model, at, "failed to load: the process exited after")
		}
		return l.end(m.Model, at, "unloaded before loading finished, after")
	case m.Data.Status != "", m.Event == "model_remove", m.Event == "models_reload":
		return true
	}
	return false
}

// progressed processes the progress of a model load.
func (l *loadTracker) progressed(m *loadMessage, at event.Time) {
	var p struct {
		Current string  `json:"current"`
		Value   float64 `json:"value"`
	}
	_ = json.Unmarshal(m.Data.Progress, &p) // a message without progress only marks the start of the load
	if load := l.byModel[m.Model]; load != nil && load.stage == stageDownload {
		l.end(m.Model, at, "downloaded in")
	}
	first := stageStart
	if p.Current != "" {
		first = stageName(p.Current)
	}
	load := l.begin(m.Model, first, at)
	if load != nil && p.Current != "" {
		l.advance(load, stageName(p.Current), min(max(p.Value, 0), 1), at)
	}
}

// truncate returns at most most bytes of text, without partial characters.
func truncate(text string, most int) string {
	return strings.ToValidUTF8(text[:min(len(text), most)], "")
}

// stageName replaces unexpected characters of a stage name from the server.
func stageName(reported string) string {
	name := []byte(reported[:min(len(reported), maxStageName)])
	for i, b := range name {
		if (b < 'a' || b > 'z') && (b < 'A' || b > 'Z') && (b < '0' || b > '9') && b != '-' {
			name[i] = '_'
		}
	}
	return string(name)
}

// downloadShare returns the downloaded share of all files, 0..1; below 0 if it is not reported.
func downloadShare(progress json.RawMessage) float64 {
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

// begin returns the load of a model. It starts a new one in the given stage if necessary, and returns nil above maxLoads.
func (l *loadTracker) begin(model, stage string, at event.Time) *modelLoad {
	load := l.byModel[model]
	switch {
	case load != nil:
	case len(l.byModel) >= maxLoads:
		return nil
	default:
		load = &modelLoad{
			name: truncate(model, maxModelName), began: at, startSeen: stage == stageStart || stage == stageDownload,
			stage: stage, stageBegan: at, share: -1, firstStage: len(l.byModel) == 0, ended: make(map[string]bool),
		}
		if len(l.byModel) > 0 {
			load.prefix = load.name + ": "
		}
		if l.byModel == nil {
			l.byModel = make(map[string]*modelLoad)
		}
		l.byModel[model] = load
	}
	l.last = load
	return load
}

// advance sets the stage of a load and its completed share. It ends the previous stage.
func (l *loadTracker) advance(load *modelLoad, stage string, share float64, at event.Time) {
	if load.ended[stage] || len(load.ended) >= maxStages {
		return
	}
	if load.stage != stage {
		l.endStage(load, at)
		load.stage, load.stageBegan = stage, at
	}
	load.share = share
	switch {
	case share >= 1 && stage != stageDownload: // a download reaches 1 once per file
		l.endStage(load, at)
		load.stage, load.stageBegan, load.share = stageSetUp, at, -1
	case at-load.emitted >= reportEvery:
		l.emitStage(load, at)
	}
}

// endStage ends the current stage of a load.
func (l *loadTracker) endStage(load *modelLoad, at event.Time) {
	if load.stage == stageSetUp && at-load.stageBegan < minSetUp {
		return
	}
	l.emitStage(load, at)
	load.firstStage = false
	if load.stage != stageSetUp { // set-up can follow each of the others
		load.ended[load.stage] = true
	}
}

// emitStage emits the current stage with its duration so far.
func (l *loadTracker) emitStage(load *modelLoad, at event.Time) {
	load.emitted = at
	name := load.prefix + load.stage
	if load.stage == stageStart {
		name = stageStart + " of " + load.name
	}
	e := event.Event{Kind: event.KindStage, Stage: event.StageLoadPart, Layer: -1, Text: name, At: at, Dur: int64(at - load.stageBegan)}
	if load.firstStage {
		e.Stage = event.StageLoadOpen // starts a new waterfall
	}
	l.emit(e)
}

// end ends the load of a model and logs how it ended.
func (l *loadTracker) end(model string, at event.Time, how string) bool {
	load := l.byModel[model]
	if load == nil {
		return false
	}
	l.endStage(load, at)
	delete(l.byModel, model)
	l.last = nil
	e := event.Event{Kind: event.KindStage, Stage: event.StageLoad, Layer: -1, At: at, Dur: int64(at - load.began)}
	for _, other := range l.byModel { // the waterfall continues
		l.last, e.Stage, e.Text = other, event.StageLoadPart, load.name+": total"
	}
	l.emit(e)
	seen := ""
	if !load.startSeen {
		seen = " (start not seen)"
	}
	l.logf("%s %s %.3g s%s", load.name, how, time.Duration(at-load.began).Seconds(), seen)
	return true
}

// progress returns the stage of the latest load and its completed share; false if no load is in progress or it has not
// reported its share.
func (l *loadTracker) progress() (stage string, share float64, ok bool) {
	if l.last == nil || l.last.share < 0 {
		return "", 0, false
	}
	return l.last.stage, l.last.share, true
}
