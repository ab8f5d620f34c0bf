package gather

import (
	"math"
	"slices"
)

// The times for which series are kept that are missing in a text, in complete texts.
const (
	heldTexts    = 5   // a gauge is shown with its last value as long as other series of its metric come
	keptTexts    = 600 // a counter continues from its last value
	flapTexts    = 60  // a counter that fell, came back and falls again belongs to several processes
	settledTexts = 30  // one process answers again
)

// SeveralProcesses is the reason why the metrics of an address are not reported.
const SeveralProcesses = "several processes answer at this address in turn: attach to each of them, or to a Prometheus"

// Several reports whether different processes answer with the texts. Their numbers cannot be told apart, and are not
// reported.
func (g *Gatherer) Several() bool { return g.severalAt > 0 && g.texts-g.severalAt < settledTexts }

// setSeveral records that another process than before has answered, which was there all the time. What was counted
// before is void.
func (g *Gatherer) setSeveral() {
	if !g.Several() {
		g.void, g.Restarts = true, g.restartsBefore
	}
	g.severalAt = g.texts
}

// countRestart counts a restart, at most once per text. A series that was missing at the restart does not count again.
func (g *Gatherer) countRestart(seen uint32) {
	if g.Several() || g.resetAt > 0 && seen < g.resetAt {
		return
	}
	if g.resetAt == 0 || g.texts-g.resetAt > flapTexts {
		g.restartsBefore = g.Restarts
	}
	g.resetAt = g.texts
	g.Restarts++
}

// readStarts takes the start times of processes from the text. With one of them all series belong to one process.
func (g *Gatherer) readStarts() {
	g.starts = g.starts[:0]
	for _, i := range g.roles[processStart] {
		for _, s := range g.metrics[i].series {
			if s.round == g.round {
				g.starts = append(g.starts, s)
			}
		}
	}
	if len(g.starts) != 1 {
		g.onlyStart = 0
		return
	}
	before, now := g.onlyStart, g.starts[0].next
	if g.onlyStart = now; before == 0 {
		return
	}
	if math.Abs(now-before) <= 1 {
		return
	}
	changed := g.startChanged
	g.startChanged = g.texts
	switch {
	case g.Several(), changed > 0 && g.texts-changed <= flapTexts && (now < before || g.wentBack):
		g.setSeveral() // a single step may be one of the clock
	case now > before && g.began(now, g.readAt):
		g.countRestart(g.texts)
	}
	g.wentBack = now < before
}

// startOf returns the start of the process of a series; 0: unknown.
func (g *Gatherer) startOf(set *labelSet) float64 {
	if len(g.starts) == 1 {
		return g.starts[0].next
	}
	for _, s := range g.starts {
		if !slices.ContainsFunc(s.set.pairs, func(p pair) bool {
			return !slices.ContainsFunc(set.pairs, func(o pair) bool { return o.hash == p.hash })
		}) {
			return s.next
		}
	}
	return 0
}

// began reports whether a process began after a Unix time in s: its counters were 0 then. If that time is unknown, it did.
func (g *Gatherer) began(start, after float64) bool {
	return g.Now == 0 || after == 0 || start > after-2
}

// outdated reports whether a series that is missing in the text belonged to a process that has ended.
func (g *Gatherer) outdated(s *series) bool {
	return g.onlyStart > 0 && s.start > 0 && math.Abs(s.start-g.onlyStart) > 1
}

// findNewEngines finds the labels of engines that no text before had, while it had other engines. Such an engine has
// counted before.
func (g *Gatherer) findNewEngines() {
	clear(g.newEngines)
	if g.texts < 2 || !g.hadRequests {
		return
	}
	for i := range g.metrics {
		m := &g.metrics[i]
		if m.Role != Running && m.Role != InFlight && m.Role != Waiting && m.Role != KVUsage {
			continue
		}
		for _, s := range m.series {
			if s.text > 0 || s.round != g.round {
				continue
			}
			for _, p := range s.set.pairs {
				if !p.isModel && g.pairs[p.hash].since+1 >= g.texts {
					g.newEngines[p.hash] = true
				}
			}
		}
	}
}

// startsAtZero reports whether a series that no text before had was 0 at the text before.
func (g *Gatherer) startsAtZero(s *series) bool {
	if g.texts < 2 || s.older || s.lost {
		return false // the first text, or what others have counted until now
	}
	isNew := slices.ContainsFunc(s.set.pairs, func(p pair) bool { return g.newEngines[p.hash] })
	return !isNew || len(g.starts) > 1 && s.start > 0 && g.Now > 0 && g.began(s.start, g.readAt)
}

// previous prepares the previous value of a series of the text. It reports false if there is none: then the value is
// new, or if fromZero, all of it is an increase.
func (g *Gatherer) previous(s *series) (has, fromZero bool) {
	now := g.startOf(s.set)
	before := s.start
	s.start = now
	switch {
	case g.rebase:
		s.fellAt, s.returned = 0, false
		return false, false
	case s.text == 0:
		return false, g.startsAtZero(s)
	case before == 0 || now == 0 || now <= before+1 && now >= before-1:
		return true, false
	case now > before && g.began(now, s.at):
		g.countRestart(s.text)
		return false, true
	}
	return false, false // another process, which has counted before
}

// follow watches for counters that fall and come back. v is the value in the text. It reports whether the counter fell: it
// was reset.
func (g *Gatherer) follow(s *series, before, v float64) (fell bool) {
	if s.fellAt > 0 && g.texts-s.fellAt > flapTexts {
		s.fellAt, s.returned = 0, false
	}
	if v >= before {
		s.rises(v-before, v, g)
		return false
	}
	g.countRestart(s.text)
	if s.returned || g.Several() {
		g.setSeveral()
	}
	if s.jumpedAt > 0 && g.texts-s.jumpedAt <= flapTexts {
		isBack := v >= s.low && v-s.low <= s.jump/20 && before-s.low <= s.jump+s.jump/20
		g.isBack, g.notBack = g.isBack || isBack, g.notBack || !isBack
	}
	s.high, s.fellAt, s.returned = before, g.texts, false
	return true
}

// leastJump is the smallest increase in one text that can show by itself that another process has answered.
const leastJump = 1000

// rises records that a counter has risen to v. After it fell, it has come back when it reaches the value before. If it does
// so at once, to little more than that, and by far more than it ever rose, this is the process before. So it is if it
// falls to little more than it was before such a rise, and rose little since: a process that restarts has not counted that
// much at once.
func (s *series) rises(by, v float64, g *Gatherer) {
	switch {
	case s.fellAt == 0:
		if by >= max(leastJump, 20*s.peak) && v-by > by/20 {
			s.jumpedAt, s.jump, s.low = g.texts, by, v-by
		}
		s.peak = max(s.peak, by)
	case s.returned:
	case v < s.high:
		g.notBack = true
	default:
		s.returned = true
		g.isBack = g.isBack || by >= max(leastJump, 20*s.peak) && v-s.high <= by/20
	}
}

// advance adds the increase of a counter since it was last in a text.
func (g *Gatherer) advance(m *metric, s *series) {
	has, fromZero := g.previous(s)
	increase := 0.0
	switch {
	case has && !g.follow(s, s.value, s.next):
		increase = s.next - s.value
	case has, fromZero:
		increase = s.next
	}
	s.value = s.next
	if s.of != nil {
		return
	}
	texts := 1.0
	if s.text > 0 {
		texts = float64(g.texts - s.text)
	}
	s.last = increase / texts
	m.increase += increase
	m.late += increase - s.last
}

// finishText ends a complete text: it adds up the series and drops those that have been missing for too long.
func (g *Gatherer) finishText() {
	g.texts++
	g.rebase = g.severalAt > 0 && g.texts-g.severalAt == settledTexts
	g.readStarts()
	g.relateSeries()
	g.findNewEngines()
	g.hadRequests, g.isBack, g.notBack = false, false, false
	for i := range g.metrics {
		m := &g.metrics[i]
		m.n, m.held = 0, 0
		if m.round != g.round {
			continue
		}
		m.check(g.round, g.differRound)
		g.finishMetric(m)
		g.hadRequests = g.hadRequests || m.n > 0 && (m.Role == Running || m.Role == InFlight)
	}
	if g.isBack && !g.notBack {
		g.setSeveral()
	}
	g.experts.finish()
	g.findModels()
	g.lastComplete, g.readAt = g.round, g.Now
}

// finishMetric adds up the series of a metric that the text has.
func (g *Gatherer) finishMetric(m *metric) {
	m.sum = 0
	for _, s := range m.series {
		switch {
		case s.round != g.round:
			if m.Role.isCounter() && s.of == nil && g.texts-s.text <= heldTexts && !g.outdated(s) {
				m.held += s.last
			}
			continue
		case m.problem == seriesAgain:
			s.text, s.lost = 0, true
			continue
		case s.histogram != nil && (math.IsNaN(s.nextCount) || math.IsNaN(s.nextSum)):
			m.problem, s.lost = noSum, true
			continue
		case s.histogram != nil:
			g.advanceHistogram(m, s)
		case m.Role.isCounter():
			g.advance(m, s)
		default:
			s.value, s.start = s.next, g.startOf(s.set)
		}
		s.text, s.at = g.texts, g.Now
		if s.of == nil {
			m.sum += s.value
			m.n++
		}
	}
	if m.Histogram == "" && !m.Role.isCounter() {
		g.addGauges(m)
	}
}

// advanceHistogram adds what a histogram has counted since it was last in a text.
func (g *Gatherer) advanceHistogram(m *metric, s *series) {
	has, fromZero := g.previous(s)
	fell := has && g.follow(s, s.histogram.count, s.nextCount)
	into, lost := m.interval, has && !fell && s.nextSum < s.sum
	if s.of != nil {
		into = new(intervalHistogram)
	} else if lost {
		m.problem = sumFell
	}
	into.add(s.histogram, has && !fell, (has || fromZero) && !lost)
}

// relateSeries drops the series that have been missing for too long, and relates the others if there are new ones.
func (g *Gatherer) relateSeries() {
	for i := range g.metrics {
		m := &g.metrics[i]
		kept := uint32(heldTexts)
		if m.hasSeries() {
			kept = keptTexts
		}
		m.series = slices.DeleteFunc(m.series, func(s *series) bool {
			gone := s.round != g.round && (g.texts-s.text > kept || len(m.series) >= maxSeries || g.rebase)
			if gone {
				g.release(s.set)
				m.related = false
			}
			return gone
		})
		if m.related {
			continue
		}
		m.relate()
		if m.Role == Running || m.Role == InFlight {
			if g.requestLabels == nil {
				g.requestLabels = make(map[uint64]bool)
			}
			for _, s := range m.series {
				for _, p := range s.set.pairs {
					g.requestLabels[p.name] = true
				}
			}
		}
	}
}
