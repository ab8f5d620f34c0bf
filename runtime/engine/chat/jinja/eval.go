package jinja

import (
	"slices"
	"strings"
)

func (l *literal) eval(*machine, *scope) any { return l.value }

func (n *name) eval(_ *machine, s *scope) any { return s.find(n.name) }

func (l *listExpr) eval(m *machine, s *scope) any { return &list{items: m.each(l.items, s)} }

func (t *tupleExpr) eval(m *machine, s *scope) any {
	return &list{items: m.each(t.items, s), tuple: true}
}

// each evaluates several expressions.
func (m *machine) each(xs []expr, s *scope) []any {
	m.work(itemWork * len(xs))
	values := make([]any, len(xs))
	for i, x := range xs {
		values[i] = m.eval(x, s)
	}
	return values
}

func (d *dictExpr) eval(m *machine, s *scope) any {
	out := newDict()
	for i, k := range d.keys {
		out.put(m.meter, m.eval(k, s), m.eval(d.values[i], s))
	}
	return out
}

func (a *attrExpr) eval(m *machine, s *scope) any { return attribute(m.meter, m.eval(a.x, s), a.name) }

func (i *indexExpr) eval(m *machine, s *scope) any {
	return item(m.meter, m.eval(i.x, s), m.eval(i.index, s))
}

// args holds the arguments of a call.
type args struct {
	positional []any
	names      []string // keys of named, in order
	named      map[string]any
}

// missing represents an argument that was not passed.
type missing struct{}

func (a argExprs) eval(m *machine, s *scope) args {
	out := args{positional: m.each(a.positional, s), names: a.names, named: map[string]any{}}
	for i, x := range a.named {
		m.work(itemWork)
		out.named[a.names[i]] = m.eval(x, s)
	}
	return out
}

// bind assigns the arguments to parameters, of which the first required ones are mandatory; missing for those not
// passed.
func (a args) bind(what string, required int, params ...string) []any {
	if len(a.positional) > len(params) {
		fail("%s takes at most %d arguments, not %d", what, len(params), len(a.positional))
	}
	values := make([]any, len(params))
	for i := range values {
		values[i] = missing{}
	}
	copy(values, a.positional)
	for name, v := range a.named {
		i := slices.Index(params, name)
		if i < 0 || values[i] != (missing{}) {
			fail("%s takes no argument %q, or has it already", what, name)
		}
		values[i] = v
	}
	for i := range required {
		if values[i] == (missing{}) {
			fail("%s needs the argument %q", what, params[i])
		}
	}
	return values
}

func (c *callExpr) eval(m *machine, s *scope) any {
	f := m.eval(c.f, s)
	return m.call(f, c.args.eval(m, s))
}

func (m *machine) call(f any, a args) any {
	defined(f)
	switch f := f.(type) {
	case *function:
		return f.call(m, a)
	case *loopState:
		if f.again == nil {
			fail("the loop is not recursive")
		}
		return f.again(m, a.bind("loop", 1, "items")[0])
	}
	fail("a %s cannot be called", typeName(f))
	return nil
}

func (f *filterExpr) eval(m *machine, s *scope) any {
	v := m.eval(f.x, s)
	return m.filter(f.name, v, f.args.eval(m, s))
}

func (m *machine) filter(name string, v any, a args) any {
	f, ok := filters[name]
	if !ok {
		fail("there is no filter %q", name)
	}
	return f(m, v, a)
}

func (t *testExpr) eval(m *machine, s *scope) any {
	v := m.eval(t.x, s)
	return m.test(t.name, v, t.args.eval(m, s).positional)
}

// test reports whether a test with a name is true.
func (m *machine) test(name string, v any, a []any) bool {
	t, ok := tests[name]
	if !ok {
		fail("there is no test %q", name)
	}
	if len(a) != t.takes {
		fail("the test %q takes %d arguments, not %d", name, t.takes, len(a))
	}
	return t.holds(m.meter, v, a)
}

func (n *notExpr) eval(m *machine, s *scope) any { return !truth(m.eval(n.x, s)) }

func (a *andExpr) eval(m *machine, s *scope) any {
	if left := m.eval(a.left, s); !truth(left) {
		return left
	}
	return m.eval(a.right, s)
}

func (o *orExpr) eval(m *machine, s *scope) any {
	if left := m.eval(o.left, s); truth(left) {
		return left
	}
	return m.eval(o.right, s)
}

func (c *condExpr) eval(m *machine, s *scope) any {
	switch {
	case truth(m.eval(c.test, s)):
		return m.eval(c.yes, s)
	case c.no != nil:
		return m.eval(c.no, s)
	}
	return undefined{"the condition is false and there is no else"}
}

func (c *concatExpr) eval(m *machine, s *scope) any {
	parts := make([]string, len(c.parts))
	n := 0
	for i, x := range c.parts {
		parts[i] = str(m.meter, m.eval(x, s))
		n += len(parts[i])
	}
	m.work(n)
	return strings.Join(parts, "")
}

func (c *compareExpr) eval(m *machine, s *scope) any {
	left := m.eval(c.first, s)
	for i, op := range c.ops {
		right := m.eval(c.operands[i], s)
		if !holds(m.meter, op, left, right) {
			return false
		}
		left = right
	}
	return true
}

func holds(m *meter, op string, a, b any) bool {
	switch op {
	case "==":
		return equal(m, a, b)
	case "!=":
		return !equal(m, a, b)
	case "in":
		return contains(m, b, a)
	case "not in":
		return !contains(m, b, a)
	case "<":
		return compare(m, a, b) < 0
	case "<=":
		return compare(m, a, b) <= 0
	case ">":
		return compare(m, a, b) > 0
	default:
		return compare(m, a, b) >= 0
	}
}

// contains implements "v in x".
func contains(m *meter, x, v any) bool {
	switch x := x.(type) {
	case string:
		part, ok := defined(v).(string)
		if !ok {
			fail("a str cannot contain a %s", typeName(v))
		}
		m.work(len(x))
		return strings.Contains(x, part)
	case *dict:
		_, ok := x.get(v)
		return ok
	}
	return slices.ContainsFunc(iterate(m, x), func(item any) bool { return equal(m, item, v) })
}
