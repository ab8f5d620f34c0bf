package answers

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// FuzzRequest compares what a Request reads from JSON with encoding/json.
func FuzzRequest(f *testing.F) {
	for _, s := range []string{
		`{"model":"m","messages":[{"model":"no","content":"\"model\":\"no\""}],"max_tokens":5,"options":{"num_predict":7,"x":{"num_predict":1}}}`,
		` { "options" : { "num_predict" : 12 } , "model" : "a\u0062\\" , "max_tokens" : null }`,
		`{"model":{"model":"no"},"max_tokens":[5],"options":[{"num_predict":3}],"stop":["}","]"]}`,
		`{"model":"m","max_tokens":5,"options":{"num_predict":7}}`, `{"max_tokens":5.5e3,"stop":[{}],"model":true}`,
		`{"options":{"a":[1,{"b":2}],"num_predict":"x"} ,"model":null}`, `[{"model":"no"}]`, `{"model":"m`, `}}}{"model":1}`, `{"":"","model":"` + strings.Repeat("x", 300) + `"}`,
	} {
		f.Add([]byte(s), uint8(3))
	}
	f.Fuzz(func(t *testing.T, raw []byte, piece uint8) {
		p := NewRequest()
		for rest := raw; len(rest) > 0; {
			n := min(len(rest), 1+int(piece))
			p.Feed(rest[:n])
			rest = rest[n:]
		}
		for name, value := range p.got {
			if len(value) > maxPicked {
				t.Errorf("%s has %d bytes", name, len(value))
			}
		}
		compare(t, p, raw)
	})
}

// compare checks a Request against encoding/json if that reads raw as an object whose names are unique and unescaped.
func compare(t *testing.T, p *Request, raw []byte) {
	t.Helper()
	var members map[string]json.RawMessage
	if json.Unmarshal(raw, &members) != nil {
		return
	}
	for _, name := range []string{"model", "max_tokens", "num_predict", "options", "."} {
		if strings.Count(string(raw), name) > 1 {
			return
		}
	}
	if strings.Contains(string(raw), `\`) {
		return
	}
	var inner map[string]json.RawMessage
	_ = json.Unmarshal(members["options"], &inner) // may be something else
	want := map[string]string{}
	for name, value := range map[string]json.RawMessage{
		"model": members["model"], "max_tokens": members["max_tokens"], "options.num_predict": inner["num_predict"],
	} {
		if len(value) > 0 && len(value) <= maxPicked && value[0] != '{' && value[0] != '[' {
			want[name] = string(value)
		}
	}
	maps.DeleteFunc(p.got, func(name, _ string) bool {
		return !slices.Contains([]string{"model", "max_tokens", "options.num_predict"}, name)
	})
	if fmt.Sprint(want) != fmt.Sprint(p.got) {
		t.Errorf("%s: %v, want %v", raw, p.got, want)
	}
}

// BenchmarkRequest measures the cost per forwarded request byte.
func BenchmarkRequest(b *testing.B) {
	body := []byte(`{"model":"m","messages":[{"role":"user","content":"` + strings.Repeat(`It was the best of times,\nit was \"the worst\" of times. `, 20000) + `"}],"max_tokens":5}`)
	b.SetBytes(int64(len(body)))
	for b.Loop() {
		p := NewRequest()
		for rest := body; len(rest) > 0; {
			n := min(len(rest), 32<<10) // as in the proxy
			p.Feed(rest[:n])
			rest = rest[n:]
		}
		if p.MaxTokens() != 5 {
			b.Fatal("not found")
		}
	}
}
