package jinja

import (
	"slices"
	"strconv"
)

// maxNesting is the maximum nesting of tags and expressions. The largest chat templates reach 20.
const maxNesting = 200

// parser converts tokens to statements.
type parser struct {
	tokens []token
	at     int
	depth  int
	loops  int // number of enclosing loops within the macro
}

func (p *parser) peek() token { return p.tokens[p.at] }

func (p *parser) ahead() token { return p.tokens[min(p.at+1, len(p.tokens)-1)] }

func (p *parser) next() token {
	t := p.tokens[p.at]
	if t.kind != end {
		p.at++
	}
	return t
}

// deeper enters a nesting level; the returned function leaves it.
func (p *parser) deeper() func() {
	if p.depth++; p.depth > maxNesting {
		fail("line %d: it is nested more than %d levels deep", p.peek().line, maxNesting)
	}
	return func() { p.depth-- }
}

func (p *parser) is(k kind, text string) bool { t := p.peek(); return t.kind == k && t.text == text }

// accept skips an operator or keyword, if it is next.
func (p *parser) accept(k kind, text string) bool {
	if !p.is(k, text) {
		return false
	}
	p.next()
	return true
}

func (p *parser) expect(k kind, text string) {
	if !p.accept(k, text) {
		p.unexpected(strconv.Quote(text))
	}
}

func (p *parser) unexpected(wanted string) {
	t := p.peek()
	found := strconv.Quote(t.text)
	switch t.kind {
	case end:
		found = "the end of the template"
	case blockEnd, printEnd:
		found = "the end of the tag"
	case data, blockBegin, printBegin:
		found = "text"
	}
	fail("line %d: found %s, expected %s", t.line, found, wanted)
}

func (p *parser) name() string {
	if p.peek().kind != identifier {
		p.unexpected("a name")
	}
	return p.next().text
}

// expression parses an expression, including "a if b else c".
func (p *parser) expression() expr {
	defer p.deeper()()
	x := p.or()
	for p.accept(identifier, "if") {
		c := &condExpr{test: p.or(), yes: x}
		if p.accept(identifier, "else") {
			c.no = p.expression()
		}
		x = c
	}
	return x
}

func (p *parser) or() expr {
	x := p.and()
	for p.accept(identifier, "or") {
		x = &orExpr{x, p.and()}
	}
	return x
}

func (p *parser) and() expr {
	x := p.not()
	for p.accept(identifier, "and") {
		x = &andExpr{x, p.not()}
	}
	return x
}

func (p *parser) not() expr {
	if p.accept(identifier, "not") {
		defer p.deeper()()
		return &notExpr{p.not()}
	}
	return p.compare()
}

var comparisons = []string{"==", "!=", "<", "<=", ">", ">="}

func (p *parser) compare() expr {
	c := &compareExpr{first: p.sum()}
	for {
		op := p.peek().text
		switch t := p.peek(); {
		case t.kind == operator && slices.Contains(comparisons, op):
		case p.is(identifier, "in"):
		case p.is(identifier, "not") && p.ahead() == token{identifier, "in", p.ahead().line}:
			p.next()
			op = "not in"
		case len(c.ops) == 0:
			return c.first
		default:
			return c
		}
		p.next()
		c.ops, c.operands = append(c.ops, op), append(c.operands, p.sum())
	}
}

// chain parses operands with left-associative operators of the same precedence.
func (p *parser) chain(operand func() expr, ops ...string) expr {
	x := operand()
	for p.peek().kind == operator && slices.Contains(ops, p.peek().text) {
		x = &arithExpr{op: p.next().text, left: x, right: operand()}
	}
	return x
}

func (p *parser) sum() expr { return p.chain(p.concat, "+", "-") }

func (p *parser) concat() expr {
	parts := []expr{p.product()}
	for p.accept(operator, "~") {
		parts = append(parts, p.product())
	}
	if len(parts) == 1 {
		return parts[0]
	}
	return &concatExpr{parts}
}

func (p *parser) product() expr { return p.chain(p.power, "*", "/", "//", "%") }

func (p *parser) power() expr { return p.chain(func() expr { return p.unary(true) }, "**") }

// unary parses a sign and its operand, with following filters and tests.
func (p *parser) unary(filters bool) expr {
	defer p.deeper()()
	var x expr
	switch {
	case p.accept(operator, "-"):
		x = &signExpr{p.unary(false), true}
	case p.accept(operator, "+"):
		x = &signExpr{p.unary(false), false}
	default:
		x = p.primary()
	}
	x = p.postfix(x)
	for filters {
		switch {
		case p.is(operator, "|"):
			x = p.filter(x)
		case p.accept(identifier, "is"):
			x = p.test(x)
		case p.is(operator, "("):
			x = &callExpr{x, p.arguments()}
		default:
			return x
		}
	}
	return x
}

var constants = map[string]any{
	"true": true, "True": true, "false": false, "False": false, "none": nil, "None": nil,
}

func (p *parser) primary() expr {
	switch t := p.next(); {
	case t.kind == identifier:
		if v, ok := constants[t.text]; ok {
			return &literal{v}
		}
		return &name{t.text}
	case t.kind == quoted:
		text := t.text
		for p.peek().kind == quoted {
			text += p.next().text
		}
		return &literal{text}
	case t.kind == integer:
		n, err := strconv.ParseInt(t.text, 0, 64)
		if err != nil {
			fail("line %d: %.40s is no number, or too large a one", t.line, t.text)
		}
		return &literal{n}
	case t.kind == float:
		f, _ := strconv.ParseFloat(t.text, 64) // out of range it is infinite, as in Python
		return &literal{f}
	case t.kind == operator && t.text == "(":
		return p.parenthesis()
	case t.kind == operator && t.text == "[":
		return &listExpr{p.items("]")}
	case t.kind == operator && t.text == "{":
		return p.dict()
	case t.kind != end:
		p.at--
	}
	p.unexpected("an expression")
	return nil
}
