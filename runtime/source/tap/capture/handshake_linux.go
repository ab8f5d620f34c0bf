package capture

import (
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"golang.org/x/net/bpf"
)

// Registers of the extended filter: those of the classic one, the packet, and the offset of the header of TCP.
const (
	regA   = asm.R0
	regX   = asm.R7
	regSkb = asm.R6
	regTCP = asm.R8
)

// extend returns a filter as a program of eBPF that also keeps the acknowledgement that ends a handshake, by which a
// client's round-trip time is known: the first with the sequence number behind a SYN. A classic filter cannot remember
// those. It needs root, or CAP_BPF.
func extend(f []bpf.Instruction) (*ebpf.Program, error) {
	syns, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.LRUHash, KeySize: 4, ValueSize: 4, MaxEntries: 4096})
	if err != nil {
		return nil, err
	}
	defer syns.Close()
	program := asm.Instructions{asm.Mov.Reg(regSkb, asm.R1), asm.Mov.Imm(regTCP, 40)} // that of IPv6
	for i, instruction := range f {
		translated, err := translate(instruction, i, len(f))
		if err != nil {
			return nil, err
		}
		translated[0] = translated[0].WithSymbol(label(i))
		program = append(program, translated...)
	}
	const key, value = -4, -8
	sequence := asm.LoadInd(asm.R0, regTCP, 4, asm.Word)
	program = append(program,
		asm.And.Imm(regA, flagSYN|flagACK).WithSymbol("flagged"),
		asm.JNE.Imm(regA, flagSYN, label(len(f)-2)),
		sequence,
		asm.Add.Imm32(regA, 1),
		asm.StoreMem(asm.RFP, key, regA, asm.Word),
		asm.StoreImm(asm.RFP, value, 1, asm.Word),
		asm.LoadMapPtr(asm.R1, syns.FD()),
		asm.Mov.Reg(asm.R2, asm.RFP), asm.Add.Imm(asm.R2, key),
		asm.Mov.Reg(asm.R3, asm.RFP), asm.Add.Imm(asm.R3, value),
		asm.Mov.Imm(asm.R4, 0),
		asm.FnMapUpdateElem.Call(),
		asm.Ja.Label(label(len(f)-2)),

		sequence.WithSymbol("bare"),
		asm.StoreMem(asm.RFP, key, regA, asm.Word),
		asm.LoadMapPtr(asm.R1, syns.FD()),
		asm.Mov.Reg(asm.R2, asm.RFP), asm.Add.Imm(asm.R2, key),
		asm.FnMapDeleteElem.Call(),
		asm.JEq.Imm(asm.R0, 0, label(len(f)-2)), // it was there
		asm.Ja.Label(label(len(f)-1)),
	)
	return ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.SocketFilter, Instructions: program, License: "BSD"})
}

// label names the instruction i of a classic filter.
func label(i int) string { return fmt.Sprint("at ", i) }

// target returns where a jump of instruction i of n leads.
func target(skip uint8, i, n int) string {
	switch skip {
	case bare:
		return "bare"
	case flagged:
		return "flagged"
	case keep:
		return label(n - 2)
	case drop:
		return label(n - 1)
	}
	return label(i + 1 + int(skip))
}

// translate returns instruction i of n of a classic filter in eBPF.
func translate(instruction bpf.Instruction, i, n int) (asm.Instructions, error) {
	sizes := map[int]asm.Size{1: asm.Byte, 2: asm.Half, 4: asm.Word}
	switch v := instruction.(type) {
	case bpf.LoadExtension:
		offset := int16(4) // of pkt_type in struct __sk_buff
		if v.Num == bpf.ExtInterfaceIndex {
			offset = 40
		}
		return asm.Instructions{asm.LoadMem(regA, regSkb, offset, asm.Word)}, nil
	case bpf.LoadAbsolute:
		return asm.Instructions{asm.LoadAbs(int32(v.Off), sizes[v.Size])}, nil
	case bpf.LoadIndirect:
		return asm.Instructions{asm.LoadInd(regA, regX, int32(v.Off), sizes[v.Size])}, nil
	case bpf.LoadMemShift: // the length of the header of IPv4
		return asm.Instructions{
			asm.LoadAbs(int32(v.Off), asm.Byte),
			asm.And.Imm(regA, 15), asm.LSh.Imm(regA, 2),
			asm.Mov.Reg(regX, regA), asm.Mov.Reg(regTCP, regA),
		}, nil
	case bpf.ALUOpConstant:
		op := asm.And
		if v.Op == bpf.ALUOpShiftRight {
			op = asm.RSh
		}
		return asm.Instructions{op.Imm(regA, int32(v.Val))}, nil
	case bpf.ALUOpX:
		op := asm.Add
		if v.Op == bpf.ALUOpSub {
			op = asm.Sub
		}
		return asm.Instructions{op.Reg(regA, regX)}, nil
	case bpf.TAX:
		return asm.Instructions{asm.Mov.Reg(regX, regA)}, nil
	case bpf.RetConstant:
		return asm.Instructions{asm.Mov.Imm(regA, int32(v.Val)), asm.Return()}, nil
	case bpf.JumpIf:
		op := map[bpf.JumpTest]asm.JumpOp{bpf.JumpEqual: asm.JEq, bpf.JumpNotEqual: asm.JNE, bpf.JumpBitsSet: asm.JSet}[v.Cond]
		return asm.Instructions{op.Imm(regA, int32(v.Val), target(v.SkipTrue, i, n)), asm.Ja.Label(target(v.SkipFalse, i, n))}, nil
	}
	return nil, fmt.Errorf("instruction %d has no translation", i)
}
