// Serves requests as llama.cpp with CUDA does, with functions of its names: a prompt of 16 tokens, and 40 tokens, every
// 1.5 s. Weights of 4 MB are copied to the device for each prompt, and 2 MB back. The argument is the bytes that each of
// 8 layers of a token hands over from the device to the CPU and back, as with experts on the CPU; 0: none.
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "cudart.h"

#define COMPUTE ((void *)0x5000)
#define PER_THREAD ((void *)2)

static long layers;

static void copy(size_t bytes, int kind) { // as ggml's buffers do
	cudaMemcpyAsync(0, 0, bytes, kind, PER_THREAD);
	cudaStreamSynchronize(PER_THREAD);
}

struct batch { int n; int *token; float *embd; int *pos; int *n_seq_id; int **seq_id; signed char *logits; };

__attribute__((noinline)) int llama_decode(void *ctx, struct batch b) {
	dim3 one = {1, 1, 1};
	config c = {one, one, 0, COMPUTE};
	copy(4 * b.n, TO_DEVICE);
	usleep(300); // the graph is built
	if (b.n > 1) {
		copy(4000000, TO_DEVICE);
		for (int i = 0; i < 100; i++) cudaLaunchKernel(0, one, one, 0, 0, COMPUTE);
		cudaLaunchKernelExC(&c, 0, 0);
		cudaStreamSynchronize(COMPUTE);
		copy(2000000, TO_HOST);
	}
	for (int i = 0; layers && i < 8; i++) {
		cudaLaunchKernel(0, one, one, 0, 0, COMPUTE);
		cudaStreamSynchronize(COMPUTE);
		copy(layers, TO_HOST);
		usleep(200); // the experts of a layer
		copy(layers, TO_DEVICE);
	}
	cudaGraphLaunch(0, COMPUTE);
	cudaMemcpyAsync(0, 0, 128000, TO_HOST, COMPUTE);
	return 0;
}

__attribute__((noinline)) int llama_synchronize(void *ctx) { return cudaStreamSynchronize(COMPUTE); }
__attribute__((noinline)) int llama_memory_seq_rm(void *m, int seq, int from, int to) { return m != 0; }
__attribute__((noinline)) int sample(void *s, void *ctx, int row, int grammar) __asm__("_Z21common_sampler_sampleP14common_samplerP13llama_contextib");
int sample(void *s, void *ctx, int row, int grammar) { usleep(100); return 5; }

int main(int argc, char **argv) {
	int token[16] = {5, 6, 7, 8, 9, 5, 6, 7, 8, 9, 5, 6, 7, 8, 9, 5}, pos[16], seq = 0, *seqs[16];
	signed char out[16] = {0};
	layers = atol(argv[1]);
	for (int i = 0; i < 16; i++) pos[i] = i, seqs[i] = &seq;
	for (;; usleep(1500000)) {
		out[15] = 1;
		struct batch prompt = {16, token, 0, pos, 0, seqs, out};
		llama_memory_seq_rm(argv, 0, 0, -1);
		llama_decode(argv, prompt);
		for (int i = 0; i < 40; i++) {
			llama_synchronize(argv);
			int next = sample(argv, argv, -1, 0), at = 16 + i, *of = &seq;
			signed char yes = 1;
			struct batch b = {1, &next, 0, &at, 0, &of, &yes};
			if (i < 39) llama_decode(argv, b);
		}
	}
}
