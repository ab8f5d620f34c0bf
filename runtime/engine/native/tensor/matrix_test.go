package tensor

import (
	"fmt"
	"math"
	"testing"
)

func TestChooseLevel(t *testing.T) {
	for _, c := range []struct {
		asked string
		best  level
		want  level
	}{
		{"", avx512, avx512},
		{"", portable, portable},
		{"portable", avx512, portable},
		{"avx2", avx512, avx2},
		{"avx512", avx2, avx2},
		{"avx512", avx512, avx512},
		{"sse", avx2, avx2},
	} {
		if got := chooseLevel(c.asked, c.best); got != c.want {
			t.Errorf("LLMTOP_CPU=%q on %s chooses %s, want %s", c.asked, names[c.best], names[got], names[c.want])
		}
	}
	if names[active] != Features() || Features() == "" {
		t.Errorf("Features is %q", Features())
	}
}

func TestValidate(t *testing.T) {
	for _, c := range []struct {
		m  Matrix
		ok bool
	}{
		{Matrix{Q8_0, 2, 64, make([]byte, 136)}, true},
		{Matrix{Q8_0, 2, 64, make([]byte, 135)}, false},
		{Matrix{Q8_0, 2, 48, make([]byte, 999)}, false},
		{Matrix{Q4_K, 1, 128, make([]byte, 999)}, false},
		{Matrix{F32, 0, 4, nil}, true},
		{Matrix{F32, -1, 4, nil}, false},
		{Matrix{F32, 1, 0, make([]byte, 9)}, false},
		{Matrix{Type(2000), 1, 4, make([]byte, 99)}, false},
		{Matrix{F32, math.MaxInt, 1 << 20, make([]byte, 99)}, false},
	} {
		if err := c.m.Validate(); (err == nil) != c.ok {
			t.Errorf("%s %d×%d in %d bytes: %v", c.m.Type, c.m.Rows, c.m.Cols, len(c.m.Data), err)
		}
	}
}

func TestTypes(t *testing.T) {
	for _, typ := range types {
		if !typ.Supported() || typ.Form() == 0 || typ.RowBytes(512) != 512/typ.BlockElems()*typ.BlockBytes() {
			t.Errorf("%s: supported %v, form %d, row of 512 in %d bytes", typ, typ.Supported(), typ.Form(), typ.RowBytes(512))
		}
	}
	for typ, name := range map[Type]string{10: "Q2_K", 39: "MXFP4", 77: "type 77"} {
		if typ.Supported() || typ.String() != name || typ.RowBytes(256) != 0 || typ.Form() != 0 {
			t.Errorf("type %d: %q, supported %v", uint32(typ), typ, typ.Supported())
		}
	}
}

func TestExpert(t *testing.T) {
	all := Matrix{Type: F32, Rows: 6, Cols: 2, Data: make([]byte, 48)}
	for i := range all.Data {
		all.Data[i] = byte(i)
	}
	e := all.Expert(2, 2)
	if err := e.Validate(); err != nil || e.Rows != 2 || e.Data[0] != 32 || len(e.Data) != 16 {
		t.Errorf("expert 2 of 3 is %+v, %v", e, err)
	}
	if r := e.Row(1); r[0] != 40 || len(r) != 8 {
		t.Errorf("its second row is %v", r)
	}
}

// Sizes that do not match panic before a kernel accesses memory outside its arguments.
func TestProductsCheckSizes(t *testing.T) {
	m := Matrix{Type: Q8_0, Rows: 4, Cols: 64, Data: make([]byte, 4*68)}
	a := &Activations{}
	a.Resize(3, 64, FormQ80)
	wide := &Activations{}
	wide.Resize(3, 128, FormQ80)
	float := &Activations{}
	float.Resize(3, 64, FormF32)
	dst := make([]float32, 12)
	for i, call := range []func(){
		func() { MatMul(dst, 4, &m, 0, 5, a, 0, 3) },
		func() { MatMul(dst, 4, &m, -1, 4, a, 0, 3) },
		func() { MatMul(dst, 4, &m, 3, 2, a, 0, 3) },
		func() { MatMul(dst, 4, &m, 0, 4, a, 0, 4) },
		func() { MatMul(dst, 4, &m, 0, 4, a, -1, 2) },
		func() { MatMul(dst[:11], 4, &m, 0, 4, a, 0, 3) },
		func() { MatMul(dst, 4, &m, 0, 4, wide, 0, 3) },
		func() { MatMul(dst, 4, &m, 0, 4, float, 0, 3) },
		func() { MatVec(dst[:3], &m, 0, 4, a, 0) },
		func() { MatMulGather(dst, 4, &m, 0, 4, a, []int32{0, 3}, nil) },
		func() { MatMulGather(dst, 4, &m, 0, 4, a, nil, []int32{0, 3}) },
		func() { MatMulGather(dst, 4, &m, 0, 4, a, []int32{0}, []int32{0, 1}) },
		func() { MatMulGather(dst, 4, &m, 0, 4, a, []int32{-1}, []int32{0}) },
		func() { short := m; short.Data = short.Data[1:]; MatMul(dst, 4, &short, 0, 4, a, 0, 3) },
		func() { a.Quantize(0, dst[:8], FormQ80) },
		func() { a.Quantize(0, make([]float32, 64), FormF32) },
		func() { a.Resize(1, 40, FormQ80) },
	} {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			call()
		})
	}
	MatMulGather(dst, 4, &m, 0, 4, a, []int32{}, []int32{}) // no tokens for this expert
	MatMul(dst, 4, &m, 2, 2, a, 0, 3)                       // no rows for this worker
}
