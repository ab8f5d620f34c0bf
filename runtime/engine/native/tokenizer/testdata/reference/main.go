// reference creates the files that the tokenizer tests compare with: small synthetic vocabularies as GGUF files, and
// the ids that libllama computes for difficult texts.
//
//	go run ./runtime/engine/native/tokenizer/testdata/reference LIBDIR runtime/engine/native/tokenizer/testdata
//
// LIBDIR contains libllama and libggml of a llama.cpp release, as shared libraries.
package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"

	"github.com/llmtop/llmtop/runtime/engine/native/gguf"
)

// fragments are joined at random, for the training text of the vocabularies and the texts of the test cases.
var fragments = []string{
	" ", " ", "  ", "   ", "\n", "\n\n", "\r\n", "\r", "\t", " \n", "\n ", "\v", "\u00a0", "\u2003", "\u0085", "\u3000", "\u2028",
	"a", "b", "the", "The", "whole", "word", "don", "I", "x", "ſ", "é", "e\u0301", "ñandú", "Ж", "ж", "ǅ", "漢字", "かな", "한국", "ش", "𝔘", "\U0002ebf5",
	"0", "7", "12", "345", "2024", "1234567", "½", "٣", "Ⅷ", "²", "𝟘",
	"'", "'s", "'S", "'t", "'T", "'re", "'RE", "'Ve", "'m", "'ll", "'lL", "'d", "'x", "’s", "'ſ",
	"!", "?", ".", ",", "...", "-", "_", "(", ")", "{", "}", "\"", "$", "+", "<", ">", "|", "~", "\\", "/", "@", "#", "§", "€", "—", "😀", "👩‍🚀", "\u200d",
	"\x00", "\x1c", "\x7f", "\u00ad", "\ufeff", "\ufffd", "\ue000", "\u0378", "▁", "<0x0A>",
	"<|im_start|>", "<|im_end|>", "<|im_", "<unk>", "<s>", "</s>", "<tool>", "tool>", "<ab", "b>cd>", "<ab>cd>", "user", "<|eot_id|>",
}

func sentence(r *rand.Rand, most int) string {
	var b strings.Builder
	for range 1 + r.IntN(most) {
		b.WriteString(fragments[r.IntN(len(fragments))])
	}
	return b.String()
}

// training returns texts to learn merges from. Merges cross every boundary, so that a wrong split changes the ids.
func training() (texts []string) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 4000 {
		texts = append(texts, sentence(r, 20))
	}
	return texts
}

type testCase struct {
	Text    string             `json:"text"`
	Special bool               `json:"special,omitempty"`
	IDs     map[string][]int32 `json:"ids"`
}

type facts struct {
	BOS, EOS      int32
	EOG           []int32
	Pieces        []string `json:",omitempty"`
	SpecialPieces []string `json:",omitempty"`
}

func cases() (list []testCase) {
	r := rand.New(rand.NewPCG(3, 4))
	for i := range 400 {
		list = append(list, testCase{Text: sentence(r, 14), Special: i%2 == 0})
	}
	for _, text := range []string{"", " ", "  ", "\n", "a", " a", "a ", "a  ", "a  b", " \n \n a", "\t\ta", "'", "''s", "'re'RE", "123456789", "a\u0301b", "don't DON'T", "\n\n\n", "<0x0A>\n"} {
		list = append(list, testCase{Text: text, Special: true})
	}
	marks := []string{
		" ", "\n", "\t \r", "\v\f", "\u00a0", "a",
		"<s>", "</s>", "<unk>", "<|endoftext|>", "<|end|>", "<|user|>", "<|channel|>", "<tool>", "[MASK]",
	}
	for i := range 60 {
		text := ""
		for range 1 + r.IntN(10) {
			text += marks[r.IntN(len(marks))]
		}
		list = append(list, testCase{Text: text, Special: i%4 > 0})
	}
	return list
}

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: reference LIBDIR OUTDIR")
		os.Exit(2)
	}
	lib, out := openLibrary(os.Args[1]), os.Args[2]
	list, about := cases(), map[string]facts{}
	for i := range list {
		list[i].IDs = map[string][]int32{}
	}
	for name, w := range vocabularies(training()) {
		path := filepath.Join(out, name+".gguf")
		check(w.WriteFile(path))
		v := lib.open(path)
		for i, c := range list {
			list[i].IDs[name] = v.encode(c.Text, c.Special)
		}
		about[name] = v.facts()
	}
	raw, err := json.Marshal(map[string]any{
		"made_with": "llama.cpp release v0.5.0 (libllama from @node-llama-cpp/linux-x64 3.22.1)", "vocabs": about, "cases": list,
	})
	check(err)
	raw = []byte(strings.ReplaceAll(string(raw), `{"text"`, "\n"+`{"text"`))
	check(os.WriteFile(filepath.Join(out, "llama.json"), append(raw, '\n'), 0o644))
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "reference:", err)
		os.Exit(1)
	}
}

// vocabularies returns the GGUF files to write, by name.
func vocabularies(texts []string) map[string]*gguf.Writer {
	all := map[string]*gguf.Writer{}
	tokens, merges := trainBPE(texts, 900)
	for _, name := range []string{"gpt-2", "qwen2", "llama-bpe", "families"} {
		t, types := withSpecials(append([]string{"whole", "Ġwhole", "Ġwhol", "word!", "12", "345"}, tokens...))
		pre := name
		if name == "families" { // tokens by which llama.cpp recognises families of models
			pre = "gpt-2"
			t = append(t, "<|start|>", "<|channel|>", "<|return|>", "<|call|>", "<|end|>", "<|tool_response>", "[MASK]")
			types = append(types, 3, 3, 3, 3, 3, 3, 3)
		}
		all[name] = gguf.NewWriter(3).Set("general.architecture", "llama").
			Set("tokenizer.ggml.model", "gpt2").Set("tokenizer.ggml.pre", pre).
			Set("tokenizer.ggml.tokens", t).Set("tokenizer.ggml.token_type", types).Set("tokenizer.ggml.merges", merges)
	}
	all["qwen2"].Set("tokenizer.ggml.bos_token_id", uint32(3)).Set("tokenizer.ggml.eos_token_id", uint32(7)).Set("tokenizer.ggml.add_eos_token", true)
	all["llama-bpe"].Set("tokenizer.ggml.bos_token_id", uint32(7)).Set("tokenizer.ggml.eot_token_id", uint32(5))
	all["families"].Set("general.name", "Not modern-BERT")
	spm, scores := trainSPM(texts, 900)
	for _, name := range []string{"spm", "spm-plain", "phi-3"} {
		t, types := append([]string{"<unk>", "<s>", "</s>"}, spm...), []int32{2, 3, 3}
		for i := range spm {
			types = append(types, map[bool]int32{true: 6, false: 1}[i < 256])
		}
		t = append(t, "<tool>", "<ab", "b>cd>", "<|im_start|>", "unused", "user")
		types = append(types, 4, 4, 4, 3, 5, 4)
		if name == "phi-3" {
			t, types = append(t, "<|endoftext|>", "<|end|>", "<|user|>"), append(types, 3, 3, 3)
		}
		all[name] = gguf.NewWriter(3).Set("general.architecture", "llama").Set("tokenizer.ggml.model", "llama").
			Set("tokenizer.ggml.tokens", t).Set("tokenizer.ggml.token_type", types).
			Set("tokenizer.ggml.scores", append(append(make([]float32, 3), scores...), make([]float32, len(t)-3-len(scores))...))
	}
	all["spm-plain"].Set("tokenizer.ggml.add_space_prefix", false).Set("tokenizer.ggml.add_bos_token", false).Set("tokenizer.ggml.eos_token_id", uint32(700))
	all["phi-3"].Set("general.name", "A Phi-3 model")
	return all
}

func withSpecials(tokens []string) (list []string, types []int32) {
	for range tokens {
		types = append(types, 1)
	}
	add := func(kind int32, texts ...string) {
		for _, t := range texts {
			tokens, types = append(tokens, t), append(types, kind)
		}
	}
	add(3, "<|im_start|>", "<|im_end|>", "<s>", "<|fim_pad|>")
	add(4, "<tool>", "<ab", "b>cd>", "</s>", "user")
	add(2, "<unk>")
	add(5, "unused")
	add(1, "<|eot_id|>")
	return tokens, types
}
