package jinja

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"
)

// now is the time of strftime_now in the goldens.
var now = time.Date(2026, 3, 7, 9, 5, 2, 0, time.UTC)

// variables converts JSON to a value for Render, with dicts in the order of the JSON.
func variables(t testing.TB, raw json.RawMessage) any {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(string(raw)))
	d.UseNumber()
	var read func() any
	token := func() json.Token {
		tok, err := d.Token()
		if err != nil {
			t.Fatal(err)
		}
		return tok
	}
	read = func() any {
		switch tok := token().(type) {
		case json.Delim:
			if tok == '[' {
				list := []any{}
				for d.More() {
					list = append(list, read())
				}
				token()
				return list
			}
			dict := Dict{}
			for d.More() {
				name := token().(string)
				dict = append(dict, Item{name, read()})
			}
			token()
			return dict
		case json.Number:
			if n, err := tok.Int64(); err == nil {
				return int(n)
			}
			f, err := tok.Float64()
			if err != nil {
				t.Fatal(err)
			}
			return f
		default:
			return tok
		}
	}
	return read()
}

// golden holds results of jinja2 for templates.
type golden struct {
	Variables json.RawMessage
	Cases     []struct {
		Template, Text, Why string
		Error               bool
	}
}

func goldens(t testing.TB) (golden, Dict) {
	t.Helper()
	data, err := os.ReadFile("testdata/goldens.json")
	if err != nil {
		t.Fatal(err)
	}
	var g golden
	if err := json.Unmarshal(data, &g); err != nil {
		t.Fatal(err)
	}
	return g, variables(t, g.Variables).(Dict)
}

func render(source string, vars Dict) (string, error) {
	t, err := Parse(source)
	if err != nil {
		return "", err
	}
	return t.Render(context.Background(), vars, now)
}

// TestGoldens compares with Python's jinja2: the same text, or an error where jinja2 has one.
func TestGoldens(t *testing.T) {
	g, vars := goldens(t)
	for _, c := range g.Cases {
		got, err := render(c.Template, vars)
		switch {
		case c.Error && err == nil:
			t.Errorf("%q\n got  %q\n want an error: %s", c.Template, got, c.Why)
		case !c.Error && err != nil:
			t.Errorf("%q\n got  %v\n want %q", c.Template, err, c.Text)
		case !c.Error && got != c.Text:
			t.Errorf("%q\n got  %q\n want %q", c.Template, got, c.Text)
		case err != nil && (strings.Contains(err.Error(), "\n") || !strings.HasPrefix(err.Error(), "line ")):
			t.Errorf("%q: the error is %q", c.Template, err)
		}
	}
}
