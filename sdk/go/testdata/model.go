// A small mixture of experts that really computes, for the engines of README.md.
package main

import (
	"math"
	"math/rand/v2"
	"os"
	"time"
)

const (
	layers, experts, used, width, words, context = 2, 4, 2, 16, 64, 128
)

type matrix [][width]float64

type model struct {
	attention, gate [layers]matrix
	expert          [layers][experts]matrix
	embedding       matrix
	state           [width]float64
}

func random(rows int) matrix {
	m := make(matrix, rows)
	for i := range m {
		for j := range m[i] {
			m[i][j] = rand.Float64() - 0.5
		}
	}
	return m
}

// load returns a model with random weights.
func load(string) *model {
	m := &model{embedding: random(words)}
	for l := range layers {
		m.attention[l], m.gate[l] = random(width), random(experts)
		for e := range experts {
			m.expert[l][e] = random(width)
		}
	}
	return m
}

func times(m matrix, x [width]float64) []float64 {
	out := make([]float64, len(m))
	for i, row := range m {
		for j, w := range row {
			out[i] += w * x[j]
		}
	}
	return out
}

// tokenize waits, at most 20 s, for the file with which the test says that it watches.
func (m *model) tokenize(text string) (ids []int32) {
	for range 20_000 {
		path := os.Getenv("MODEL_WAIT")
		if _, err := os.Stat(path); path == "" || err == nil {
			break
		}
		time.Sleep(time.Millisecond)
	}
	for _, b := range []byte(text) {
		ids = append(ids, int32(b)%words)
	}
	return ids
}

func (m *model) embed(ids []int32) {
	for _, id := range ids {
		for i := range m.state {
			m.state[i] = m.state[i]/2 + m.embedding[id][i]
		}
	}
}

func (m *model) attend(layer int) {
	for i, v := range times(m.attention[layer], m.state) {
		m.state[i] += math.Tanh(v)
	}
}

func (m *model) route(layer int) (picks []uint16) {
	out := times(m.gate[layer], m.state)
	for range used {
		best := 0
		for e := range out {
			if out[e] > out[best] {
				best = e
			}
		}
		picks, out[best] = append(picks, uint16(best)), math.Inf(-1)
	}
	return picks
}

func (m *model) apply(layer int, picks []uint16) {
	for _, e := range picks {
		for i, v := range times(m.expert[layer][e], m.state) {
			m.state[i] = math.Tanh(m.state[i] + v)
		}
	}
}

func (m *model) head() []float64 { return times(m.embedding, m.state) }

func (m *model) sample(logits []float64) (best int32) {
	for i := range logits {
		if logits[i]+rand.Float64() > logits[best] {
			best = int32(i)
		}
	}
	return best
}

func (m *model) forward(ids []int32) int32 {
	m.embed(ids)
	for l := range layers {
		m.attend(l)
		m.apply(l, m.route(l))
	}
	return m.sample(m.head())
}
