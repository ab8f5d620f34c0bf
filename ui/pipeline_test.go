package ui

import (
	"bytes"
	"compress/gzip"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/event/eventtest"
	"github.com/llmtop/llmtop/profiler/event/wire"
	"github.com/llmtop/llmtop/profiler/exposition"
	"github.com/llmtop/llmtop/profiler/recording"
	"github.com/llmtop/llmtop/profiler/report"
	"github.com/llmtop/llmtop/profiler/store"
	"github.com/llmtop/llmtop/runtime/source/scrape/engine"
	"github.com/llmtop/llmtop/runtime/source/scrape/gather"
	"github.com/llmtop/llmtop/theme"
)

// pipeline is a session decoded from bytes, with all of its outputs: a store, an exporter.
type pipeline struct {
	t        *testing.T
	now      event.Time
	store    *store.Store
	exporter *exposition.Exporter
	sink     event.Tee
}

func newPipeline(t *testing.T) *pipeline {
	w := &pipeline{t: t, now: event.Time(time.Second), exporter: exposition.New("test")}
	clock := func() event.Time { return w.now }
	engine := w.exporter.Add("engine", clock)
	wall := time.Date(2026, 11, 21, 9, 0, 0, 0, time.UTC)
	w.store = store.New(store.Options{
		Now: clock, Wall: func() time.Time { return wall.Add(time.Duration(w.now)) }, Past: store.NewPastBudget(store.MaxPastBytes),
		Keep: store.DefaultKeep, OnRequest: engine.Request, OnGaps: engine.Gaps,
	})
	engine.Watch(w.store.Snapshot)
	w.sink = event.Tee{w.store, engine}
	return w
}

// lines reads lines of the event protocol as a replay does: the clock follows the newest event.
func (w *pipeline) lines(text []byte) {
	var d wire.Decoder
	for line := range bytes.SplitSeq(text, []byte{'\n'}) {
		_, _ = d.Decode(line, func(e event.Event) {
			if !e.At.Plausible() || e.Dur < 0 {
				w.t.Fatalf("the decoder accepted an implausible event: %+v", e)
			}
			w.now = max(w.now, e.At)
			w.sink.Emit(e)
		})
		w.store.Drain()
	}
}

// recorded takes in what fill emits into a recording, and the events of the recording as a replay does.
func (w *pipeline) recorded(fill func(*pipeline)) {
	path := filepath.Join(w.t.TempDir(), "x.llmtop")
	first := newPipeline(w.t)
	r, err := recording.Record(path, recording.RecordOptions{
		Now: func() event.Time { return first.now }, Epoch: w.store.Snapshot().Wall.UnixNano(), Flush: time.Hour,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	first.sink = append(first.sink, r)
	fill(first)
	if err := r.Close(); err != nil {
		w.t.Fatal(err)
	}
	rec, err := recording.Open(path)
	if err != nil {
		w.t.Fatal(err)
	}
	defer rec.Close()
	var p *recording.Player
	p, err = recording.NewPlayer(rec, recording.PlayOptions{Speed: recording.Unpaced, StopAtEnd: true, Drain: func() {
		w.now = p.Now()
		w.store.Drain()
	}})
	if err != nil {
		w.t.Fatal(err)
	}
	if err := p.Run(w.t.Context(), w.sink); err != nil {
		w.t.Fatal(err)
	}
	if s := p.Status(); s.Damage != (recording.Damage{}) || s.Undecoded > 0 {
		w.t.Fatalf("the recording cannot be read back as a whole: %+v", s)
	}
}

// metrics reads scrapes in the Prometheus format of a kind of server, one second apart and separated by form feeds.
func (w *pipeline) metrics(kind engine.Kind, texts []byte) {
	g := gather.New(engine.Of(kind).Metrics)
	for text := range bytes.SplitSeq(texts, []byte{'\f'}) {
		if g.Read(bytes.NewReader(text)) != nil {
			continue
		}
		since := int64(0)
		if text := w.store.Snapshot(); text.Aggregates.At != 0 {
			since = int64(w.now - text.Aggregates.At)
		}
		w.now = min(w.now+event.Time(time.Second), event.MaxTime)
		w.sink.Emit(event.Event{Kind: event.KindAggregates, Layer: -1, At: w.now, Data: g.Report(since)})
		w.store.Drain()
	}
}

// pipelineSizes are the sizes at which every view is drawn. The last one fits all panes, so that keys have the most
// effects.
var pipelineSizes = [][2]int{{80, 24}, {20, 5}, {250, 70}, {1, 1}, {140, 50}}

// draw draws every view, every pane in full screen, and the history, of the session alone and as one of several.
func (w *pipeline) draw() {
	one := Session{Snapshots: w.store.Snapshot, Past: w.store.Past()}
	w.drawKeys([]Session{one}, slices.Repeat([][]string{{"w", "esc", "tab", "enter"}}, 8)) // full screen for each pane of the overview
	w.drawKeys([]Session{one}, [][]string{
		{"2"},
		{"enter", "down"},
		{"3", "n", "left"},
		{"N", "x"},
		{"4"},
		{"tab"},
		{"tab"},
		{"tab"},
		{"5"},
		{"v", "right"},
		{"tab", ">", "w"},
		{"6"},
		{"left"},
		{"7"},
		{"o", "down"},
		{"m", "M"},
		{"?", "G"},
		{"1", "space", "left", "["},
		{"[", "2"},
		{"3"},
		{"4"},
		{"5"},
		{"6"},
		{"]", "]", "space"},
	})
	three := []Session{one, one, one}
	for i := range three {
		three[i].Name = fmt.Sprint("server ", i)
	}
	w.drawKeys(three, [][]string{{"down"}, {">", "r"}, {">"}, {"enter"}, {"7"}})
}

// drawKeys draws sessions in every size, before and after each group of keys.
func (w *pipeline) drawKeys(sessions []Session, groups [][]string) {
	a := newApp(Config{Sessions: func() []Session { return sessions }, Profile: theme.Colours256, ASCII: w.now%2 == 0})
	a.saveScreen = discardScreen
	frame := func() {
		for _, size := range pipelineSizes {
			a.Update(tea.WindowSizeMsg{Width: size[0], Height: size[1]})
			checkFrame(w.t, a.View().Content, size[0], size[1])
		}
	}
	a.Update(tea.WindowSizeMsg{Width: 140, Height: 50})
	a.Update(tickMsg{})
	frame()
	for _, keys := range groups {
		a.press(keys...)
		a.Update(tickMsg{})
		frame()
	}
}

// write writes the report in every format and checks its syntax.
func (w *pipeline) write() {
	r := report.Build(report.Meta{Version: "test"}, w.store.Snapshot())
	doc := func(write func(io.Writer) error) string {
		w.t.Helper()
		var b bytes.Buffer
		if err := write(&b); err != nil {
			w.t.Fatal(err)
		}
		return b.String()
	}
	var anything any
	if err := json.Unmarshal([]byte(doc(r.WriteJSON)), &anything); err != nil {
		w.t.Fatalf("JSON: %v", err)
	}
	for line := range strings.Lines(doc(r.WriteJSONL)) {
		if err := json.Unmarshal([]byte(line), &anything); err != nil {
			w.t.Fatalf("JSON Lines: %v in %s", err, line)
		}
	}
	table := csv.NewReader(strings.NewReader(doc(r.WriteCSV)))
	table.FieldsPerRecord = -1
	if _, err := table.ReadAll(); err != nil {
		w.t.Fatalf("CSV: %v", err)
	}
	for name, text := range map[string]string{"text": doc(r.WriteText), "Markdown": doc(r.WriteMarkdown)} {
		if i := strings.IndexFunc(text, func(r rune) bool { return r < ' ' && r != '\n' && r != '\t' || r == 0x7f }); i >= 0 {
			w.t.Fatalf("%s has a control character: %q", name, text[max(i-20, 0):min(i+20, len(text))])
		}
	}
	page := doc(r.WriteHTML)
	for charts := page; ; {
		_, chart, ok := strings.Cut(charts, "<svg")
		if !ok {
			break
		}
		chart, charts, _ = strings.Cut(chart, "</svg>")
		if strings.Contains(chart, `"NaN"`) || strings.Contains(chart, `"+Inf"`) || strings.Contains(chart, `"-Inf"`) {
			w.t.Fatalf("a chart has an invalid number: %s", chart)
		}
	}
}

// receiver receives OTLP pushes and keeps the last one.
type receiver struct {
	*httptest.Server
	pushed []byte
}

func newReceiver(tb testing.TB) *receiver {
	r := &receiver{}
	r.Server = httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, q *http.Request) {
		zip, err := gzip.NewReader(q.Body)
		if err == nil {
			r.pushed, err = io.ReadAll(zip)
		}
		if err != nil {
			tb.Error(err)
		}
	}))
	tb.Cleanup(r.Close)
	return r
}

// expose reads the metrics, pushes them to a receiver, and checks their syntax.
func (w *pipeline) expose(r *receiver) {
	answer := httptest.NewRecorder()
	request := httptest.NewRequest(http.MethodGet, "http://127.0.0.1/metrics", nil)
	w.exporter.Handler("").ServeHTTP(answer, request)
	if answer.Code != http.StatusOK {
		w.t.Fatalf("metrics: %d, %s", answer.Code, answer.Body)
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(answer.Body)
	if err != nil {
		w.t.Fatalf("metrics: %v", err)
	}
	for name, f := range families {
		for _, m := range f.Metric {
			for _, v := range []float64{m.GetGauge().GetValue(), m.GetCounter().GetValue(), m.GetHistogram().GetSampleSum()} {
				if math.IsNaN(v) || math.IsInf(v, 0) {
					w.t.Fatalf("metrics: %s is %v", name, v)
				}
			}
		}
	}
	r.pushed = nil
	p, err := w.exporter.Push(r.URL, "", func(err error) { w.t.Errorf("push: %v", err) })
	if err != nil {
		w.t.Fatal(err)
	}
	p.Close()
	if !json.Valid(r.pushed) {
		w.t.Fatalf("push: no JSON: %s", r.pushed)
	}
}

// extremes are numbers that a source may send by mistake or on purpose.
var extremes = []string{
	"0", "-1", "1", "4294967295", "9223372036854775807", "-9223372036854775808", "18446744073709551615", "4000000000000000000",
	"-4000000000000000000", "1000000000000000000", "1.7e308", "-1.7e308", "5e-324", "1e999", "NaN", "Infinity", "-Infinity", "null",
}

// extremeEvents are sessions with % as a placeholder for a number.
var extremeEvents = []string{
	`{"t":"hello","v":"1.0","a":%,"wall":1,"name":"x","slots":2,"pace":%,"caps":["stages","tokens","steps","kv","experts","picks","queue","host","text","ops","counters"],"model":{"name":"m","layers":2,"experts":4,"experts_used":2,"bytes":%,"kv_bytes":%,"weight_bytes":%,"parameters":%,"context":%,"dur":%}}
{"t":"req","a":1000,"r":1,"state":"queued","max":%}
{"t":"stage","a":%,"r":1,"stage":"queue","dur":%}
{"t":"stage","a":2000,"r":1,"stage":"prompt","l":1,"dur":%,"n":%}
{"t":"stage","a":2000,"r":1,"stage":"attention","l":1,"dur":%}
{"t":"tok","a":3000,"r":1,"i":0,"d":5,"l":%,"n":%}
{"t":"tok","a":3001,"r":1,"i":1,"d":6,"x":[%,%,%,%,%,%],"o":[[1,%]],"e":[1,3]}
{"t":"tok","a":%,"r":1,"i":%,"d":%,"s":%,"w":%,"n":%}
{"t":"step","a":%,"dur":%,"s":%,"n":%,"m":%,"x":[%,%,%,%,%,%],"fpm":{"wall_time":%,"scheduled_requests":{"num_prefill_requests":%}}}
{"t":"req","a":%,"r":1,"state":"finished","in":%,"cached":%,"pad":%,"out":%,"decode":%,"asked":%}`,
	`{"t":"hello","v":"1.0","a":0,"name":"x","caps":["host","kv","counters","reports","ops","experts"]}
{"t":"host","a":%,"interval":%,"cores":[%,%],"core_hz":[%,%],"cpu":%,"hz":%,"load1":%,"mem_total":%,"mem_used":%,"read_bandwidth":[%,%],"net_in":%,"net_out":%,"power":%,"cpu_pressure":%,"model_bytes":%,"model_cached":%,"engine":{"pid":1,"cpu":%,"run_wait":%,"rss":%,"peak":%,"read":%,"threads":%,"outside":%},"self":{"cpu":%,"gc_pause":%},"gpus":[{"name":"g","util":%,"mem_used":%,"mem_total":%,"power":%,"temperature":%,"hz":%}]}
{"t":"kv","a":%,"used":%,"total":%,"page":%,"pinned":%,"freed":%,"held":%}
{"t":"count","a":%,"c":{"hits":%,"prefix_cache_hit_share":%}}
{"t":"experts","a":%,"layers":1,"experts":2,"used":1,"p":[%,%],"d":[%,%],"pt":%,"dt":%}
{"t":"experts","a":2000000000,"layers":1,"experts":2,"used":%,"every":%,"p":[1,%],"d":[1,2],"pt":%,"dt":%}
{"t":"ops","a":%,"passes":%,"slowdown":%,"ops":["x","y"],"k":[0,1],"l":[-1,0],"n":[%,%],"d":[%,%]}
{"t":"lost","a":%,"by":{"token":%,"log":%}}
{"t":"clock","a":%,"wall":%,"q":%}`,
	`{"t":"hello","v":"1.0","a":0,"name":"x","caps":["reports","kv"]}
{"t":"report","a":%,"interval":%,"running":%,"waiting":%,"decode":%,"prefill":%,"kv_usage":%,"kv_used":%,"kv_total":%,"cache_hits":%,"finished":%,"failed":%,"in":%,"cached":%,"out":%,"times":[{"name":"ttft","n":%,"sum":%,"le":[1,%],"c":[%,%,%]},{"name":"queue","n":%,"sum":%}],"slots":[{"slot":0,"r":9,"in":%,"done":%,"cached":%,"out":%,"max":%,"used":%,"context":%}],"more":{"x_share":%,"y_bytes":%,"z_s":%}}
{"t":"report","a":%,"interval":1000000000,"running":%,"out":%,"times":[{"name":"ttft","n":%,"sum":%,"le":[1,%],"c":[%,%,%]},{"name":"itl","n":%,"sum":%}]}`,
}

// extremeMetrics are two scrapes of a vLLM server with % as a placeholder for a number.
const extremeMetrics = `vllm:num_requests_running 1
vllm:num_requests_waiting %
vllm:kv_cache_usage_perc %
vllm:generation_tokens_total 10
vllm:prompt_tokens_total %
vllm:time_to_first_token_seconds_bucket{le="0.1"} 1
vllm:time_to_first_token_seconds_bucket{le="%"} 2
vllm:time_to_first_token_seconds_bucket{le="+Inf"} 2
vllm:time_to_first_token_seconds_sum 1
vllm:time_to_first_token_seconds_count 2
` + "\f" + `vllm:num_requests_running %
vllm:kv_cache_usage_perc %
vllm:generation_tokens_total %
vllm:prompt_tokens_total %
vllm:request_success_total{finished_reason="stop"} %
vllm:time_to_first_token_seconds_bucket{le="0.1"} %
vllm:time_to_first_token_seconds_bucket{le="%"} %
vllm:time_to_first_token_seconds_bucket{le="+Inf"} %
vllm:time_to_first_token_seconds_sum %
vllm:time_to_first_token_seconds_count %
`

// plainSession returns 12 s of an engine without extremes: three requests, one of them still running, machine samples
// and router picks.
func plainSession() string {
	var out strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&out, format+"\n", args...) }
	line(`{"t":"hello","v":"1.0","a":0,"wall":1,"name":"x","slots":2,"caps":["stages","tokens","steps","kv","experts","picks","queue","host","text","ops"],` +
		`"model":{"name":"m","layers":2,"experts":4,"experts_used":2,"bytes":1000,"kv_bytes":10,"weight_bytes":1000,"context":4096,"dur":5000}}`)
	for i := range 12 {
		now := int64(i) * 1e9
		line(`{"t":"host","a":%d,"interval":1000000000,"cores":[0.5,0.9],"cpu":0.7,"mem_total":1000,"mem_used":500,"net_in":7,`+
			`"engine":{"pid":1,"cpu":1.5,"run_wait":0.1,"rss":400},"gpus":[{"name":"g","util":0.5,"mem_used":1,"mem_total":2,"power":9}]}`, now)
		line(`{"t":"kv","a":%d,"used":%d,"total":100,"page":16}`, now, 10*i)
		line(`{"t":"experts","a":%d,"layers":2,"experts":4,"used":2,"p":[1,2,3,4,5,6,7,8],"d":[%d,1,2,3,4,5,6,%d],"pt":18,"dt":%d}`, now, i, 2*i, 9+i)
		if i%5 == 0 {
			r := 1 + i/5
			line(`{"t":"req","a":%d,"r":%d,"state":"queued","group":"g","label":"k","prompt":"x","max":100}`, now, r)
			line(`{"t":"req","a":%d,"r":%d,"state":"dispatched"}`, now+1e6, r)
			line(`{"t":"stage","a":%d,"r":%d,"stage":"prompt","dur":5000000,"n":40}`, now+6e6, r)
			line(`{"t":"stage","a":%d,"r":%d,"stage":"attention","l":1,"dur":2000000}`, now+6e6, r)
		}
		for k := range 10 {
			at, n := now+int64(k)*9e7+int64(i*k)*1e5+1e7, i*10+k
			line(`{"t":"step","a":%d,"dur":2000000,"s":%d,"n":1,"x":[1,500000,100000,900000,200000,10000]}`, at, n+1)
			line(`{"t":"tok","a":%d,"r":%d,"i":%d,"d":5,"s":%d,"w":9,"l":-0.5,"p":"word","e":[0,1,2,3],"o":[[5,-0.5,"word"],[6,-2,"x"]]}`, at, 1+i/5, n%50, n+1)
		}
		if i%5 == 4 {
			line(`{"t":"req","a":%d,"r":%d,"state":"finished","why":"stop","in":40,"cached":8,"out":50}`, now+99e7, 1+i/5)
		}
	}
	return out.String()
}

// replaceAll replaces each % of a text with a number.
func replaceAll(text, number string) string { return strings.ReplaceAll(text, "%", number) }

// replaceNth replaces every seventh % of each line, from index nth, with an extreme and the others with small numbers, so
// that another number does not make the decoder reject the line.
func replaceNth(text, number string, nth int) string {
	var out strings.Builder
	for line := range strings.Lines(text) {
		for i, part := range strings.Split(line, "%") {
			switch {
			case i == 0:
			case (i-1)%7 == nth:
				out.WriteString(number)
			default:
				fmt.Fprint(&out, 100*i)
			}
			out.WriteString(part)
		}
	}
	return out.String()
}

// Two tokens 1 ns apart whose stages report 4 s each are drawn by their shares of that 1 ns.
func TestStagesLongerThanTheirToken(t *testing.T) {
	w := newPipeline(t)
	w.lines([]byte(`{"t":"hello","v":"1.0","name":"x","a":0,"caps":["tokens","steps"]}
{"t":"req","a":1000,"r":1,"state":"queued"}
{"t":"tok","a":2000,"r":1,"i":0,"d":5}
{"t":"tok","a":2001,"r":1,"i":1,"d":6,"x":[4294967295,4294967295,4294967295,4294967295,4294967295,4294967295]}`))
	if r := w.store.Snapshot().Current; r == nil || r.Generated != 2 {
		t.Fatalf("the tokens are missing: %+v", r)
	}
	w.draw()
}

// An implausible machine sample is rejected as a line. One that arrives without a line is drawn as absent.
func TestImplausibleMachineSample(t *testing.T) {
	w := newPipeline(t)
	w.lines([]byte(`{"t":"hello","v":"1.0","name":"x","a":0,"caps":["host"]}
{"t":"host","a":1,"interval":1000000000,"net_in":1.7e308,"engine":{"pid":1,"rss":1.7e308,"cpu":1.7e308}}`))
	if w.store.Snapshot().Host.Sampled {
		t.Error("the decoder accepted the sample")
	}
	big := event.MeasuredValue(1.7e308)
	for range 5 {
		w.now += event.Time(time.Second)
		w.sink.Emit(event.Event{Kind: event.KindHost, At: w.now, Data: &event.Host{
			Interval: int64(time.Second), CPU: big, Received: big, Sent: big, Power: big, MemUsed: big, MemTotal: event.MeasuredValue(5e-324),
			Cores: []float64{1.7e308, math.NaN(), math.Inf(-1)}, Clocks: []float64{1.7e308}, Engine: event.Process{PID: 1, RSS: big, CPU: big, RunWait: big},
			GPUs: []event.GPU{{Name: "g", Util: big, Power: big, MemUsed: big, MemTotal: event.MeasuredValue(1)}},
		}})
	}
	w.draw()
	w.write()
	w.expose(newReceiver(t))
}

// extremePayloads returns events that a source in this process could emit without the decoder, with whole numbers n and
// others x.
func extremePayloads(n int64, x float64) []event.Event {
	r, u, i := event.ReportedValue(x), uint64(n), int(n)
	model := event.Model{
		Name: "m", Parameters: n, Active: n, Bytes: n, Layers: 2, Width: i, Heads: i, KVHeads: i, HeadDim: i, Vocab: i, Experts: 2, ExpertsUsed: i,
		FeedForward: i, Context: i, TrainContext: i, KVBytes: n, WeightBytes: n,
	}
	outcome := event.Outcome{Prompt: i, Cached: i, Padding: i, Generated: i, Decode: n}
	times := []event.Histogram{
		{Name: event.HistogramTTFT, Count: u, Sum: n, Bounds: []int64{1, n}, Counts: []uint64{u, u, u}}, {Name: event.HistogramQueue, Count: u, Sum: n},
	}
	slots := []event.Slot{{Slot: i, Request: 9, Prompt: i, Processed: i, Cached: i, Generated: i, Max: i, Used: i, Context: i}}
	pass := event.Pass{Worker: "w", Rank: r, Counter: r, Wall: r, Scheduled: event.PassLoad{Prefills: r, PrefillTokens: r, Decodes: r, DecodeKV: r}}
	split := event.Split{Attention: uint32(n), Experts: uint32(n)}
	token := event.Event{Kind: event.KindToken, N: int32(n), Index: int32(n), ID: int32(n), Step: u, LogP: float32(x), HasLogP: true, Split: split, Picks: []uint16{uint16(n)}}
	token.Top = []event.TopProb{{ID: int32(n), LogP: float32(x)}}
	withRequest := func(id event.RequestID, e event.Event) event.Event { e.Req, e.Layer = id, -1; return e }
	return []event.Event{
		{Kind: event.KindEngine, Data: &event.EngineInfo{Name: "e", PID: i, Epoch: n, Caps: math.MaxUint32, Slots: i, Pace: x, Remote: event.Remote{
			Link: event.LinkStale, Since: event.Time(n), Restarts: i, Missed: n, Malformed: u,
		}}},
		{Kind: event.KindModel, Dur: n, Data: &model},
		withRequest(1, event.Event{Kind: event.KindRequest, State: event.StateQueued, Data: &event.Request{MaxTokens: i, Cold: true}}),
		withRequest(1, event.Event{Kind: event.KindStage, Stage: event.StagePrompt, Dur: n, N: int32(n)}),
		{Kind: event.KindStage, Stage: event.StageAttention, Layer: 1, Req: 1, Dur: n},
		withRequest(1, event.Event{Kind: event.KindStage, Stage: event.StagePace, Dur: n}),
		withRequest(1, token), withRequest(1, token), withRequest(1, token),
		{Kind: event.KindStep, Dur: n, N: int32(n), Prompt: int32(n), Step: u, Split: split, Data: &pass},
		withRequest(2, event.Event{Kind: event.KindRequest, State: event.StateDispatched}), withRequest(2, token), withRequest(2, token),
		withRequest(2, event.Event{Kind: event.KindRequest, State: event.StateFinished, Data: &outcome}),
		withRequest(3, event.Event{Kind: event.KindRequest, State: event.StateFailed, Data: &outcome}),
		{Kind: event.KindExperts, Data: &event.Experts{
			Layers: 2, Experts: 2, Used: i, EveryN: i, Prompt: []uint64{u, u, 0, 1}, Decode: []uint64{u, u, u, u}, PromptTokens: u, DecodeTokens: u,
		}},
		{Kind: event.KindKV, Data: &event.KV{Used: n, Total: n, Freed: n, Residency: n, Page: n, Pinned: event.Time(n)}},
		{Kind: event.KindHost, Data: &event.Host{
			Interval: n, CPU: r, Received: r, Sent: r, Power: r, MemUsed: r, MemTotal: event.MeasuredValue(1), Load1: r, Frequency: r, ReadBandwidth: []float64{x, -x}, CPULimit: r,
			Throttled: r, CPUPressure: r, ModelBytes: r, ModelCached: r, Cores: []float64{x, math.NaN(), math.Inf(-1)}, Clocks: []float64{x, -x},
			Engine: event.Process{PID: i, RSS: r, CPU: r, RunWait: r, PSS: r, Threads: r, Read: r, OutsideEngine: r}, Self: event.Process{CPU: r, GCPause: r},
			GPUs: []event.GPU{{Name: "g", Util: r, Power: r, Temperature: r, Clock: r, MemUsed: r, MemTotal: event.MeasuredValue(1)}},
		}},
		{Kind: event.KindCounters, Data: &event.Counters{Values: []event.Counter{{Name: "prefix_cache_hit_share", Value: x}, {Name: "x", Value: x}}}},
		{Kind: event.KindOps, Data: &event.Ops{Passes: n, Slowdown: r, Times: []event.OpTime{{Op: "x", Layer: -1, Calls: n, Dur: n}, {Op: "y", Layer: 1, Calls: n, Dur: n}}}},
		{Kind: event.KindUsage, Data: &event.Usage{
			Interval: n, Running: r, Waiting: r, Outside: r, Threads: r, Cores: r, Faults: r, Read: r, Blocked: r, Throttled: r, Stopped: r, MemoryStall: r, LimitHits: r, GCPause: r,
		}},
		{Kind: event.KindDrops, Data: &event.Drops{u, u, u}},
		{Kind: event.KindAggregates, Data: &event.Aggregates{
			Interval: n, Running: r, Waiting: r, Decode: r, Prefill: r, KVUsage: r, KVUsed: r, KVTotal: r, CacheHits: r, Finished: r, Failed: r,
			Prompt: r, Cached: r, Generated: r, Histograms: times, Slots: slots, More: []event.NamedReading{{Name: "x_share", Reading: r}, {Name: "y_s", Reading: r}},
		}},
	}
}

// The store bounds numbers that no decoder checked, and screens and outputs stay valid, with engine reports and
// without, which change the screen.
func TestExtremesWithoutDecoder(t *testing.T) {
	r := newReceiver(t)
	numbers := []int64{0, 1, -1, math.MaxUint32, event.MaxNumber, math.MaxInt64, math.MinInt64}
	for i := 0; i < len(numbers); i += eventtest.Step(3) {
		n, x := numbers[i], []float64{0, 5e-324, -1.7e308, 1.7e308, event.MaxNumber, math.Inf(1), math.NaN()}[i]
		for _, reports := range []bool{false, true} {
			w := newPipeline(t)
			for round := range 4 {
				for _, e := range extremePayloads(n, x) {
					if e.Kind == event.KindAggregates && !reports {
						continue
					}
					w.now += event.Time(200 * time.Millisecond)
					if e.At = w.now; round == 3 {
						e.At = event.Time(n)
					}
					w.sink.Emit(e)
				}
				w.store.Drain()
			}
			w.draw()
			w.write()
			w.expose(r)
		}
	}
}

// metricSamples are the engines whose metrics are read, each with a text that one has answered.
var metricSamples = []struct {
	kind engine.Kind
	file string
}{
	{engine.VLLM, "vllm"},
	{engine.SGLang, "sglang"},
	{engine.Llama, "llamacpp"},
	{engine.TGI, "tgi"},
	{engine.TensorRT, "tensorrt"},
	{engine.LMDeploy, "lmdeploy"},
	{engine.Triton, "triton"},
	{engine.Dynamo, "dynamo"},
}

// throughRecording is set in the route of those inputs of FuzzPipeline that pass through a recording. The rest of the route
// chooses the engine.
const throughRecording = 1 << 7

// sampleValue matches the value of a sample in a text for Prometheus.
var sampleValue = regexp.MustCompile(`(?m) [^ \n#"}]+$`)

// FuzzPipeline takes bytes through the whole pipeline: from a source, perhaps through a recording, through the store to
// every view and every report.
func FuzzPipeline(f *testing.F) {
	session := plainSession()
	f.Add(byte(0), []byte(session), []byte(replaceAll(extremeMetrics, "1")))
	f.Add(byte(throughRecording), []byte(session), []byte(nil))
	for i, number := range extremes {
		f.Add(byte(i%2*throughRecording), []byte(replaceAll(strings.Join(extremeEvents, "\n"), number)), []byte(replaceAll(extremeMetrics, number)))
	}
	for i, number := range extremes {
		for k, text := range extremeEvents {
			f.Add(byte(k%2*throughRecording), []byte(session+replaceNth(text, number, i%7)), []byte(nil))
		}
		f.Add(byte(0), []byte(nil), []byte(replaceNth(extremeMetrics, number, i%7)))
	}
	for i, s := range metricSamples {
		text, err := os.ReadFile("../runtime/source/scrape/gather/testdata/" + s.file + ".txt")
		if err != nil {
			f.Fatal(err)
		}
		for k, number := range []string{"9e17", "1.7e308", "NaN", "0"} {
			n := 0
			later := sampleValue.ReplaceAllFunc(text, func(was []byte) []byte {
				if n++; n%4 == k {
					return []byte(" " + number)
				}
				return was
			})
			f.Add(byte(i+k%2*throughRecording), []byte(nil), slices.Concat(text, []byte{'\f'}, later, []byte{'\f'}, text))
		}
	}
	r := newReceiver(f)
	f.Fuzz(func(t *testing.T, route byte, events, metrics []byte) {
		if len(events) > 1<<16 || len(metrics) > 1<<17 {
			return // shorter inputs reach the same code
		}
		fill := func(w *pipeline) {
			w.lines(events)
			w.metrics(metricSamples[int(route%throughRecording)%len(metricSamples)].kind, metrics)
		}
		w := newPipeline(t)
		if route >= throughRecording {
			w.recorded(fill)
		} else {
			fill(w)
		}
		w.draw()
		w.write()
		w.expose(r)
	})
}
