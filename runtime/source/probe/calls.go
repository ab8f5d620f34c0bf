//go:build amd64 || arm64

package probe

import "github.com/llmtop/llmtop/profiler/event"

// addCalls notes what the thread of a pass has called of CUDA: at its begin, or at its end so far.
func (f *forward) addCalls(d *probesCalled) {
	if d.Begins != 0 {
		f.calls[0] = d
	} else {
		f.calls[1] = d
	}
}

// callsOf returns what a pass has called of CUDA; nil if not all of it was counted.
func callsOf(t *tracker, f *forward) *event.Calls {
	from, to := f.calls[0], f.calls[1]
	if from == nil || to == nil || t.counts == nil {
		return nil
	}
	all, alone := t.counts(f.began, f.ended)
	if !all {
		return nil
	}
	since := func(before, now uint64) event.Reading { return event.MeasuredValue(float64(now - min(before, now))) }
	c := &event.Calls{
		Launches: since(from.Launches, to.Launches), Graphs: since(from.Graphs, to.Graphs),
		To: since(from.To, to.To), From: since(from.From, to.From),
		ToTime: since(from.ToTime, to.ToTime), FromTime: since(from.FromTime, to.FromTime),
		Wait: since(from.Waited, to.Waited), Gap: since(from.Gaps, to.Gaps), Pass: event.MeasuredValue(float64(f.ended - f.began)),
	}
	if to.Unknown > from.Unknown {
		for _, r := range []*event.Reading{&c.To, &c.From, &c.ToTime, &c.FromTime} {
			*r = event.Absent(event.NotReported)
		}
	}
	if !alone { // another thread may have launched meanwhile
		c.Gap = event.Absent(event.NotReported)
	}
	return c
}

// promptCalls is what the passes of a prompt have called of CUDA.
type promptCalls struct {
	sum         event.Calls
	passes      int
	partial     bool  // of some passes it is unknown
	first, last int64 // begin of the first copy to the device, and end of the last one to the host; 0: none
}

// add adds a pass.
func (p *promptCalls) add(f *forward, c *event.Calls) {
	if c == nil {
		p.partial = true
		return
	}
	if p.passes == 0 {
		p.sum = event.NoCalls()
	}
	p.sum.Add(c)
	p.passes++
	if p.first == 0 {
		p.first = f.calls[1].First
	}
	if end := f.calls[1].Last; end != 0 {
		p.last = end
	}
}

// reportCopies emits the copies in the passes of a prompt as stages. Both are sums: they are placed at the first copy to
// the device, and at the last one from it.
func reportCopies(t *tracker, r *request) {
	p := &r.calls
	if p.partial || p.passes == 0 || !p.sum.ToTime.OK() {
		return
	}
	calls := p.sum
	if ns := int64(calls.ToTime.V); p.first != 0 {
		t.about(r, event.Event{Kind: event.KindStage, Stage: event.StageHostToDevice, Dur: ns, Data: &calls}, p.first+ns)
	}
	if ns := int64(calls.FromTime.V); p.last != 0 {
		t.about(r, event.Event{Kind: event.KindStage, Stage: event.StageDeviceToHost, Dur: ns, Data: &calls}, p.last)
	}
}
