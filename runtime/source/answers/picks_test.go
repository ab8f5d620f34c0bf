package answers

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"os"
	"testing"

	"github.com/llmtop/llmtop/profiler/event"
)

// sample returns the picks of a recorded response.
func sample(t testing.TB, name string) []byte {
	t.Helper()
	raw, err := os.ReadFile("testdata/picks/" + name + "_chat_routed_experts.json")
	if err != nil {
		t.Fatal(err)
	}
	var answer struct {
		Choices []struct {
			Routed string `json:"routed_experts"`
		} `json:"choices"`
		More struct {
			Routed string `json:"routed_experts"`
		} `json:"sglext"`
	}
	if err := json.Unmarshal(raw, &answer); err != nil {
		t.Fatal(err)
	}
	return []byte(answer.Choices[0].Routed + answer.More.Routed)
}

// TestDecode reads both forms. In the samples the first pick of a token in a layer is 7 x token + 3 x layer, the others
// follow.
func TestPicks(t *testing.T) {
	for _, name := range []string{"vllm", "sglang"} {
		p, err := DecodePicks(sample(t, name), 4, 5)
		if err != nil {
			t.Fatal(err)
		}
		if p.Tokens != 5 || p.Layers != 3 || p.Used != 4 {
			t.Fatalf("%s: %+v", name, p)
		}
		row := make([]uint16, 4)
		for i := range 15 {
			if ok := p.row(i/3, i%3, row); !ok || int(row[0]) != 7*(i/3)+3*(i%3) || row[3] != row[0]+3 {
				t.Errorf("%s: token %d picks %v in layer %d", name, i/3, row, i%3)
			}
		}
		var sum event.Experts
		for round := uint64(1); round <= 2; round++ {
			e, err := p.addTo(&sum, 4)
			if err != nil {
				t.Fatal(err)
			}
			if e.Layers != 3 || e.Experts != 38 || e.Used != 4 || e.PromptTokens != 4*round || e.DecodeTokens != round {
				t.Errorf("%s: %+v", name, e)
			}
			if e.Prompt[7] != 2*0+round || e.Decode[28] != round || e.Decode[0] != 0 || e.Prompt[38+3] != round {
				t.Errorf("%s: prompt %v, decode %v", name, e.Prompt, e.Decode)
			}
		}
	}
}

// TestTally restarts the counts for another model, and grows them for new experts.
func TestTally(t *testing.T) {
	picks := func(bytes ...byte) *Picks { return &Picks{len(bytes) / 4, 2, 2, cells(bytes, 1)} }
	var sum event.Experts
	if _, err := picks(0, 1, 2, 2).addTo(&sum, 0); err != nil {
		t.Fatal(err)
	}
	e, err := picks(0, 3, 1, 2).addTo(&sum, 1)
	if err != nil {
		t.Fatal(err)
	}
	if e.Experts != 4 || e.Decode[0] != 1 || e.Decode[1] != 1 || e.Prompt[3] != 1 || e.Prompt[4+1] != 1 || e.Prompt[4+2] != 1 {
		t.Errorf("%+v", e)
	}
	if e.Decode[4+2] != 0 { // a layer that picks one expert twice is dense
		t.Errorf("a dense layer was counted: %v", e.Decode)
	}
	if e, err = (&Picks{1, 1, 2, cells([]byte{5, 6}, 1)}).addTo(&sum, 0); err != nil || e.Layers != 1 || e.DecodeTokens != 1 {
		t.Errorf("%+v (%v)", e, err)
	}
}

func TestPicksRefused(t *testing.T) {
	npy := func(header string, data string) []byte {
		return []byte(base64.StdEncoding.EncodeToString([]byte("\x93NUMPY\x01\x00" + string([]byte{byte(len(header)), 0}) + header + data)))
	}
	for name, text := range map[string][]byte{
		"no base64":      []byte("***"),
		"no header":      npy("", ""),
		"floats":         npy("{'descr': '<f4', 'fortran_order': False, 'shape': (1, 1, 1), }", "\x00\x00\x00\x00"),
		"columns first":  npy("{'descr': '|u1', 'fortran_order': True, 'shape': (1, 1, 1), }", "\x00"),
		"two dimensions": npy("{'descr': '|u1', 'fortran_order': False, 'shape': (1, 1), }", "\x00"),
		"too short":      npy("{'descr': '|u1', 'fortran_order': False, 'shape': (2, 1, 1), }", "\x00"),
		"too large":      npy("{'descr': '|u1', 'fortran_order': False, 'shape': (999999999, 999999999, 999999999), }", "\x00"),
		"odd int32":      []byte("AAAA"),
	} {
		if p, err := DecodePicks(text, 1, 1); err == nil {
			t.Errorf("%s: %+v", name, p)
		}
	}
	if _, err := DecodePicks(sample(t, "sglang"), 0, 5); !errors.Is(err, errShape) {
		t.Errorf("without a shape: %v", err)
	}
}

func FuzzPicks(f *testing.F) {
	for _, name := range []string{"vllm", "sglang"} {
		raw, err := base64.StdEncoding.DecodeString(string(sample(f, name)))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw, 4, 5, 4)
	}
	f.Fuzz(func(t *testing.T, raw []byte, used, tokens, prompt int) {
		p, err := DecodePicks([]byte(base64.StdEncoding.EncodeToString(raw)), used, tokens)
		if err != nil {
			return
		}
		var sum event.Experts
		if e, err := p.addTo(&sum, prompt); err == nil && (len(e.Prompt) != e.Layers*e.Experts || e.PromptTokens+e.DecodeTokens != uint64(p.Tokens)) {
			t.Errorf("%+v", e)
		}
	})
}
