package jinja

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/llmtop/llmtop/profiler/event/eventtest"
)

// TestHostile renders templates that loop, recurse or grow without end.
func TestHostile(t *testing.T) {
	eventtest.SkipUnderRace(t)
	for name, source := range map[string]string{
		"endless range":          "{% for i in range(10 ** 18) %}{% endfor %}",
		"loops in loops":         "{% for a in range(10000) %}{% for b in range(10000) %}{% for c in range(10000) %}{% endfor %}{% endfor %}{% endfor %}",
		"silent loops":           strings.Repeat("{% for i in range(1000) %}", 50) + strings.Repeat("{% endfor %}", 50),
		"endless output":         "{% for a in range(1000000) %}{{ 'x' * 10000 }}{% endfor %}",
		"doubling text":          "{% set ns = namespace(s='a') %}{% for i in range(64) %}{% set ns.s = ns.s ~ ns.s %}{% endfor %}",
		"doubling by +":          "{% set ns = namespace(s='a') %}{% for i in range(64) %}{% set ns.s = ns.s + ns.s %}{% endfor %}",
		"doubling lists":         "{% set ns = namespace(s=[1]) %}{% for i in range(64) %}{% set ns.s = ns.s + ns.s %}{% endfor %}",
		"doubling by macro":      "{% set ns = namespace(s='a') %}{% macro m() %}{{ ns.s }}{{ ns.s }}{% endmacro %}{% for i in range(64) %}{% set ns.s = m() %}{% endfor %}",
		"huge repetition":        "{{ 'abc' * 9223372036854775807 }}",
		"huge list":              "{{ [1, 2] * 4611686018427387904 }}",
		"huge indent":            "{{ 'a' | indent(10 ** 15) }}",
		"many indents":           "{{ ('a\n' * 1000000) | indent(1000000) }}",
		"huge JSON":              "{{ [[[1]]] | tojson(indent=10 ** 12) }}",
		"growing replacement":    "{{ ('a' * 1000000).replace('a', 'b' * 1000000) }}",
		"replacing nothing":      "{{ ('a' * 1000000).replace('', 'b' * 1000000) }}",
		"growing join":           "{{ ('a' * 1000000) | join('b' * 1000000) }}",
		"endless macro":          "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
		"macros of each other":   "{% macro f() %}{{ g() }}{% endmacro %}{% macro g() %}{{ f() }}{% endmacro %}{{ f() }}",
		"branching macros":       "{% macro f(n) %}{% if n %}{{ f(n - 1) }}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(60) }}",
		"endless default":        "{% macro f(a=f()) %}{% endmacro %}{{ f() }}",
		"endless caller":         "{% macro f() %}{% call f() %}{% endcall %}{% endmacro %}{{ f() }}",
		"recursive loop":         "{% for i in [1] recursive %}{{ loop([1]) }}{% endfor %}",
		"nested list":            "{% set ns = namespace(l=[]) %}{% for i in range(100000) %}{% set ns.l = [ns.l] %}{% endfor %}{{ ns.l }}",
		"nested list as JSON":    "{% set ns = namespace(l=[]) %}{% for i in range(100000) %}{% set ns.l = [ns.l] %}{% endfor %}{{ ns.l | tojson }}",
		"nested list compared":   "{% set ns = namespace(l=[], m=[]) %}{% for i in range(100000) %}{% set ns.l = [ns.l] %}{% set ns.m = [ns.m] %}{% endfor %}{{ ns.l == ns.m }}",
		"wide list written":      "{% set ns = namespace(l=[1, 2]) %}{% for i in range(100) %}{% set ns.l = [ns.l, ns.l] %}{% endfor %}{{ ns.l }}",
		"long sum":               "{{ 1" + strings.Repeat(" + 1", 100000) + " }}",
		"long chain of filters":  "{{ 1" + strings.Repeat(" | abs", 100000) + " }}",
		"long chain of elements": "{{ d" + strings.Repeat("[0]", 100000) + " }}",
		"many parentheses":       "{{ " + strings.Repeat("(", 100000) + strings.Repeat(")", 100000) + " }}",
		"many brackets":          "{{ " + strings.Repeat("[", 100000),
		"many nots":              "{{ " + strings.Repeat("not ", 100000) + "1 }}",
		"many signs":             "{{ " + strings.Repeat("-", 100000) + "1 }}",
		"many ifs":               strings.Repeat("{% if 1 %}", 10000) + strings.Repeat("{% endif %}", 10000),
		"many targets":           "{% for " + strings.Repeat("(", 100000),
		"many dots":              "{{ a" + strings.Repeat(".b", 100000) + " }}",
		"huge template":          strings.Repeat("a", MaxSource+1),
		"huge power":             "{{ 3 ** 9223372036854775807 }}",
		"huge number":            "{{ " + strings.Repeat("9", 10000) + " }}",
		"huge width":             "{{ '{:9999999999999999999}'.format(1) }}",
		"huge precision":         "{{ '{:.999999999f}'.format(1.5) }}",
		"many widths":            "{{ ('{0:1000000}' * 1000000).format(1) }}",
		"many open fields":       "{{ ('{' * 1000001).format(1) }}",
		"deep fields":            "{{ ('{0' + '[0]' * 1000000 + '}').format([]) }}",
		"nested fields":          "{{ '{:{:{}}}'.format(1, 2, 3) }}",
		"huge round":             "{{ 1.5 | round(10 ** 15) }}{{ raise_exception('') }}",
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := render(source, Dict{{"d", []any{}}})
		runtime.ReadMemStats(&after)
		if err == nil {
			t.Errorf("%s: no error", name)
		}
		if made := after.TotalAlloc - before.TotalAlloc; made > 16*maxWork {
			t.Errorf("%s: %d bytes were allocated, want at most %d", name, made, 16*maxWork)
		}
	}
}

func TestCancelled(t *testing.T) {
	tmpl, err := Parse("{% for a in range(100000) %}{{ a }}{% endfor %}")
	if err != nil {
		t.Fatal(err)
	}
	why := errors.New("enough")
	ctx, stop := context.WithCancelCause(t.Context())
	stop(why)
	if _, err := tmpl.Render(ctx, nil, time.Time{}); !errors.Is(err, why) {
		t.Errorf("got %v, want %v", err, why)
	}
}

func TestRaised(t *testing.T) {
	_, err := render("\n\n{{ raise_exception('roles must alternate') }}", nil)
	var r Raised
	if !errors.As(err, &r) || r.Message != "roles must alternate" || err.Error() != "line 3: roles must alternate" {
		t.Errorf("got %v", err)
	}
}

// FuzzRender searches for templates that panic; results are not checked.
func FuzzRender(f *testing.F) {
	g, vars := goldens(f)
	for _, c := range g.Cases {
		f.Add(c.Template)
	}
	f.Fuzz(func(t *testing.T, source string) {
		ctx, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		if tmpl, err := Parse(source); err == nil {
			_, _ = tmpl.Render(ctx, vars, now)
		}
	})
}

func BenchmarkRender(b *testing.B) {
	source := "{% for m in messages %}<|{{ m.role }}|>\n{{ m.content | trim }}\n{% endfor %}"
	tmpl, err := Parse(source)
	if err != nil {
		b.Fatal(err)
	}
	var messages []any
	for range 100 {
		messages = append(messages, Dict{{"role", "user"}, {"content", strings.Repeat("some text ", 100)}})
	}
	for b.Loop() {
		if _, err := tmpl.Render(b.Context(), Dict{{"messages", messages}}, now); err != nil {
			b.Fatal(err)
		}
	}
}
