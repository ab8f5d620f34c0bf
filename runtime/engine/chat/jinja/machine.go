package jinja

import (
	"fmt"
	"strings"
	"time"
)

// machine renders a template once.
type machine struct {
	*meter
	now  time.Time
	out  *strings.Builder // of the template, a macro or a block
	line int              // line of the current statement
}

// scope holds variables. A variable that is not in it is looked up in the outer scope.
type scope struct {
	vars  map[string]any
	outer *scope
}

func newScope(outer *scope) *scope { return &scope{map[string]any{}, outer} }

// find looks up a variable.
func (s *scope) find(name string) any {
	for ; s != nil; s = s.outer {
		if v, ok := s.vars[name]; ok {
			return v
		}
	}
	return undefined{fmt.Sprintf("%q is undefined", name)}
}

// located adds the line to a failure.
func (m *machine) located(f any) any {
	if f, ok := f.(failure); ok && m.line > 0 {
		return failure{fmt.Errorf("line %d: %w", m.line, f.err)}
	}
	return f
}

// write adds to the output.
func (m *machine) write(s string) {
	m.work(len(s))
	if m.out.Len()+len(s) > MaxOutput {
		panic(failure{fmt.Errorf("%w: it writes more than %d bytes", ErrTooMuch, MaxOutput)})
	}
	m.out.WriteString(s)
}

// captured returns the output of f.
func (m *machine) captured(f func()) string {
	outer := m.out
	m.out = &strings.Builder{}
	f()
	text := m.out.String()
	m.out = outer
	return text
}

// eval evaluates an expression.
func (m *machine) eval(x expr, s *scope) any {
	m.work(stepWork)
	m.down()
	v := x.eval(m, s)
	m.up()
	return v
}

// all runs statements until one leaves the enclosing loop.
func (m *machine) all(body []stmt, s *scope) flow {
	m.down()
	for _, st := range body {
		m.work(stepWork)
		if f := st.run(m, s); f != goOn {
			m.up()
			return f
		}
	}
	m.up()
	return goOn
}

func (t *textStmt) run(m *machine, _ *scope) flow {
	m.write(t.text)
	return goOn
}

func (p *printStmt) run(m *machine, s *scope) flow {
	m.line = p.line
	m.write(str(m.meter, m.eval(p.x, s)))
	return goOn
}

func (i *ifStmt) run(m *machine, s *scope) flow {
	m.line = i.line
	for n, test := range i.tests {
		if truth(m.eval(test, s)) {
			return m.all(i.branches[n], s)
		}
	}
	return m.all(i.otherwise, s)
}

func (f *forStmt) run(m *machine, s *scope) flow {
	m.line = f.line
	f.loop(m, s, m.eval(f.over, s), 0)
	return goOn
}

// loop runs the body for each element. A recursive loop calls itself at a greater depth.
func (f *forStmt) loop(m *machine, s *scope, over any, depth int) {
	items := iterate(m.meter, over)
	if f.when != nil {
		items = f.filtered(m, s, items)
	}
	if len(items) == 0 {
		m.all(f.empty, newScope(s))
		return
	}
	state := &loopState{items: items, depth: depth}
	if f.recursive {
		state.again = func(m *machine, over any) string {
			m.down()
			defer m.up()
			return m.captured(func() { f.loop(m, s, over, depth+1) })
		}
	}
	for i, item := range items {
		m.work(stepWork)
		state.at = i
		inner := newScope(s)
		inner.vars["loop"] = state
		m.assign(f.target, item, inner)
		if m.all(f.body, inner) == breakLoop {
			return
		}
	}
}

func (f *forStmt) filtered(m *machine, s *scope, items []any) []any {
	var kept []any
	for _, item := range items {
		inner := newScope(s)
		m.assign(f.target, item, inner)
		if truth(m.eval(f.when, inner)) {
			m.work(itemWork)
			kept = append(kept, item)
		}
	}
	return kept
}

func (t *setStmt) run(m *machine, s *scope) flow {
	m.line = t.line
	if t.value != nil {
		m.assign(t.target, m.eval(t.value, s), s)
		return goOn
	}
	inner := newScope(s)
	inner.vars[bodyText] = m.captured(func() { m.all(t.body, newScope(s)) })
	var v any = inner.vars[bodyText]
	if t.filter != nil {
		v = m.eval(t.filter, inner)
	}
	m.assign(t.target, v, s)
	return goOn
}

// assign assigns a value to a target.
func (m *machine) assign(t target, v any, s *scope) {
	switch {
	case t.attr != "":
		ns, ok := s.find(t.name).(*namespace)
		if !ok {
			fail("cannot assign to an attribute of %s, which is no namespace", t.name)
		}
		m.work(itemWork)
		ns.vars[t.attr] = v
	case t.parts == nil:
		m.work(itemWork)
		s.vars[t.name] = v
	default:
		items := iterate(m.meter, v)
		if len(items) != len(t.parts) {
			fail("cannot take %d values apart into %d", len(items), len(t.parts))
		}
		for i, part := range t.parts {
			m.assign(part, items[i], s)
		}
	}
}

func (d *macroStmt) run(m *machine, s *scope) flow {
	m.work(itemWork)
	s.vars[d.name] = d.bind(s)
	return goOn
}

// bind returns a function for a macro that sees the variables of a scope.
func (d *macroStmt) bind(s *scope) *function {
	return &function{name: d.name, call: func(m *machine, a args) any {
		m.down()
		defer m.up()
		inner := newScope(s)
		inner.vars["caller"] = undefined{"no caller is defined"}
		if c, ok := a.named["caller"]; ok {
			inner.vars["caller"] = c
			delete(a.named, "caller")
		}
		required := len(d.params) - len(d.defaults)
		for i, v := range a.bind(d.name, 0, d.params...) {
			if v != (missing{}) {
				inner.vars[d.params[i]] = v
				continue
			}
			inner.vars[d.params[i]] = undefined{fmt.Sprintf("the parameter %q was not provided", d.params[i])}
			if i >= required {
				inner.vars[d.params[i]] = m.eval(d.defaults[i-required], inner)
			}
		}
		line := m.line
		text := m.captured(func() { m.all(d.body, inner) })
		m.line = line
		return text
	}}
}

func (c *callStmt) run(m *machine, s *scope) flow {
	m.line = c.line
	f := m.eval(c.call.f, s)
	a := c.call.args.eval(m, s)
	a.named["caller"] = c.caller.bind(s)
	m.write(str(m.meter, m.call(f, a)))
	return goOn
}

func (f *filterStmt) run(m *machine, s *scope) flow {
	m.line = f.line
	inner := newScope(s)
	inner.vars[bodyText] = m.captured(func() { m.all(f.body, newScope(s)) })
	m.write(str(m.meter, m.eval(f.filter, inner)))
	return goOn
}

func (w *withStmt) run(m *machine, s *scope) flow {
	m.line = w.line
	inner := newScope(s)
	for i, x := range w.values {
		inner.vars[w.names[i]] = m.eval(x, s)
	}
	return m.all(w.body, inner)
}

func (g *groupStmt) run(m *machine, s *scope) flow { return m.all(g.body, s) }

func (breakStmt) run(*machine, *scope) flow { return breakLoop }

func (nextStmt) run(*machine, *scope) flow { return continueLoop }
