package tokenizer

import (
	"fmt"

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
