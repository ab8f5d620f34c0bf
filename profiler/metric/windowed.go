package metric

import "time"

// slots is the number of past seconds that a Windowed keeps besides the current one.
const slots = 59

// Windowed is a distribution over every Window: one histogram per second, merged by addition. It takes some
// 200 bytes for each of the last 60 seconds with values, and next to nothing before the first one. The zero value is
// empty. Windows end with the current second: "last 10 s" is the current second and the nine before it. "last 1 s" is the
// last complete second, so that it does not restart with each second.
type Windowed struct {
	second     int64 // number of the current second
	*collected       // nil: empty
}

// collected holds the histograms of a Windowed.
type collected struct {
	current Histogram
	past    [slots]*Histogram // second s is at s % slots; nil if it is empty
	number  [slots]int64      // the second of each entry of past
	ten     Histogram         // sum of the nine seconds before the current one
	minute  Histogram         // sum of the 59 seconds before the current one
	session Histogram
	whole   *Histogram // last result of Whole
	all     Summary    // of session; outdated if it has another count
	sum     Histogram  // of withCurrent
}

// Record counts v k times at a time in ns. Times before the current second count in the current second.
func (w *Windowed) Record(now, v int64, k uint32) {
	w.advance(now)
	if w.collected == nil {
		w.collected = new(collected)
	}
	w.current.Record(v, k)
	w.session.Record(v, k)
}

// advance makes the second of now the current one.
func (w *Windowed) advance(now int64) {
	s := now / int64(time.Second)
	if s <= w.second {
		return
	}
	if w.collected == nil || w.current.n == 0 && w.minute.n == 0 {
		w.second = s
		return
	}
	if w.current.n > 0 {
		i := w.second % slots
		w.past[i], w.number[i] = w.current.Clone(), w.second
		w.current.reset()
	}
	w.second = s
	w.ten.reset()
	w.minute.reset()
	for i, h := range w.past {
		if h == nil {
			continue
		}
		if w.number[i] > s-60 {
			w.minute.Add(h)
		}
		if w.number[i] > s-10 {
			w.ten.Add(h)
		}
	}
}

// Second returns the number of the current second, in which earlier values count, too.
func (w *Windowed) Second() int64 { return w.second }

// Summaries describes the distribution over every window ending now.
func (w *Windowed) Summaries(now int64) (out [NumWindows]Summary) {
	w.advance(now)
	if w.collected == nil {
		return out
	}
	if out[Second] = w.At(w.second - 1); out[Second].Count == 0 {
		out[Second] = w.current.Summary()
	}
	if w.all.Count != w.session.n {
		w.all = w.session.Summary()
	}
	out[TenSeconds], out[Minute], out[Session] = w.withCurrent(&w.ten), w.withCurrent(&w.minute), w.all
	return out
}

// withCurrent describes a sum of past seconds and the current one.
func (w *Windowed) withCurrent(past *Histogram) Summary {
	if w.current.n == 0 {
		return past.Summary()
	}
	w.sum.set(past)
	w.sum.Add(&w.current)
	return w.sum.Summary()
}

// At describes the distribution of one second, numbered now / 1 s. It is empty outside the last minute.
func (w *Windowed) At(s int64) Summary {
	if w.collected == nil {
		return Summary{}
	}
	if s == w.second {
		return w.current.Summary()
	}
	i := max(s, 0) % slots
	if w.past[i] == nil || w.number[i] != s {
		return Summary{}
	}
	return w.past[i].Summary()
}

// Whole returns the distribution over the session, shared until another value is recorded and never changed; nil without
// values.
func (w *Windowed) Whole() *Histogram {
	if w.collected == nil {
		return nil
	}
	if w.whole.Count() != w.session.n {
		w.whole = w.session.Clone()
	}
	return w.whole
}
