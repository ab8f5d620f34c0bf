package ui

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/metric"
	"github.com/llmtop/llmtop/profiler/report"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/profiler/verdict"
	"github.com/llmtop/llmtop/theme"
)

// number matches a number and its unit, as the screen and reports write them; amount is the same as one group.
const (
	number = `(\d+(?: \d{3})?(?:\.\d+)?)(?: ?(ns|µs|us|ms|s|k|M)\b)?`
	amount = `(\d+(?: \d{3})?(?:\.\d+)?(?: ?(?:ns|µs|us|ms|s|k|M)\b)?)`
)

var oneNumber = regexp.MustCompile(`^` + number + `$`)

// said is a number as it is shown somewhere: in its base unit, with half a unit of its last digit.
type said struct {
	v, half float64
	where   string
}

// claims are numbers by what they are said to be, for example "queue of #3".
type claims struct {
	t  *rapid.T
	of map[string][]said
}

// add adds a number; words that are none, like "-", are skipped.
func (c *claims) add(what, words, where string) {
	m := oneNumber.FindStringSubmatch(strings.TrimRight(strings.TrimSpace(words), " ✓✗*"))
	if m == nil {
		return
	}
	digits := strings.ReplaceAll(m[1], " ", "")
	v, err := strconv.ParseFloat(digits, 64)
	if err != nil {
		c.t.Fatalf("%s in %s: %q", what, where, words)
	}
	size := map[string]float64{"": 1, "ns": 1e-9, "µs": 1e-6, "us": 1e-6, "ms": 1e-3, "s": 1, "k": 1e3, "M": 1e6}[m[2]]
	_, decimals, _ := strings.Cut(digits, ".")
	c.of[what] = append(c.of[what], said{v * size, size * math.Pow(10, -float64(len(decimals))) / 2, where})
}

// exactly adds a number with all its digits.
func (c *claims) exactly(what string, v float64, where string) {
	c.of[what] = append(c.of[what], said{v, math.Abs(v) * 1e-9, where})
}

// check fails if two values of one number differ by more than their rounding.
func (c *claims) check() {
	for what, all := range c.of {
		for _, a := range all[1:] {
			if b := all[0]; math.Abs(a.v-b.v) > (a.half+b.half)*1.001+1e-9 {
				c.t.Fatalf("%s is %v in %s, and %v in %s", what, b.v, b.where, a.v, a.where)
			}
		}
	}
}

// all adds the groups of each match of a pattern in a text. What each is, is named in order.
func (c *claims) all(pattern, text, where string, what ...string) {
	for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
		for i, name := range what {
			c.add(name, m[1+i], where)
		}
	}
}

// screen adds what the views say.
func (c *claims) screen(s *store.Snapshot, w metric.Window, width, height int) {
	a := open(s, theme.TrueColour, false, width, height)
	for a.panes.Window != w {
		a.press("w")
	}
	in := " in the " + w.String()
	where := func(view string) string { return fmt.Sprintf("%s at %dx%d", view, width, height) }
	text := a.screen()
	c.all(`p50 +`+amount+` +p95 +`+amount+` +p99 +`+amount+` .*stalls +`+amount, text, where("the overview"), "ITL p50"+in, "ITL p95"+in, "ITL p99"+in, "stalls"+in)
	c.all(`warm p50 `+amount+`  p95 `+amount+`  p99 `+amount, text, where("the overview"), "TTFT p50"+in, "TTFT p95"+in, "TTFT p99"+in)
	if newest := regexp.MustCompile(`#(\d+) [a-z ]+[\d.]+ % of TTFT`).FindStringSubmatch(text); newest != nil {
		c.all(`■ queue +▇* +[\d.]+ % +`+amount, text, where("the overview"), "queue of #"+newest[1])
	}
	c.machine(text, where("the overview"), `self`, `│ CPU`, `│ engine`, `│ RSS`, `run wait`)
	c.imbalance(`L(\d+) most imbalanced: expert \d+ takes ([\d.]+)×`, text, w, where("the overview"))
	a.press("6")
	c.machine(a.screen(), where("System"), `self`, `│ CPU`, `│ engine CPU`, `│ engine RSS`, `│ run wait`)
	a.press("5")
	text = a.screen()
	c.imbalance(`L(\d+) most imbalanced: expert \d+ takes ([\d.]+)×`, text, metric.Minute, where("Experts"))
	c.imbalance(`│ L(\d+)  hottest e\d+ at [\d.]+ %   max/mean ([\d.]+) `, text, metric.Minute, where("Experts"))
	a.press("2")
	c.requests(a.screen(), where("Requests"))
	a.press("home")
	for i := range s.Requests {
		r := a.requests.List.Rows[a.requests.Selected]
		id := fmt.Sprintf(" of #%d", r.ID)
		a.press("3")
		text, at := a.screen(), where("Request")
		c.all(`TTFT `+amount, firstFacts(text), at, "TTFT"+id)
		c.all(`TPOT `+amount, firstFacts(text), at, "TPOT"+id)
		c.all(`E2EL `+amount, firstFacts(text), at, "E2EL"+id)
		c.all(`ITL p99 `+amount, firstFacts(text), at, "ITL p99"+id)
		c.all(`decode `+amount+`/s`, firstFacts(text), at, "decode rate"+id)
		if r.TTFT.OK() {
			c.all(`■ queue +▇* +`+amount+` +[\d.]+ %`, text, at, "queue"+id)
			c.all(`= TTFT +`+amount, text, at, "TTFT"+id)
			c.all(`= E2EL +`+amount, text, at, "E2EL"+id)
		}
		if a.press("2", "down"); i == 2 { // the others are drawn alike
			break
		}
	}
	a.press("4")
	text = a.screen()
	for _, row := range store.Latencies {
		c.all(`│ `+row.Title+strings.Repeat(` +`+amount, 7)+`$`, percentiles(text, row.Title), where("Latency"), row.Name+" p50"+in, row.Name+" p90"+in, row.Name+" p95"+in, row.Name+" p99"+in,
			row.Name+" max"+in, row.Name+" mean"+in, row.Name+" samples"+in)
	}
	c.all(`met by \d.*? % of (\d+) warm requests`, text, where("Latency"), "TTFT samples"+in)
	c.all(`TTFT  (\d+) warm requests`, text, where("the histogram of Latency"), "TTFT samples"+in)
}

// machine adds the newest values of the machine, after their names: llmtop's own CPU, that of the machine and of the
// engine, the engine's memory, and the time that it waited for a core.
func (c *claims) machine(text, where string, own, cpu, engine, rss, wait string) {
	for pattern, what := range map[string]string{
		own + ` ([\d.]+) %`: "llmtop's CPU", cpu + ` +([\d.]+) %`: "CPU of the machine", engine + ` +([\d.]+) cores`: "CPU of the engine",
		rss + ` +([\d.]+) MB`: "memory of the engine", wait + ` +([\d.]+) %`: "run wait",
	} {
		c.all(pattern, text, where, what)
	}
}

// imbalance adds max/mean of a layer by a pattern of both.
func (c *claims) imbalance(pattern, text string, w metric.Window, where string) {
	for _, m := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
		c.add("imbalance of layer "+m[1]+" in the "+w.String(), m[2], where)
	}
}

// percentiles returns the row of a latency, up to the column of its samples; "" without that column.
func percentiles(text, title string) string {
	end := 0
	for line := range strings.Lines(text) {
		if before, _, ok := strings.Cut(line, "samples"); ok && strings.Contains(before, "p50") {
			end = len([]rune(before)) + len("samples")
		}
		if row := []rune(line); end > 0 && end <= len(row) && strings.HasPrefix(line, "│ "+title) {
			return string(row[:end])
		}
	}
	return ""
}

// firstFacts returns the row of a request's numbers, in which a name is followed by its number.
func firstFacts(text string) string {
	for line := range strings.Lines(text) {
		if strings.Contains(line, "│ TTFT ") && strings.Contains(line, "E2EL ") {
			return line
		}
	}
	return ""
}

// requests adds the numbers of the table of requests, whose columns are aligned at their right.
func (c *claims) requests(text, where string) {
	var head []rune
	for line := range strings.Lines(text) {
		row := []rune(line)
		if strings.Contains(line, "state") && strings.Contains(line, "TTFT") {
			head = row
		}
		id := regexp.MustCompile(`^│ [→ ] #(\d+) `).FindStringSubmatch(line)
		if id == nil || head == nil {
			continue
		}
		for title, what := range map[string]string{"queue": "queue", "TTFT": "TTFT", "TPOT": "TPOT", "p99 ITL": "ITL p99", "E2EL": "E2EL", "tok/s": "decode rate"} {
			end := strings.Index(string(head), title+" ")
			if end < 0 {
				continue
			}
			at := len([]rune(string(head)[:end])) + len(title)
			from := at
			for from > 1 && !(row[from-1] == ' ' && row[from-2] == ' ') {
				from--
			}
			c.add(what+" of #"+id[1], strings.TrimLeft(string(row[from:at]), "✗ "), where)
		}
	}
}

// report adds what a report says, in each format. Its percentiles are those of the session.
func (c *claims) report(r *report.Report) {
	text := func(write func(io.Writer) error) string {
		var b bytes.Buffer
		if err := write(&b); err != nil {
			c.t.Fatal(err)
		}
		return b.String()
	}
	columns := map[string]string{"ttft_s": "TTFT", "stil_s": "queue", "tpot_s": "TPOT", "e2el_s": "E2EL", "itl_s.p99": "ITL p99", "decode_tokens_per_s": "decode rate"}
	for line := range strings.Lines(text(r.WriteJSONL)) {
		var q map[string]any
		if err := json.Unmarshal([]byte(line), &q); err != nil {
			c.t.Fatal(err)
		}
		for path, what := range columns {
			name, member, _ := strings.Cut(path, ".")
			v := q[name]
			if m, ok := v.(map[string]any); ok {
				v = m[member]
			}
			if n, ok := v.(float64); ok {
				c.exactly(fmt.Sprintf("%s of #%v", what, q["id"]), n, "JSON")
			}
		}
		if parts, ok := q["ttft_components_s"].(map[string]any); ok && parts["queue"] != nil {
			c.exactly(fmt.Sprintf("queue of #%v", q["id"]), parts["queue"].(float64), "the components in JSON")
		}
	}
	rows, err := csv.NewReader(strings.NewReader(text(r.WriteCSV))).ReadAll()
	if err != nil {
		c.t.Fatal(err)
	}
	for _, row := range rows[1:] {
		for i, title := range rows[0] {
			v, err := strconv.ParseFloat(row[i], 64)
			if what, ok := columns[title]; ok && err == nil {
				c.exactly(what+" of #"+row[0], v, "CSV")
			}
		}
	}
	cells := map[string]string{"queue": "queue", "TTFT": "TTFT", "TPOT": "TPOT", "E2EL": "E2EL", "tokens/s": "decode rate"}
	for format, table := range map[string][][]string{
		"text":     split(text(r.WriteText), regexp.MustCompile(` {2,}`)),
		"Markdown": split(strings.ReplaceAll(text(r.WriteMarkdown), `\`, ""), regexp.MustCompile(` *\| *`)),
		"HTML":     split(html.UnescapeString(strings.ReplaceAll(text(r.WriteHTML), "</tr>", "\n")), regexp.MustCompile(`(?:</?t[dhr][^>]*>)+`)),
	} {
		var head []string
		for _, row := range table {
			if len(row) > 8 && row[0] == "id" && row[1] == "state" {
				head = row
				continue
			}
			if _, err := strconv.Atoi(row[0]); err != nil || len(row) != len(head) {
				continue
			}
			for i, title := range head {
				if what, ok := cells[title]; ok {
					c.add(what+" of #"+row[0], row[i], format)
				}
			}
		}
	}
	for id := range store.NumLatencies {
		d := r.Latency(id)
		if d == nil {
			continue
		}
		latency := store.Latencies[id].Name
		c.exactly(latency+" samples in the session", float64(d.Count), "JSON")
		for name, v := range map[string]event.Reading{"p50": d.P50, "p90": d.P90, "p95": d.P95, "p99": d.P99, "max": d.Max, "mean": d.Mean} {
			c.exactly(latency+" "+name+" in the session", v.V, "JSON")
		}
	}
}

// split returns the words of each line, without those of its margins.
func split(text string, at *regexp.Regexp) (rows [][]string) {
	for line := range strings.Lines(text) {
		words := at.Split(strings.TrimSpace(line), -1)
		for len(words) > 1 && words[0] == "" {
			words = words[1:]
		}
		for len(words) > 1 && words[len(words)-1] == "" {
			words = words[:len(words)-1]
		}
		rows = append(rows, words)
	}
	return rows
}

// insights adds what the insights of now say.
func (c *claims) insights(s *store.Snapshot) {
	for _, v := range s.Verdicts {
		if !strings.HasSuffix(v.Text, verdict.Outdated) {
			c.all(`Token gaps: p99 `+amount+` is .*x p50 `+amount+` in the last minute`, v.Text, "insights", "ITL p99 in the last 1 min", "ITL p50 in the last 1 min")
			if id := regexp.MustCompile(`request #(\d+)`).FindStringSubmatch(v.Evidence); id != nil {
				c.all(`TTFT `+amount, v.Text, "insights", "TTFT of #"+id[1])
			}
			c.imbalance(`L(\d+) is imbalanced: .*max/mean ([\d.]+) in the last minute`, v.Text, metric.Minute, "insights")
		}
	}
}

// session is a random session.
type session struct {
	store *store.Store
	now   event.Time
	draw  func(name string, most time.Duration) event.Time

	picks  []uint64 // router picks of decoding so far
	tokens uint64
}

func newSession(t *rapid.T) *session {
	s := &session{}
	wall := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	s.store = store.New(store.Options{
		Now: func() event.Time { return s.now }, Wall: func() time.Time { return wall.Add(time.Duration(s.now)) },
		Targets: store.Targets{TTFT: 200 * time.Millisecond}, Keep: store.DefaultKeep,
	})
	s.draw = func(name string, most time.Duration) event.Time {
		return event.Time(rapid.Int64Range(0, int64(most)).Draw(t, name))
	}
	return s
}

func (s *session) emit(e event.Event) {
	e.At, e.Layer = s.now, -1
	s.store.Emit(e)
}

func (s *session) stage(id event.RequestID, stage event.Stage, took event.Time) {
	s.now += took
	s.emit(event.Event{Kind: event.KindStage, Req: id, Stage: stage, Dur: int64(took), N: 8})
}

// sample emits a sample of the machine and counts of router picks.
func (s *session) sample(t *rapid.T) {
	reading := func(name string, most float64) event.Reading {
		return event.MeasuredValue(rapid.Float64Range(0, most).Draw(t, name))
	}
	cpu := rapid.Float64Range(0, 1).Draw(t, "CPU")
	s.emit(event.Event{Kind: event.KindHost, Data: &event.Host{
		Interval: int64(time.Second), CPU: event.MeasuredValue(cpu), Cores: []float64{cpu, cpu},
		Engine: event.Process{PID: 7, CPU: reading("CPU of the engine", 2), RSS: reading("memory", 5e8), RunWait: reading("run wait", 1)},
		Self:   event.Process{PID: 9, CPU: reading("CPU of llmtop", 1), RSS: reading("memory of llmtop", 5e7)},
	}})
	const layers, experts, used = 3, 8, 2
	if s.picks == nil {
		s.picks = make([]uint64, layers*experts)
	}
	for l := range layers {
		hot := rapid.IntRange(0, experts-1).Draw(t, "hot")
		for pick := range 200 * used {
			s.picks[l*experts+(hot+pick%3*pick)%experts]++
		}
	}
	s.tokens += 200
	s.emit(event.Event{Kind: event.KindExperts, Data: &event.Experts{
		Layers: layers, Experts: experts, Used: used, Prompt: make([]uint64, layers*experts), Decode: slices.Clone(s.picks), DecodeTokens: s.tokens,
	}})
}

// request plays a request. The first one waits for the load of the model.
func (s *session) request(t *rapid.T, id event.RequestID) {
	s.emit(event.Event{Kind: event.KindRequest, Req: id, State: event.StateQueued, Data: &event.Request{Label: "kind", MaxTokens: 400, Cold: id == 1}})
	waited := s.draw("queue", 300*time.Millisecond)
	if id == 1 {
		load := s.draw("load", 3*time.Second)
		s.stage(id, event.StageLoad, load)
		s.emit(event.Event{Kind: event.KindModel, Dur: int64(load), Data: &event.Model{Name: "m", Architecture: "llama", Layers: 3, Experts: 8, ExpertsUsed: 2}})
	}
	s.now += waited
	s.emit(event.Event{Kind: event.KindRequest, Req: id, State: event.StateDispatched})
	if rapid.Bool().Draw(t, "queue reported") {
		s.emit(event.Event{Kind: event.KindStage, Req: id, Stage: event.StageQueue, Dur: int64(waited)})
	}
	s.stage(id, event.StageTokenize, s.draw("tokenize", time.Millisecond))
	s.stage(id, event.StagePrompt, s.draw("prompt", 250*time.Millisecond))
	gap, late := s.draw("gap", 5*time.Millisecond)+1000, rapid.IntRange(2, 400).Draw(t, "late")
	n := rapid.IntRange(1, 150).Draw(t, "tokens")
	for i := range n {
		s.now += gap + gap*event.Time(i%7)/10
		if i%late == late-1 {
			s.now += 20 * gap
		}
		s.emit(event.Event{Kind: event.KindToken, Req: id, N: 1, ID: 5, Index: int32(i)})
	}
	if !rapid.Bool().Draw(t, "still running") {
		s.emit(event.Event{Kind: event.KindRequest, Req: id, State: event.StateFinished, Data: &event.Outcome{Reason: "stop", Prompt: 8, Generated: n}})
	}
}

// TestOneNumberHasOneValue checks over random sessions that numbers which a screen, an insight or a report says more
// than once are equal in their printed precision.
func TestOneNumberHasOneValue(t *testing.T) {
	sizes := [][2]int{{80, 24}, {120, 36}, {160, 45}, {200, 60}}
	rapid.Check(t, func(t *rapid.T) {
		s := newSession(t)
		s.emit(event.Event{Kind: event.KindEngine, Data: &event.EngineInfo{
			Name: "native", State: event.EngineReady, Slots: 1, Caps: event.CapStages | event.CapTokens | event.CapQueue | event.CapExperts, Device: event.Device{Name: "CPU", Host: true},
		}})
		for id := range event.RequestID(rapid.IntRange(1, 6).Draw(t, "requests")) {
			s.request(t, id+1)
			s.sample(t)
			size, w := rapid.SampledFrom(sizes).Draw(t, "size"), metric.Window(rapid.IntRange(0, int(metric.NumWindows)-1).Draw(t, "window"))
			snap := s.store.Snapshot()
			c := &claims{t, map[string][]said{}}
			c.report(report.Build(report.Meta{}, snap))
			c.insights(snap)
			c.screen(snap, w, size[0], size[1])
			c.check()
			s.now += s.draw("pause", 20*time.Second)
		}
	})
}
