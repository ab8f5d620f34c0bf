// Probes of a process that computes with CUDA: they count its calls of libcudart or libcuda, the bytes that these copy, and
// the time that they wait. They write nothing into the process. cuda_linux.go reads the counters.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>

typedef __u32 u32;
typedef __u64 u64;

#if defined(__TARGET_ARCH_x86)
struct pt_regs {
	u64 r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di, orig_ax, ip, cs, flags, sp, ss;
};
#define ARG3(r) ((r)->dx)
#define ARG4(r) ((r)->cx)
#define ARG5(r) ((r)->r8)
#else
struct pt_regs {
	u64 regs[31], sp, pc, pstate;
};
#define ARG3(r) ((r)->regs[2])
#define ARG4(r) ((r)->regs[3])
#define ARG5(r) ((r)->regs[4])
#endif

char _license[] SEC("license") = "GPL";

#define KINDS 5 // of copies: host to host, to device, to host, on the device, unknown

// counters are sums over all threads since the probes were loaded. Reading them needs no privilege.
struct counters {
	u64 copies[KINDS], bytes[KINDS];
	u64 launches, graphs; // kernels, graphs
	u64 syncs, waited; // calls that wait for the device; ns in them
	u64 gaps; // ns between the end of a wait for a stream and the next launch of the thread
	u64 launchers; // threads that launched
} counters;

#define IDLE 50000000 // ns after which the process had nothing to launch

#define ADD(x, n) __sync_fetch_and_add(&counters.x, n)

// thread is what a thread of the process does.
struct thread {
	u64 waits; // when it began to wait; 0: it does not
	u64 done; // when it ended to wait; 0: it has launched since
	u64 launched;
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, u32);
	__type(value, struct thread);
} threads SEC(".maps");

static __always_inline struct thread *current(int create) {
	u32 tid = (u32)bpf_get_current_pid_tgid();
	struct thread *t = bpf_map_lookup_elem(&threads, &tid);
	if (!t && create) {
		struct thread none = {};
		bpf_map_update_elem(&threads, &tid, &none, BPF_ANY);
		t = bpf_map_lookup_elem(&threads, &tid);
	}
	return t;
}

// resume notes that the device has work again.
static __always_inline void resume(void) {
	struct thread *t = current(1);
	if (!t)
		return;
	if (!t->launched) {
		t->launched = 1;
		ADD(launchers, 1);
	}
	if (!t->done)
		return;
	u64 gap = bpf_ktime_get_ns() - t->done;
	if (gap < IDLE)
		ADD(gaps, gap);
	t->done = 0;
}

static __always_inline int copy(u64 bytes, u64 kind) {
	if (kind >= KINDS)
		kind = KINDS - 1;
	ADD(copies[kind], 1);
	ADD(bytes[kind], bytes);
	return 0;
}

// cudaMemcpy(dst, src, bytes, kind), cudaMemcpyAsync(dst, src, bytes, kind, stream)
SEC("uprobe/cudaMemcpyAsync")
int copy_entry(struct pt_regs *c) { return copy(ARG3(c), (u32)ARG4(c)); }

// cudaMemcpyPeerAsync(dst, device, src, device, bytes, stream)
SEC("uprobe/cudaMemcpyPeerAsync")
int peer_entry(struct pt_regs *c) { return copy(ARG5(c), 3); }

// cuMemcpyHtoDAsync_v2(dst, src, bytes, stream) and the like
SEC("uprobe/cuMemcpyHtoDAsync")
int htod_entry(struct pt_regs *c) { return copy(ARG3(c), 1); }
SEC("uprobe/cuMemcpyDtoHAsync")
int dtoh_entry(struct pt_regs *c) { return copy(ARG3(c), 2); }
SEC("uprobe/cuMemcpyDtoDAsync")
int dtod_entry(struct pt_regs *c) { return copy(ARG3(c), 3); }

// cuMemcpyAsync(dst, src, bytes, stream)
SEC("uprobe/cuMemcpyAsync")
int any_entry(struct pt_regs *c) { return copy(ARG3(c), 4); }

SEC("uprobe/cudaLaunchKernel")
int launch_entry(struct pt_regs *c) {
	ADD(launches, 1);
	resume();
	return 0;
}

SEC("uprobe/cudaGraphLaunch")
int graph_entry(struct pt_regs *c) {
	ADD(graphs, 1);
	resume();
	return 0;
}

// cudaStreamSynchronize, cudaEventSynchronize, cudaDeviceSynchronize
SEC("uprobe/cudaStreamSynchronize")
int wait_entry(struct pt_regs *c) {
	struct thread *t = current(1);
	if (t)
		t->waits = bpf_ktime_get_ns();
	return 0;
}

static __always_inline void waited(int all) {
	struct thread *t = current(0);
	if (!t || !t->waits)
		return;
	u64 now = bpf_ktime_get_ns();
	ADD(syncs, 1);
	ADD(waited, now - t->waits);
	t->waits = 0;
	if (all && !t->done) // calls in between found the device idle
		t->done = now;
}

SEC("uretprobe/cudaStreamSynchronize")
int wait_return(struct pt_regs *c) {
	waited(1);
	return 0;
}

// cudaEventSynchronize: the device may have more work, from after the event.
SEC("uretprobe/cudaEventSynchronize")
int event_return(struct pt_regs *c) {
	waited(0);
	return 0;
}
