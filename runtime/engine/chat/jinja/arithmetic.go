package jinja

import (
	"fmt"
	"math"
	"math/bits"
	"strings"
)

func (e *signExpr) eval(m *machine, s *scope) any {
	switch v := whole(defined(m.eval(e.x, s))).(type) {
	case int64:
		if !e.negative {
			return v
		}
		return subtract(0, v)
	case float64:
		if !e.negative {
			return v
		}
		return -v
	default:
		fail("a %s has no sign", typeName(v))
		return nil
	}
}

func (e *arithExpr) eval(m *machine, s *scope) any {
	a, b := defined(m.eval(e.left, s)), m.eval(e.right, s)
	if format, ok := a.(string); ok && e.op == "%" {
		return formatted(m.meter, format, b)
	}
	defined(b)
	i, isInt := whole(a).(int64)
	j, isInt2 := whole(b).(int64)
	if isInt && isInt2 {
		return integers(e.op, i, j)
	}
	if x, y, ok := numbers(a, b); ok {
		return floats(e.op, x, y)
	}
	switch {
	case e.op == "+":
		if v, ok := joined(m.meter, a, b); ok {
			return v
		}
	case e.op == "*" && isInt2:
		if v, ok := repeated(m.meter, a, j); ok {
			return v
		}
	case e.op == "*" && isInt:
		if v, ok := repeated(m.meter, b, i); ok {
			return v
		}
	}
	fail("there is no %s of a %s and a %s", e.op, typeName(a), typeName(b))
	return nil
}

// whole converts true and false to 1 and 0, and returns any other value unchanged.
func whole(v any) any {
	if b, ok := v.(bool); ok {
		if b {
			return int64(1)
		}
		return int64(0)
	}
	return v
}

// joined returns a + b of strings and lists.
func joined(m *meter, a, b any) (any, bool) {
	switch a := a.(type) {
	case string:
		if b, ok := b.(string); ok {
			m.work(len(a) + len(b))
			return a + b, true
		}
	case *list:
		if b, ok := b.(*list); ok && a.tuple == b.tuple {
			m.work(itemWork * (len(a.items) + len(b.items)))
			return &list{append(append(make([]any, 0, len(a.items)+len(b.items)), a.items...), b.items...), a.tuple}, true
		}
	}
	return nil, false
}

// repeated returns v * n of strings and lists.
func repeated(m *meter, v any, n int64) (any, bool) {
	n = max(n, 0)
	switch v := v.(type) {
	case string:
		m.work(product(len(v), n))
		if v == "" {
			return "", true
		}
		return strings.Repeat(v, int(n)), true
	case *list:
		m.work(product(itemWork*len(v.items), n))
		out := &list{tuple: v.tuple}
		for range n * int64(min(len(v.items), 1)) {
			out.items = append(out.items, v.items...)
		}
		return out, true
	}
	return nil, false
}

// product returns size * n, or a number above any limit on overflow.
func product(size int, n int64) int {
	high, low := bits.Mul64(uint64(size), uint64(n))
	if high != 0 || low > maxWork {
		return maxWork + 1
	}
	return int(low)
}

// integers computes with two integers. Python's integers are unbounded; here a result beyond 64 bits is an error.
func integers(op string, a, b int64) any {
	switch op {
	case "+":
		return subtract(a, subtract(0, b))
	case "-":
		return subtract(a, b)
	case "*":
		return multiply(a, b)
	case "**":
		if b < 0 {
			return floats(op, float64(a), float64(b))
		}
		return power(a, b)
	}
	if b == 0 {
		fail("division by zero")
	}
	if op == "/" {
		return float64(a) / float64(b)
	}
	q, r := a/b, a%b
	if b == -1 {
		q = subtract(0, a)
	}
	if r != 0 && (r < 0) != (b < 0) { // Python rounds down
		q, r = q-1, r+b
	}
	if op == "//" {
		return q
	}
	return r
}

func subtract(a, b int64) int64 {
	c := a - b
	if (c < a) != (b > 0) && b != 0 {
		tooLarge()
	}
	return c
}

func multiply(a, b int64) int64 {
	c := a * b
	if a != 0 && (c/a != b || a == -1 && b == math.MinInt64) {
		tooLarge()
	}
	return c
}

func power(a, b int64) int64 {
	if a == -1 {
		b &= 1
	}
	p := int64(1)
	for ; b > 0 && p != 0 && a != 1; b-- {
		p = multiply(p, a)
	}
	return p
}

func tooLarge() { fail("a number is too large: more than 64 bits") }

func floats(op string, a, b float64) any {
	switch op {
	case "+":
		return a + b
	case "-":
		return a - b
	case "*":
		return a * b
	case "**":
		if a == 0 && b < 0 {
			fail("division by zero")
		}
		return math.Pow(a, b)
	}
	if b == 0 {
		fail("division by zero")
	}
	switch op {
	case "/":
		return a / b
	case "//":
		return math.Floor(a / b)
	}
	r := math.Mod(a, b)
	if r != 0 && (r < 0) != (b < 0) {
		r += b
	}
	return r
}

// intOf returns a value that must be an integer.
func intOf(v any) int {
	i, ok := whole(defined(v)).(int64)
	if !ok || int64(int(i)) != i {
		fail("a %s is no number of anything", typeName(v))
	}
	return int(i)
}

// formatted implements Python's format % value, with %s, %r, %d, %i, %f and %%.
func formatted(m *meter, format string, v any) string {
	values := []any{v}
	if l, ok := v.(*list); ok && l.tuple {
		values = l.items
	}
	var b strings.Builder
	used := 0
	for i := 0; i < len(format); i++ {
		if format[i] != '%' {
			b.WriteByte(format[i])
			continue
		}
		if i++; i == len(format) {
			fail("the format ends with %%")
		}
		if format[i] == '%' {
			b.WriteByte('%')
			continue
		}
		if used == len(values) {
			fail("the format wants more than %d values", len(values))
		}
		text := verb(m, format[i], values[used])
		m.work(len(text))
		b.WriteString(text)
		used++
	}
	if _, isDict := v.(*dict); used < len(values) && !isDict {
		fail("the format wants only %d values", used)
	}
	m.work(len(format))
	return b.String()
}

func verb(m *meter, verb byte, v any) string {
	switch verb {
	case 's':
		return str(m, v)
	case 'r':
		return repr(m, v)
	}
	x, ok := number(defined(v))
	if !ok {
		fail("%%%c takes a number, not a %s", verb, typeName(v))
	}
	switch verb {
	case 'd', 'i':
		if i, isInt := whole(v).(int64); isInt {
			return fmt.Sprint(i)
		}
		return fmt.Sprintf("%.0f", math.Trunc(x))
	case 'f':
		return fmt.Sprintf("%f", x)
	}
	fail("the format has %%%c, of which nothing is known", verb)
	return ""
}
