//go:build amd64 || arm64

package probe

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"slices"
)

// layouts are the layouts of ggml_tensor that bpf/probe.c reads: that of llama.cpp since it has llama_memory_seq_rm, by
// the length of names, which a build may set. A layout with another size has other fields before data.
var layouts = []tensorLayout{
	{data: 248, name: 256, size: 368}, // GGML_MAX_NAME=64, the default
	{data: 248, name: 256, size: 432}, // GGML_MAX_NAME=128
}

// refused returns why a layout is not one of layouts, as far as it is known; "" if it may be.
func (l tensorLayout) refused() string {
	same := func(a, b int) bool { return a == 0 || a == b }
	if slices.ContainsFunc(layouts, func(k tensorLayout) bool { return same(l.data, k.data) && same(l.name, k.name) && same(l.size, k.size) }) {
		return ""
	}
	return fmt.Sprintf("this ggml_tensor has another layout: data at %d, name at %d, %d bytes with its header; known is data at %d, name at %d, %d bytes",
		l.data, l.name, l.size, layouts[0].data, layouts[0].name, layouts[0].size)
}

// codeBytes is how much of a function is read: those of tensorLayout are shorter.
const codeBytes = 16

// read takes what a symbol says.
func (f *facts) read(file *elf.File, s *elf.Symbol) {
	to, decode := (*int)(nil), (func(elf.Machine, []byte) int)(nil)
	switch s.Name {
	case "ggml_get_data":
		to, decode = &f.tensor.data, loadOffset
	case "ggml_get_name":
		to, decode = &f.tensor.name, addOffset
	case "ggml_tensor_overhead":
		to, decode = &f.tensor.size, constant
	case "LLAMA_BUILD_NUMBER":
		to, decode = &f.build, func(_ elf.Machine, b []byte) int { return int(int32(binary.LittleEndian.Uint32(b))) }
	default:
		return
	}
	if code := bytesAt(file, s.Value); *to == 0 && code != nil {
		*to = decode(file.Machine, code)
	}
}

// bytesAt returns the first bytes at an address, nil if the file does not have them.
func bytesAt(file *elf.File, at uint64) []byte {
	for _, s := range file.Sections {
		if s.Type == elf.SHT_NOBITS || at < s.Addr || at-s.Addr >= s.Size || s.Flags&elf.SHF_ALLOC == 0 {
			continue
		}
		code := make([]byte, codeBytes)
		if n, _ := s.ReadAt(code, int64(at-s.Addr)); n > 0 {
			return code
		}
	}
	return nil
}

// The landing pads of indirect branches, with which functions may begin.
var (
	endbr64 = []byte{0xf3, 0x0f, 0x1e, 0xfa}
	btiC    = []byte{0x5f, 0x24, 0x03, 0xd5}
)

// Each of these returns the number in the first instruction of a function that does nothing else, 0 if it is another
// instruction. On x86-64, the first argument is in rdi and the result in rax; on arm64, both are in x0.

// loadOffset decodes "return *(p + N)": mov rax,[rdi+N], or ldr x0,[x0,#N].
func loadOffset(m elf.Machine, code []byte) int {
	if m == elf.EM_AARCH64 {
		return 8 * armImmediate(code, 0xF9400000, 10, 12)
	}
	return displacement(code, 0x8b)
}

// addOffset decodes "return p + N": lea rax,[rdi+N], or add x0,x0,#N.
func addOffset(m elf.Machine, code []byte) int {
	if m == elf.EM_AARCH64 {
		return armImmediate(code, 0x91000000, 10, 12)
	}
	return displacement(code, 0x8d)
}

// constant decodes "return N": mov eax,N, or mov x0,#N.
func constant(m elf.Machine, code []byte) int {
	if m == elf.EM_AARCH64 {
		return max(armImmediate(code, 0xD2800000, 5, 16), armImmediate(code, 0x52800000, 5, 16))
	}
	if code = bytes.TrimPrefix(code, endbr64); code[0] == 0xb8 {
		return int(binary.LittleEndian.Uint32(code[1:]))
	}
	return 0
}

// displacement returns the displacement of an instruction with the operands rax and [rdi+N].
func displacement(code []byte, opcode byte) int {
	code = bytes.TrimPrefix(code, endbr64)
	if code[0] != 0x48 || code[1] != opcode {
		return 0
	}
	switch code[2] {
	case 0x47:
		return int(int8(code[3]))
	case 0x87:
		return int(int32(binary.LittleEndian.Uint32(code[3:])))
	}
	return 0
}

// armImmediate returns the immediate number of an instruction whose registers are all x0.
func armImmediate(code []byte, instruction uint32, shift, bits int) int {
	word := binary.LittleEndian.Uint32(bytes.TrimPrefix(code, btiC))
	mask := uint32(1<<bits-1) << shift
	if word&^mask != instruction {
		return 0
	}
	return int((word & mask) >> shift)
}
