// Probes of a process that computes with CUDA: they count its calls of libcudart or libcuda, the bytes that these copy, and
// the time that they take. They write nothing into the process. cuda_linux.go reads the counters.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include "calls.h"

#if defined(__TARGET_ARCH_x86)
struct pt_regs {
	u64 r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di, orig_ax, ip, cs, flags, sp, ss;
};
#define ARG1(r) ((r)->di)
#define ARG2(r) ((r)->si)
#define ARG3(r) ((r)->dx)
#define ARG4(r) ((r)->cx)
#define ARG5(r) ((r)->r8)
#define ARG6(r) ((r)->r9)
#else
struct pt_regs {
	u64 regs[31], sp, pc, pstate;
};
#define ARG1(r) ((r)->regs[0])
#define ARG2(r) ((r)->regs[1])
#define ARG3(r) ((r)->regs[2])
#define ARG4(r) ((r)->regs[3])
#define ARG5(r) ((r)->regs[4])
#define ARG6(r) ((r)->regs[5])
#endif

char _license[] SEC("license") = "GPL";

// counters are sums over all threads since the probes were loaded. Reading them needs no privilege.
struct counters counters;

#define IDLE 50000000 // ns after which the process had nothing to launch

#define ADD(t, x, n)                               \
	do {                                           \
		__sync_fetch_and_add(&counters.x, n);      \
		if (t)                                     \
			t->sum.x += n;                         \
	} while (0)

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, u32);
	__type(value, struct thread);
} threads SEC(".maps");

// stream is the work in a stream that nothing has waited for.
struct stream {
	u64 computes; // kernels, graphs or what another stream computes: a wait is not for copies alone
	u64 copied[2]; // copies to the device, to the host
	u64 launches; // in all streams when the last wait ended
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1024);
	__type(key, u64);
	__type(value, struct stream);
} streams SEC(".maps");

#define LEGACY 1 // 0 and 1: the default stream, which waits for others
#define PER_THREAD 2
#define ALL ~0ULL // the streams of a device

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

static __always_inline u64 name_of(u64 handle) {
	return handle == PER_THREAD ? bpf_get_current_pid_tgid() << 8 | PER_THREAD : handle == LEGACY ? 0 : handle;
}

static __always_inline struct stream *stream_of(u64 name) {
	struct stream *s = bpf_map_lookup_elem(&streams, &name);
	if (!s) {
		struct stream none = {};
		bpf_map_update_elem(&streams, &name, &none, BPF_ANY);
		s = bpf_map_lookup_elem(&streams, &name);
	}
	return s;
}

static __always_inline u64 launched(void) { return counters.launches + counters.graphs; }

// computes reports whether the device may compute in a stream.
static __always_inline int computes(struct stream *s, u64 name) {
	return s->computes || (name == 0 && s->launches != launched());
}

// copy counts a copy in a stream. It is timed unless it may wait for what the device computes.
static __always_inline int copy(u64 bytes, u64 kind, u64 handle) {
	struct thread *t = current(1);
	if (kind >= KINDS)
		kind = KINDS - 1;
	ADD(t, copies[kind], 1);
	ADD(t, bytes[kind], bytes);
	u64 name = name_of(handle);
	struct stream *s = stream_of(name);
	if (!t || !s)
		return 0;
	t->copies = 0;
	if (kind != TO_DEVICE && kind != TO_HOST) {
		s->computes = 1;
		return 0;
	}
	u64 now = bpf_ktime_get_ns();
	if (kind == TO_DEVICE && !t->first)
		t->first = now;
	s->copied[kind == TO_HOST] = 1;
	if (!computes(s, name)) {
		t->copies = now;
		t->kind = kind;
	}
	return 0;
}

// copied adds the time of a copy, which does not count as a gap between two launches.
static __always_inline void copied(struct thread *t, u32 back, u64 ns, u64 now) {
	ADD(t, copying[back & 1], ns);
	if (back)
		t->last = now;
	if (t->done) {
		t->done += ns;
		t->begun += ns;
	}
}

SEC("uretprobe/cudaMemcpyAsync")
int copy_return(struct pt_regs *c) {
	struct thread *t = current(0);
	if (!t || !t->copies)
		return 0;
	u64 now = bpf_ktime_get_ns();
	copied(t, t->kind == TO_HOST, now - t->copies, now);
	t->copies = 0;
	return 0;
}

// cudaMemcpyAsync(dst, src, bytes, kind, stream)
SEC("uprobe/cudaMemcpyAsync")
int copy_entry(struct pt_regs *c) { return copy(ARG3(c), (u32)ARG4(c), ARG5(c)); }

// cudaMemcpy(dst, src, bytes, kind)
SEC("uprobe/cudaMemcpy")
int copynow_entry(struct pt_regs *c) { return copy(ARG3(c), (u32)ARG4(c), 0); }

#if defined(__TARGET_ARCH_x86)
#define LATER(c, n, value) bpf_probe_read_user(&(value), sizeof(value), (void *)((c)->sp + 8 * ((n)-6)))
#else
#define LATER(c, n, value) ((value) = (c)->regs[(n)-1], 0)
#endif

// cudaMemcpy2DAsync(dst, pitch, src, pitch, width, height, kind, stream)
SEC("uprobe/cudaMemcpy2DAsync")
int copyrows_entry(struct pt_regs *c) {
	u64 kind = KINDS, handle = 0;
	LATER(c, 7, kind);
	LATER(c, 8, handle);
	return copy(ARG5(c) * ARG6(c), (u32)kind, handle);
}

// cudaMemcpyPeerAsync(dst, device, src, device, bytes, stream)
SEC("uprobe/cudaMemcpyPeerAsync")
int peer_entry(struct pt_regs *c) { return copy(ARG5(c), 3, ARG6(c)); }

// cuMemcpyHtoDAsync_v2(dst, src, bytes, stream), cuMemcpyHtoD_v2(dst, src, bytes), and the like
SEC("uprobe/cuMemcpyHtoDAsync")
int htod_entry(struct pt_regs *c) { return copy(ARG3(c), TO_DEVICE, ARG4(c)); }
SEC("uprobe/cuMemcpyHtoD")
int htodnow_entry(struct pt_regs *c) { return copy(ARG3(c), TO_DEVICE, 0); }
SEC("uprobe/cuMemcpyDtoHAsync")
int dtoh_entry(struct pt_regs *c) { return copy(ARG3(c), TO_HOST, ARG4(c)); }
SEC("uprobe/cuMemcpyDtoH")
int dtohnow_entry(struct pt_regs *c) { return copy(ARG3(c), TO_HOST, 0); }
SEC("uprobe/cuMemcpyDtoDAsync")
int dtod_entry(struct pt_regs *c) { return copy(ARG3(c), 3, ARG4(c)); }

// cuMemcpyAsync(dst, src, bytes, stream)
SEC("uprobe/cuMemcpyAsync")
int any_entry(struct pt_regs *c) { return copy(ARG3(c), 4, ARG4(c)); }

// launch notes that the device has work again.
static __always_inline int launch(struct thread *t, u64 handle) {
	struct stream *s = stream_of(name_of(handle));
	if (s)
		s->computes = 1;
	if (!t)
		return 0;
	if (!t->sum.launchers)
		ADD(t, launchers, 1);
	t->launched = 1;
	if (!t->done)
		return 0;
	u64 now = bpf_ktime_get_ns(), gap = now - t->done;
	if (gap < IDLE)
		ADD(t, gaps, gap);
	t->gaps += now - (t->begun > t->done ? t->begun : t->done);
	t->done = 0;
	return 0;
}

static __always_inline int kernel(u64 handle) {
	struct thread *t = current(1);
	ADD(t, launches, 1);
	return launch(t, handle);
}

// cudaLaunchKernel(f, dim3 grid, dim3 block, args, shared, stream), whose dim3 take two registers each
SEC("uprobe/cudaLaunchKernel")
int launch_entry(struct pt_regs *c) {
	u64 handle = 0;
	LATER(c, 8, handle);
	return kernel(handle);
}

// cudaLaunchKernelExC(config, f, args), cuLaunchKernelEx(config, f, args, extra)
SEC("uprobe/cudaLaunchKernelExC")
int launchex_entry(struct pt_regs *c) {
	u64 handle = 0;
	bpf_probe_read_user(&handle, sizeof(handle), (void *)(ARG1(c) + 32));
	return kernel(handle);
}

// cuLaunchKernel(f, grid: 3, block: 3, shared, stream, args, extra)
SEC("uprobe/cuLaunchKernel")
int culaunch_entry(struct pt_regs *c) {
	u64 handle = 0;
#if defined(__TARGET_ARCH_x86)
	LATER(c, 9, handle);
#else
	bpf_probe_read_user(&handle, sizeof(handle), (void *)c->sp);
#endif
	return kernel(handle);
}

// cudaGraphLaunch(graph, stream)
SEC("uprobe/cudaGraphLaunch")
int graph_entry(struct pt_regs *c) {
	struct thread *t = current(1);
	ADD(t, graphs, 1);
	return launch(t, ARG2(c));
}

// cudaStreamWaitEvent(stream, event, flags): what follows in the stream waits for what another one computes.
SEC("uprobe/cudaStreamWaitEvent")
int join_entry(struct pt_regs *c) {
	struct stream *s = stream_of(name_of(ARG1(c)));
	if (s)
		s->computes = 1;
	return 0;
}

static __always_inline int wait(u64 name) {
	struct thread *t = current(1);
	if (t) {
		t->waits = bpf_ktime_get_ns();
		t->stream = name;
	}
	return 0;
}

// cudaStreamSynchronize(stream)
SEC("uprobe/cudaStreamSynchronize")
int wait_entry(struct pt_regs *c) { return wait(name_of(ARG1(c))); }

// cudaDeviceSynchronize(), cudaEventSynchronize(event)
SEC("uprobe/cudaDeviceSynchronize")
int waitall_entry(struct pt_regs *c) { return wait(ALL); }

// waited ends a wait. One for a stream that has only copies in one direction belongs to them.
static __always_inline int waited(int all) {
	struct thread *t = current(0);
	if (!t || !t->waits)
		return 0;
	u64 now = bpf_ktime_get_ns(), ns = now - t->waits, name = t->stream;
	t->waits = 0;
	ADD(t, syncs, 1);
	ADD(t, waited, ns);
	struct stream *s = name == ALL ? 0 : bpf_map_lookup_elem(&streams, &name);
	if (s) {
		int copies = !computes(s, name) && s->copied[0] != s->copied[1];
		u32 back = s->copied[1];
		s->computes = s->copied[0] = s->copied[1] = 0;
		s->launches = launched();
		if (copies) {
			ADD(t, copywaits, ns);
			copied(t, back, ns, now);
			if (t->launched) // in another stream
				return 0;
		}
	}
	if (all) {
		t->launched = 0;
		if (!t->done) // calls in between found the device idle
			t->done = now;
	}
	return 0;
}

SEC("uretprobe/cudaStreamSynchronize")
int wait_return(struct pt_regs *c) { return waited(1); }

// cudaEventSynchronize: the device may have more work, from after the event.
SEC("uretprobe/cudaEventSynchronize")
int event_return(struct pt_regs *c) { return waited(0); }
