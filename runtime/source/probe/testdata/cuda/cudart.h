#include <stddef.h>

typedef struct { unsigned x, y, z; } dim3;
typedef struct { dim3 grid, block; size_t shared; void *stream; } config;

int cudaMemcpyAsync(void *, const void *, size_t, int, void *);
int cudaMemcpy(void *, const void *, size_t, int);
int cudaLaunchKernel(const void *, dim3, dim3, void **, size_t, void *);
int cudaLaunchKernelExC(const config *, const void *, void **);
int cudaGraphLaunch(void *, void *);
int cudaStreamSynchronize(void *);

enum { TO_DEVICE = 1, TO_HOST = 2 };
