package fleet

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/source/scrape/gather"
)

// A process may be scraped several times: by a pair of Prometheus servers whose series differ in a label such as replica,
// or as a target of two jobs. Such targets have the same instance. They are copies of one replica as long as their
// counters could be those of one process: each value lies between those that the other one had before and after it.

// instance holds the targets with one address.
type instance struct {
	ups       []*up    // ascending by target
	differing []string // labels in which they differ
	seen      map[target]*history
	apart     map[[2]target]bool // targets that are not copies of each other, in their order
}

// up is a target of Prometheus with its metric up.
type up struct {
	target target
	labels map[string]string
	at     float64 // Unix time of the last scrape, in s
	value  float64 // 1 if the last scrape succeeded
}

// scrape is what Prometheus has stored of one scrape of a target.
type scrape struct {
	target target
	at     float64 // Unix time in s
	table  *gather.Table
	lines  []line
}

// history holds the counters of the last two scrapes of a target.
type history [2]struct {
	at     float64
	values map[string]float64 // by name and labels; nil: no scrape
}

// setInstances sets the current targets.
func (s *Poller) setInstances(states map[target]*up) {
	before, ups := s.instances, make(map[string][]*up)
	for t, u := range states {
		ups[t.instance] = append(ups[t.instance], u)
	}
	s.instances = make(map[string]*instance, len(ups))
	for name, list := range ups {
		slices.SortFunc(list, func(a, b *up) int { return a.target.compare(b.target) })
		at := before[name]
		if at == nil {
			at = &instance{seen: make(map[target]*history), apart: make(map[[2]target]bool)}
		}
		at.ups, at.differing = list, differing(list)
		gone := func(t target) bool { return !slices.ContainsFunc(list, func(u *up) bool { return u.target == t }) }
		maps.DeleteFunc(at.seen, func(t target, _ *history) bool { return gone(t) })
		maps.DeleteFunc(at.apart, func(pair [2]target, _ bool) bool { return gone(pair[0]) || gone(pair[1]) })
		s.instances[name] = at
	}
}

// differing returns the names of the labels in which targets differ.
func differing(list []*up) (names []string) {
	for _, u := range list {
		for name := range u.labels {
			if name != "__name__" && !slices.Contains(names, name) &&
				slices.ContainsFunc(list, func(o *up) bool { return o.labels[name] != u.labels[name] }) {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return names
}

// targetOf returns the target of a sample; nil if none has its labels.
func (i *instance) targetOf(labels map[string]string) *up {
	for _, u := range i.ups {
		if !slices.ContainsFunc(i.differing, func(name string) bool { return labels[name] != u.labels[name] }) {
			return u
		}
	}
	return nil
}

// describe returns the labels of a target in which it differs from the others.
func (i *instance) describe(t target) string {
	var out []string
	for _, u := range i.ups {
		for _, name := range i.differing {
			if u.target == t && name != "job" {
				out = append(out, name+"="+u.labels[name])
			}
		}
	}
	return strings.Join(out, ", ")
}

// takeCopies returns the first of the scrapes of an instance with its copies, and the others.
func (i *instance) takeCopies(scrapes []scrape) (copies, others []scrape) {
	if len(i.ups) == 1 {
		return scrapes, nil
	}
	for _, sc := range scrapes {
		i.remember(&sc)
	}
	first := &scrapes[0]
	for j := range scrapes {
		if other := &scrapes[j]; j == 0 || other.table == first.table && i.areCopies(first.target, other.target) {
			copies = append(copies, *other)
		} else {
			others = append(others, *other)
		}
	}
	return copies, others
}

// remember adds a scrape to the history of its target.
func (i *instance) remember(sc *scrape) {
	h := i.seen[sc.target]
	if h == nil {
		h = new(history)
		i.seen[sc.target] = h
	}
	if h[1].values != nil && h[1].at >= sc.at {
		return
	}
	h[0] = h[1]
	h[1].at, h[1].values = sc.at, make(map[string]float64, len(sc.lines))
	for j := range sc.lines {
		l := &sc.lines[j]
		h[1].values[l.name+"{"+l.labels+l.le] = l.value
	}
}

// areCopies reports whether two targets are the same process. Without evidence, they are if they were before.
func (i *instance) areCopies(a, b target) bool {
	pair := [2]target{a, b}
	if same, known := compareHistories(i.seen[a], i.seen[b]); known {
		i.apart[pair] = !same
	}
	return !i.apart[pair]
}

// sameMoment is how far apart scrapes may be whose order is unknown, in s: they take some time.
const sameMoment = 1

// compareHistories reports whether two histories are of one process; known is false if they do not show it.
func compareHistories(a, b *history) (same, known bool) {
	common := 0
	for key, v := range a[1].values {
		w, ok := b[1].values[key]
		if !ok {
			continue
		}
		common++
		if strings.HasPrefix(key, gather.ProcessStart+"{") && math.Abs(v-w) > 1 {
			return false, true
		}
	}
	if 2*common < max(len(a[1].values), len(b[1].values)) {
		return false, true // other metrics, or another model
	}
	for key, last := range a[1].values {
		name, _, _ := strings.Cut(key, "{")
		if !isCounter(name) {
			continue
		}
		for _, h := range [...]*history{a, b} {
			if v, ok := h[0].values[key]; ok && v > h[1].values[key] {
				return false, false // it has restarted
			}
		}
		for _, x := range a {
			for _, y := range b {
				v, there := x.values[key]
				w, ok := y.values[key]
				if there && ok && (x.at+sameMoment < y.at && v > w || y.at+sameMoment < x.at && w > v) {
					return false, true
				}
			}
		}
		known = known || last > 0 && a[0].values != nil && b[0].values != nil
	}
	return true, known
}

// isCounter reports whether a metric counts up, by its name.
func isCounter(name string) bool {
	return slices.ContainsFunc([]string{"_total", "_count", "_sum", "_bucket"}, func(end string) bool { return strings.HasSuffix(name, end) })
}

// sourceOf returns the scrape to read of a replica: the same copy as before, unless another one is much newer.
func sourceOf(r *replica, copies []scrape) scrape {
	newest := slices.MaxFunc(copies, func(a, b scrape) int { return cmp.Compare(a.at, b.at) })
	for _, sc := range copies {
		if sc.target == r.source && newest.at-sc.at < maxScrapeInterval.Seconds() {
			return sc
		}
	}
	if r.source == (target{}) {
		return copies[0]
	}
	return newest
}

// join makes a target one of a replica. If it was another replica, that one ends.
func (s *Poller) join(t target, r *replica) {
	if old := s.replicas[t]; old != nil && old != r {
		now := s.opt.Clock.Now()
		old.setLink(event.LinkDisconnected, now, now, "the same process as another target of Prometheus")
	}
	s.replicas[t] = r
}
