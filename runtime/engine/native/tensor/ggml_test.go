package tensor

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"os"
	"testing"
)

// ggmlRow holds ggml's results (of llama.cpp release v0.5.0, on x86) for one row of random weights and a vector.
type ggmlRow struct {
	Type      string  `json:"type"`
	Row       []byte  `json:"row"`
	Values    []byte  `json:"values"`    // float32, little-endian
	Quantized []byte  `json:"quantized"` // the vector as block_q8_0; of K-quants as block_q8_K
	Dot       float32 `json:"dot"`
}

func floats(b []byte) []float32 {
	x := make([]float32, len(b)/4)
	for i := range x {
		x[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
	}
	return x
}

func readGGML(t *testing.T) (x []float32, rows []ggmlRow) {
	t.Helper()
	raw, err := os.ReadFile("testdata/ggml.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		X    []byte    `json:"x"`
		Rows []ggmlRow `json:"rows"`
	}
	if err := json.Unmarshal(raw, &file); err != nil {
		t.Fatal(err)
	}
	return floats(file.X), file.Rows
}

// Values equal ggml's bit for bit. Activations are rounded to the same integers and products agree, except for
// K-quants: ggml rounds their activations in blocks of 256, which is further from the exact ones.
func TestAgainstGGML(t *testing.T) {
	atLevels(t, portable, func(t *testing.T) {
		x, rows := readGGML(t)
		if len(rows) != 5 {
			t.Fatalf("%d reference rows", len(rows))
		}
		for _, ref := range rows {
			typ := typeNamed(t, ref.Type)
			m := Matrix{Type: typ, Rows: 1, Cols: len(x), Data: ref.Row}
			got := make([]float32, len(x))
			m.Dequantize(got, 0)
			for i, want := range floats(ref.Values) {
				if got[i] != want {
					t.Fatalf("%s value %d: got %g, want %g", typ, i, got[i], want)
				}
			}
			a := &Activations{}
			a.Resize(1, len(x), typ.Form())
			a.Quantize(0, x, typ.Form())
			var off, ggmlOff, want float64
			for i, v := range x {
				b := &a.q80[i/blockElems]
				rounded, other := float32(b.q[i%blockElems])*b.scale, ggmlQuantized(typ, ref.Quantized, i)
				if typ.BlockElems() == blockElems && rounded != other {
					t.Fatalf("%s activation %d: got %g, want %g", typ, i, rounded, other)
				}
				want += float64(got[i]) * float64(rounded)
				off, ggmlOff = off+math.Abs(float64(rounded-v)), ggmlOff+math.Abs(float64(other-v))
			}
			if typ.BlockElems() == superElems && off > 0.9*ggmlOff {
				t.Errorf("%s: activations are off by %g in total, those of ggml by %g", typ, off, ggmlOff)
			}
			if typ.BlockElems() == blockElems {
				want = float64(ref.Dot)
			}
			var dot [1]float32
			MatVec(dot[:], &m, 0, 1, a, 0)
			if math.Abs(float64(dot[0])-want) > 1e-6*math.Abs(want) {
				t.Errorf("%s: got %g, want %g", typ, dot[0], want)
			}
		}
	})
}

func typeNamed(t *testing.T, name string) Type {
	t.Helper()
	for _, typ := range types {
		if typ.String() == name {
			return typ
		}
	}
	t.Fatalf("no type %s", name)
	return 0
}

// ggmlQuantized returns value i of ggml's blocks of 32 (half float and bytes), or 256 for K-quants (float32, bytes and
// sums).
func ggmlQuantized(t Type, b []byte, i int) float32 {
	if t.BlockElems() == blockElems {
		block := b[i/32*34:]
		return halfAt(block) * float32(int8(block[2+i%32]))
	}
	block := b[i/256*292:]
	return math.Float32frombits(binary.LittleEndian.Uint32(block)) * float32(int8(block[4+i%256]))
}
