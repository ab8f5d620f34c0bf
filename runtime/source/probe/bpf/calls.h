// What probes count of the calls of CUDA: cuda.c counts, probe.c reads it at the begin and the end of passes.
typedef __u32 u32;
typedef __u64 u64;

#define KINDS 5 // of copies: host to host, to device, to host, on the device, unknown
#define TO_DEVICE 1
#define TO_HOST 2

struct counters {
	u64 copies[KINDS], bytes[KINDS];
	u64 copying[2]; // ns in copies to the device, and to the host
	u64 launches, graphs; // kernels, graphs
	u64 syncs, waited; // calls that wait for the device; ns in them
	u64 copywaits; // ns of waited that count as copying
	u64 gaps; // ns between the end of a wait for a stream and the next launch of the thread, without copies
	u64 launchers; // threads that launched
};

// thread is what a thread of the process does.
struct thread {
	struct counters sum;
	u64 waits, stream; // when it began to wait, and for which stream; 0: it does not
	u64 copies, kind; // when it began to copy, and in which direction; 0: it does not, or waits for the device meanwhile
	u64 done; // when it ended to wait, later by the copies since; 0: it has launched since
	u64 begun, gaps; // when a pass began, later as done; ns of gaps in passes
	u64 launched; // it has launched what it did not wait for
	u64 first, last; // begin of the first copy to the device, and end of the last one to the host, since a pass began
};
