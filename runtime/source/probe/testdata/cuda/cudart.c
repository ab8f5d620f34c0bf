// A stand-in for libcudart.so: functions that do nothing, or wait for a device that takes a millisecond.
#include <stddef.h>
#include <unistd.h>

int cudaMemcpyAsync(void *dst, const void *src, size_t n, int kind, void *stream) { return 0; }
int cudaMemcpy(void *dst, const void *src, size_t n, int kind) { return 0; }
int cudaLaunchKernel(const void *f, void *grid, void *block, void **args, size_t shared, void *stream) { return 0; }
int cudaLaunchKernelExC(const void *config, const void *f, void **args) { return 0; }
int cudaGraphLaunch(void *graph, void *stream) { return 0; }
int cudaStreamSynchronize(void *stream) { usleep(1000); return 0; }
