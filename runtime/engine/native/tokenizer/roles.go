package tokenizer

import (
	"fmt"
	"slices"
	"strings"

	"github.com/llmtop/llmtop/runtime/engine/native/gguf"
)

// role is a special use of one token. The metadata identifies the token by key; without a key, the first token with one
// of the texts is used. Source: llama.cpp, llama-vocab.cpp.
type role struct {
	keys  []string // after "tokenizer.ggml."; the last existing key counts
	texts []string
	ends  bool // the token ends a generation
}

var roles = []role{
	{[]string{"eot_token_id"}, []string{
		"<|eot_id|>", "<|im_end|>", "<|end|>", "<end_of_turn>", "<|endoftext|>", "<|end_of_text|>", "<EOT>", "_<EOT>",
		"[EOT]", "<｜end▁of▁sentence｜>", "<end_of_utterance>",
	}, true},
	{[]string{"eom_token_id"}, []string{"<|eom_id|>"}, true},
	{[]string{"fim_pre_token_id", "prefix_token_id"}, []string{
		"<|fim_prefix|>", "<fim-prefix>", "<fim_prefix>", "<｜fim▁begin｜>", "<PRE>", "▁<PRE>", "<|code_prefix|>", "<|prefix|>",
	}, false},
	{[]string{"fim_suf_token_id", "suffix_token_id"}, []string{
		"<|fim_suffix|>", "<fim-suffix>", "<fim_suffix>", "<｜fim▁hole｜>", "<SUF>", "▁<SUF>", "<|code_suffix|>", "<|suffix|>",
	}, false},
	{[]string{"fim_mid_token_id", "middle_token_id"}, []string{
		"<|fim_middle|>", "<fim-middle>", "<fim_middle>", "<｜fim▁end｜>", "<MID>", "▁<MID>", "<|code_middle|>", "<|middle|>",
	}, false},
	{[]string{"fim_pad_token_id"}, []string{"<|fim_pad|>", "<fim-pad>", "<fim_pad>", "<PAD>", "[PAD]"}, true},
	{[]string{"fim_rep_token_id"}, []string{"<|fim_repo|>", "<|repo_name|>", "<fim-repo>", "<REPO>", "<reponame>"}, true},
	{[]string{"fim_sep_token_id"}, []string{"<|file_sep|>"}, true},
}

// enders are the texts of tokens that always end a generation.
var enders = []string{
	"<|eot_id|>", "<|im_end|>", "<|end|>", "<|return|>", "<|call|>", "<|flush|>", "<|calls|>", "<end_of_turn>", "<|endoftext|>",
	"</s>", "<|eom_id|>", "<EOT>", "_<EOT>", "[EOT]", "[EOS]", "<|end_of_text|>", "<end_of_utterance>", "<eos>", "<turn|>",
	"<|tool_response>", "<｜end▁of▁sentence｜>", "[e~[",
}

// readRoles finds BOS, EOS and the tokens that end a generation. The kind of tokenizer has set the defaults of bos,
// eos, addBOS and addEOS before.
func (v *vocab) readRoles(m gguf.Metadata) error {
	v.eog = map[int32]struct{}{}
	var err error
	if v.bos, err = v.keyed(m, "bos_token_id", v.bos); err != nil {
		return err
	}
	if v.eos, err = v.keyed(m, "eos_token_id", v.eos); err != nil {
		return err
	}
	if v.addBOS, err = gguf.OrDefault(m.Bool, "tokenizer.ggml.add_bos_token", v.addBOS); err != nil {
		return err
	}
	if v.addEOS, err = gguf.OrDefault(m.Bool, "tokenizer.ggml.add_eos_token", v.addEOS); err != nil {
		return err
	}
	if v.addBOS && v.bos == None || v.addEOS && v.eos == None {
		return fmt.Errorf("the model asks for a BOS or EOS token that its vocabulary of %d tokens does not have", len(v.tokens))
	}
	for _, r := range roles {
		if err := v.assign(m, r); err != nil {
			return err
		}
	}
	for _, text := range enders {
		if id := v.id(text); id != None {
			v.attrs[id] |= attrControl
			v.end(id)
		}
	}
	v.end(v.eos)
	v.correct()
	return v.readStrips(m)
}

// shown are the control tokens of gpt-oss that are part of the text.
var shown = []string{"<|channel|>", "<|message|>", "<|start|>", "<|constrain|>"}

// correct applies llama.cpp's exceptions for families of models, which it recognises by their tokens: gpt-oss, Solar
// Open and Gemma 4.
func (v *vocab) correct() {
	for _, text := range shown {
		if id := v.id(text); id != None {
			v.attrs[id] = attrUserDefined
		}
	}
	if (v.endsWith("<|call|>") || v.endsWith("<|calls|>")) && (v.endsWith("<|return|>") || v.endsWith("<|flush|>")) {
		v.unend("<|end|>", attrUserDefined)
	}
	if v.endsWith("<|tool_response>") {
		v.unend("</s>", attrNormal)
	}
}

// endsWith reports whether the token with that text ends a generation.
func (v *vocab) endsWith(text string) bool {
	_, ok := v.eog[v.id(text)]
	return ok
}

// unend lets a generation continue after the token with that text, if it would end there.
func (v *vocab) unend(text string, a attr) {
	if v.endsWith(text) {
		delete(v.eog, v.id(text))
		v.attrs[v.id(text)] = a
	}
}

// readStrips finds the special tokens that include the white space beside them. A GGUF file does not have this
// information: as llama.cpp does, it follows from the names of the model and of its tokenizer.
func (v *vocab) readStrips(m gguf.Metadata) error {
	v.stripLeft, v.stripRight = map[int32]bool{}, map[int32]bool{}
	name, _ := m.String("general.name") // both are optional
	pre, _ := m.String("tokenizer.ggml.pre")
	named := func(in string, parts ...string) bool {
		return slices.ContainsFunc(parts, func(part string) bool { return strings.Contains(in, part) })
	}
	switch name = strings.ToLower(name); {
	case named(pre, "jina-v2-de", "jina-v2-es", "jina-v2-code"):
		v.stripLeft[v.id("<mask>")] = true
	case named(name, "phi-3", "phi3"):
		for id, a := range v.attrs {
			if a&attrSpecial != 0 {
				v.stripRight[int32(id)] = true
			}
		}
		for _, text := range []string{"</s>", "<unk>", "<s>", "<|endoftext|>"} {
			id := v.id(text)
			if id == None { // llama.cpp refuses it, too
				return fmt.Errorf("the vocabulary of a Phi-3 model has no token %s", text)
			}
			v.stripRight[id] = text == "</s>"
		}
	case named(name, "modern-bert"):
		v.stripLeft[v.id("[MASK]")] = true
	}
	return nil
}

// assign finds the token of a role. A token found by its text is a control token, regardless of its type.
func (v *vocab) assign(m gguf.Metadata, r role) error {
	id, err := None, error(nil)
	for _, key := range r.keys {
		if id, err = v.keyed(m, key, id); err != nil {
			return err
		}
	}
	if id == None {
		for _, text := range r.texts {
			if found := v.id(text); found != None && (id == None || found < id) {
				id = found
			}
		}
		if id != None {
			v.attrs[id] |= attrControl
		}
	}
	if r.ends {
		v.end(id)
	}
	return nil
}

func (v *vocab) end(id int32) {
	if id != None {
		v.eog[id] = struct{}{}
	}
}

// keyed returns the token id at the key; def if the key is missing or its id is invalid, None if def is invalid, too.
func (v *vocab) keyed(m gguf.Metadata, key string, def int32) (int32, error) {
	if int(def) >= len(v.tokens) {
		def = None
	}
	key = "tokenizer.ggml." + key
	if !m.Has(key) {
		return def, nil
	}
	id, err := m.Uint(key)
	if err != nil {
		return None, err
	}
	if id >= uint64(len(v.tokens)) {
		return def, nil
	}
	return int32(id), nil
}
