package tokenizer

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/llmtop/llmtop/runtime/engine/native/gguf"
)

func open(t testing.TB, path string) *Tokenizer {
	t.Helper()
	f, err := gguf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	tok, err := New(f)
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

func demo(t testing.TB) *Tokenizer {
	return open(t, filepath.Join("..", "demo", "llmtop-demo-moe-q8_0.gguf"))
}

func readJSON(t testing.TB, path string, v any) {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, v); err != nil {
		t.Fatal(err)
	}
}

// TestDemoModel compares with llama.cpp's ids of five texts.
func TestDemoModel(t *testing.T) {
	var golden struct {
		Texts []struct {
			Kind, Text string
			Tokens     []int32
			Prompt     string  `json:"greedy_prompt_text"`
			PromptIDs  []int32 `json:"greedy_prompt_tokens"`
			Greedy     []int32 `json:"greedy_tokens"`
			GreedyText string  `json:"greedy_text"`
		}
	}
	readJSON(t, filepath.Join("..", "testdata", "golden.json"), &golden)
	tok := demo(t)
	if len(golden.Texts) != 5 || tok.Size() != 4096 || tok.BOS() != 0 || tok.EOS() != 0 || !tok.IsEOG(0) {
		t.Fatalf("%d texts, %d tokens, BOS %d, EOS %d", len(golden.Texts), tok.Size(), tok.BOS(), tok.EOS())
	}
	for _, g := range golden.Texts {
		if ids := tok.Encode(nil, g.Text, true); !slices.Equal(ids, g.Tokens) {
			t.Errorf("%s: %v; want %v", g.Kind, ids, g.Tokens)
		}
		if ids := tok.Encode([]int32{-7}, g.Prompt, true)[1:]; !slices.Equal(ids, g.PromptIDs) {
			t.Errorf("%s prompt: %v; want %v", g.Kind, ids, g.PromptIDs)
		}
		if text := tok.Decode(g.Tokens); text != g.Text {
			t.Errorf("%s: decoded %q", g.Kind, text)
		}
		var text strings.Builder
		for _, id := range g.Greedy {
			text.WriteString(tok.SpecialPiece(id))
		}
		if text.String() != g.GreedyText {
			t.Errorf("%s: continued %q; want %q", g.Kind, text.String(), g.GreedyText)
		}
	}
}

// TestAgainstLlama compares synthetic vocabularies of each kind with libllama's results for difficult texts; see
// testdata/README.md.
func TestAgainstLlama(t *testing.T) {
	var golden struct {
		Vocabs map[string]struct {
			BOS, EOS              int32
			EOG                   []int32
			Pieces, SpecialPieces []string
		}
		Cases []struct {
			Text    string
			Special bool
			IDs     map[string][]int32
		}
	}
	readJSON(t, filepath.Join("testdata", "llama.json"), &golden)
	if len(golden.Vocabs) != 7 || len(golden.Cases) < 400 {
		t.Fatalf("%d vocabularies, %d cases", len(golden.Vocabs), len(golden.Cases))
	}
	for name, want := range golden.Vocabs {
		tok := open(t, filepath.Join("testdata", name+".gguf"))
		if tok.BOS() != want.BOS || tok.EOS() != want.EOS || tok.Size() != len(want.Pieces) {
			t.Errorf("%s: BOS %d, EOS %d, %d tokens; want %d, %d, %d", name, tok.BOS(), tok.EOS(), tok.Size(), want.BOS, want.EOS, len(want.Pieces))
		}
		for id := range int32(tok.Size()) {
			if tok.IsEOG(id) != slices.Contains(want.EOG, id) {
				t.Errorf("%s: IsEOG(%d %q) = %v", name, id, want.SpecialPieces[id], tok.IsEOG(id))
			}
			if got := replaceInvalid(tok.Piece(id)); got != want.Pieces[id] {
				t.Errorf("%s: Piece(%d) = %q; want %q", name, id, got, want.Pieces[id])
			}
			if got := replaceInvalid(tok.SpecialPiece(id)); got != want.SpecialPieces[id] {
				t.Errorf("%s: SpecialPiece(%d) = %q; want %q", name, id, got, want.SpecialPieces[id])
			}
		}
		for _, c := range golden.Cases {
			if ids := tok.Encode(nil, c.Text, c.Special); !slices.Equal(ids, c.IDs[name]) {
				t.Errorf("%s, special %v: %q\n gave %v\n want %v", name, c.Special, c.Text, ids, c.IDs[name])
			}
		}
	}
}

// replaceInvalid applies the same change to a piece as storing it in JSON: each invalid UTF-8 byte becomes U+FFFD.
func replaceInvalid(s string) string { return string([]rune(s)) }

func TestPieceOfInvalidID(t *testing.T) {
	tok := demo(t)
	for _, id := range []int32{None, 4096, 1 << 30} {
		if tok.Piece(id) != "" || tok.SpecialPiece(id) != "" || tok.IsEOG(id) {
			t.Errorf("token %d has a piece", id)
		}
	}
	if tok.Piece(0) != "" || tok.SpecialPiece(0) != "<|endoftext|>" {
		t.Errorf("pieces of a control token: %q, %q", tok.Piece(0), tok.SpecialPiece(0))
	}
}

// vocabulary returns the metadata of a small valid vocabulary, for tests that damage it.
func vocabulary() map[string]any {
	return map[string]any{
		"tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": "gpt-2", "tokenizer.ggml.merges": []string{"a b"},
		"tokenizer.ggml.tokens": []string{"a", "b", "ab", "<s>"}, "tokenizer.ggml.token_type": []int32{1, 1, 1, 3},
	}
}

func build(t *testing.T, meta map[string]any) (*Tokenizer, error) {
	t.Helper()
	w := gguf.NewWriter(3)
	for k, v := range meta {
		w.Set(k, v)
	}
	data, err := w.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	f, err := gguf.Parse(data)
	if err != nil {
		t.Fatal(err)
	}
	return New(f)
}

func TestErrors(t *testing.T) {
	const p = "tokenizer.ggml."
	for _, c := range []struct {
		key   string
		value any
		want  string
	}{
		{p + "model", "bert", `tokenizer.ggml.model is "bert"; supported: gpt2, llama`},
		{p + "model", uint32(1), "tokenizer.ggml.model is uint32"},
		{p + "pre", "tekken", `tokenizer.ggml.pre is "tekken"; supported: deepseek-r1-qwen, gpt-2`},
		{p + "tokens", []string{}, "a vocabulary of 0 tokens"},
		{p + "tokens", []string{"a", "b", "a", "c"}, `tokens 0 and 2 are both "a"`},
		{p + "token_type", []int32{1}, "1 token types for 4 tokens"},
		{p + "token_type", []string{"1"}, "token_type is array of 1 string"},
		{p + "scores", []float32{1}, "1 scores for 4 tokens"},
		{p + "scores", []int32{1}, "1 scores for 4 tokens"},
		{p + "merges", []int32{1}, "merges is array of 1 int32"},
		{p + "add_bos_token", true, "BOS or EOS token"},
		{p + "add_eos_token", "yes", "add_eos_token is string"},
		{p + "bos_token_id", "one", "bos_token_id is string"},
		{p + "fim_pad_token_id", "one", "fim_pad_token_id is string"},
		{"general.name", "phi3", "the vocabulary of a Phi-3 model has no token </s>"},
	} {
		meta := vocabulary()
		meta[c.key] = c.value
		if _, err := build(t, meta); err == nil || !strings.HasPrefix(err.Error(), "read tokenizer: ") || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s = %v: %v; want %q", c.key, c.value, err, c.want)
		}
	}
	for _, key := range []string{"model", "pre", "tokens", "merges"} {
		meta := vocabulary()
		delete(meta, p+key)
		if _, err := build(t, meta); err == nil || !strings.Contains(err.Error(), p+key+" is not in the file") {
			t.Errorf("without %s: %v", key, err)
		}
	}
}

// TestIncompleteVocabulary encodes with a vocabulary that lacks most bytes and has odd entries: symbols without a token
// are dropped.
func TestIncompleteVocabulary(t *testing.T) {
	meta := vocabulary()
	meta["tokenizer.ggml.merges"] = []string{"a b", "", " ", "a", "b a", "ab ba"}
	meta["tokenizer.ggml.tokens"] = []string{"a", "b", "ab", "", "日本"}
	meta["tokenizer.ggml.token_type"] = []int32{1, 1, 1, 1, 1}
	tok, err := build(t, meta)
	if err != nil {
		t.Fatal(err)
	}
	if ids := tok.Encode(nil, "ab zba\xff", true); !slices.Equal(ids, []int32{2, 1, 0}) {
		t.Errorf("ids %v", ids)
	}
	if tok.Piece(3) != "[EMPTY_3]" || tok.Piece(4) != "日本" {
		t.Errorf("pieces %q, %q", tok.Piece(3), tok.Piece(4))
	}
}

// TestJinaMask expects the mask of a SentencePiece vocabulary of Jina v2 to include the white space before it, and no
// other token to.
func TestJinaMask(t *testing.T) {
	tok, err := build(t, map[string]any{
		"tokenizer.ggml.model": "llama", "tokenizer.ggml.pre": "jina-v2-de", "tokenizer.ggml.add_space_prefix": false,
		"tokenizer.ggml.tokens": []string{"<unk>", "<s>", "</s>", "<mask>", "a", "▁"}, "tokenizer.ggml.token_type": []int32{2, 3, 3, 3, 1, 1},
	})
	if err != nil {
		t.Fatal(err)
	}
	if ids := tok.Encode(nil, "a \n\t<mask> </s>  a", true); !slices.Equal(ids, []int32{1, 4, 3, 5, 2, 5, 5, 4}) {
		t.Errorf("ids %v", ids)
	}
}

// TestHugeWord encodes a megabyte without a space: quadratic time would be minutes.
func TestHugeWord(t *testing.T) {
	text := strings.Repeat("abcdefgh", 1<<17)
	for _, tok := range []*Tokenizer{demo(t), open(t, filepath.Join("testdata", "spm.gguf"))} {
		if got := tok.Decode(tok.Encode(nil, text, true)); got != text {
			t.Errorf("%d bytes decoded to %d", len(text), len(got))
		}
	}
	angles := strings.Repeat("<", 1<<20) + "<|endoftext|>"
	if ids := demo(t).Encode(nil, angles, true); ids[len(ids)-1] != 0 {
		t.Errorf("the control token behind %d angles was not found", len(angles))
	}
}

// TestEncodeAllocations allows a few allocations, since a sync.Pool may drop its content.
func TestEncodeAllocations(t *testing.T) {
	tok := demo(t)
	text := strings.Repeat("Call me Ishmael. Some years ago -- never mind how long precisely.\n", 20)
	dst := tok.Encode(nil, text, true)
	if n := testing.AllocsPerRun(50, func() { dst = tok.Encode(dst[:0], text, true) }); n*10 > float64(len(dst)) {
		t.Errorf("%v allocations for %d tokens", n, len(dst))
	}
}

func FuzzEncode(f *testing.F) {
	for _, s := range []string{"", "package main\n\nimport (", "don't  stop\r\n\t12345 é漢😀", "\xff\xfe\x00 \xe6\xbc", "<|endoftext|>", " \u00a0\u2028 x", "'LL'll"} {
		f.Add(s, true)
		f.Add(s, false)
	}
	tok := demo(f)
	var others []*Tokenizer
	for _, name := range []string{"gpt-2", "qwen2", "llama-bpe", "families", "spm", "spm-plain", "phi-3"} {
		others = append(others, open(f, filepath.Join("testdata", name+".gguf")))
	}
	f.Fuzz(func(t *testing.T, text string, special bool) {
		ids := tok.Encode(nil, text, special)
		want := text
		if special {
			want = strings.ReplaceAll(text, "<|endoftext|>", "")
		}
		if got := tok.Decode(ids); got != want {
			t.Errorf("%q decoded to %q", text, got)
		}
		for _, o := range others {
			for _, id := range o.Encode(nil, text, special) {
				if id < 0 || int(id) >= o.Size() {
					t.Errorf("%q has a token %d of %d", text, id, o.Size())
				}
			}
		}
	})
}

func BenchmarkEncode(b *testing.B) {
	var golden struct{ Texts []struct{ Text string } }
	readJSON(b, filepath.Join("..", "testdata", "golden.json"), &golden)
	var text strings.Builder
	for _, g := range golden.Texts {
		text.WriteString(g.Text)
	}
	for name, tok := range map[string]*Tokenizer{"bpe": demo(b), "spm": open(b, filepath.Join("testdata", "spm.gguf"))} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(text.Len()))
			b.ReportAllocs()
			var ids []int32
			for b.Loop() {
				ids = tok.Encode(ids[:0], text.String(), true)
			}
		})
	}
}

func BenchmarkNew(b *testing.B) {
	f, err := gguf.Open(filepath.Join("..", "demo", "llmtop-demo-moe-q8_0.gguf"))
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	for b.Loop() {
		if _, err := New(f); err != nil {
			b.Fatal(err)
		}
	}
}

// SpecialPiece is like Piece, but includes the text of control tokens.
func (t *Tokenizer) SpecialPiece(id int32) string {
	if id < 0 || int(id) >= len(t.tokens) {
		return ""
	}
	return t.render(id, true)
}
