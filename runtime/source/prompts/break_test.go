package prompts

import (
	"fmt"
	"strings"
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
)

// add compares a prompt with the kept ones, and keeps it.
func (h *History) add(n int, units []Unit) event.Reuse {
	p := h.Compare("", func() []Unit { return units })
	h.Keep(event.RequestID(n), p)
	return p.Reuse
}

// TestPromptsThatGoOn checks that a prompt that goes on breaks nothing, whether it has messages or not.
func TestPromptsThatGoOn(t *testing.T) {
	h := NewHistory()
	turns := []string{`{"role":"system","content":"Be brief."}`}
	for n := 1; n <= 3; n++ {
		turns = append(turns, fmt.Sprintf(`{"role":"user","content":"question %d"}`, n))
		units, err := Units(fmt.Appendf(nil, `{"messages":[%s]}`, strings.Join(turns, ",")))
		if err != nil {
			t.Fatal(err)
		}
		if b := h.add(n, units); b.Kind != event.BreakNone || int(b.With) != n-1 || b.Common != [...]int{0, 19, 37}[n-1] {
			t.Errorf("turn %d: %+v", n, b)
		}
		turns = append(turns, fmt.Sprintf(`{"role":"assistant","content":"answer %d"}`, n))
	}
	h = NewHistory()
	for n := 1; n <= 3; n++ {
		units, err := Units(fmt.Appendf(nil, `{"prompt":%q}`, strings.Repeat("Once upon a time. ", n)))
		if err != nil {
			t.Fatal(err)
		}
		if b := h.add(n, units); b.Kind != event.BreakNone || int(b.With) != n-1 {
			t.Errorf("text %d: %+v", n, b)
		}
	}
}

// TestBounds checks that a history keeps few prompts, of few hashes.
func TestBounds(t *testing.T) {
	h := NewHistory()
	for n := range 2 * maxPrompts {
		h.add(n, []Unit{{Text: strings.Repeat("x", 1<<17)}})
	}
	if len(h.prompts) != maxPrompts {
		t.Errorf("%d prompts are kept", len(h.prompts))
	}
	h.add(0, make([]Unit, 2*maxHashes/unitHashes))
	h.add(1, []Unit{{Text: strings.Repeat("x ", maxHashes*3/4)}})
	h.add(2, []Unit{{Text: strings.Repeat("y ", maxHashes*3/4)}})
	if len(h.prompts) != 1 || h.hashes > maxHashes {
		t.Errorf("%d prompts of %d hashes are kept", len(h.prompts), h.hashes)
	}
}

// FuzzUnits reads any body: sizes of breaks never exceed the prompt.
func FuzzUnits(f *testing.F) {
	f.Add([]byte(`{"messages":[{"role":"user","content":[{"type":"text","text":"a"}]}],"tools":[{}]}`), []byte(`{"prompt":"a"}`))
	f.Add([]byte(`{"input":"x","instructions":"é"}`), []byte(`{"system":["x"],"input":[{"role":"user","content":"2026-11-23"}]}`))
	f.Fuzz(func(t *testing.T, one, two []byte) {
		h := NewHistory()
		for i, body := range [][]byte{one, two, one} {
			units, err := Units(body)
			if err != nil {
				continue
			}
			if b := h.add(i, units); b.Common < 0 || b.Same < 0 || b.Common > b.Bytes || b.Common+b.Same > b.Bytes {
				t.Errorf("%+v", b)
			}
		}
	})
}
