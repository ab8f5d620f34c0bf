// Package jinja renders the chat templates of models: the part of the Jinja language that they use, with the results of Python's
// jinja2 in the environment of Hugging Face's transformers (trim_blocks, lstrip_blocks, loop controls, sandboxed).
//
// A template comes with a model file and is not to be trusted: what it may compute, hold and write is bounded, so that one that
// loops, recurses or grows without end is an error.
package jinja

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Template is a parsed template. It may be rendered by several goroutines at once.
type Template struct{ body []stmt }

// Bounds of a template and of what it does when it is rendered.
const (
	MaxSource = 1 << 20  // bytes of a template; the largest known has 20,000
	MaxOutput = 16 << 20 // bytes that it may write
	maxWork   = 64 << 20 // bytes that it may make, with stepWork for each step; more than 100 times what a long conversation takes
	stepWork  = 16       // what a step counts for
	itemWork  = 32       // what an element of a list or a dict counts for
	maxDepth  = 400      // expressions and macros within each other; a frame takes some hundred bytes of stack
)

// ErrTooMuch is the error of a template that exceeds a bound.
var ErrTooMuch = errors.New("the template does too much")

// Raised is the error of a template that called raise_exception.
type Raised struct{ Message string }

func (r Raised) Error() string { return r.Message }

// failure carries an error up to the caller of this package.
type failure struct{ err error }

func fail(format string, args ...any) { panic(failure{fmt.Errorf(format, args...)}) }

// catch turns a failure into an error.
func catch(err *error) {
	switch f := recover().(type) {
	case nil:
	case failure:
		*err = f.err
	default:
		panic(f)
	}
}

// Parse reads a template. Its error names the line.
func Parse(source string) (t *Template, err error) {
	defer catch(&err)
	if len(source) > MaxSource {
		return nil, fmt.Errorf("it has %d bytes, more than %d", len(source), MaxSource)
	}
	return &Template{parse(source)}, nil
}

// Render writes the template with variables: none is nil, and else they are bool, int, float64, string, []any and Dict. Now is what
// strftime_now tells. The error names the line; it is ctx's cause if ctx ends first.
func (t *Template) Render(ctx context.Context, vars Dict, now time.Time) (out string, err error) {
	defer catch(&err)
	m := &machine{ctx: ctx, now: now, out: &strings.Builder{}, left: maxWork}
	defer func() {
		if f := recover(); f != nil {
			panic(m.located(f))
		}
	}()
	global := newScope(nil)
	for _, f := range globals {
		global.vars[f.name] = f
	}
	for _, v := range vars {
		global.vars[v.Name] = m.imported(v.Value)
	}
	m.all(t.body, newScope(global))
	return m.out.String(), nil
}

// Dict is a dict of Python's with keys that are strings, in its order.
type Dict []Item

// Item is an entry of a Dict.
type Item struct {
	Name  string
	Value any
}

// imported makes a value of the templates' of one of the callers'.
func (m *machine) imported(v any) any {
	switch v := v.(type) {
	case nil, bool, float64, string:
		return v
	case int:
		return int64(v)
	case []any:
		l := &list{}
		for _, item := range v {
			l.items = append(l.items, m.imported(item))
		}
		return l
	case Dict:
		d := newDict()
		for _, item := range v {
			m.put(d, item.Name, m.imported(item.Value))
		}
		return d
	}
	fail("a template takes no value of type %T", v)
	return nil
}
