// Package jinja renders chat templates of models: the subset of the Jinja language that they use, with the results of
// Python's jinja2 in the environment of Hugging Face's transformers (trim_blocks, lstrip_blocks, loop controls,
// sandboxed).
//
// Templates come with model files and are not trusted: computation, memory and output are bounded, so that a template
// that loops, recurses or grows without end causes an error.
package jinja

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/llmtop/llmtop/profiler/clean"
)

// Template is a parsed template. It is safe for concurrent use.
type Template struct{ body []stmt }

// Limits of a template and its rendering.
const (
	MaxSource = 1 << 20  // bytes of a template; the largest known one has 20,000
	MaxOutput = 16 << 20 // bytes of output
	maxWork   = 64 << 20 // bytes created, plus stepWork per step; more than 100 times the work of a long conversation
	stepWork  = 16       // work of a step
	itemWork  = 32       // work of an element of a list or dict
	maxDepth  = 400      // nested expressions and macros; a frame takes some hundred bytes of stack
)

// ErrTooMuch means that a template exceeds a limit.
var ErrTooMuch = errors.New("the template does too much")

// Raised is the error of a template that called raise_exception.
type Raised struct{ Message string }

func (r Raised) Error() string { return clean.Cut(r.Message, clean.MaxMessage) }

// failure carries an error as a panic up to the exported functions.
type failure struct{ err error }

// fail ends with an error. Text of the template in it is cut as names are.
func fail(format string, args ...any) {
	for i, v := range args {
		if s, ok := v.(string); ok {
			args[i] = clean.Name(s)
		}
	}
	panic(failure{fmt.Errorf(format, args...)})
}

// catch converts a failure to an error.
func catch(err *error) {
	switch f := recover().(type) {
	case nil:
	case failure:
		*err = f.err
	default:
		panic(f)
	}
}

// Parse parses a template. The error names the line.
func Parse(source string) (t *Template, err error) {
	defer catch(&err)
	if len(source) > MaxSource {
		return nil, fmt.Errorf("it has %d bytes, more than %d", len(source), MaxSource)
	}
	return &Template{parse(source)}, nil
}

// Render renders the template with variables: nil for none, bool, int, float64, string, []any and Dict. now is the time
// of strftime_now. The error names the line; it is ctx's cause if ctx ends first.
func (t *Template) Render(ctx context.Context, vars Dict, now time.Time) (out string, err error) {
	defer catch(&err)
	m := &machine{meter: &meter{ctx: ctx, left: maxWork}, now: now, out: &strings.Builder{}}
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
		global.vars[v.Name] = imported(m.meter, v.Value)
	}
	m.all(t.body, newScope(global))
	return m.out.String(), nil
}

// Dict is a Python dict with string keys, in order.
type Dict []Item

// Item is an entry of a Dict.
type Item struct {
	Name  string
	Value any
}

// imported converts a value of the caller to one of templates.
func imported(m *meter, v any) any {
	switch v := v.(type) {
	case nil, bool, float64, string:
		return v
	case int:
		return int64(v)
	case []any:
		l := &list{}
		for _, item := range v {
			l.items = append(l.items, imported(m, item))
		}
		return l
	case Dict:
		d := newDict()
		for _, item := range v {
			d.put(m, item.Name, imported(m, item.Value))
		}
		return d
	}
	fail("a template takes no value of type %T", v)
	return nil
}
