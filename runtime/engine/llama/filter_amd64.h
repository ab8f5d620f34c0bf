// FILTER is the body of bool filter(struct ggml_tensor *t, bool ask, watch *w) on amd64, where systems differ only in
// the registers of its arguments. It changes only R9, R10, R11 and AX, which are not arguments and are caller-saved in
// both ABIs, so that it can jump to the slow function with the arguments unchanged. See watch in filter.go.
#define FILTER(T, ASK, W) \
	CMPQ  0(W), $0       \
	JEQ   no             \
	TESTB ASK, ASK       \
	JEQ   slow           \
	MOVQ  24(W), R11     \
	TESTQ R11, R11       \
	JEQ   slow           \
	MOVQ  16(W), R9      \
	ADDQ  T, R9          \
	LEAQ  32(W), R10     \
next:                        \
	MOVQ  0(R9), AX      \
	ANDQ  8(R10), AX     \
	CMPQ  AX, 0(R10)     \
	JNE   other          \
	MOVQ  8(R9), AX      \
	ANDQ  24(R10), AX    \
	CMPQ  AX, 16(R10)    \
	JEQ   yes            \
other:                       \
	ADDQ  $32, R10       \
	DECQ  R11            \
	JNE   next           \
no:                          \
	XORL  AX, AX         \
	RET                  \
yes:                         \
	MOVL  $1, AX         \
	RET                  \
slow:                        \
	MOVQ  8(W), AX       \
	JMP   AX
