// Probes of llama.cpp: they copy what a process passes to a few of its functions into a ring buffer. They write nothing
// into the process. Each is attached to one process only. bpf2go makes the types of the records in Go from those here.
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include "calls.h"

typedef __u8 u8;
typedef __u16 u16;
typedef __s32 s32;
typedef __s64 s64;

// Registers at the entry of a function and at its return. Sources: struct pt_regs and struct user_pt_regs of the kernel.
#if defined(__TARGET_ARCH_x86)
struct pt_regs {
	u64 r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di, orig_ax, ip, cs, flags, sp, ss;
};
#define ARG1(r) ((r)->di)
#define ARG2(r) ((r)->si)
#define ARG3(r) ((r)->dx)
#define ARG4(r) ((r)->cx)
#define RESULT(r) ((r)->ax)
#else
struct pt_regs {
	u64 regs[31], sp, pc, pstate;
};
#define ARG1(r) ((r)->regs[0])
#define ARG2(r) ((r)->regs[1])
#define ARG3(r) ((r)->regs[2])
#define ARG4(r) ((r)->regs[3])
#define RESULT(r) ((r)->regs[0])
#endif

char _license[] SEC("license") = "GPL";

#define EAGAIN 11
#define MSG_PEEK 2

#define CHUNK 64 // tokens of a batch record
#define ROWS 16 // rows of a picks record
#define PICKS 16 // picks of a row
#define MOST 65536 // tokens of a batch or a text

enum kind {
	PASS_BEGIN = 1,
	PASS_END,
	BATCH,
	PICKED,
	TOKENIZED,
	SAMPLED,
	REMOVED,
	RECEIVED,
	SENT,
	DRAFTED,
	SYNCED,
	CALLED,
	RECORDS,
};

struct head {
	u32 kind;
	u32 tid;
	s64 at; // ns, CLOCK_MONOTONIC
};

struct pass {
	struct head head;
	u64 ctx;
	s32 tokens;
	s32 result; // PASS_END; of PASS_BEGIN, whether it computes a draft
	s64 began; // PASS_END
	u64 lost; // PASS_END: records of picks, in the meantime
};

// A record of one entry, as when one token is decoded, has room for one only: it is what fills the ring buffer.

struct batch {
	struct head head;
	u64 ctx;
	s32 total, first, n; // tokens of the physical batch; those of this record: n from first
	u32 flags; // see below
};

struct batch_one {
	struct batch of;
	s32 token[1], pos[1], seq[1];
	u8 output[1];
};

struct batch_many {
	struct batch of;
	s32 token[CHUNK], pos[CHUNK], seq[CHUNK];
	u8 output[CHUNK];
};

#define HAS_POS 1
#define HAS_SEQ 2
#define HAS_OUTPUT 4
#define NO_TOKENS 8 // embeddings instead of tokens
#define PHYSICAL 16 // rows in the order of the graph's tensors

struct picked {
	struct head head;
	u8 name[64]; // of the tensor
	s32 used, total, first, n; // picks of a row; rows of the tensor; rows of this record: n from first
};

struct picked_one {
	struct picked of;
	s32 pick[1][PICKS];
};

struct picked_many {
	struct picked of;
	s32 pick[ROWS][PICKS];
};

struct tokenized {
	struct head head;
	s64 began;
	s32 total, first, n; // tokens of the text; those of this record: n from first
	u32 pad;
	s32 token[CHUNK];
};

struct sampled {
	struct head head;
	s64 began;
	u64 ctx;
	s32 index; // of the token in the batch whose output it is; negative: from the end
	s32 token;
};

struct removed {
	struct head head;
	u64 memory;
	s32 seq, from, to;
	u32 pad;
};

struct drafted {
	struct head head;
	s64 began;
	u64 follows; // 1: the draft model got a batch of the other; 0: tokens were drafted
};

struct synced {
	struct head head;
	u64 ctx;
};

// called is what a thread has called of CUDA so far.
struct called {
	struct head head;
	u64 ctx;
	u64 launches, graphs;
	u64 to, from, unknown; // bytes to the device and to the host; copies whose direction is unknown
	u64 to_time, from_time; // ns in copies that do not wait for what the device computes
	u64 waited, gaps; // ns
	s64 first, last; // begin of the first copy to the device, and end of the last one to the host, since the pass began
	u64 begins; // at the begin of a pass
};

struct transfer {
	struct head head;
	s32 fd;
	s32 bytes; // 0 received: the other side has closed; negative: an error
	u64 headers; // what was sent ends with an empty line
};

union record {
	struct pass pass;
	struct batch_one batch_one;
	struct batch_many batch_many;
	struct picked_many picked_many;
	struct tokenized tokenized;
	struct sampled sampled;
	struct removed removed;
	struct drafted drafted;
	struct synced synced;
	struct called called;
	struct transfer transfer;
};

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 1 << 20); // set before it is loaded
	__type(value, union record); // for bpf2go
} ring SEC(".maps");

// lost counts the records that did not fit, by kind. Reading it needs no privilege.
u64 lost[RECORDS];

// gathers counts the calls of ggml_compute_forward_get_rows by the first thread of a pass. Only one thread adds at a time
// in a context.
u64 gathers;

// call holds the arguments of a function that a thread is in. It stays in its map for the next call: that is cheaper than to
// delete it.
struct call {
	u64 at; // 0: the thread is in none
	u64 a, b;
	s32 c;
};

#define CALLS(name)                              \
	struct {                                     \
		__uint(type, BPF_MAP_TYPE_LRU_HASH);     \
		__uint(max_entries, 4096);               \
		__type(key, u32);                        \
		__type(value, struct call);              \
	} name SEC(".maps")

CALLS(passes);
CALLS(tokenizing);
CALLS(sampling);
CALLS(transfers);
CALLS(drafting);
CALLS(syncing);

// threads are those that cuda.c counts the calls of.
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 1); // without CUDA
	__type(key, u32);
	__type(value, struct thread);
} threads SEC(".maps");

// target is the process whose system calls are recorded.
volatile const u32 target;

static u32 thread(void) { return (u32)bpf_get_current_pid_tgid(); }

// enter returns the call of this thread that begins. It returns 0 without memory.
static __always_inline struct call *enter(void *calls) {
	u32 tid = thread();
	struct call *call = bpf_map_lookup_elem(calls, &tid);
	if (!call) {
		struct call none = {};
		bpf_map_update_elem(calls, &tid, &none, BPF_ANY);
		call = bpf_map_lookup_elem(calls, &tid);
	}
	if (call)
		call->at = bpf_ktime_get_ns();
	return call;
}

// within returns the call that this thread is in, 0 if it is in none.
static __always_inline struct call *within(void *calls) {
	u32 tid = thread();
	struct call *call = bpf_map_lookup_elem(calls, &tid);
	return call && call->at ? call : 0;
}

// drafts reports whether the thread is computing a draft: its passes are those of another model.
static int drafts(void) { return within(&drafting) != 0; }

static void lose(u32 kind) {
	if (kind < RECORDS)
		__sync_fetch_and_add(&lost[kind], 1);
}

static void *reserve(u32 kind, u64 size) {
	struct head *h = bpf_ringbuf_reserve(&ring, size, 0);
	if (!h) {
		lose(kind);
		return 0;
	}
	h->kind = kind;
	h->tid = thread();
	h->at = bpf_ktime_get_ns();
	return h;
}

#define RESERVE(kind, type) ((struct type *)reserve(kind, sizeof(struct type)))
#define SUBMIT(r) bpf_ringbuf_submit(r, BPF_RB_NO_WAKEUP)
// CLAMP bounds a size where the verifier sees it.
#define CLAMP(x, most)              \
	do {                            \
		asm volatile("" : "+r"(x)); \
		if (x > (most))             \
			x = (most);             \
	} while (0)
#define READ(to, from) bpf_probe_read_user(&(to), sizeof(to), (void *)(from))

// fields locate the arrays of a batch: llama_batch or llama_ubatch.
struct fields {
	u64 ctx, token, pos, seq, output;
	u32 n, flags;
};

// Global functions are verified alone, not once for each round of the loops that call them. They return 0 on failure.

static void describe(struct batch *b, struct fields *f, u32 first, u32 count) {
	b->ctx = f->ctx;
	b->total = f->n;
	b->first = first;
	b->n = count;
	b->flags = f->flags | (f->pos ? HAS_POS : 0) | (f->seq ? HAS_SEQ : 0) | (f->output ? HAS_OUTPUT : 0);
}

static int read_one(struct fields *f, u32 first) {
	struct batch_one *b = RESERVE(BATCH, batch_one);
	if (!b)
		return 0;
	describe(&b->of, f, first, 1);
	if (!f->token || READ(b->token, f->token + 4 * (u64)first))
		b->of.flags |= NO_TOKENS;
	READ(b->pos, f->pos + 4 * (u64)first); // fails without positions
	READ(b->output, f->output + first);
	u64 list = 0;
	b->seq[0] = -1;
	if (!READ(list, f->seq + 8 * (u64)first))
		READ(b->seq, list);
	SUBMIT(b);
	return 1;
}

__attribute__((noinline)) int read_part(struct fields *f, u32 first) {
	if (!f || f->n <= first)
		return 0;
	u32 count = f->n - first;
	if (count > CHUNK)
		count = CHUNK;
	if (count == 1)
		return read_one(f, first);
	struct batch_many *b = RESERVE(BATCH, batch_many);
	if (!b)
		return 0;
	describe(&b->of, f, first, count);
	u64 bytes = count * 4;
	CLAMP(bytes, sizeof(b->token));
	if (!f->token || bpf_probe_read_user(b->token, bytes, (void *)(f->token + 4 * (u64)first)))
		b->of.flags |= NO_TOKENS;
	if (f->pos && bpf_probe_read_user(b->pos, bytes, (void *)(f->pos + 4 * (u64)first)))
		b->pos[0] = -1; // where reading fails, zeros are written
	if (f->output)
		bpf_probe_read_user(b->output, bytes / 4, (void *)(f->output + first));
	u64 ids = f->seq + 8 * (u64)first;
	for (u32 i = 0; i < CHUNK; i++) {
		if (i >= count)
			break;
		u64 list = 0;
		s32 id = 0;
		if (READ(list, ids) || READ(id, list)) // also without sequences
			id = -1;
		b->seq[i] = id;
		ids += 8;
	}
	SUBMIT(b);
	return 1;
}

static int draft(s32 follows) {
	struct call *call = enter(&drafting);
	if (call)
		call->c = follows;
	return 0;
}

SEC("uprobe/common_speculative_draft")
int draft_entry(struct pt_regs *c) { return draft(0); }
SEC("uprobe/common_speculative_process")
int follow_entry(struct pt_regs *c) { return draft(1); }

SEC("uretprobe/common_speculative")
int draft_return(struct pt_regs *c) {
	struct call *call = within(&drafting);
	if (!call)
		return 0;
	struct drafted *d = RESERVE(DRAFTED, drafted);
	if (d) {
		d->began = call->at;
		d->follows = call->c;
		SUBMIT(d);
	}
	call->at = 0;
	return 0;
}

// report_calls records what the thread has called of CUDA.
static void report_calls(u64 ctx, int begins) {
	u32 tid = thread();
	struct thread *t = bpf_map_lookup_elem(&threads, &tid);
	if (!t)
		return;
	if (begins) {
		t->first = t->last = 0;
		t->begun = bpf_ktime_get_ns();
	}
	struct called *r = RESERVE(CALLED, called);
	if (!r)
		return;
	r->ctx = ctx;
	r->launches = t->sum.launches;
	r->graphs = t->sum.graphs;
	r->to = t->sum.bytes[TO_DEVICE];
	r->from = t->sum.bytes[TO_HOST];
	r->unknown = t->sum.copies[KINDS - 1];
	r->to_time = t->sum.copying[0];
	r->from_time = t->sum.copying[1];
	r->waited = t->sum.waited - t->sum.copywaits;
	r->gaps = t->gaps;
	r->first = t->first;
	r->last = t->last;
	r->begins = begins;
	SUBMIT(r);
}

static void read_batch(struct fields *f) {
	for (u32 first = 0; first < MOST; first += CHUNK)
		if (!read_part(f, first))
			break;
}

// llama_decode(context, batch) and llama_encode(context, batch). Of passes that compute a draft, only the context and the
// number of tokens are kept.
SEC("uprobe/llama_decode")
int decode_entry(struct pt_regs *c) {
	int drafted = drafts();
	struct call *call = enter(&passes);
	if (!call)
		return 0;
	call->a = ARG1(c);
#if defined(__TARGET_ARCH_x86)
	u64 at = c->sp + 8; // a large struct by value lies on the stack
#else
	u64 at = ARG2(c); // a large struct by value is passed by address
#endif
	s32 n = 0;
	READ(n, at);
	call->b = lost[PICKED];
	call->c = n;
	struct pass *p = RESERVE(PASS_BEGIN, pass);
	if (p) {
		p->ctx = call->a;
		p->tokens = n;
		p->result = drafted;
		p->began = call->at;
		p->lost = 0;
		SUBMIT(p);
	}
	if (!drafted)
		report_calls(call->a, 1);
	if (n > 0 && !drafted) {
		struct fields f = {};
		f.n = n;
		READ(f.token, at + 8);
		READ(f.pos, at + 24);
		READ(f.seq, at + 40);
		READ(f.output, at + 48);
		f.ctx = call->a;
		read_batch(&f);
	}
	return 0;
}

SEC("uretprobe/llama_decode")
int decode_return(struct pt_regs *c) {
	struct call *call = within(&passes);
	if (!call)
		return 0;
	if (!drafts())
		report_calls(call->a, 0);
	struct pass *p = RESERVE(PASS_END, pass);
	if (p) {
		p->ctx = call->a;
		p->tokens = call->c;
		p->result = RESULT(c);
		p->began = call->at;
		p->lost = lost[PICKED] - call->b;
		SUBMIT(p);
	}
	call->at = 0;
	return 0;
}

// llama_synchronize(context) waits until a device has computed what llama_decode began.
SEC("uprobe/llama_synchronize")
int sync_entry(struct pt_regs *c) {
	struct call *call = enter(&syncing);
	if (call)
		call->a = ARG1(c);
	return 0;
}

SEC("uretprobe/llama_synchronize")
int sync_return(struct pt_regs *c) {
	struct call *call = within(&syncing);
	if (!call)
		return 0;
	report_calls(call->a, 0);
	struct synced *s = RESERVE(SYNCED, synced);
	if (s) {
		s->ctx = call->a;
		SUBMIT(s);
	}
	call->at = 0;
	return 0;
}

// llama_context::process_ubatch(this, const llama_ubatch &, ...) gets the physical batches, with rows in the order of
// the graph's tensors.
SEC("uprobe/process_ubatch")
int ubatch_entry(struct pt_regs *c) {
	u64 at = ARG2(c);
	struct call *call = within(&passes);
	if (!call || call->c < 2 || drafts())
		return 0; // has no order, or it is of no interest
	struct fields f = {};
	READ(f.n, at + 4);
	f.flags = PHYSICAL;
	READ(f.token, at + 24);
	READ(f.pos, at + 40);
	READ(f.seq, at + 56);
	READ(f.output, at + 80);
	f.ctx = ARG1(c);
	read_batch(&f);
	return 0;
}

#define PREFIX "ffn_moe_topk-"

// picks is a tensor of picks.
struct picks {
	char name[64];
	u64 used, rows, stride, data;
};

static void name_picks(struct picked *p, struct picks *t, u32 first, u32 n) {
	__builtin_memcpy(p->name, t->name, sizeof(p->name));
	p->used = t->used;
	p->total = t->rows;
	p->first = first;
	p->n = n;
}

__attribute__((noinline)) int read_picks(struct picks *t, u32 first) {
	if (!t || t->rows <= first)
		return 0;
	u32 n = t->rows - first;
	if (n > ROWS)
		n = ROWS;
	u64 bytes = t->used * 4;
	CLAMP(bytes, sizeof(s32[PICKS]));
	u64 from = t->data + t->stride * first;
	if (n == 1) {
		struct picked_one *p = RESERVE(PICKED, picked_one);
		if (!p)
			return 0;
		name_picks(&p->of, t, first, 1);
		if (bpf_probe_read_user(p->pick[0], bytes, (void *)from))
			p->pick[0][0] = -1;
		SUBMIT(p);
		return 1;
	}
	struct picked_many *p = RESERVE(PICKED, picked_many);
	if (!p)
		return 0;
	name_picks(&p->of, t, first, n);
	for (u32 i = 0; i < ROWS; i++) {
		if (i >= n)
			break;
		if (bpf_probe_read_user(p->pick[i], bytes, (void *)from))
			p->pick[i][0] = -1;
		from += t->stride;
	}
	SUBMIT(p);
	return 1;
}

// ggml_compute_forward_get_rows(params, dst): where the experts' weights are gathered, the picks are src[1].
SEC("uprobe/get_rows")
int get_rows_entry(struct pt_regs *c) {
	s32 ith = 0;
	READ(ith, ARG1(c));
	if (ith)
		return 0;
	gathers++;
	if (drafts())
		return 0;
	u64 src = 0;
	READ(src, ARG2(c) + 160);
	struct picks t = {};
	if (!src || READ(t.name, src + 256))
		return 0;
	for (u32 i = 0; i < sizeof(PREFIX) - 1; i++)
		if (t.name[i] != PREFIX[i])
			return 0;
	READ(t.used, src + 16);
	READ(t.rows, src + 24);
	READ(t.stride, src + 56);
	READ(t.data, src + 248);
	if (!t.used || t.used > PICKS || t.rows > MOST) {
		lose(PICKED);
		return 0;
	}
	for (u32 first = 0; first < MOST; first += ROWS)
		if (!read_picks(&t, first))
			break;
	return 0;
}

// llama_tokenize(vocab, text, bytes, tokens, ...) returns the number of tokens.
SEC("uprobe/llama_tokenize")
int tokenize_entry(struct pt_regs *c) {
	struct call *call = enter(&tokenizing);
	if (call) {
		call->a = ARG4(c);
		call->c = ARG3(c);
	}
	return 0;
}

// text is a tokenized text.
struct text {
	u64 began, tokens;
	u32 total;
};

__attribute__((noinline)) int read_text(struct text *x, u32 first) {
	if (!x || x->total <= first)
		return 0;
	struct tokenized *t = RESERVE(TOKENIZED, tokenized);
	if (!t)
		return 0;
	u32 n = x->total - first;
	if (n > CHUNK)
		n = CHUNK;
	t->began = x->began;
	t->total = x->total;
	t->first = first;
	t->n = n;
	t->pad = 0;
	u64 bytes = n * 4;
	CLAMP(bytes, sizeof(t->token));
	if (bpf_probe_read_user(t->token, bytes, (void *)(x->tokens + 4 * (u64)first)))
		t->n = 0;
	SUBMIT(t);
	return 1;
}

SEC("uretprobe/llama_tokenize")
int tokenize_return(struct pt_regs *c) {
	struct call *call = within(&tokenizing);
	s32 result = RESULT(c);
	if (!call || result <= 0) // negative: the caller's buffer is too small, and it calls again
		return 0;
	struct text t = {call->at, call->a, result};
	for (u32 first = 0; first < MOST; first += CHUNK)
		if (!read_text(&t, first))
			break;
	call->at = 0;
	return 0;
}

// common_sampler_sample(sampler, ctx, index, ...) returns the token.
SEC("uprobe/common_sampler_sample")
int sample_entry(struct pt_regs *c) {
	if (drafts())
		return 0;
	struct call *call = enter(&sampling);
	if (call) {
		call->a = ARG2(c);
		call->c = ARG3(c);
	}
	return 0;
}

SEC("uretprobe/common_sampler_sample")
int sample_return(struct pt_regs *c) {
	struct call *call = within(&sampling);
	if (!call)
		return 0;
	struct sampled *s = RESERVE(SAMPLED, sampled);
	if (s) {
		s->began = call->at;
		s->ctx = call->a;
		s->index = call->c;
		s->token = RESULT(c);
		SUBMIT(s);
	}
	call->at = 0;
	return 0;
}

static int removes(u64 memory, s32 seq, s32 from, s32 to) {
	if (drafts())
		return 0;
	struct removed *r = RESERVE(REMOVED, removed);
	if (r) {
		r->memory = memory;
		r->seq = seq;
		r->from = from;
		r->to = to;
		r->pad = 0;
		SUBMIT(r);
	}
	return 0;
}

// llama_memory_seq_rm(memory, seq, from, to) begins a prompt: what lies before from is reused.
SEC("uprobe/llama_memory_seq_rm")
int remove_entry(struct pt_regs *c) { return removes(ARG1(c), ARG2(c), ARG3(c), ARG4(c)); }

// llama_memory_clear(memory, ...) removes all sequences.
SEC("uprobe/llama_memory_clear")
int clear_entry(struct pt_regs *c) { return removes(ARG1(c), -1, -1, -1); }

// System calls of the process. The layouts are those of tracefs: events/syscalls/*/format.
struct enter_args {
	u64 common;
	u64 nr;
	u64 args[6];
};

struct exit_args {
	u64 common;
	u64 nr;
	long result;
};

static int transfer(struct enter_args *e) {
	struct call *call = bpf_get_current_pid_tgid() >> 32 == target ? enter(&transfers) : 0;
	if (call) {
		call->c = e->args[0];
		call->a = e->args[3]; // flags
		call->b = e->args[1]; // bytes
	}
	return 0;
}

static int transferred(struct exit_args *e, u32 kind) {
	struct call *call = bpf_get_current_pid_tgid() >> 32 == target ? within(&transfers) : 0;
	if (!call)
		return 0;
	if (e->result != -EAGAIN && (e->result <= 0 || !(call->a & MSG_PEEK))) {
		struct transfer *t = RESERVE(kind, transfer);
		if (t) {
			t->fd = call->c;
			t->bytes = e->result;
			u32 end = 0;
			if (kind == SENT && e->result >= 4)
				READ(end, call->b + e->result - 4);
			t->headers = end == 0x0a0d0a0d;
			SUBMIT(t);
		}
	}
	call->at = 0;
	return 0;
}

SEC("tracepoint/syscalls/sys_enter_recvfrom")
int recvfrom_enter(struct enter_args *e) { return transfer(e); }
SEC("tracepoint/syscalls/sys_exit_recvfrom")
int recvfrom_exit(struct exit_args *e) { return transferred(e, RECEIVED); }
SEC("tracepoint/syscalls/sys_enter_sendto")
int sendto_enter(struct enter_args *e) { return transfer(e); }
SEC("tracepoint/syscalls/sys_exit_sendto")
int sendto_exit(struct exit_args *e) { return transferred(e, SENT); }
