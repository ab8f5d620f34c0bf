//go:build !nollama && (linux || darwin || windows) && (amd64 || arm64)

package llama

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/llmtop/llmtop/profiler/event"
	"github.com/llmtop/llmtop/runtime/engine"
	"github.com/llmtop/llmtop/runtime/engine/native"
)

var _ engine.Engine = (*Engine)(nil)

// TestDescribesLikeNative: both engines report the same description of the same file.
func TestDescribesLikeNative(t *testing.T) {
	e := openDemo(t, Options{Context: 512, Slots: 2})
	n, err := native.Open(demoFile(t), native.Options{Context: 512, Slots: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer n.Close()
	if diff := cmp.Diff(n.Model(), e.Model()); diff != "" {
		t.Errorf("models differ (-native +llama.cpp)\n%s", diff)
	}
	if info := e.Info(); info.Name != "llama.cpp" || !info.Device.Host || info.Device.Kernels == "" || info.Slots != 2 || info.Device.Threads != 1 {
		t.Errorf("engine %+v", info)
	}
}

// TestSlots decodes two texts concurrently, partly together with the prompt of a third; each result is the same as
// alone.
func TestSlots(t *testing.T) {
	e := openDemo(t, Options{Context: 256, Slots: 3})
	texts := readGolden(t).Texts[:3]
	const n = 12
	var alone [3][]int32
	for i, text := range texts {
		alone[i] = greedy(t, e, 0, text.Prompt, n)
	}
	e.Release(0)
	var got [3][]int32
	done := [3]int{}
	b := engine.Batch{}
	for step := 0; len(got[2]) < n; step++ {
		b.Rows = b.Rows[:0]
		var wants []int
		for i, text := range texts {
			tokens := slices.Concat(text.Prompt, got[i])
			rows := len(tokens) - done[i]
			if i == 2 && done[i] < len(text.Prompt) { // in pieces, from the fourth step on
				rows = min(rows, 5)
			}
			if len(got[i]) == n || i == 2 && step < 3 {
				continue
			}
			for at := done[i]; at < done[i]+rows; at++ {
				b.Rows = append(b.Rows, engine.Row{
					Token: tokens[at], Pos: int32(at), Slot: int32(i), Prompt: at < len(text.Prompt), Logits: at == len(tokens)-1,
				})
			}
			if done[i] += rows; done[i] == len(tokens) {
				wants = append(wants, i)
			}
		}
		if err := e.Forward(&b); err != nil {
			t.Fatal(err)
		}
		for i, slot := range wants {
			got[slot] = append(got[slot], argmax(b.Logits[i]))
		}
	}
	for i := range got {
		if !slices.Equal(got[i], alone[i]) {
			t.Errorf("slot %d decoded %v, alone %v", i, got[i], alone[i])
		}
	}
}

// TestKeep continues from the beginning of another text in the same slot, and from an empty slot.
func TestKeep(t *testing.T) {
	e := openDemo(t, Options{Context: 256, Slots: 2})
	text := readGolden(t).Texts[0]
	want := greedy(t, e, 1, text.Prompt, 8)
	const kept = 7
	other := slices.Concat(text.Prompt[:kept], []int32{77, 78, 79, 80, 81, 82, 83, 84, 85, 86, 87})
	greedy(t, e, 1, other, 5)
	if n := e.Keep(1, kept); n != kept {
		t.Fatalf("kept %d tokens, want %d", n, kept)
	}
	b, got := engine.Batch{}, []int32(nil)
	for i, id := range text.Prompt[kept:] {
		b.Rows = append(b.Rows, engine.Row{Token: id, Pos: int32(kept + i), Slot: 1, Prompt: true, Logits: kept+i == len(text.Prompt)-1})
	}
	for len(got) < 8 {
		if err := e.Forward(&b); err != nil {
			t.Fatal(err)
		}
		got = append(got, argmax(b.Logits[0]))
		b.Rows = append(b.Rows[:0], engine.Row{Token: got[len(got)-1], Pos: int32(len(text.Prompt) + len(got) - 1), Slot: 1, Logits: true})
	}
	if !slices.Equal(got, want) {
		t.Errorf("decoded %v after a text that began alike, alone %v", got, want)
	}
	e.Release(0)
	if n := e.Keep(0, 3); n != 0 {
		t.Errorf("kept %d tokens of an empty slot", n)
	}
}

// TestContextIsFull fills all slots completely; the next row is an error.
func TestContextIsFull(t *testing.T) {
	const context = 40
	e := openDemo(t, Options{Context: context, Slots: 2, Batch: 16})
	for slot := range 2 {
		b := engine.Batch{}
		for pos := range context {
			b.Rows = append(b.Rows, engine.Row{Token: int32(200 + pos), Pos: int32(pos), Slot: int32(slot), Prompt: true, Logits: pos == context-1})
			if len(b.Rows) == 16 || pos == context-1 {
				if err := e.Forward(&b); err != nil {
					t.Fatalf("slot %d, position %d: %v", slot, pos, err)
				}
				b.Rows = b.Rows[:0]
			}
		}
	}
	for what, rows := range map[string][]engine.Row{
		"position": {{Token: 1, Pos: context}}, "slot": {{Token: 1, Slot: 2}}, "token": {{Token: 4096}}, "negative token": {{Token: -1}},
		"none": {}, "too many": make([]engine.Row, 17),
		"logits": {{Logits: true}, {Pos: 1, Logits: true}, {Pos: 2, Logits: true}},
	} {
		if err := e.Forward(&engine.Batch{Rows: rows}); err == nil || !strings.HasPrefix(err.Error(), "compute batch: ") {
			t.Errorf("%s: error %v", what, err)
		}
	}
	e.Release(1)
	if err := e.Forward(&engine.Batch{Rows: []engine.Row{{Token: 5, Slot: 1, Logits: true}}}); err != nil {
		t.Errorf("after a release: %v", err)
	}
}

// TestText converts text to tokens and back, also text that exceeds the first buffer.
func TestText(t *testing.T) {
	e := openDemo(t, Options{Context: 64})
	for _, text := range []string{"", "a", "naïve — 漢字 🙂\n\ttabs", strings.Repeat("long ", 300)} {
		var spelled strings.Builder
		for _, id := range e.Encode([]int32{7}, text, false)[1:] {
			spelled.WriteString(e.Piece(id))
		}
		if spelled.String() != text {
			t.Errorf("%q comes back as %q", text, spelled.String())
		}
	}
	end := e.Encode(nil, "<|endoftext|>", true)
	if last := end[len(end)-1]; !e.IsEOG(last) || e.Piece(last) != "" {
		t.Errorf("the end of text is %v and spelled %q", end, e.Piece(end[len(end)-1]))
	}
	if e.Piece(-1) != "" || e.Piece(1<<30) != "" || e.IsEOG(300) {
		t.Error("invalid ids have pieces, or a letter ends the text")
	}
}

// TestBOSIsNotDoubled: if a prompt spells the BOS token, it occurs once and the library does not warn; without special
// tokens, it is text.
func TestBOSIsNotDoubled(t *testing.T) {
	var mu sync.Mutex
	var logged []string
	e := openDemo(t, Options{Context: 64, Log: func(line string) {
		mu.Lock()
		defer mu.Unlock()
		logged = append(logged, line)
	}})
	before, plain := len(logged), e.Encode(nil, "user: Who are you?", true)
	if got := e.Encode(nil, e.front+"user: Who are you?", true); e.front == "" || !slices.Equal(got, plain) {
		t.Errorf("with %q in front %v, want %v", e.front, got, plain)
	}
	if got := e.Encode(nil, e.front+"user: Who are you?", false); len(got) <= len(plain)+1 {
		t.Errorf("as text %q is %v", e.front, got[:len(got)-len(plain)])
	}
	mu.Lock()
	defer mu.Unlock()
	if len(logged) > before {
		t.Errorf("the library complains: %q", logged[before:])
	}
}

// TestClosedVocabulary: encoding from another goroutine after Close returns nothing and does not crash.
func TestClosedVocabulary(t *testing.T) {
	e := openDemo(t, Options{Context: 64})
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 200 {
				if ids := e.Encode(nil, "func", false); len(ids) > 0 {
					e.Piece(ids[0])
					e.IsEOG(ids[0])
				}
			}
		})
	}
	if err := e.Close(); err != nil {
		t.Error(err)
	}
	all.Wait()
	if ids := e.Encode([]int32{1}, "func", false); len(ids) != 1 || e.Piece(300) != "" || e.IsEOG(0) {
		t.Errorf("a closed vocabulary gives %v", ids)
	}
}

// TestStages: the stages and the progress of a load are reported in order, and its log reaches Options.Log.
func TestStages(t *testing.T) {
	var stages []string
	var shares []float64
	lines := 0
	openDemo(t, Options{
		Context: 64,
		Report: func(s engine.LoadStage) {
			if s.Dur <= 0 || s.Start.IsZero() {
				t.Errorf("stage %v took %v", s.Stage, s.Dur)
			}
			name := s.Name
			if s.Stage != event.StageNone {
				name = s.Stage.String()
			}
			stages = append(stages, name)
		},
		Progress: func(share float64) bool { shares = append(shares, share); return true },
		Log:      func(string) { lines++ },
	})
	if want := []string{"load_open", "load_weights", "load_context", "load_warmup", "load_calibrate"}; !slices.Equal(stages, want) {
		t.Errorf("stages %q, want %q", stages, want)
	}
	if progressWorks && (len(shares) == 0 || !slices.IsSorted(shares) || shares[len(shares)-1] != 1) {
		t.Errorf("progress %v", shares)
	}
	if lines == 0 {
		t.Error("no log lines")
	}
}

// TestLoadEnds ends a load at its first progress report.
func TestLoadEnds(t *testing.T) {
	if !progressWorks {
		t.Skip("the library cannot report its progress on this system")
	}
	_, err := Open(Options{Model: demoFile(t), Libraries: libraries(t), Progress: func(float64) bool { return false }})
	if err == nil || !strings.Contains(err.Error(), ErrLoadEnded.Error()) {
		t.Errorf("error %v", err)
	}
}

// TestRefusals expects a one-line error for files that cannot be loaded.
func TestRefusals(t *testing.T) {
	dir := libraries(t)
	whole, err := os.ReadFile(demoFile(t))
	if err != nil {
		t.Fatal(err)
	}
	file := func(name string, data []byte) string {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	renamed := []byte(strings.Replace(string(whole), "qwen3moe", "qwen9moe", 1))
	tensor := []byte(strings.ReplaceAll(string(whole), "blk.7.attn_q.weight", "blk.7.attn_x.weight"))
	for what, c := range map[string]struct {
		o    Options
		want string
	}{
		"no file":      {Options{Model: "nothing.gguf"}, "load model nothing.gguf: open model: open nothing.gguf"},
		"empty":        {Options{Model: file("empty.gguf", nil)}, "is empty"},
		"no model":     {Options{Model: file("text.gguf", []byte("hello there, this is no model"))}, "load model text.gguf: open model: "},
		"cut short":    {Options{Model: file("short.gguf", whole[:len(whole)/2])}, "load model short.gguf: open model: "},
		"architecture": {Options{Model: file("odd.gguf", renamed)}, "llama.cpp failed: "},
		"tensor":       {Options{Model: file("lacks.gguf", tensor)}, "tensor 'blk.7.attn_q.weight' not found"},
		"memory":       {Options{Model: demoFile(t), Context: 1024, Slots: 2, Memory: 15e6}, "does not fit in memory: weights 11.8 MB, KV cache 4.19 MB for 2 x 1024 tokens, buffers "},
		"slots":        {Options{Model: demoFile(t), Slots: maxSlots + 1}, "257 slots: must be 1 to 256"},
		"threads":      {Options{Model: demoFile(t), Threads: -1}, "-1 threads: must be 1 to 512"},
		"context":      {Options{Model: demoFile(t), Context: 1 << 25}, "tokens of context"},
		"all contexts": {Options{Model: demoFile(t), Context: 1 << 24, Slots: 256}, "4294967296 tokens of context in all slots: must be 0 to 1073741824"},
		"other folder": {Options{Model: demoFile(t), Libraries: t.TempDir()}, "this process has already loaded it from"},
	} {
		if c.o.Libraries == "" {
			c.o.Libraries = dir
		} else if _, err := open(dir); err != nil {
			t.Fatal(err)
		}
		e, err := Open(c.o)
		if err == nil {
			e.Close()
		}
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: error %v, want one line with %q", what, err, c.want)
		}
	}
}

// TestThreads: the threads that the library started for the engine are reported, where the system supports it.
func TestThreads(t *testing.T) {
	e := openDemo(t, Options{Context: 64, Threads: 2})
	if ids := e.Threads(); ids != nil && len(ids) != 1 {
		t.Errorf("threads %v besides the caller's, want 1", ids)
	}
}
