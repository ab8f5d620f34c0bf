package answers

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
)

// plainly reads a stream without patterns.
func plainly(r *Reader) { r.same.tries = 1 << 30 }

// FuzzPattern checks that messages that fit a pattern are read and summed up as others are.
func FuzzPattern(f *testing.F) {
	for _, text := range []string{"a", " the", "two words", "", "x\\ny", "é世界", "\"", "\xff", "\\u00e9", "1 + 2", "\t"} {
		for i, message := range []string{
			`{"id":"c","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"%"}}]}`,
			`{"id":"c","choices":[{"index":3,"delta":{"reasoning_content":"%"}}]}`,
			`{"id": "c", "choices": [{"text": "%", "finish_reason": null}]}`,
			`{"content":"%","stop":false,"index":1}`,
			`{"model":"q","created_at":"now","message":{"role":"assistant","content":"%"},"done":false}`,
			`{"type":"content_block_delta","delta":{"type":"text_delta","text":"%"}}`,
			`{"choices":[{"delta":{"content":"%","tool_calls":[{"function":{"name":"f"}}]}}]}`,
			`{"choices":[{"delta":{"content":"%"},"logprobs":{"content":[{}]}}]}`,
			`{"choices":[{"delta":{"content":"%"}}],"usage":{"prompt_tokens":1,"completion_tokens":2}}`,
			`{"error":{"type":"x"},"choices":[{"delta":{"content":"%"}}]}`,
		} {
			f.Add(message, "one", text, uint8(i))
		}
	}
	f.Fuzz(func(t *testing.T, message, first, second string, which uint8) {
		d := &Dialects[int(which)%len(Dialects)]
		var b strings.Builder
		for _, text := range []string{first, second, first, second} {
			line := strings.NewReplacer("%", text, "\n", " ", "\r", " ").Replace(message)
			if b.WriteString("data: " + line + "\n\n"); d.Lines {
				b.Reset()
				b.WriteString(line + "\n" + line + "\n")
			}
		}
		read := func(prepare func(*Reader)) (out []Message, errs []error, sum Message) {
			r := NewStream(d, strings.NewReader(b.String()), func() event.Time { return 7 })
			r.Texts = true
			prepare(r)
			a := Answer{Token: func(*Part, int, int) {}}
			for {
				m, err := r.Next()
				if m == nil {
					return out, append(errs, err), a.Sum
				}
				if m.Wrong != nil { // errors are not compared by what they hold
					m.Wrong = ErrJSON
				}
				a.Add(m)
				one := *m
				one.Parts, one.again = slices.Clone(m.Parts), false
				out, errs = append(out, one), append(errs, err)
			}
		}
		got, gotErrs, gotSum := read(func(*Reader) {})
		want, wantErrs, wantSum := read(plainly)
		if !reflect.DeepEqual(got, want) || !reflect.DeepEqual(gotErrs, wantErrs) || !reflect.DeepEqual(gotSum, wantSum) {
			t.Errorf("%q\nwith a pattern %+v %v\nwithout        %+v %v", b.String(), got, gotErrs, want, wantErrs)
		}
	})
}
