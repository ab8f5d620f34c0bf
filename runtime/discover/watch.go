package discover

import (
	"context"
	"time"

	"github.com/llmtop/llmtop/profiler/event"
)

// Watch looks again and again: what engines have generated between two looks is their speed, where they do not tell that themselves. Its zero
// value is ready; it is for one goroutine.
type Watch struct {
	Options Options
	before  map[string]made // by address
	asker   asker
}

// made is what an engine has generated.
type made struct {
	at     time.Time
	tokens Progress
}

// Progress counts tokens, by what they belong to: a request, or the engine as a whole.
type Progress map[string]float64

// since is how many tokens have come; false if that cannot be told: after a restart, or when a request has ended meanwhile, since nobody knows
// with how many.
func (p Progress) since(before Progress) (sum float64, ok bool) {
	for key := range before {
		if _, here := p[key]; !here {
			return 0, false
		}
	}
	for key, n := range p {
		if n < before[key] {
			return 0, false
		}
		sum += n - before[key]
	}
	return sum, p != nil && before != nil
}

// Look is Find, with speeds from the second time on.
func (w *Watch) Look(ctx context.Context) Result {
	opt := w.Options
	if opt.Identify == nil {
		opt.Identify = w.asker.identify
	}
	r := Find(ctx, opt)
	now := time.Now()
	made := map[string]made{}
	for i := range r.Engines {
		f := &r.Engines[i]
		if f.progress == nil {
			continue
		}
		made[f.Address] = w.rate(f, now)
	}
	w.before = made
	return r
}

// rate sets an engine's speed, and is what has to be known next time.
func (w *Watch) rate(f *Found, now time.Time) made {
	before, known := w.before[f.Address]
	seconds := now.Sub(before.at).Seconds()
	switch tokens, ok := f.progress.since(before.tokens); {
	case f.Load.Decode.OK():
	case known && ok && seconds > 0:
		f.Load.Decode = event.Reading{V: tokens / seconds, Origin: event.Derived}
	default:
		f.Load.Decode = event.Absent(event.NotYet)
	}
	return made{now, f.progress}
}
