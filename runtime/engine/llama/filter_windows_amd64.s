//go:build !nollama

#include "textflag.h"
#include "filter_amd64.h"

// The ABI of Windows.
TEXT ·filter(SB), NOSPLIT|NOFRAME, $0-0
	FILTER(CX, DX, R8)

DATA ·filterAddress(SB)/8, $·filter(SB)
GLOBL ·filterAddress(SB), RODATA, $8
