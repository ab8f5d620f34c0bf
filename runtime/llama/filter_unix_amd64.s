//go:build !nollama && (linux || darwin)

#include "textflag.h"

// bool filter(struct ggml_tensor *t, bool ask, watch *w): DI, SI, DX in the System V ABI. See watch in filter.go.
TEXT ·filter(SB), NOSPLIT|NOFRAME, $0-0
	CMPQ 0(DX), $0
	JEQ  off
	MOVQ 8(DX), AX
	JMP  AX

off:
	XORL AX, AX
	RET

DATA ·filterAddress(SB)/8, $·filter(SB)
GLOBL ·filterAddress(SB), RODATA, $8
