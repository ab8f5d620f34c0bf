package wire

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/profiler/event/eventtest"
)

// TestMalformedLines checks that malformed lines are rejected, and do not affect the next line.
func TestMalformedLines(t *testing.T) {
	var d Decoder
	for _, line := range []string{
		`{`, `{"t"`, `{"t":`, `{"t":"tok"`, `{"t":"tok",`, `{"t":"tok","a":1,"r":1`, `}`, `[]`, `"t"`, `null`, `1`, `{}`, `{"a":1}`, `{"t":1}`,
		`{"t":"tok"}`, `{"t":"tok","a":1}`, `{"t":"tok","r":1}`, `{"t":"tok","a":null,"r":1}`, `{"t":"tok","a":"1","r":1}`,
		`{"t":"tok","a":1,"r":0}`, `{"t":"tok","a":1,"r":-1}`, `{"t":"tok","a":[],"r":1}`, `{"t":"tok","a":[1,2],"r":[1,2,3]}`,
		`{"t":"tok","a":1,"r":1}{"t":"tok","a":1,"r":1}`, `{"t":"tok","a":1,"r":1},`, `{"t":"tok","a":1,,"r":1}`, `{"t":"tok","a":1,"r":1,}`,
		`{"t":"tok" "a":1,"r":1}`, `{"t":"tok","a" 1,"r":1}`, `{"t":"tok",a:1,"r":1}`, `{'t':'tok'}`, `{"t":"tok","a":1,"r":1,"z":[1 2]}`,
		`{"t":"tok","a":1,"r":1,"z":[1,]}`, `{"t":"tok","a":1,"r":1,"z":[,1]}`, `{"t":"tok","a":1,"r":1,"z":[1}}`, `{"t":"tok","a":1,"r":1,"z":tru}`,
		`{"t":"tok","a":1,"r":1,"z":--1}`, `{"t":"tok","a":1,"r":1,"z":0x10}`, `{"t":"tok","a":1,"r":1,"z":1_0}`, `{"t":"tok","a":+,"r":1}`,
		"{\"t\":\"log\",\"a\":1,\"m\":\"a\nb\"}", `{"t":"log","a":1,"m":"\q"}`, `{"t":"log","a":1,"m":"\u12"}`, `{"t":"log","a":1,"m":"\`,
		"\x00\x01\x02", "\x1b[2J", "\xff\xfe\xfd", strings.Repeat("A", 1000), `{"t":"hello","v":"1.0"}`, `{"t":"req","a":1,"r":1}`,
		`{"t":"stage","a":1,"dur":-1,"stage":"queue"}`, `{"t":"stage","a":1,"dur":NaN,"stage":"queue"}`, `{"t":"stage","a":1,"dur":1}`,
		`{"t":"kv","a":1,"used":-1,"total":2}`, `{"t":"kv","a":1,"used":1}`, `{"t":"experts","a":1,"layers":2,"experts":2,"p":[1,2,3]}`,
		`{"t":"experts","a":1,"layers":2,"experts":2,"p":[1,2,3,-4]}`, `{"t":"experts","a":1,"layers":1e9,"experts":1e9}`,
		`{"t":"experts","a":1,"layers":513,"experts":1}`, `{"t":"experts","a":1,"layers":0,"experts":4}`,
		`{"t":"tok","r":1,"a":[` + strings.Repeat("1,", MaxBatch) + `1]}`,
		`{"t":"tok","a":1,"r":1,"z":` + strings.Repeat("[", MaxDepth) + strings.Repeat("]", MaxDepth) + `}`,
		strings.Repeat(`{"t":`, 1<<20), strings.Repeat(`[`, 1<<20), `{"t":"tok","z":"` + strings.Repeat("x", MaxLine) + `"}`,
	} {
		emitted := 0
		s, err := d.Decode([]byte(line), func(event.Event) { emitted++ })
		if !errors.Is(err, ErrMalformed) || emitted > 0 || s != (Session{}) {
			t.Errorf("%.60q: %v, %d events, %+v", line, err, emitted, s)
		}
		if got := decode(t, &d, []byte(`{"t":"tok","a":5,"r":1,"i":2,"d":3}`)); len(got) != 1 || got[0].At != 5 {
			t.Fatalf("after %.60q a valid line gives %v", line, got)
		}
	}
}

// TestImplausibleLines checks that a line with an implausible number is rejected as a whole, wherever the number is.
func TestImplausibleLines(t *testing.T) {
	var d Decoder
	f := readSchema(t)
	for _, number := range []string{"9223372036854775807", "18446744073709551616", "4000000000000000001", "1.7e308", "1e999"} {
		for _, line := range []string{
			`{"t":"log","a":%,"m":"x"}`, `{"t":"tok","a":%,"r":1}`, `{"t":"tok","a":[4e18,%],"r":1}`, `{"t":"tok","a":1,"r":1,"d":%}`,
			`{"t":"tok","a":1,"r":1,"i":%}`, `{"t":"tok","a":1,"r":1,"s":%}`, `{"t":"tok","a":1,"r":1,"l":%}`, `{"t":"tok","a":1,"r":1,"l":-%}`,
			`{"t":"tok","a":1,"r":1,"x":[1,%]}`, `{"t":"tok","a":1,"r":1,"o":[[1,%]]}`, `{"t":"tok","a":1,"r":1,"w":%}`,
			`{"t":"step","a":1,"dur":%}`, `{"t":"step","a":1,"dur":1,"fpm":{"wall_time":%}}`, `{"t":"stage","a":1,"stage":"queue","dur":%}`,
			`{"t":"req","a":1,"r":1,"state":"finished","out":%}`, `{"t":"req","a":1,"r":1,"state":"finished","decode":%}`,
			`{"t":"req","a":1,"r":1,"state":"finished","asked":%}`,
			`{"t":"experts","a":1,"layers":1,"experts":1,"p":[%]}`, `{"t":"experts","a":1,"layers":1,"experts":1,"pt":%}`,
			`{"t":"kv","a":1,"used":%,"total":1}`, `{"t":"kv","a":1,"used":1,"total":%}`, `{"t":"kv","a":1,"used":1,"total":1,"pinned":%}`,
			`{"t":"kv","a":1,"used":1,"total":1,"held":%}`, `{"t":"host","a":1,"interval":%}`, `{"t":"host","a":1,"net_in":%}`,
			`{"t":"host","a":1,"cores":[%]}`, `{"t":"host","a":1,"cpu":[%,"reported"]}`, `{"t":"host","a":1,"engine":{"rss":%}}`,
			`{"t":"host","a":1,"gpus":[{"power":-%}]}`, `{"t":"count","a":1,"c":{"x":%}}`, `{"t":"report","a":1,"interval":%}`,
			`{"t":"report","a":1,"out":%}`, `{"t":"report","a":1,"more":{"x":%}}`, `{"t":"report","a":1,"times":[{"name":"ttft","n":%,"sum":1}]}`,
			`{"t":"report","a":1,"times":[{"name":"ttft","n":1,"sum":%}]}`, `{"t":"report","a":1,"times":[{"name":"ttft","le":[%],"c":[1,1]}]}`,
			`{"t":"report","a":1,"slots":[{"in":%}]}`, `{"t":"ops","a":1,"passes":%,"ops":[],"k":[],"l":[],"n":[],"d":[]}`,
			`{"t":"ops","a":1,"passes":1,"ops":["x"],"k":[0],"l":[0],"n":[1],"d":[%]}`, `{"t":"model","a":1,"bytes":%}`,
			`{"t":"engine","a":1,"pace":%}`, `{"t":"engine","a":1,"wall":%}`, `{"t":"engine","a":1,"remote":{"since":%}}`,
			`{"t":"lost","a":1,"by":{"token":%}}`, `{"t":"clock","a":1,"q":%}`, `{"t":"hello","v":"1.0","a":1,"wall":%}`,
		} {
			line := strings.ReplaceAll(line, "%", number)
			s, err := d.Decode([]byte(line), func(e event.Event) { t.Errorf("%s gives an event: %+v", line, e) })
			if !errors.Is(err, ErrMalformed) || s != (Session{}) {
				t.Errorf("%s: %v, %+v", line, err, s)
			}
			if sum := strings.Contains(line, "[4e18,"); !sum && f.check([]byte(line)) == "" { // a schema bounds no sums
				t.Errorf("the schema allows %s", line)
			}
		}
	}
}

// TestImpossibleReadingsAreAbsent checks that no payload has a reading that is negative, or too small to divide by,
// wherever it stands, and that the rest of the line is read.
func TestImpossibleReadingsAreAbsent(t *testing.T) {
	var d Decoder
	for _, line := range []string{
		`{"t":"report","a":1,"%s":%s,"running":7}`, `{"t":"report","a":1,"more":{"%s":%s,"x":7}}`, `{"t":"report","a":1,"counts":{"%s":%s,"x":7}}`,
		`{"t":"report","a":1,"ratios":[{"name":"x","%s":%s},{"name":"y","part":7}]}`, `{"t":"report","a":1,"ranks":[{"%s":%s},{"running":7}]}`,
		`{"t":"report","a":1,"earlier":{"%s":%s,"failed":7}}`, `{"t":"host","a":1,"%s":%s,"load1":7}`, `{"t":"host","a":1,"engine":{"%s":%s,"threads":7}}`,
		`{"t":"host","a":1,"self":{"%s":%s,"threads":7}}`, `{"t":"host","a":1,"gpus":[{"%s":%s},{"power":7}]}`, `{"t":"usage","a":1,"%s":%s,"read":7}`,
		`{"t":"step","a":1,"dur":1,"fpm":{"scheduled_requests":{"%s":%s,"num_decode_requests":7}}}`, `{"t":"ops","a":1,"passes":7,"%s":%s,"ops":[],"k":[],"l":[],"n":[],"d":[]}`,
	} {
		for _, name := range []string{
			"waiting", "decode", "kv_usage", "kv_used", "cache_hits", "finished", "in", "cached", "out", "part", "whole", "hits",
			"cpu", "mem_used", "mem_total", "rss", "util", "running", "cores", "core_hz", "sum_decode_kv_tokens", "slowdown",
		} {
			for _, number := range []string{"-1", "-0.5", "5e-324", `[-2,"reported"]`, "[0.5,-1]"} {
				line := fmt.Sprintf(line, name, number)
				got := decode(t, &d, []byte(line))
				if text := asJSON(got[0].Data); strings.ContainsAny(strings.ReplaceAll(text, "Layer:-1", ""), "-") || !strings.Contains(text, "7") {
					t.Errorf("%s is read as %s", line, text)
				}
			}
		}
	}
}

func asJSON(v any) string {
	b, err := json.Marshal(v)
	return string(b) + fmt.Sprint(err)
}

// TestTruncatedLines checks that every proper prefix of a line is rejected.
func TestTruncatedLines(t *testing.T) {
	var d Decoder
	for _, e := range seeds() {
		line, err := Append(nil, &e)
		if err != nil {
			t.Fatal(err)
		}
		for n := 1; n < len(line); n++ {
			if _, err := d.Decode(line[:n], func(event.Event) {}); !errors.Is(err, ErrMalformed) {
				t.Fatalf("%v: %s", err, line[:n])
			}
		}
	}
}

// TestOddLines checks how unusual but unambiguous lines are decoded.
func TestOddLines(t *testing.T) {
	token := event.Event{Kind: event.KindToken, Layer: -1, At: 12, Req: 3, Index: -1, ID: -1, N: 1}
	with := func(change func(*event.Event)) []event.Event {
		e := token
		change(&e)
		return []event.Event{e}
	}
	plain := with(func(*event.Event) {})
	for line, want := range map[string][]event.Event{
		``:                                nil,
		" \t\r":                           nil,
		`{"t":"tomorrow","a":1,"b":[{}]}`: nil,
		`{"t":"req","a":1,"r":1,"state":"dreaming"}`:                  nil,
		`{"t":"tok","a":12,"r":3}` + "\r":                             plain,
		` { "r" : 3 , "a" : 12.9 , "t" : "tok" } `:                    plain,
		`{"t":"tok","a":1.2e1,"r":3.0}`:                               plain,
		`{"t":"tok","a":1,"a":12,"r":1,"r":3}`:                        plain,
		`{"\u0074":"t\u006fk","\u0061":12,"r":3}`:                     plain,
		`{"t":"tok","a":[12],"r":[3],"i":[null],"l":NaN,"d":-4}`:      plain,
		`{"t":"tok","a":12,"r":3,"l":-Infinity,"i":-1,"n":null}`:      plain,
		`{"t":"tok","a":12,"r":3,"new":{"x":[1e999,{"y":""}]}}`:       plain,
		`{"t":"tok","a":12,"r":3,"l":"-1","p":5,"x":"","o":7,"e":{}}`: plain,
		`{"t":"tok","a":12,"r":3,"d":1e17}`:                           with(func(e *event.Event) { e.ID = math.MaxInt32 }),
		`{"t":"tok","a":12,"r":3,"p":"a\ud83d\ude00\ud83d\u0041"}`:    with(func(e *event.Event) { e.Text = "a😀\ufffdA" }),
		"{\"t\":\"tok\",\"a\":12,\"r\":3,\"p\":\"a\xffb\"}":           with(func(e *event.Event) { e.Text = "a\ufffdb" }),
		`{"t":"tok","a":12,"r":3,"p":[226,150]}`:                      with(func(e *event.Event) { e.Text = "\xe2\x96" }),
		`{"t":"tok","a":12,"r":3,"p":[[226,150]]}`:                    with(func(e *event.Event) { e.Text = "\xe2\x96" }),
		`{"t":"tok","a":12,"r":3,"s":5,"w":7}`:                        with(func(e *event.Event) { e.Step, e.Split.Sample = 5, 7 }),
	} {
		if diff := cmp.Diff(want, decode(t, new(Decoder), []byte(line))); diff != "" {
			t.Errorf("%s\n%s", line, diff)
		}
	}
}

// TestLongStringsAreTruncated checks that long strings are truncated between characters.
func TestLongStringsAreTruncated(t *testing.T) {
	for _, s := range []string{strings.Repeat("x", MaxString+9), strings.Repeat("é", MaxString), "x" + strings.Repeat("€", MaxString)} {
		for _, line := range [][]byte{
			[]byte(`{"t":"log","a":1,"m":"` + s + `"}`), appendSeed(t, event.Event{Kind: event.KindLog, Text: s}),
		} {
			got := decode(t, new(Decoder), line)[0].Text
			if len(got) > MaxString || len(got) < MaxString-4 || strings.ContainsRune(got, '\ufffd') || !strings.HasPrefix(s, got) {
				t.Errorf("%d bytes became %d, %q", len(s), len(got), got[len(got)-8:])
			}
		}
	}
}

func appendSeed(t testing.TB, e event.Event) []byte {
	t.Helper()
	line, err := Append(nil, &e)
	if err != nil {
		t.Fatal(err)
	}
	return line
}

// TestMemoryIsBounded checks that the longest lines allocate no more than a multiple of their length.
func TestMemoryIsBounded(t *testing.T) {
	eventtest.SkipUnderRace(t)
	var d Decoder
	for name, line := range map[string]string{
		"picks":      `{"t":"tok","a":1,"r":1,"e":[` + strings.Repeat("0,", MaxLine/2-64) + `0]}`,
		"candidates": `{"t":"tok","a":1,"r":1,"o":[[1],` + strings.Repeat("[],", MaxLine/3-64) + `[]]}`,
		"counts":     `{"t":"experts","a":1,"layers":1,"experts":1,"p":[` + strings.Repeat("0,", MaxLine/2-64) + `0]}`,
		"operations": `{"t":"ops","a":1,"passes":1,"ops":["x"],"k":[` + strings.Repeat("0,", MaxLine/2-64) + `0]}`,
		"cores":      `{"t":"host","a":1,"cores":[` + strings.Repeat("0,", MaxLine/2-64) + `0]}`,
		"gpus":       `{"t":"host","a":1,"gpus":[` + strings.Repeat("{},", MaxLine/3-64) + `{}]}`,
		"counters":   `{"t":"count","a":1,"c":{` + strings.Repeat(`"":1,`, MaxLine/5-64) + `"x":1}}`,
		"members":    `{"t":"log","a":1,` + strings.Repeat(`"":1,`, MaxLine/5-64) + `"m":"x"}`,
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, _ = d.Decode([]byte(line), func(event.Event) {})
		runtime.ReadMemStats(&after)
		allocated := after.TotalAlloc - before.TotalAlloc
		if allocated > 32*MaxLine {
			t.Errorf("%s: %d MiB allocated for a line of %d MiB", name, allocated>>20, len(line)>>20)
		}
	}
}

// seeds returns events of each kind.
func seeds() []event.Event {
	split := event.Split{Embed: 1, Attention: 2, Router: 3, Experts: 4, Head: 5, Sample: 6}
	return []event.Event{
		{
			Kind: event.KindToken, At: 12345678, Req: 7, ID: 5, Index: 3, N: 1, Step: 9, LogP: -0.5, HasLogP: true, Split: split, Text: "a\"\n\x01é",
			Top: []event.TopProb{{ID: 1, LogP: -2, Text: "\xff"}}, Picks: []uint16{1, 2, 3},
		},
		{Kind: event.KindStep, At: -5, Dur: 100, Step: 9, N: 3, Prompt: 4, Split: split, Data: &event.Pass{Worker: "w", Wall: event.MeasuredValue(0.5)}},
		{Kind: event.KindStage, Stage: event.StagePrompt, Req: 3, Layer: 2, Dur: 7, N: 12},
		{Kind: event.KindStage, Text: "cache_lookup", Layer: -1},
		{Kind: event.KindStep, Dur: 9, Data: &event.Calls{Graphs: event.MeasuredValue(1), Gap: event.Absent(event.NotPermitted)}},
		{Kind: event.KindStage, Stage: event.StageHostToDevice, Req: 3, Layer: -1, Data: &event.Calls{To: event.MeasuredValue(4e6)}},
		{Kind: event.KindRequest, Req: math.MaxUint64, State: event.StateQueued, Data: &event.Request{Group: "g", Prompt: "\xf0\x9f", Cold: true}},
		{Kind: event.KindRequest, Req: 3, State: event.StateDispatched},
		{Kind: event.KindRequest, Req: 3, State: event.StateFinished, Data: &event.Outcome{Reason: "stop", Prompt: 3, Generated: 4}},
		{Kind: event.KindExperts, Data: &event.Experts{Layers: 2, Experts: 2, Used: 1, Decode: []uint64{1, 2, 3, 4}}},
		{Kind: event.KindKV, Data: &event.KV{Used: 1, Total: 2, Page: 16, Pinned: 9}},
		{Kind: event.KindHost, Data: &event.Host{Cores: []float64{0.5}, CPU: event.DerivedValue(0.25), GPUs: []event.GPU{{Name: "g", Power: event.Absent(event.NotPermitted)}}}},
		{Kind: event.KindLog, Text: "line"},
		{Kind: event.KindDrops, Data: &event.Drops{event.KindToken: 3}},
		{Kind: event.KindCounters, Data: &event.Counters{Values: []event.Counter{{Name: "hits", Value: 0.5}}}},
		{Kind: event.KindAggregates, Data: &event.Aggregates{
			Interval: 1e9, Running: event.Reading{V: 2, Origin: event.Reported}, Decode: event.DerivedValue(71.5), KVUsage: event.Absent(event.NotYet),
			Histograms: []event.Histogram{{Name: "ttft", Count: 3, Sum: 6e6, Bounds: []int64{1e6, 5e6}, Counts: []uint64{1, 2, 0}}, {Name: "queue"}},
			Slots:      []event.Slot{{Slot: 1, Request: 7, Prompt: 9, Processed: 9, Generated: 4, Max: 16, Used: 13, Context: 64}},
			More:       []event.NamedReading{{Name: "preemptions", Reading: event.Reading{V: 1, Origin: event.Reported}}},
		}},
		{Kind: event.KindOps, Data: &event.Ops{Passes: 2, Slowdown: event.MeasuredValue(1.5), Times: []event.OpTime{{Op: "MUL_MAT", Layer: -1, Calls: 2, Dur: 9}}}},
		{Kind: event.KindSpeculation, Data: &event.Speculation{DraftTime: 7, Drafted: []uint64{4, 2}, Accepted: []uint64{3, 1}, Shapes: []event.PassShape{{Drafting: true, Requests: 1, Rows: 3, Passes: 4, Dur: 80, Tokens: 8}, {Requests: 1, Rows: 1, Passes: 2}}}},
		{Kind: event.KindUsage, Data: &event.Usage{Interval: 2e7, Running: event.MeasuredValue(3e7), Stopped: event.DerivedValue(5), Blocked: event.Absent(event.NotPermitted)}},
		{Kind: event.KindEngine, At: 3, Data: &event.EngineInfo{Name: "e", PID: 3, Epoch: 1 << 60, Caps: event.CapKV, Remote: event.Remote{Link: event.LinkStale}}},
		{Kind: event.KindModel, Data: &event.Model{Name: "m", Layers: 4, KVBytes: 12}},
	}
}

// FuzzDecode checks that every line is rejected or decoded, that decoded events can be encoded, and that their lines
// round-trip.
func FuzzDecode(f *testing.F) {
	for _, e := range seeds() {
		f.Add(appendSeed(f, e))
	}
	f.Add(AppendHello(nil, 5, "run", &event.EngineInfo{Name: "e"}, &event.Model{}, 9))
	f.Add([]byte(`{"t":"tok","a":[1,2,null],"r":[1,2,3],"i":[1,null,1],"p":["a",[255],null],"x":[[1],null,[]],"o":[null,[],[[1,2]]],"e":[[1],[],null]}`))
	f.Add([]byte(`{"t":"step","a":[1,2],"dur":3,"s":[1,1],"n":1,"m":[0,1],"x":[[1,2,3,4,5,6,7],[]]}`))
	f.Add([]byte(`{"t":"clock","a":1,"wall":` + strconv.Itoa(1<<60) + `,"q":5}`))
	for _, c := range controls() {
		line, _ := AppendControl(nil, &c)
		f.Add(line)
	}
	var d Decoder
	f.Fuzz(func(t *testing.T, line []byte) {
		_, _ = d.DecodeControl(line)
		var got []event.Event
		if _, err := d.Decode(line, func(e event.Event) { got = append(got, e) }); err != nil && len(got) > 0 {
			t.Fatalf("%v after %d events", err, len(got))
		}
		for _, e := range got {
			once, err := Append(nil, &e)
			if err != nil {
				t.Fatalf("%v: %+v of %s", err, e, line)
			}
			again := appendSeed(t, decode(t, &d, once)[0])
			if string(once) != string(again) {
				t.Fatalf("%s\n%s\n%s", line, once, again)
			}
		}
	})
}
