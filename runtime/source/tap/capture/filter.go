package capture

import "golang.org/x/net/bpf"

// snapLength is the maximum number of bytes kept of a packet.
const snapLength = 256 << 10

// Jumps of a filter to its last two instructions.
const (
	bare    = 252 // drop an acknowledgement without payload
	flagged = 253 // keep what begins or ends a connection
	keep    = 254
	drop    = 255
)

// filter returns the program that the kernel runs for each packet of a socket that gets packets without link header. It
// keeps the segments of a port that have a payload, or begin or end a connection. Acknowledgements without payload, half
// of all packets of streamed answers, are dropped, and so is the outgoing one of the two copies that loopback gives. It
// still has the jumps above.
func filter(port uint16, loopback uint32) []bpf.Instruction {
	const outgoingCopy = 4
	f := []bpf.Instruction{
		bpf.LoadExtension{Num: bpf.ExtType},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: outgoingCopy, SkipTrue: 2},
		bpf.LoadExtension{Num: bpf.ExtInterfaceIndex},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: loopback, SkipTrue: drop},
	}
	return append(f, filterIP(uint32(port))...)
}

// filterIP returns the part of filter that looks at the packet. Of fragments it keeps the first, which is counted; what
// has extension headers of IPv6 is rare, and left to the decoder.
func filterIP(port uint32) []bpf.Instruction {
	const flags = flagSYN | flagFIN | flagRST
	v4 := []bpf.Instruction{
		bpf.LoadAbsolute{Off: 9, Size: 1},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: protocolTCP, SkipTrue: drop},
		bpf.LoadAbsolute{Off: 6, Size: 2},
		bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: 0x1fff, SkipTrue: drop}, // offset of a fragment
		bpf.LoadMemShift{Off: 0},
		bpf.LoadIndirect{Off: 0, Size: 2},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: port, SkipTrue: 2},
		bpf.LoadIndirect{Off: 2, Size: 2},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: port, SkipTrue: drop},
		bpf.LoadIndirect{Off: 13, Size: 1},
		bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: flags, SkipTrue: flagged},
		bpf.LoadIndirect{Off: 12, Size: 1},
		bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: 0xf0},
		bpf.ALUOpConstant{Op: bpf.ALUOpShiftRight, Val: 2},
		bpf.ALUOpX{Op: bpf.ALUOpAdd}, // both headers
		bpf.TAX{},
		bpf.LoadAbsolute{Off: 2, Size: 2},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: 0, SkipTrue: keep}, // larger than 64 KiB
		bpf.ALUOpX{Op: bpf.ALUOpSub},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: 0, SkipTrue: bare, SkipFalse: keep},
	}
	v6 := []bpf.Instruction{
		bpf.LoadAbsolute{Off: 6, Size: 1},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: protocolTCP, SkipTrue: 5},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: protocolHopByHop, SkipTrue: keep},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: protocolRouting, SkipTrue: keep},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: protocolFragment, SkipTrue: keep},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: protocolAuth, SkipTrue: keep},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: protocolOptions, SkipTrue: keep, SkipFalse: drop},
		bpf.LoadAbsolute{Off: 40, Size: 2},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: port, SkipTrue: 2},
		bpf.LoadAbsolute{Off: 42, Size: 2},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: port, SkipTrue: drop},
		bpf.LoadAbsolute{Off: 53, Size: 1},
		bpf.JumpIf{Cond: bpf.JumpBitsSet, Val: flags, SkipTrue: flagged},
		bpf.LoadAbsolute{Off: 52, Size: 1},
		bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: 0xf0},
		bpf.ALUOpConstant{Op: bpf.ALUOpShiftRight, Val: 2},
		bpf.TAX{},
		bpf.LoadAbsolute{Off: 4, Size: 2},
		bpf.ALUOpX{Op: bpf.ALUOpSub},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: 0, SkipTrue: bare, SkipFalse: keep},
	}
	f := []bpf.Instruction{
		bpf.LoadAbsolute{Off: 0, Size: 1},
		bpf.ALUOpConstant{Op: bpf.ALUOpShiftRight, Val: 4},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: 4, SkipTrue: 1},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: 6, SkipTrue: uint8(len(v4)), SkipFalse: drop},
	}
	f = append(append(f, v4...), v6...)
	return append(f, bpf.RetConstant{Val: snapLength}, bpf.RetConstant{})
}

// resolve replaces the jumps to keep and drop by distances.
func resolve(f []bpf.Instruction) []bpf.Instruction {
	for i, instruction := range f {
		j, ok := instruction.(bpf.JumpIf)
		if !ok {
			continue
		}
		for _, skip := range []*uint8{&j.SkipTrue, &j.SkipFalse} {
			switch *skip {
			case drop, bare:
				*skip = uint8(len(f) - 1 - (i + 1))
			case keep, flagged:
				*skip = uint8(len(f) - 2 - (i + 1))
			}
		}
		f[i] = j
	}
	return f
}
