//go:build !nollama && (linux || darwin)

#include "textflag.h"
#include "filter_amd64.h"

// The System V ABI.
TEXT ·filter(SB), NOSPLIT|NOFRAME, $0-0
	FILTER(DI, SI, DX)

DATA ·filterAddress(SB)/8, $·filter(SB)
GLOBL ·filterAddress(SB), RODATA, $8
