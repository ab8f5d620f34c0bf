package engines

import (
	"strconv"
	"strings"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/theme"
	"github.com/llmtop/llmtop/ui/chrome"
	"github.com/llmtop/llmtop/ui/grid"
	"github.com/llmtop/llmtop/ui/pane"
	"github.com/llmtop/llmtop/ui/sanitize"
)

// Row is one engine of the list.
type Row struct {
	Name     string // sanitised
	Snapshot *store.Snapshot
	Shown    bool // shown in the other views
}

// Ordinal returns the position i, from 0 on, among n as "1/n".
func Ordinal(i, n int) string { return strconv.Itoa(i+1) + "/" + strconv.Itoa(n) }

// DrawHeader draws the top row of the list: the number of engines and of those not connected.
func DrawHeader(a grid.Area, f *pane.Frame, rows []Row, t *chrome.Status) {
	l := chrome.DrawBrand(a, f)
	if t.Replay != nil {
		chrome.ReplayState(&l, f, t.Replay)
	}
	l.Put(pane.Loud, pane.CountOf(uint64(len(rows)), "engine", "engines")).Gap(2)
	counts, wordOf := map[string]int{}, listWord
	if isFleet(rows) {
		wordOf = linkWord
	}
	for _, r := range rows {
		if r.Snapshot == chrome.NotKept {
			counts[chrome.NotKeptWord]++
		}
		if _, _, _, broken := chrome.LinkState(r.Snapshot, f); broken {
			counts[wordOf(r.Snapshot)]++
		}
	}
	for _, p := range []struct {
		word string
		st   grid.Style
	}{{"STALE", pane.Watch}, {"WAITING", pane.Watch}, {chrome.Unreachable, pane.Bad}, {"DISCONNECTED", pane.Bad}, {"REFUSED", pane.Bad}, {chrome.NotKeptWord, pane.Watch}} {
		if n := counts[p.word]; n > 0 {
			l.Put(p.st.With(grid.Bold), strconv.Itoa(n)+" "+p.word).Gap(2)
		}
	}
	if words, _ := t.FiringAlerts(); words != "" && grid.Width(words) <= l.Room() {
		l.Put(pane.Bad.With(grid.Bold), words).Gap(2)
	}
	if w := grid.Width(t.Record.Words); w > 0 && w+1 <= l.Room() {
		a.Right(a.W-1, 0, t.Record.Style, t.Record.Words)
	}
	a.Paint(8, 0, a.W-8, theme.Select, 0)
}

// linkWord returns the state of a broken connection in capitals.
func linkWord(s *store.Snapshot) string { return strings.ToUpper(s.Engine.Remote.Link.String()) }

// listWord is linkWord, as the other views name it. The states of replicas are words to filter by: there "disconnected"
// finds also those that have never answered.
func listWord(s *store.Snapshot) string {
	if s.Engine.Remote.Link == event.LinkDisconnected && s.NeverReached() {
		return chrome.Unreachable
	}
	return linkWord(s)
}

// engineDetail describes one engine: name, version, device and model, losses, connection problems and capabilities.
func engineDetail(a grid.Area, f *pane.Frame, r Row) {
	s, gl := r.Snapshot, f.Skin.Glyphs
	e := &s.Engine
	words := sanitize.Line(e.Name)
	for _, more := range []string{sanitize.Line(e.Version), sanitize.Line(e.Device.Name), modelName(s)} {
		if more != "" {
			words += " " + string(gl.Bullet) + " " + more
		}
	}
	a.Elide(0, 0, a.W, pane.Plain, words, gl.Ellipsis)
	y := 1
	if !s.NeverReached() {
		loss, whole := chrome.DropCounts(s, f)
		l := a.Line(0, y)
		if whole {
			l.Put(pane.Dim, loss)
		} else {
			l.Put(pane.Bad, loss)
		}
		if e.Remote.Restarts > 0 {
			l.Gap(2).Put(pane.Watch, "RESTARTED ("+strconv.Itoa(e.Remote.Restarts)+")")
		}
		y++
	}
	for _, n := range chrome.LinkWarnings(s, f) {
		y = a.Wrapped(0, y, pane.Bad, n)
	}
	if e.State == event.EngineStarting && (e.Remote.Link == event.LinkDisconnected || e.Remote.Link == event.LinkWaiting) {
		return // never identified
	}
	rest := a.Sub(0, y, a.W, a.H-y)
	if s.Aggregates.At > 0 {
		y += drawCounters(rest, drawOrigins(rest, s, f), s)
	} else {
		caps, derived := e.Caps, ""
		if s.Host.Sampled { // by the engine, or by llmtop
			caps |= event.CapHost
		}
		for _, name := range store.Derived(s) {
			derived += ", " + name
		}
		y += drawCounters(rest, labelledNames(rest, engineCaps(rest, f, caps), pane.Good, event.Derived.String(), derived), s)
	}
	engineMore(a.Sub(0, y+1, a.W, a.H-y-1), f, s)
}

// engineMore fills the room below: how to get what the engine does not report, its throughput and its log.
func engineMore(a grid.Area, f *pane.Frame, s *store.Snapshot) {
	y := 0
	for name, how := range f.NotReported(s) {
		if y == 0 && a.H > 1 {
			a.Text(0, 0, pane.Heading, "Not reported: how to get it")
			y++
		}
		if y < a.H {
			a.Text(0, y, pane.Dim, name)
			a.Elide(16, y, a.W-16, pane.Plain, how, f.Skin.Glyphs.Ellipsis)
			y++
		}
	}
	if y > 0 {
		y++
	}
	room := a.H - y
	if len(s.Log) > 0 {
		room -= min(room/2, len(s.Log)+2) // its lines, their heading and a gap
	}
	if h, pts := room, f.Rates(s); h >= 6 && len(pts) > 1 && s.Throughput.Decode.OK() {
		pane.DrawRatesChart(a.Sub(0, y, a.W, h), f, pts)
		y += h + 1
	}
	if len(s.Log) > 0 {
		pane.DrawLog(a.Sub(0, y, a.W, a.H-y), s, f)
	}
}

// capNames are the capabilities of an engine: data that it reports and commands that it accepts.
var capNames = [...]struct {
	caps event.Caps
	name string
}{
	{event.CapStages, "stages"},
	{event.CapTokens, "tokens"},
	{event.CapText, "text"},
	{event.CapExperts, "experts"},
	{event.CapPicks, "picks"},
	{event.CapKV, "KV"},
	{event.CapSteps, "passes"},
	{event.CapQueue, "queue"},
	{event.CapDevice, "device"},
	{event.CapHost, "host"},
	{event.CapCounters, "counters"},
	{event.CapPrompt, "accepts prompts"},
	{event.CapCancel, "cancel"},
	{event.CapPause, "pause"},
	{event.CapHooks, "hooks"},
	{event.CapSample, "samples"},
}

// engineCaps lists the capabilities with a yes or no mark, in as many rows as needed, and returns the next free row.
func engineCaps(a grid.Area, f *pane.Frame, caps event.Caps) int {
	gl := f.Skin.Glyphs
	l := a.Line(0, 0)
	for _, k := range capNames {
		mark, st, name := gl.Yes, pane.Good, pane.Plain
		if !caps.Has(k.caps) {
			mark, st, name = gl.No, pane.Dim, pane.Dim
		}
		if grid.Width(k.name)+2 > l.Room() {
			l = a.Line(0, l.Y+1)
		}
		l.Rune(st, mark).Gap(1).Put(name, k.name).Gap(2)
	}
	return l.Y + 1
}
