// A stand-in for libnvidia-ml.so.1: GPUS cards of a Hopper kind, of which this process uses the first half and process 1
// the last one. LOST is removed after the first readings, UNIFIED has no memory of its own, MIG is split in two. While the
// file that NVML_STATE names has a number, the driver fails with it.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <stdio.h>
#include <unistd.h>

#ifndef GPUS
#define GPUS 1
#endif
#ifndef LOST
#define LOST -1
#endif
#ifndef UNIFIED
#define UNIFIED -1
#endif
#ifndef MIG
#define MIG -1
#endif
#ifndef PID
#define PID getpid()
#endif
#ifndef GPM
#define GPM 1
#endif
#ifndef START
#define START 0
#endif

enum { UNSUPPORTED = 3, INSUFFICIENT = 7, GONE = 15 };

static int reads[64];
static uint64_t energy[64] = {123456789012ULL}, kib[64], clock_us = 1000000;

static int card(void *d) { return (int)((long)d - 40) % 100; }
static int instance(void *d) { return (long)d >= 140; }
static int gone(void *d) { return card(d) == LOST && reads[LOST] > 4; }

static int state(void) {
	int result = START;
	const char *name = getenv("NVML_STATE");
	FILE *f = name ? fopen(name, "r") : 0;
	if (f) {
		if (fscanf(f, "%d", &result) != 1) result = START;
		fclose(f);
	}
	return result;
}

int nvmlInit_v2(void) { return state(); }
int nvmlShutdown(void) { return 0; }
int nvmlDeviceGetCount_v2(unsigned *n) { *n = GPUS; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned i, void **d) { *d = (void *)(long)(i + 40); return 0; }
int nvmlDeviceGetName(void *d, char *name, unsigned size) {
	snprintf(name, size, instance(d) ? "NVIDIA H100 80GB HBM3 MIG 3g.40gb" : "NVIDIA H100 80GB HBM3");
	return 0;
}
int nvmlDeviceGetUtilizationRates(void *d, unsigned u[2]) {
	if (state()) return state();
	if (instance(d)) return UNSUPPORTED;
	reads[card(d)]++;
	if (gone(d)) return GONE;
	u[0] = card(d) < (GPUS + 1) / 2 ? 91 + card(d) : card(d) == GPUS - 1 ? 33 : 0;
	u[1] = u[0] / 2;
	return 0;
}
struct memory { unsigned version; uint64_t total, reserved, free, used; };
int nvmlDeviceGetMemoryInfo_v2(void *d, struct memory *m) {
	if (card(d) == UNIFIED) return UNSUPPORTED;
	if (m->version != (sizeof *m | 2 << 24)) return 25;
	m->total = (instance(d) ? 40326ULL : 81559ULL) << 20;
	m->reserved = 500ULL << 20;
	m->used = card(d) < (GPUS + 1) / 2 ? 71000000000ULL : 1000000ULL;
	m->free = m->total - m->reserved - m->used;
	return 0;
}
int nvmlDeviceGetMemoryBusWidth(void *d, unsigned *bits) { *bits = 5120; return 0; }
int nvmlDeviceGetPowerUsage(void *d, unsigned *mw) {
	if (instance(d)) return UNSUPPORTED;
	*mw = card(d) < (GPUS + 1) / 2 ? 698123 : 71234;
	return 0;
}
int nvmlDeviceGetEnforcedPowerLimit(void *d, unsigned *mw) { *mw = 700000; return 0; }
int nvmlDeviceGetTotalEnergyConsumption(void *d, unsigned long long *mj) {
	if (card(d) >= GPUS) return 2;
	*mj = energy[card(d)] += 250;
	return 0;
}
int nvmlDeviceGetClockInfo(void *d, unsigned kind, unsigned *mhz) { *mhz = kind == 2 ? 2619 : 1755; return 0; }
int nvmlDeviceGetMaxClockInfo(void *d, unsigned kind, unsigned *mhz) { *mhz = kind == 2 ? 2619 : 1980; return 0; }
int nvmlDeviceGetCurrentClocksEventReasons(void *d, unsigned long long *bits) {
	*bits = card(d) == 0 ? 4 : card(d) == 1 ? 0x40 : 1;
	return 0;
}
int nvmlDeviceGetTemperature(void *d, unsigned sensor, unsigned *c) { *c = 36 + card(d); return sensor; }
struct field { unsigned id, scope; int64_t at, latency; unsigned kind; int result; union { uint32_t u; uint64_t l; } value; };
int nvmlDeviceGetFieldValues(void *d, int n, struct field *f) {
	for (int i = 0; i < n; i++) {
		f[i].result = 0;
		switch (f[i].id) {
		case 82: f[i].kind = 1; f[i].value.u = 38; break;
		case 138: case 139: f[i].kind = 3; f[i].value.l = f[i].scope == 0xffffffff ? kib[card(d)] += 1024 : 7; break;
		default: f[i].result = UNSUPPORTED;
		}
	}
	return 0;
}
int nvmlDeviceGetPcieThroughput(void *d, unsigned counter, unsigned *kb) { usleep(20000); *kb = counter ? 5000 : 300; return 0; }

struct process { unsigned pid; uint64_t memory; unsigned gi, ci; };
int nvmlDeviceGetComputeRunningProcesses_v3(void *d, unsigned *n, struct process *p) {
	int c = card(d);
	if (*n < 2) return INSUFFICIENT;
	*n = 0;
	if (c < (GPUS + 1) / 2) p[(*n)++] = (struct process){PID, 70000000000ULL, -1, -1};
	if (c == GPUS - 1) p[(*n)++] = (struct process){1, 900000ULL, -1, -1};
	return 0;
}
int nvmlDeviceGetGraphicsRunningProcesses_v3(void *d, unsigned *n, struct process *p) {
	return nvmlDeviceGetComputeRunningProcesses_v3(d, n, p);
}
struct usage { unsigned pid; uint64_t at; unsigned sm, memory, enc, dec; };
int nvmlDeviceGetProcessUtilization(void *d, struct usage *u, unsigned *n, unsigned long long after) {
	if (instance(d)) return UNSUPPORTED;
	if (*n < 4) return INSUFFICIENT;
	clock_us += 1000000;
	int c = card(d);
	*n = 0;
	if (c < (GPUS + 1) / 2) {
		u[(*n)++] = (struct usage){PID, clock_us - 500000, 80, 40, 0, 0};
		u[(*n)++] = (struct usage){PID, clock_us, 90, 40, 0, 0};
	}
	if (c == GPUS - 1) u[(*n)++] = (struct usage){1, clock_us, 33, 10, 0, 0};
	return *n ? 0 : 6;
}

int nvmlDeviceGetMigMode(void *d, unsigned *now, unsigned *pending) { *now = *pending = card(d) == MIG; return 0; }
int nvmlDeviceGetMaxMigDeviceCount(void *d, unsigned *n) { *n = 7; return 0; }
int nvmlDeviceGetMigDeviceHandleByIndex(void *d, unsigned i, void **m) {
	if (i > 1) return 6;
	*m = (void *)((long)d + 100 * (i + 1));
	return 0;
}

int nvmlGpmQueryDeviceSupport(void *d, unsigned s[2]) { if (s[0] != 1) return 2; s[1] = GPM && !instance(d); return 0; }
int nvmlGpmSampleAlloc(void **s) { *s = calloc(1, 64); return 0; }
int nvmlGpmSampleFree(void *s) { free(s); return 0; }
int nvmlGpmSampleGet(void *d, void *s) { *(int *)s = 1 + card(d); return 0; }
struct metric { unsigned id; int result; double value; char *names[3]; };
struct metrics { unsigned version, n; void *samples[2]; struct metric m[333]; };
int nvmlGpmMetricsGet(struct metrics *g) {
	if (g->version != 1 || *(int *)g->samples[0] != *(int *)g->samples[1]) return 2;
	int busy = *(int *)g->samples[0] <= (GPUS + 1) / 2;
	for (unsigned i = 0; i < g->n; i++) {
		g->m[i].result = 0;
		switch (g->m[i].id) {
		case 2: g->m[i].value = busy ? 88 : 0; break;
		case 3: g->m[i].value = busy ? 21 : 0; break;
		case 5: g->m[i].value = busy ? 4 : 0; break;
		case 20: g->m[i].value = busy ? 68.5 : 0; break;
		case 21: g->m[i].value = busy ? 268 : 0; break;
		case 10: g->m[i].value = busy ? 71.5 : 0; break;
		default: g->m[i].result = UNSUPPORTED;
		}
	}
	return 0;
}
