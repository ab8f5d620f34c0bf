package jinja

import "slices"

// bodyText is the name of the text that a filter or set block passes to its filters. No template can use this name.
const bodyText = " text"

// parse parses a whole template.
func parse(src string) []stmt {
	p := &parser{tokens: lex(src)}
	return p.body()
}

// body parses statements up to a tag with one of the given names, which it has read, or to the end of the template.
func (p *parser) body(until ...string) []stmt {
	defer p.deeper()()
	var all []stmt
	for {
		switch t := p.peek(); t.kind {
		case end:
			if len(until) > 0 {
				fail("line %d: the template ends before {%% %s %%}", t.line, until[len(until)-1])
			}
			return all
		case data:
			all = append(all, &textStmt{p.next().text})
		case printBegin:
			p.next()
			x := p.tuple(func() bool { return p.peek().kind == printEnd })
			all = append(all, &printStmt{x, t.line})
			p.close(printEnd)
		case blockBegin:
			p.next()
			if slices.Contains(until, p.peek().text) {
				return all
			}
			all = append(all, p.statement())
		default:
			p.unexpected("text")
		}
	}
}

// close reads the end of a tag.
func (p *parser) close(k kind) {
	if p.peek().kind != k {
		p.unexpected("the end of the tag")
	}
	p.next()
}

// block reads the end of a tag, the statements up to another tag, and that tag.
func (p *parser) block(until string) []stmt {
	p.close(blockEnd)
	body := p.body(until)
	p.next()
	p.close(blockEnd)
	return body
}

func (p *parser) statement() stmt {
	line := p.peek().line
	switch tag := p.name(); tag {
	case "if":
		return p.ifStatement(line)
	case "for":
		return p.forStatement(line)
	case "set":
		return p.setStatement(line)
	case "macro":
		return p.macroStatement()
	case "call":
		return p.callStatement(line)
	case "filter":
		x := p.filter(p.oneFilter(&name{bodyText}))
		return &filterStmt{x, p.block("endfilter"), line}
	case "with":
		return p.withStatement(line)
	case "generation":
		return &groupStmt{p.block("endgeneration")}
	case "break", "continue":
		if p.loops == 0 {
			fail("line %d: %s is in no loop", line, tag)
		}
		p.close(blockEnd)
		if tag == "break" {
			return breakStmt{}
		}
		return nextStmt{}
	default:
		fail("line %d: a chat template has no tag %q", line, tag)
		return nil
	}
}

func (p *parser) ifStatement(line int) stmt {
	s := &ifStmt{line: line}
	for {
		s.tests = append(s.tests, p.or())
		p.close(blockEnd)
		s.branches = append(s.branches, p.body("elif", "else", "endif"))
		switch p.name() {
		case "elif":
			continue
		case "else":
			p.close(blockEnd)
			s.otherwise = p.body("endif")
			p.next()
		}
		p.close(blockEnd)
		return s
	}
}

func (p *parser) forStatement(line int) stmt {
	s := &forStmt{line: line, target: p.target("in")}
	p.expect(identifier, "in")
	s.over = p.or()
	if p.is(operator, ",") {
		items := []expr{s.over}
		for p.accept(operator, ",") {
			items = append(items, p.or())
		}
		s.over = &tupleExpr{items}
	}
	if p.accept(identifier, "if") {
		s.when = p.expression()
	}
	s.recursive = p.accept(identifier, "recursive")
	p.close(blockEnd)
	p.loops++
	s.body = p.body("else", "endfor")
	p.loops--
	if p.name() == "else" {
		p.close(blockEnd)
		s.empty = p.body("endfor")
		p.next()
	}
	p.close(blockEnd)
	return s
}

// target parses the target of an assignment, up to an operator or a keyword.
func (p *parser) target(until string) target {
	parts := []target{p.oneTarget(until)}
	several := false
	for p.accept(operator, ",") {
		several = true
		if p.is(operator, until) || p.is(identifier, until) {
			break
		}
		parts = append(parts, p.oneTarget(until))
	}
	if !several {
		return parts[0]
	}
	return target{parts: parts}
}

func (p *parser) oneTarget(until string) target {
	if p.accept(operator, "(") {
		defer p.deeper()()
		t := p.target(until)
		p.expect(operator, ")")
		return t
	}
	line := p.peek().line
	t := target{name: p.name()}
	if _, constant := constants[t.name]; constant {
		fail("line %d: %s cannot be assigned to", line, t.name)
	}
	if until != "in" && p.accept(operator, ".") {
		t.attr = p.name()
	}
	return t
}

func (p *parser) setStatement(line int) stmt {
	s := &setStmt{line: line, target: p.target("=")}
	if p.accept(operator, "=") {
		s.value = p.tuple(func() bool { return p.peek().kind == blockEnd })
		p.close(blockEnd)
		return s
	}
	if p.is(operator, "|") {
		s.filter = p.filter(&name{bodyText})
	}
	s.body = p.block("endset")
	return s
}

func (p *parser) macroStatement() stmt {
	m := &macroStmt{name: p.name()}
	p.parameters(m)
	return p.macroBody(m, "endmacro")
}

// macroBody parses the body of a macro, which is outside of enclosing loops.
func (p *parser) macroBody(m *macroStmt, until string) *macroStmt {
	outer := p.loops
	p.loops = 0
	m.body = p.block(until)
	p.loops = outer
	return m
}

func (p *parser) parameters(m *macroStmt) {
	p.expect(operator, "(")
	for !p.accept(operator, ")") {
		if len(m.params) > 0 {
			p.expect(operator, ",")
			if p.accept(operator, ")") {
				break
			}
		}
		m.params = append(m.params, p.name())
		switch {
		case p.accept(operator, "="):
			m.defaults = append(m.defaults, p.expression())
		case len(m.defaults) > 0:
			p.unexpected(`"="`)
		}
	}
}

func (p *parser) callStatement(line int) stmt {
	caller := &macroStmt{name: "caller"}
	if p.is(operator, "(") {
		p.parameters(caller)
	}
	call, ok := p.expression().(*callExpr)
	if !ok {
		fail("line %d: call takes a call of a macro", line)
	}
	return &callStmt{call, p.macroBody(caller, "endcall"), line}
}

func (p *parser) withStatement(line int) stmt {
	w := &withStmt{line: line}
	for p.peek().kind != blockEnd {
		if len(w.names) > 0 {
			p.expect(operator, ",")
		}
		w.names = append(w.names, p.name())
		p.expect(operator, "=")
		w.values = append(w.values, p.expression())
	}
	w.body = p.block("endwith")
	return w
}
