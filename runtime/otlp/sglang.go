package otlp

import (
	"fmt"
	"strings"
	"time"
)

// SGLang tells of a request by a tree of spans: the root, for each of its threads a span, and below those the stages. Its processes send what
// they know each by itself, the scheduler often before the root has ended and sometimes after.

// The bounds on spans that are held.
const (
	waitFor   = 6 * time.Second // for what belongs to a root that has come: exporters send every 5 s
	waitRoot  = 10 * time.Minute
	maxHeld   = 1 << 17 // spans, 60 MB
	maxTraces = 1 << 13
	maxRoots  = 64 // of a trace
	maxGen    = 8  // generations from a stage to its root
)

// held are the spans of one trace.
type held struct {
	spans   []span
	roots   map[[8]byte]*root // those that have come
	came    time.Time         // the last span
	changed bool              // something has come since the requests were looked at
}

// root is a request whose parts may be missing still.
type root struct {
	at   int // in spans
	came time.Time
	done bool // it has been told of
}

// open is how many requests have not been told of.
func (h *held) open() (n int) {
	for _, r := range h.roots {
		if !r.done {
			n++
		}
	}
	return n
}

// ofSGLang reports whether a span is one of those trees.
func (s *span) ofSGLang() bool {
	_, stage := stages[s.name]
	return s.isRoot() || s.thread != "" || stage
}

// isRoot reports whether it is that of a request.
func (s *span) isRoot() bool {
	return s.rid != "" && (strings.HasPrefix(s.module, "sglang::") || strings.Contains(s.name, "Req "))
}

// hold keeps a span until its request is whole.
func (g *gather) hold(s *span, now time.Time) {
	h := g.traces[s.trace]
	switch {
	case h != nil && len(h.roots) > 0 && h.open() == 0 && !s.isRoot():
		g.counts.late++
		g.once("behind", fmt.Sprintf("spans of requests that are shown already are left out: the first one is %q", s.name))
		return
	case g.spans >= maxHeld, h == nil && len(g.traces) >= maxTraces, h != nil && s.isRoot() && len(h.roots) >= maxRoots:
		g.counts.dropped++
		g.once("many", "spans are left out: too many wait for the requests that they belong to")
		return
	case h == nil:
		h = &held{roots: map[[8]byte]*root{}}
		g.traces[s.trace] = h
	}
	g.spans++
	h.came, h.changed = now, true
	if s.isRoot() {
		h.roots[s.id] = &root{at: len(h.spans), came: now}
	}
	h.spans = append(h.spans, *s)
}

// look tells of requests whose parts have been waited for long enough.
func (g *gather) look(now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.flush(&now)
	g.tell()
}

// flush tells of the requests that are whole, or have been waited for by now; without a moment, of all whose root has come.
func (g *gather) flush(now *time.Time) {
	for id, h := range g.traces {
		quiet := now != nil && now.Sub(h.came) < waitFor
		if quiet && !h.changed {
			continue
		}
		h.changed = false
		parents := h.parents()
		for key, r := range h.roots {
			if r.done {
				continue
			}
			parts, whole := h.below(key, parents)
			if whole || now == nil || now.Sub(r.came) >= waitFor {
				g.request(&h.spans[r.at], parts)
				r.done = true
			}
		}
		if now == nil || len(h.roots) > 0 && h.open() == 0 && !quiet || now.Sub(h.came) >= waitRoot {
			g.forget(id, h)
		}
	}
}

// forget gives up the spans of a trace. Those of which the root never came are counted.
func (g *gather) forget(id [16]byte, h *held) {
	delete(g.traces, id)
	g.spans -= len(h.spans)
	if len(h.roots) == 0 {
		g.counts.dropped += uint64(len(h.spans))
		g.once("rootless", fmt.Sprintf("spans are left out: the requests that they belong to did not come within %v", waitRoot))
	}
}

// parents are the spans above those that have come.
func (h *held) parents() map[[8]byte][8]byte {
	up := make(map[[8]byte][8]byte, len(h.spans))
	for i := range h.spans {
		up[h.spans[i].id] = h.spans[i].parent
	}
	return up
}

// below are the spans of a request's stages. It is whole when the thread that has processed its prompt has ended: that is told last. Of a
// request that has a trace to itself all are, also where the spans between are missing.
func (h *held) below(id [8]byte, parents map[[8]byte][8]byte) (parts []span, whole bool) {
	for i := range h.spans {
		s := &h.spans[i]
		if _, stage := stages[s.name]; !stage || len(h.roots) > 1 && !under(parents, s.parent, id) {
			continue
		}
		parts = append(parts, *s)
		if _, ended := parents[s.parent]; ended && s.name == "prefill_forward" {
			whole = true
		}
	}
	return parts, whole
}

// under reports whether a span is the root, or comes from it over spans that have come.
func under(parents map[[8]byte][8]byte, at, root [8]byte) bool {
	for range maxGen {
		if at == root {
			return true
		}
		up, known := parents[at]
		if !known {
			return false
		}
		at = up
	}
	return false
}
