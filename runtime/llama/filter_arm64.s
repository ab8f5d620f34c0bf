//go:build !nollama && (linux || darwin || windows)

#include "textflag.h"

// bool filter(struct ggml_tensor *t, bool ask, watch *w): R0, R1, R2 in the ABI of all systems. See watch in filter.go.
TEXT ·filter(SB), NOSPLIT|NOFRAME, $0-0
	MOVD 0(R2), R3
	CBZ  R3, off
	MOVD 8(R2), R3
	JMP  (R3)

off:
	MOVD $0, R0
	RET

DATA ·filterAddress(SB)/8, $·filter(SB)
GLOBL ·filterAddress(SB), RODATA, $8
