package jinja

import "slices"

// Expressions with brackets, attributes and filters.

// items parses comma-separated expressions up to a bracket.
func (p *parser) items(closing string) []expr {
	var items []expr
	for !p.accept(operator, closing) {
		if len(items) > 0 {
			p.expect(operator, ",")
			if p.accept(operator, closing) {
				break
			}
		}
		items = append(items, p.expression())
	}
	return items
}

// parenthesis parses a tuple or an expression up to its bracket.
func (p *parser) parenthesis() expr {
	if p.accept(operator, ")") {
		return &tupleExpr{}
	}
	x := p.tuple(func() bool { return p.is(operator, ")") })
	p.expect(operator, ")")
	return x
}

// tuple parses an expression, or a tuple without brackets.
func (p *parser) tuple(ends func() bool) expr {
	x := p.expression()
	if !p.is(operator, ",") {
		return x
	}
	items := []expr{x}
	for p.accept(operator, ",") && !ends() {
		items = append(items, p.expression())
	}
	return &tupleExpr{items}
}

func (p *parser) dict() expr {
	d := &dictExpr{}
	for !p.accept(operator, "}") {
		if len(d.keys) > 0 {
			p.expect(operator, ",")
			if p.accept(operator, "}") {
				break
			}
		}
		d.keys = append(d.keys, p.expression())
		p.expect(operator, ":")
		d.values = append(d.values, p.expression())
	}
	return d
}

func (p *parser) postfix(x expr) expr {
	for {
		switch {
		case p.accept(operator, "."):
			if p.peek().kind == integer {
				x = &indexExpr{x, p.primary()}
				continue
			}
			x = &attrExpr{x, p.name()}
		case p.accept(operator, "["):
			x = p.subscript(x)
			p.expect(operator, "]")
		case p.is(operator, "("):
			x = &callExpr{x, p.arguments()}
		default:
			return x
		}
	}
}

// subscript parses the content of the brackets of x[...].
func (p *parser) subscript(x expr) expr {
	var low expr
	if !p.is(operator, ":") {
		low = p.expression()
		if !p.is(operator, ":") {
			return &indexExpr{x, low}
		}
	}
	s := &sliceExpr{x: x, low: low}
	for _, part := range []*expr{&s.high, &s.step} {
		if p.accept(operator, ":") && !p.is(operator, ":") && !p.is(operator, "]") {
			*part = p.expression()
		}
	}
	return s
}

func (p *parser) arguments() argExprs {
	var a argExprs
	p.expect(operator, "(")
	for first := true; !p.accept(operator, ")"); first = false {
		if !first {
			p.expect(operator, ",")
			if p.accept(operator, ")") {
				break
			}
		}
		if p.peek().kind == identifier && p.ahead().kind == operator && p.ahead().text == "=" {
			a.names = append(a.names, p.name())
			p.next()
			a.named = append(a.named, p.expression())
			continue
		}
		if len(a.names) > 0 {
			p.unexpected("an argument with a name")
		}
		a.positional = append(a.positional, p.expression())
	}
	return a
}

// filter parses the filters that follow x.
func (p *parser) filter(x expr) expr {
	for p.accept(operator, "|") {
		x = p.oneFilter(x)
	}
	return x
}

func (p *parser) oneFilter(x expr) expr {
	f := &filterExpr{x: x, name: p.name()}
	if p.is(operator, "(") {
		f.args = p.arguments()
	}
	return f
}

// test parses what follows "is".
func (p *parser) test(x expr) expr {
	negated := p.accept(identifier, "not")
	t := &testExpr{x: x, name: p.name()}
	switch next := p.peek(); {
	case p.is(identifier, "is"):
		p.unexpected("the end of the test")
	case p.is(operator, "("):
		t.args = p.arguments()
	case next.kind == identifier && !slices.Contains([]string{"else", "or", "and", "if", "in", "not"}, next.text),
		next.kind == quoted, next.kind == integer, next.kind == float, p.is(operator, "["), p.is(operator, "{"):
		t.args.positional = []expr{p.postfix(p.primary())}
	}
	if negated {
		return &notExpr{t}
	}
	return t
}
