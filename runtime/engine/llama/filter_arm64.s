//go:build !nollama && (linux || darwin || windows)

#include "textflag.h"

// bool filter(struct ggml_tensor *t, bool ask, watch *w): R0, R1, R2 in the ABI of all systems. See watch in filter.go.
TEXT ·filter(SB), NOSPLIT|NOFRAME, $0-0
	MOVD 0(R2), R3
	CBZ  R3, no
	TST  $0xff, R1
	BEQ  slow             // not a question
	MOVD 24(R2), R3       // number of patterns
	CBZ  R3, slow
	MOVD 16(R2), R4
	ADD  R0, R4, R4       // the name
	LDP  0(R4), (R5, R6)
	ADD  $32, R2, R4      // the pattern

next:
	LDP  0(R4), (R7, R8)
	AND  R5, R8, R8
	CMP  R7, R8
	BNE  other
	LDP  16(R4), (R7, R8)
	AND  R6, R8, R8
	CMP  R7, R8
	BEQ  yes

other:
	ADD  $32, R4, R4
	SUBS $1, R3, R3
	BNE  next

no:
	MOVD $0, R0
	RET

yes:
	MOVD $1, R0
	RET

slow:
	MOVD 8(R2), R3
	JMP  (R3)

DATA ·filterAddress(SB)/8, $·filter(SB)
GLOBL ·filterAddress(SB), RODATA, $8
