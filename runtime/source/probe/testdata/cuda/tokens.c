// Generates tokens as llama.cpp with CUDA does, without its functions: two small copies to the device, a graph or kernels, a
// copy of the logits, a wait. The arguments are the kernels of a token, 0 for a graph, and the microseconds between two
// tokens.
#include <stdlib.h>
#include <unistd.h>
#include "cudart.h"

int main(int argc, char **argv) {
	int kernels = atoi(argv[1]), pause = atoi(argv[2]);
	dim3 one = {1, 1, 1};
	for (;;) {
		cudaMemcpyAsync(0, 0, 4, TO_DEVICE, 0);
		cudaMemcpyAsync(0, 0, 7168, TO_DEVICE, 0);
		for (int i = 0; i < kernels; i++) cudaLaunchKernel(0, one, one, 0, 0, 0);
		if (!kernels) cudaGraphLaunch(0, 0);
		cudaMemcpyAsync(0, 0, 128000, TO_HOST, 0);
		cudaStreamSynchronize(0);
		usleep(pause);
	}
}
