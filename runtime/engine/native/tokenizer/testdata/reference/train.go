package main

import (
	"fmt"
	"strings"
)

// train merges the most frequent pair of neighbours n times. Among equally frequent pairs it takes the alphabetically
// first, so that the files are reproducible.
func train(texts [][]string, n int) (merges [][2]string) {
	for range n {
		counts := map[[2]string]int{}
		for _, t := range texts {
			for i := 1; i < len(t); i++ {
				counts[[2]string{t[i-1], t[i]}]++
			}
		}
		var best [2]string
		for p, c := range counts {
			if b := counts[best]; c > b || c == b && (p[0] < best[0] || p[0] == best[0] && p[1] < best[1]) {
				best = p
			}
		}
		merges = append(merges, best)
		for k, t := range texts {
			texts[k] = apply(t, best)
		}
	}
	return merges
}

// apply merges a pair wherever it occurs in t.
func apply(t []string, pair [2]string) []string {
	out := t[:0]
	for i := 0; i < len(t); i++ {
		if i+1 < len(t) && t[i] == pair[0] && t[i+1] == pair[1] {
			out = append(out, pair[0]+pair[1])
			i++
		} else {
			out = append(out, t[i])
		}
	}
	return out
}

// trainBPE returns a byte-level vocabulary: the bytes, and the results of n merges.
func trainBPE(texts []string, n int) (tokens, merges []string) {
	var runes [256]string
	for b, next := 0, 256; b < 256; b++ {
		runes[b] = string(rune(b))
		if b <= ' ' || b > '~' && b < 0xa1 || b == 0xad {
			runes[b] = string(rune(next))
			next++
		}
	}
	tokens = append(tokens, runes[:]...)
	var split [][]string
	for _, text := range texts {
		var t []string
		for _, b := range []byte(text) {
			t = append(t, runes[b])
		}
		split = append(split, t)
	}
	have := map[string]bool{"whole": true, "Ġwhole": true, "Ġwhol": true, "word!": true, "12": true, "345": true}
	for _, t := range append(tokens, "<|im_start|>", "<|im_end|>", "<s>", "</s>", "<tool>", "<ab", "b>cd>", "user", "<unk>", "<|eot_id|>") {
		have[t] = true
	}
	for i, m := range train(split, n) {
		merges = append(merges, m[0]+" "+m[1])
		if text := m[0] + m[1]; !have[text] && i%50 != 49 { // some merges have no token
			have[text] = true
			tokens = append(tokens, text)
		}
	}
	return tokens, merges
}

// trainSPM returns a SentencePiece vocabulary: byte tokens, most characters, and the results of n merges, with some
// equal scores.
func trainSPM(texts []string, n int) (tokens []string, scores []float32) {
	have := map[string]bool{"<s>": true, "</s>": true, "<unk>": true, "<tool>": true, "<ab": true, "b>cd>": true, "<|im_start|>": true, "unused": true, "user": true}
	add := func(text string, score float32) {
		if !have[text] && !strings.Contains(text, "\x00") { // libllama reads tokens as C strings
			have[text] = true
			tokens, scores = append(tokens, text), append(scores, score)
		}
	}
	for b := range 256 {
		add(fmt.Sprintf("<0x%02X>", b), 0)
	}
	var split [][]string
	for _, text := range texts {
		t := strings.Split(strings.ReplaceAll(text, " ", "▁"), "")
		for _, c := range t {
			if !strings.Contains("😀٣\n", c) {
				add(c, -5000)
			}
		}
		split = append(split, t)
	}
	for i, m := range train(split, n) {
		add(m[0]+m[1], -float32(i/3))
	}
	return tokens, scores
}
