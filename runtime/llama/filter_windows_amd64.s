//go:build !nollama

#include "textflag.h"

// bool filter(struct ggml_tensor *t, bool ask, watch *w): CX, DX, R8 in the Windows ABI. See watch in filter.go.
TEXT ·filter(SB), NOSPLIT|NOFRAME, $0-0
	CMPQ 0(R8), $0
	JEQ  off
	MOVQ 8(R8), AX
	JMP  AX

off:
	XORL AX, AX
	RET

DATA ·filterAddress(SB)/8, $·filter(SB)
GLOBL ·filterAddress(SB), RODATA, $8
