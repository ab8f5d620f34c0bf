// Generates tokens as llama.cpp with CUDA does: two small copies to the device, a graph or kernels, a copy of the logits, a
// wait. The arguments are the kernels of a token, 0 for a graph, and the microseconds between two tokens.
#include <stddef.h>
#include <stdlib.h>
#include <stdio.h>
#include <unistd.h>

int cudaMemcpyAsync(void *, const void *, size_t, int, void *);
int cudaLaunchKernel(const void *, void *, void *, void **, size_t, void *);
int cudaGraphLaunch(void *, void *);
int cudaStreamSynchronize(void *);

int main(int argc, char **argv) {
	int kernels = atoi(argv[1]), pause = atoi(argv[2]);
	for (long n = 0;; n++) {
		cudaMemcpyAsync(0, 0, 4, 1, 0);
		cudaMemcpyAsync(0, 0, 7168, 1, 0);
		for (int i = 0; i < kernels; i++) cudaLaunchKernel(0, 0, 0, 0, 0, 0);
		if (!kernels) cudaGraphLaunch(0, 0);
		cudaMemcpyAsync(0, 0, 128000, 2, 0);
		cudaStreamSynchronize(0);
		usleep(pause);
	}
}
