package otlp

import (
	"fmt"
	"strings"
	"time"
)

// SGLang sends a request as a tree of spans: the root, one span per thread, and below those the stages. Each process
// sends its own spans: the scheduler often before the root has ended, and sometimes after.

// Limits on held spans.
const (
	waitFor   = 6 * time.Second // wait for the rest of a request after its root: exporters send every 5 s
	waitRoot  = 10 * time.Minute
	maxHeld   = 1 << 17 // spans, 60 MB
	maxTraces = 1 << 13
	maxRoots  = 64 // per trace
	maxGen    = 8  // maximum depth of a stage below its root
)

// held holds the spans of one trace.
type held struct {
	spans   []span
	roots   map[[8]byte]*root // roots received
	came    time.Time         // arrival of the last span
	changed bool              // new spans since the last flush
}

// root is a request that may be incomplete.
type root struct {
	at   int // index in spans
	came time.Time
	done bool // the request was emitted
}

// open returns the number of requests not emitted yet.
func (h *held) open() (n int) {
	for _, r := range h.roots {
		if !r.done {
			n++
		}
	}
	return n
}

// ofSGLang reports whether a span belongs to such a tree.
func (s *span) ofSGLang() bool {
	_, stage := stages[s.name]
	return s.isRoot() || s.thread != "" || stage
}

// isRoot reports whether a span is the root of a request.
func (s *span) isRoot() bool {
	return s.rid != "" && (strings.HasPrefix(s.module, "sglang::") || strings.Contains(s.name, "Req "))
}

// hold keeps a span until its request is complete.
func (g *gather) hold(s *span, now time.Time) {
	h := g.traces[s.trace]
	switch {
	case h != nil && len(h.roots) > 0 && h.open() == 0 && !s.isRoot():
		g.counts.late++
		g.once("behind", fmt.Sprintf("spans arrived after their request was shown and are omitted; first: %q", s.name))
		return
	case g.spans >= maxHeld, h == nil && len(g.traces) >= maxTraces, h != nil && s.isRoot() && len(h.roots) >= maxRoots:
		g.counts.dropped++
		g.once("many", "spans are omitted: too many are waiting for their requests")
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

// look emits the requests whose wait is over.
func (g *gather) look(now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.flush(&now)
	g.emitCounts()
}

// flush emits the requests that are complete or have waited long enough. If now is nil it emits all requests with a
// root.
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

// forget drops the spans of a trace. It counts them as dropped if no root was received.
func (g *gather) forget(id [16]byte, h *held) {
	delete(g.traces, id)
	g.spans -= len(h.spans)
	if len(h.roots) == 0 {
		g.counts.dropped += uint64(len(h.spans))
		g.once("rootless", fmt.Sprintf("spans are omitted: their requests did not arrive within %v", waitRoot))
	}
}

// parents maps the id of each received span to its parent's id.
func (h *held) parents() map[[8]byte][8]byte {
	up := make(map[[8]byte][8]byte, len(h.spans))
	for i := range h.spans {
		up[h.spans[i].id] = h.spans[i].parent
	}
	return up
}

// below returns the stage spans of a request. The request is complete when the thread span above its prefill has
// arrived, which is sent last. If the trace has only one request, all its stages belong to it, even if spans between
// them are missing.
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

// under reports whether a span is the root or one of its descendants, as far as the spans between were received.
func under(parents map[[8]byte][8]byte, at, root [8]byte) bool {
	for range maxGen {
		if at == root {
			return true
		}
		up, ok := parents[at]
		if !ok {
			return false
		}
		at = up
	}
	return false
}
