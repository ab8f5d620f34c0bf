//go:build amd64 || arm64

package probe

import (
	"debug/elf"
	"encoding/binary"
	"os"
	"strings"
	"testing"
)

// TestLayoutOfCode decodes the functions from which the layout of a tensor is read, as compilers write them.
func TestLayoutOfCode(t *testing.T) {
	arm := func(words ...uint32) (code []byte) {
		for _, w := range words {
			code = binary.LittleEndian.AppendUint32(code, w)
		}
		return code
	}
	const ret = 0xd65f03c0
	for name, tt := range map[string]struct {
		decode  func(elf.Machine, []byte) int
		machine elf.Machine
		code    []byte
		want    int
	}{
		"mov rax,[rdi+248]":           {loadOffset, elf.EM_X86_64, []byte{0x48, 0x8b, 0x87, 0xf8, 0, 0, 0, 0xc3}, 248},
		"endbr64; mov rax,[rdi+248]":  {loadOffset, elf.EM_X86_64, []byte{0xf3, 0x0f, 0x1e, 0xfa, 0x48, 0x8b, 0x87, 0xf8, 0, 0, 0, 0xc3}, 248},
		"mov rax,[rdi+64]":            {loadOffset, elf.EM_X86_64, []byte{0x48, 0x8b, 0x47, 0x40, 0xc3}, 64},
		"lea rax,[rdi+256]":           {addOffset, elf.EM_X86_64, []byte{0x48, 0x8d, 0x87, 0, 1, 0, 0, 0xc3}, 256},
		"mov eax,368":                 {constant, elf.EM_X86_64, []byte{0xb8, 0x70, 1, 0, 0, 0xc3}, 368},
		"push rbp, of a debug build":  {loadOffset, elf.EM_X86_64, []byte{0x55, 0x48, 0x89, 0xe5, 0x48, 0x8b, 0x87, 0xf8}, 0},
		"mov rax,[rsi+248]":           {loadOffset, elf.EM_X86_64, []byte{0x48, 0x8b, 0x86, 0xf8, 0, 0, 0, 0xc3}, 0},
		"ldr x0,[x0,#248]":            {loadOffset, elf.EM_AARCH64, arm(0xf9407c00, ret), 248},
		"bti c; ldr x0,[x0,#248]":     {loadOffset, elf.EM_AARCH64, arm(0xd503245f, 0xf9407c00, ret), 248},
		"add x0,x0,#256":              {addOffset, elf.EM_AARCH64, arm(0x91040000, ret), 256},
		"mov x0,#368":                 {constant, elf.EM_AARCH64, arm(0xd2802e00, ret), 368},
		"mov w0,#368":                 {constant, elf.EM_AARCH64, arm(0x52802e00, ret), 368},
		"ldr x0,[x1,#248]":            {loadOffset, elf.EM_AARCH64, arm(0xf9407c20, ret), 0},
		"the other machine's":         {loadOffset, elf.EM_AARCH64, []byte{0x48, 0x8b, 0x87, 0xf8, 0, 0, 0, 0xc3}, 0},
		"a file that ends in between": {addOffset, elf.EM_X86_64, []byte{0xf3, 0x0f, 0x1e, 0xfa, 0x48}, 0},
	} {
		code := make([]byte, codeBytes)
		copy(code, tt.code)
		if got := tt.decode(tt.machine, code); got != tt.want {
			t.Errorf("%s: %d, want %d", name, got, tt.want)
		}
	}
}

// TestLayouts refuses picks only of tensors that are known to be others.
func TestLayouts(t *testing.T) {
	for _, known := range []tensorLayout{{}, {data: 248, name: 256, size: 368}, {data: 248}, {size: 432}} {
		if why := known.refused(); why != "" {
			t.Errorf("%+v: %s", known, why)
		}
	}
	for _, other := range []tensorLayout{{data: 256, name: 264, size: 376}, {data: 248, name: 256, size: 376}, {name: 288}} {
		if why := other.refused(); !strings.Contains(why, "another layout") {
			t.Errorf("%+v: %q", other, why)
		}
	}
}

func FuzzLayout(f *testing.F) {
	f.Add([]byte{0xf3, 0x0f, 0x1e, 0xfa, 0x48, 0x8b, 0x87, 0xf8, 0, 0, 0, 0xc3})
	f.Add([]byte{0x5f, 0x24, 0x03, 0xd5, 0x00, 0x7c, 0x40, 0xf9})
	f.Fuzz(func(_ *testing.T, raw []byte) {
		code := make([]byte, codeBytes)
		copy(code, raw)
		for _, m := range []elf.Machine{elf.EM_X86_64, elf.EM_AARCH64} {
			for _, decode := range []func(elf.Machine, []byte) int{loadOffset, addOffset, constant} {
				decode(m, code)
			}
		}
	})
}

// TestMainModel finds the model beside a draft model and a projector, and the first of its files.
func TestMainModel(t *testing.T) {
	dir := t.TempDir()
	file := func(name string, bytes int) mapping {
		path := dir + "/" + name
		if err := os.WriteFile(path, make([]byte, bytes), 0o600); err != nil {
			t.Fatal(err)
		}
		return mapping{name: "/models/" + name, path: path}
	}
	draft, whole := file("draft.gguf", 10), file("model.gguf", 100)
	first, second := file("big-00001-of-00002.gguf", 50), file("big-00002-of-00002.gguf", 200)
	for _, tt := range []struct {
		all  []mapping
		want mapping
	}{
		{nil, mapping{}},
		{[]mapping{draft, whole}, whole},
		{[]mapping{draft, second, first}, first},
	} {
		if name, path := mainModel(tt.all); name != tt.want.name || path != tt.want.path {
			t.Errorf("%v: %s", tt.all, name)
		}
	}
}
