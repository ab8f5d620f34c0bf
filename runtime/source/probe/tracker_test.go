//go:build amd64 || arm64

package probe

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unsafe"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/engine"
)

// process makes the records of a process with one context. Its clock moves by 1000 ns a record.
type process struct {
	t   *tracker
	now int64
}

// log keeps events as short lines.
type log struct{ lines []string }

func (l *log) Emit(e event.Event) {
	switch e.Kind {
	case event.KindRequest:
		line := fmt.Sprintf("#%d %v at %d", e.Req, e.State, e.At)
		if o, ok := e.Data.(*event.Outcome); ok {
			line += fmt.Sprintf(" %q prompt %d cached %d generated %d", o.Reason, o.Prompt, o.Cached, o.Generated)
		}
		l.lines = append(l.lines, line)
	case event.KindStage:
		l.lines = append(l.lines, fmt.Sprintf("#%d %v %d..%d", e.Req, e.Stage, int64(e.At)-e.Dur, e.At))
	case event.KindToken:
		line := fmt.Sprintf("#%d token %d at %d pass %d", e.Req, e.ID, e.At, e.Step)
		if e.Picks != nil {
			line += fmt.Sprint(" picks ", e.Picks)
		}
		l.lines = append(l.lines, line)
	case event.KindStep:
		l.lines = append(l.lines, fmt.Sprintf("pass %d decode %d prompt %d", e.Step, e.N, e.Prompt))
	case event.KindSpeculation:
		s := e.Data.(*event.Speculation)
		line := fmt.Sprintf("drafts %d ns, drafted %v accepted %v", s.DraftTime, s.Drafted, s.Accepted)
		for _, p := range s.Shapes {
			line += fmt.Sprintf(", drafting %t requests %d rows %d: %d x, %d ns, %d tokens", p.Drafting, p.Requests, p.Rows, p.Passes, p.Dur, p.Tokens)
		}
		l.lines = append(l.lines, line)
	case event.KindLog:
		l.lines = append(l.lines, e.Text)
	}
}

func (p *process) apply(kind uint32, tid uint32, data any) {
	p.now += 1000
	p.t.apply(record{probesHead{Kind: kind, Tid: tid, At: p.now}, data})
}

func (p *process) tokenize(tid uint32, tokens ...int32) {
	for first := 0; first < len(tokens); {
		x := &probesTokenized{Began: p.now, Total: int32(len(tokens)), First: int32(first)}
		x.N = int32(copy(x.Token[:], tokens[first:]))
		first += int(x.N)
		p.apply(kindTokenized, tid, x)
	}
}

// rows are tokens of one sequence from a position; the last has an output if asked for.
type rows struct {
	seq, pos int32
	output   bool
	tokens   []int32
}

// begin begins a pass, and gives its batch in parts.
func (p *process) begin(groups ...rows) {
	var all []row
	for _, g := range groups {
		for i, id := range g.tokens {
			all = append(all, row{token: id, pos: g.pos + int32(i), seq: g.seq, output: g.output && i == len(g.tokens)-1})
		}
	}
	p.apply(kindPassBegin, 1, &probesPass{Ctx: 1, Tokens: int32(len(all))})
	p.batch(all, 0)
}

func (p *process) batch(all []row, flags uint32) {
	for first := 0; first < len(all); {
		b := &probesBatchMany{Of: probesBatch{Ctx: 1, Total: int32(len(all)), First: int32(first), Flags: flags | hasPos | hasSeq | hasOutput}}
		b.Of.N = int32(min(len(b.Token), len(all)-first))
		for i, v := range all[first:][:b.Of.N] {
			b.Token[i], b.Pos[i], b.Seq[i] = v.token, v.pos, v.seq
			if v.output {
				b.Output[i] = 1
			}
		}
		first += int(b.Of.N)
		p.apply(kindBatch, 1, b)
	}
}

func (p *process) pick(layer int, rows ...[2]int32) {
	x := &probesPickedMany{Of: probesPicked{Used: 2, Total: int32(len(rows)), N: int32(len(rows))}}
	copy(x.Of.Name[:], pickTensor+strconv.Itoa(layer))
	for i, r := range rows {
		copy(x.Pick[i][:], r[:])
	}
	p.apply(kindPicked, 1, x)
}

func (p *process) end() { p.apply(kindPassEnd, 1, &probesPass{Ctx: 1}) }

func (p *process) sample(index, token int32) {
	p.apply(kindSampled, 1, &probesSampled{Began: p.now, Ctx: 1, Index: index, Token: token})
}

// watch returns a process with a tracker, and its log.
func watch() (*process, *log) {
	l := &log{}
	model := event.Model{Layers: 2, Experts: 8, ExpertsUsed: 2}
	t := newTracker(l, model, func(id int32) bool { return id == 0 }, 0)
	t.sampling.open(0, 0, 0)
	return &process{t: t}, l
}

func expect(t *testing.T, l *log, want string) {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(want), "\n")
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	if !slices.Equal(l.lines, lines) {
		t.Errorf("events:\n%s\nwant:\n%s", strings.Join(l.lines, "\n"), strings.Join(lines, "\n"))
	}
}

// TestRequest follows a request from its bytes to its last token.
func TestRequest(t *testing.T) {
	p, l := watch()
	p.apply(kindReceived, 7, &probesTransfer{Bytes: 9})
	p.apply(kindReceived, 7, &probesTransfer{Bytes: 9}) // the rest
	p.tokenize(7, 10, 11, 12, 13)
	p.begin(rows{0, 1, true, []int32{11, 12, 13}}) // token 10 is cached
	p.pick(0, [2]int32{1, 2}, [2]int32{3, 4}, [2]int32{5, 6})
	p.pick(1, [2]int32{7, 0}) // the last layer computes only the output
	p.end()
	p.sample(2, 20)
	p.begin(rows{0, 4, true, []int32{20}})
	p.apply(kindSent, 7, &probesTransfer{Bytes: 3}) // the answer is streamed
	p.pick(0, [2]int32{1, 3})
	p.pick(1, [2]int32{2, 8}) // no such expert
	p.end()
	p.sample(0, 0)
	p.t.expire(p.now + idleEnd + 1)
	expect(t, l, `
		#1 queued at 1000
		#1 receive 1000..2000
		#1 tokenize 2000..3000
		#1 queue 3000..4000
		#1 running at 4000
		#1 prompt 4000..8000
		pass 1 decode 0 prompt 3
		#1 first_token 8000..9000
		#1 send 9000..12000
		#1 token 20 at 9000 pass 1 picks [5 6 0 7]
		pass 2 decode 1 prompt 0
		#1 token 0 at 16000 pass 2 picks [1 3 65535 65535]
		#1 finished at 16000 "stop" prompt 4 cached 1 generated 2`)
	if e := p.t.experts; e.Prompt[1] != 1 || e.Prompt[8+7] != 1 || e.Decode[1] != 1 || e.Decode[8+2] != 0 || e.PromptTokens != 3 || e.DecodeTokens != 1 {
		t.Errorf("picks: %+v", e)
	}
}

// TestSlots follows two requests in one batch: a prompt in two parts beside a request that decodes.
func TestSlots(t *testing.T) {
	p, l := watch()
	p.begin(rows{0, 0, true, []int32{1, 2}})
	p.end()
	p.sample(1, 3)
	p.begin(rows{0, 2, true, []int32{3}}, rows{1, 0, false, []int32{5, 6}})
	p.end()
	p.sample(0, 4)
	p.begin(rows{0, 3, true, []int32{4}}, rows{1, 2, true, []int32{7}})
	p.end()
	p.sample(0, 8)
	p.sample(1, 9)
	p.begin(rows{1, 3, true, []int32{9}}) // the first request has ended
	p.end()
	p.sample(0, 10)
	p.apply(kindRemoved, 1, &probesRemoved{Seq: 1, From: 1, To: -1})
	p.begin(rows{1, 1, true, []int32{6, 7}}) // the next request in the second slot reuses one token
	p.end()
	p.sample(1, 11)
	p.t.endAll()
	expect(t, l, `
		#1 queued at 1000
		#1 running at 1000
		#1 prompt 1000..3000
		pass 1 decode 0 prompt 2
		#1 first_token 3000..4000
		#1 token 3 at 4000 pass 1
		#2 queued at 5000
		#2 running at 5000
		pass 2 decode 1 prompt 2
		#1 token 4 at 8000 pass 2
		#2 prompt 5000..11000
		pass 3 decode 1 prompt 1
		#1 token 8 at 12000 pass 3
		#2 first_token 11000..13000
		#2 token 9 at 13000 pass 3
		#1 finished at 12000 "" prompt 2 cached 0 generated 3
		pass 4 decode 1 prompt 0
		#2 token 10 at 17000 pass 4
		#2 finished at 17000 "" prompt 3 cached 0 generated 2
		#3 queued at 19000
		#3 running at 19000
		#3 prompt 19000..21000
		pass 5 decode 0 prompt 2
		#3 first_token 21000..22000
		#3 token 11 at 22000 pass 5
		#3 finished at 22000 "" prompt 3 cached 1 generated 1`)
}

// TestOrder checks that picks follow the rows of the physical batch, which may be in another order.
func TestOrder(t *testing.T) {
	p, l := watch()
	p.begin(rows{0, 0, true, []int32{1, 2}}, rows{1, 0, true, []int32{3, 4}})
	p.batch([]row{{token: 3, seq: 1}, {token: 1, seq: 0}, {token: 4, pos: 1, seq: 1}, {token: 2, pos: 1, seq: 0}}, physical)
	p.pick(0, [2]int32{3, 3}, [2]int32{1, 1}, [2]int32{4, 4}, [2]int32{2, 2})
	p.end()
	p.sample(1, 5)
	p.sample(3, 6)
	got := slices.DeleteFunc(l.lines, func(s string) bool { return !strings.Contains(s, "picks") })
	want := []string{
		fmt.Sprintf("#1 token 5 at 6000 pass 1 picks [2 2 %d %d]", engine.NoPick, engine.NoPick),
		fmt.Sprintf("#2 token 6 at 7000 pass 1 picks [4 4 %d %d]", engine.NoPick, engine.NoPick),
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestLateStart attaches in the middle of a request: it is left out, and the next one in its slot is measured.
func TestLateStart(t *testing.T) {
	p, l := watch()
	for i := range int32(3) {
		p.begin(rows{0, 50 + i, true, []int32{9}})
		p.end()
		p.sample(0, 9)
	}
	p.begin(rows{0, 0, true, []int32{1, 2}})
	p.end()
	p.sample(1, 3)
	expect(t, l, `
		a request ran before its passes were seen: the rest of it is not measured
		pass 1 decode 1 prompt 0
		pass 2 decode 1 prompt 0
		pass 3 decode 1 prompt 0
		#1 queued at 13000
		#1 running at 13000
		#1 prompt 13000..15000
		pass 4 decode 0 prompt 2
		#1 first_token 15000..16000
		#1 token 3 at 16000 pass 4`)
}

// TestWithoutSampling follows a program that samples in its own way, such as llama-bench: a pass begins with the token
// that the pass before it yielded.
func TestWithoutSampling(t *testing.T) {
	p, l := watch()
	p.begin(rows{0, 0, true, []int32{1, 2}})
	p.end()
	p.begin(rows{0, 2, true, []int32{3}})
	p.end()
	p.begin(rows{0, 3, true, []int32{4}})
	p.end()
	p.apply(kindRemoved, 1, &probesRemoved{Seq: -1, From: 0, To: -1})
	p.t.endAll()
	if n := len(l.lines); n == 0 || !strings.Contains(strings.Join(l.lines, "\n"), "token 4 at 7000 pass 2") {
		t.Errorf("events: %s", strings.Join(l.lines, "\n"))
	}
}

// TestCleared checks that an emptied cache ends its requests, so that the next batch begins at 0.
func TestCleared(t *testing.T) {
	p, l := watch()
	for range 2 {
		p.begin(rows{0, 0, true, []int32{1, 2}})
		p.end()
		p.begin(rows{0, 2, true, []int32{3}})
		p.end()
		p.apply(kindRemoved, 1, &probesRemoved{Seq: -1, From: -1, To: -1})
	}
	got := slices.DeleteFunc(l.lines, func(s string) bool { return !strings.Contains(s, "finished") })
	want := []string{
		`#1 finished at 6000 "" prompt 2 cached 0 generated 1`,
		`#2 finished at 13000 "" prompt 2 cached 0 generated 1`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestDevice follows passes that a device computes after llama_decode has returned: they end when the results are there,
// or were never waited for.
func TestDevice(t *testing.T) {
	p, l := watch()
	p.t.device = true
	p.begin(rows{0, 0, false, []int32{1, 2}})
	p.end()                                  // at 3000; nobody waits for it
	p.begin(rows{0, 2, true, []int32{3, 4}}) // at 4000
	p.end()
	p.t.expire(p.now + idleEnd + 1) // the device still computes
	p.now = 9000
	p.apply(kindSynced, 1, &probesSynced{Ctx: 1}) // at 10000
	p.apply(kindSynced, 1, &probesSynced{Ctx: 1}) // of another result
	p.sample(1, 5)
	p.t.expire(p.now + idleEnd + 1)
	expect(t, l, `
		#1 queued at 1000
		#1 running at 1000
		pass 1 decode 0 prompt 2
		#1 prompt 1000..10000
		pass 2 decode 0 prompt 2
		#1 first_token 10000..12000
		#1 token 5 at 12000 pass 2
		#1 finished at 12000 "" prompt 4 cached 0 generated 1`)
}

// TestUnreadablePicks follows passes whose picks are in memory that cannot be read, or lost: they are counted as lost.
func TestUnreadablePicks(t *testing.T) {
	p, l := watch()
	p.begin(rows{0, 0, true, []int32{1}})
	p.pick(0, [2]int32{-1, 0})
	p.pick(1, [2]int32{3, 4})
	p.end()
	p.sample(0, 2)
	p.begin(rows{0, 1, true, []int32{2}})
	p.pick(0, [2]int32{5, 6})
	p.apply(kindPassEnd, 1, &probesPass{Ctx: 1, Lost: 1})
	p.sample(0, 3)
	got := slices.DeleteFunc(l.lines, func(s string) bool { return !strings.Contains(s, "#1 token") })
	want := []string{
		fmt.Sprintf("#1 token 2 at 6000 pass 1 picks [%d %d 3 4]", engine.NoPick, engine.NoPick),
		"#1 token 3 at 11000 pass 2",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	p.t.reportLost([numKinds]uint64{kindPicked: 1})
	if n := p.t.drops[event.KindExperts]; n != 2 {
		t.Errorf("%d picks are lost, want one that was not read and one that did not fit", n)
	}
}

// TestInvisiblePicks follows passes whose experts are computed elsewhere: in one layer, and in all.
func TestInvisiblePicks(t *testing.T) {
	for _, c := range []struct {
		name    string
		visible bool
		log     string
	}{
		{"one layer", true, "no router picks seen in layers 1: dense, or not computed on the CPU"},
		{"all layers", false, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, l := watch()
			for i := range int32(enoughPasses) {
				if p.t.blind() {
					t.Fatalf("blind after %d passes", i)
				}
				p.begin(rows{0, i, true, []int32{9}})
				p.pick(1, [2]int32{-1, -1}) // on a GPU
				if c.visible {
					p.pick(0, [2]int32{1, 2})
				}
				p.end()
				p.sample(0, 9)
			}
			if p.t.blind() == c.visible {
				t.Errorf("blind is %v", !c.visible)
			}
			if logged := slices.Contains(l.lines, c.log); logged != c.visible {
				t.Errorf("events: %s", strings.Join(l.lines, "\n"))
			}
			p.begin(rows{0, enoughPasses, true, []int32{9}})
			p.pick(0, [2]int32{1, 2})
			p.end()
			if p.t.blind() {
				t.Error("blind after picks were seen")
			}
		})
	}
}

// TestLostRecords loses the batch of a pass, and the end of the next one: the first is no pass, and its request ends.
func TestLostRecords(t *testing.T) {
	p, l := watch()
	p.begin(rows{0, 0, true, []int32{1, 2}})
	p.end()
	p.sample(1, 3)
	p.apply(kindPassBegin, 1, &probesPass{Ctx: 1, Tokens: 1})
	p.end()
	p.apply(kindPassBegin, 1, &probesPass{Ctx: 1, Tokens: 1})
	p.t.expire(p.now + idleEnd + 1)
	before := len(l.lines)
	p.t.reportLost([numKinds]uint64{kindPassEnd: 1})
	p.t.expire(p.now + idleEnd + 1)
	want := []string{`#1 finished at 4000 "" prompt 2 cached 0 generated 1`}
	if got := l.lines[before:]; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if slices.Contains(l.lines, "pass 2 decode 0 prompt 0") {
		t.Error("a pass without its batch is reported")
	}
}

// TestNonsense refuses a process whose functions are others of the same name, with the reason and without an event.
func TestNonsense(t *testing.T) {
	for why, begin := range map[string]func(*process){
		"sequence -5":          func(p *process) { p.begin(rows{-5, 0, true, []int32{1}}) },
		"position -1":          func(p *process) { p.begin(rows{0, -1, true, []int32{1}}) },
		"token 99, but":        func(p *process) { p.begin(rows{0, 0, true, []int32{99}}) },
		"token -7":             func(p *process) { p.begin(rows{0, 0, true, []int32{-7}}) },
		"position 3 after 4":   func(p *process) { p.begin(rows{0, 4, false, []int32{1}}, rows{0, 3, true, []int32{1}}) },
		"has -8 tokens":        func(p *process) { p.apply(kindPassBegin, 1, &probesPass{Ctx: 1, Tokens: -8}) },
		"has 123456789 tokens": func(p *process) { p.apply(kindPassBegin, 1, &probesPass{Ctx: 1, Tokens: 123456789}) },
	} {
		p, l := watch()
		p.t.model.Vocab = 50
		begin(p)
		p.end()
		p.begin(rows{0, 0, true, []int32{1}})
		p.end()
		if !strings.Contains(p.t.refused, why) || len(l.lines) != 0 {
			t.Errorf("%s: refused for %q, events %q", why, p.t.refused, l.lines)
		}
	}
}

// sinkFunc is a sink that calls a function.
type sinkFunc func(event.Event)

func (f sinkFunc) Emit(e event.Event) { f(e) }

// TestLastPicks checks that the picks of the last passes are reported although no pass follows.
func TestLastPicks(t *testing.T) {
	sums := 0
	p, _ := watch()
	p.t.sink = sinkFunc(func(e event.Event) {
		if x, ok := e.Data.(*event.Experts); ok && x.Prompt[1] == 1 {
			sums++
		}
	})
	p.begin(rows{0, 0, true, []int32{1}})
	p.pick(0, [2]int32{1, 2})
	p.end()
	p.t.expire(p.now)
	p.t.expire(p.now + expertsEvery)
	p.t.expire(p.now + 3*expertsEvery)
	if sums != 1 {
		t.Errorf("%d sums of picks, want 1", sums)
	}
}

// TestContexts bounds the contexts that are remembered, and ends the requests of those that are forgotten.
func TestContexts(t *testing.T) {
	p, l := watch()
	for ctx := range uint64(maxContexts + 10) {
		p.apply(kindPassBegin, 1, &probesPass{Ctx: ctx, Tokens: 1})
		b := &probesBatchMany{Of: probesBatch{Ctx: ctx, Total: 1, N: 1, Flags: hasPos | hasSeq}}
		p.apply(kindBatch, 1, b)
		p.apply(kindPassEnd, 1, &probesPass{Ctx: ctx})
	}
	ended := slices.DeleteFunc(l.lines, func(s string) bool { return !strings.Contains(s, "finished") })
	if len(p.t.contexts) != maxContexts || len(ended) != 10 {
		t.Errorf("%d contexts, %d requests ended", len(p.t.contexts), len(ended))
	}
}

// TestLateNonsense counts a batch that cannot be, once the layout is known to be right, and goes on.
func TestLateNonsense(t *testing.T) {
	p, l := watch()
	for range firstPasses {
		p.begin(rows{0, 0, true, []int32{1}})
		p.end()
	}
	p.begin(rows{-5, 0, true, []int32{1}})
	p.end()
	seen := len(l.lines)
	p.begin(rows{0, 0, true, []int32{1}})
	p.end()
	if p.t.refused != "" || p.t.malformed != 1 || len(l.lines) == seen {
		t.Errorf("refused for %q, %d malformed", p.t.refused, p.t.malformed)
	}
}

// TestLostRows checks that a pass whose rows did not all come has no events: their number is unknown.
func TestLostRows(t *testing.T) {
	p, l := watch()
	p.apply(kindPassBegin, 1, &probesPass{Ctx: 1, Tokens: 3})
	p.end()
	p.sample(0, 1)
	if len(l.lines) != 0 {
		t.Errorf("events %q", l.lines)
	}
}

func FuzzRecords(f *testing.F) {
	seed := make([]byte, 1200)
	for kind := range uint32(numKinds + 1) {
		binary.NativeEndian.PutUint32(seed, kind)
		f.Add(seed, uint8(kind))
	}
	f.Fuzz(func(t *testing.T, raw []byte, kinds uint8) {
		p, _ := watch()
		for len(raw) > int(unsafe.Sizeof(probesHead{})) {
			n := min(len(raw), 40+int(kinds)*16)
			if r, err := parse(raw[:n]); err == nil {
				p.t.apply(r)
				p.t.expire(r.At)
			}
			raw = raw[n:]
		}
		p.t.endAll()
	})
}

// TestDeviceStart: the first request of a process that had not opened its GPU starts it.
func TestDeviceStart(t *testing.T) {
	var started []bool
	sink := event.SinkFunc(func(e event.Event) {
		if p, ok := e.Data.(*event.Request); ok {
			started = append(started, p.DeviceStart)
		}
	})
	tr := newTracker(sink, event.Model{}, nil, 0)
	tr.starts = true
	p := &process{t: tr}
	for seq := range int32(3) {
		p.apply(kindPassBegin, 1, &probesPass{Ctx: 1, Tokens: 1})
		b := &probesBatchMany{Of: probesBatch{Ctx: 1, Total: 1, N: 1, Flags: hasPos | hasSeq}}
		b.Token[0], b.Seq[0] = 5, seq
		p.apply(kindBatch, 1, b)
		p.apply(kindPassEnd, 1, &probesPass{Ctx: 1, Tokens: 1})
	}
	if !slices.Equal(started, []bool{true, false, false}) {
		t.Errorf("%v, want the first one", started)
	}
}
