package wire

import (
	"math"
	"slices"
	"strconv"

	"github.com/llmtop/llmtop/profiler/event"
)

// The members of tok and step lines. A token and a forward pass have no payload: the event itself has them.
var (
	tokenColumns = []column{
		timeColumn,
		{"r", scalarValue, nil, putRequest, func(d *Decoder, e *event.Event) { e.Req = event.RequestID(d.identifier()) }},
		deltas("i", func(e *event.Event) int64 { return int64(e.Index) }, func(e *event.Event, v int64) { e.Index = clamp(v) }),
		numbers("d", func(e *event.Event) int64 { return int64(e.ID) }, func(e *event.Event, v int64) { e.ID = clamp(v) }),
		numbers("n", func(e *event.Event) int64 { return unless(e.N, 1) }, func(e *event.Event, v int64) { e.N = clamp(v) }),
		numbers("g", func(e *event.Event) int64 { return unless(max(e.Reasoning, 0), 0) }, func(e *event.Event, v int64) { e.Reasoning = clamp(v) }),
		numbers("c", func(e *event.Event) int64 { return unless(e.Choice, 0) }, func(e *event.Event, v int64) { e.Choice = uint16(min(v, math.MaxUint16)) }),
		stepColumn,
		numbers("h", func(e *event.Event) int64 { return unless(e.Handover, 0) }, func(e *event.Event, v int64) { e.Handover = uint32(min(v, math.MaxUint32)) }),
		numbers("q", lostTokens, func(e *event.Event, v int64) { e.Lost = v > 0 }),
		{"l", scalarValue, nil, putLogProb, readLogProb},
		{"p", numberArray, nil, putText, readText},
		{"w", scalarValue, nil, putSampling, readNumber(func(e *event.Event, v int64) { e.Dur = v })}, // until the end of the line: the number of the pass may follow
		{"x", numberArray, nil, putTokenSplit, readSplit},
		{"o", nestedArray, nil, putTop, readTop},
		{"e", numberArray, nil, putPicks, readPicks},
	}
	stepColumns = []column{
		timeColumn,
		numbers("dur", func(e *event.Event) int64 { return max(e.Dur, 0) }, func(e *event.Event, v int64) { e.Dur = v }),
		stepColumn,
		numbers("n", func(e *event.Event) int64 { return unless(max(e.N, 0), 0) }, func(e *event.Event, v int64) { e.N = clamp(v) }),
		numbers("m", func(e *event.Event) int64 { return unless(max(e.Prompt, 0), 0) }, func(e *event.Event, v int64) { e.Prompt = clamp(v) }),
		{"x", numberArray, nil, putSplit, readSplit},
		{"fpm", scalarValue, nil, putPass, readPass},
		{"cuda", scalarValue, nil, putCalls, readCalls},
	}
	stepColumn = deltas("s", func(e *event.Event) int64 { return unless(min(e.Step, event.MaxNumber), 0) }, func(e *event.Event, v int64) { e.Step = uint64(v) })
)

// unless returns v, or a negative number if it is what readers assume.
func unless[T ~uint16 | ~int32 | ~uint32 | ~uint64](v, assumed T) int64 {
	if v == assumed {
		return -1
	}
	return int64(v)
}

// lostTokens returns 1 if tokens before this one were lost, else a negative number.
func lostTokens(e *event.Event) int64 {
	if e.Lost {
		return 1
	}
	return -1
}

func clamp(v int64) int32 { return int32(min(v, math.MaxInt32)) }

// AppendTokens appends tokens as one line without its end, at least one and at most MaxBatch. steps are forward passes
// that the reader has already received: a token whose split matches its pass in steps stores only its sampling time.
func AppendTokens(dst []byte, tokens []event.Event, steps []event.Event) ([]byte, error) {
	if slices.ContainsFunc(tokens, func(e event.Event) bool { return e.Req == 0 }) {
		return dst, ErrEvent
	}
	return appendColumns(dst, "tok", tokenColumns, tokens, steps)
}

// AppendSteps appends forward passes without a payload as one line without its end.
func AppendSteps(dst []byte, steps []event.Event) ([]byte, error) {
	return appendColumns(dst, "step", stepColumns, steps, nil)
}

func appendToken(dst []byte, e *event.Event) ([]byte, bool) {
	return one(dst, tokenColumns, e), e.Req != 0
}

func appendStep(dst []byte, e *event.Event) ([]byte, bool) { return one(dst, stepColumns, e), true }

func readTokens(d *Decoder) string {
	d.readColumns(tokenColumns, event.Event{Kind: event.KindToken, ID: -1, Index: -1, N: 1, Dur: -1})
	for i := range d.events[:d.n] {
		e := &d.events[i]
		if e.Req == 0 {
			return "request"
		}
		if e.Dur >= 0 && e.Split == (event.Split{}) {
			e.Split = d.splitOf(e.Step)
			e.Split.Sample = uint32(min(e.Dur, math.MaxUint32))
		}
		e.Dur = 0
	}
	return ""
}

func readSteps(d *Decoder) string {
	d.readColumns(stepColumns, event.Event{Kind: event.KindStep, Dur: -1})
	for i := range d.events[:d.n] {
		e := &d.events[i]
		if e.Dur < 0 {
			return "duration"
		}
		d.storeSplit(e.Step, e.Split)
	}
	return ""
}

func putRequest(_ batch, dst []byte, e *event.Event) []byte {
	return strconv.AppendUint(dst, uint64(e.Req), 10)
}

func putLogProb(_ batch, dst []byte, e *event.Event) []byte {
	if !e.HasLogP {
		return dst
	}
	return appendFloat(dst, float64(e.LogP), 32)
}

func readLogProb(d *Decoder, e *event.Event) {
	v, ok := d.float()
	if e.HasLogP = ok && !math.IsInf(float64(float32(v)), 0); e.HasLogP {
		e.LogP = float32(v)
	}
}

func putText(_ batch, dst []byte, e *event.Event) []byte {
	if e.Text == "" {
		return dst
	}
	return appendText(dst, cut(e.Text))
}

func readText(d *Decoder, e *event.Event) {
	d.room = d.text(d.room[:0], MaxString)
	e.Text = string(d.room)
}

// keptPasses is how many forward passes a token line may lag behind its pass: 32 bytes each, 128 KiB.
const keptPasses = 4096

// storeSplit keeps the split time of a pass for later tokens.
func (d *Decoder) storeSplit(step uint64, split event.Split) {
	if step == 0 || split == (event.Split{}) {
		return
	}
	if d.passes == nil {
		d.passes = slices.Grow(d.passes, keptPasses)[:keptPasses]
	}
	p := &d.passes[step%keptPasses]
	p.number, p.split = step, split
}

// splitOf returns the split time of a pass, if it was received and is recent.
func (d *Decoder) splitOf(step uint64) event.Split {
	if d.passes == nil || step == 0 {
		return event.Split{}
	}
	if p := &d.passes[step%keptPasses]; p.number == step {
		return p.split
	}
	return event.Split{}
}

// isOfPass reports whether the split time of a token is that of its pass but for the sampling. Passes are in order of
// their numbers, mostly without gaps.
func (b batch) isOfPass(e *event.Event) bool {
	if len(b.steps) == 0 || e.Step == 0 || e.Split == (event.Split{}) {
		return false
	}
	i := e.Step - b.steps[0].Step
	if i >= uint64(len(b.steps)) || b.steps[i].Step != e.Step {
		return false
	}
	s := b.steps[i].Split
	s.Sample = e.Split.Sample
	return s == e.Split
}

func putSampling(b batch, dst []byte, e *event.Event) []byte {
	if !b.isOfPass(e) {
		return dst
	}
	return strconv.AppendUint(dst, uint64(e.Split.Sample), 10)
}

func putTokenSplit(b batch, dst []byte, e *event.Event) []byte {
	if b.isOfPass(e) {
		return dst
	}
	return putSplit(b, dst, e)
}

func putSplit(_ batch, dst []byte, e *event.Event) []byte {
	s := &e.Split
	if *s == (event.Split{}) {
		return dst
	}
	return appendUints(dst, s.Embed, s.Attention, s.Router, s.Experts, s.Head, s.Sample)
}

func readSplit(d *Decoder, e *event.Event) {
	e.Split = event.Split{}
	parts := e.Split.Parts()
	for i := range d.elements() {
		if v := min(d.count(), math.MaxUint32); i < len(parts) {
			*parts[i] = uint32(v)
		}
	}
}

// putTop appends the alternatives of a token.
func putTop(_ batch, dst []byte, e *event.Event) []byte {
	if len(e.Top) == 0 {
		return dst
	}
	return appendArray(dst, e.Top[:min(len(e.Top), MaxTop)], func(dst []byte, t event.TopProb) []byte {
		dst = strconv.AppendInt(append(dst, '['), int64(t.ID), 10)
		dst = appendFloat(append(dst, ','), float64(t.LogP), 32)
		if t.Text != "" {
			dst = appendText(append(dst, ','), cut(t.Text))
		}
		return append(dst, ']')
	})
}

func readTop(d *Decoder, e *event.Event) {
	e.Top = nil
	for range d.elements() {
		if t := d.readCandidate(); len(e.Top) < MaxTop {
			e.Top = append(e.Top, t)
		}
	}
}

func (d *Decoder) readCandidate() event.TopProb {
	t := event.TopProb{ID: -1, LogP: float32(math.Inf(-1))}
	for i := range d.elements() {
		switch i {
		case 0:
			t.ID = d.int32()
		case 1:
			if v, ok := d.float(); ok {
				t.LogP = float32(v)
			}
		case 2:
			t.Text = string(d.text(nil, MaxString))
		default:
			d.scan.skip()
		}
	}
	return t
}

func putPicks(_ batch, dst []byte, e *event.Event) []byte {
	if len(e.Picks) == 0 {
		return dst
	}
	return appendPicks(dst, e.Picks)
}

func readPicks(d *Decoder, e *event.Event) {
	list := d.picks[:0]
	if d.scan.peek() == '"' {
		var ok bool
		if list, ok = unpackPicks(list, d.scan.str()); !ok {
			d.scan.fail("malformed picks")
		}
	} else {
		for range d.elements() {
			list = append(list, uint16(min(d.count(), math.MaxUint16)))
		}
	}
	if d.picks, e.Picks = list, nil; len(list) > 0 {
		e.Picks = slices.Clone(list)
	}
}

func putPass(_ batch, dst []byte, e *event.Event) []byte {
	if p := dataOf[event.Pass](e); p != nil {
		return appendObject(dst, p)
	}
	return dst
}

func putCalls(_ batch, dst []byte, e *event.Event) []byte {
	if p := dataOf[event.Calls](e); p != nil {
		return appendObject(dst, p)
	}
	return dst
}

func readCalls(d *Decoder, e *event.Event) {
	p := new(event.Calls)
	d.readObject(p)
	e.Data = p
}

func readPass(d *Decoder, e *event.Event) {
	p := new(event.Pass)
	d.readObject(p)
	e.Data = p
}
