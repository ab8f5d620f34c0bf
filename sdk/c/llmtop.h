/* llmtop.h: emits the events of an LLM inference engine written in C or C++ to llmtop. One header, C11 or C++17, Linux
 * and macOS.
 *
 * In one source file, before other includes:
 *
 *     #define LLMTOP_IMPLEMENTATION
 *     #include "llmtop.h"
 *
 * and only the #include in all other files. Link with -pthread. Then
 *
 *     llmtop_options options = {0};
 *     options.name = "my-engine";
 *     llmtop_socket *top = llmtop_open(&options, NULL, 0);
 *     llmtop_queued(top, 1, NULL);
 *     llmtop_token(top, 1, 0, 1510);
 *     llmtop_ended(top, 1, LLMTOP_FINISHED, "stop", NULL);
 *     llmtop_close(top);
 *
 * and run `llmtop attach` in another terminal. The protocol is docs/event-protocol.md, version 1.0.
 *
 * All functions may be called from any thread until llmtop_close. They do nothing if the socket is NULL, so that an
 * engine whose socket could not be opened continues. The functions that emit (all but llmtop_open, llmtop_close,
 * llmtop_csv, llmtop_counter, llmtop_loaded, llmtop_state, llmtop_ops, llmtop_draft, llmtop_host and
 * llmtop_report_usage) are wait-free: they stamp the event, copy it into a ring
 * and return, without locks, allocations or system calls. A separate thread writes to the readers. Events that do not
 * fit in the ring are dropped and counted by kind.
 *
 * Times are ns of the monotonic clock since llmtop_open. Request ids are 1 to 2^53-1; 0 means the engine itself.
 * Text arguments are copied, except stage names, which must live as long as the socket: use string literals. */
#ifndef LLMTOP_H
#define LLMTOP_H

#ifdef _WIN32
#error "llmtop.h: Linux and macOS only; on Windows write the protocol of docs/event-protocol.md to a TCP socket"
#endif

#if defined(LLMTOP_IMPLEMENTATION) && !defined(_GNU_SOURCE)
#define _GNU_SOURCE /* clocks, sockets and ucred under -std=c11 */
#endif

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct llmtop_socket llmtop_socket;

/* Capabilities of an engine, for options.caps. What it emits is added by itself. A reader shows what is missing as "not
 * reported". */
enum {
  LLMTOP_CAN_STAGES = 1,
  LLMTOP_CAN_TOKENS = 2,
  LLMTOP_CAN_EXPERTS = 4,
  LLMTOP_CAN_KV = 8,
  LLMTOP_CAN_STEPS = 16,
  LLMTOP_CAN_QUEUE = 32,  /* reports both queued and dispatched */
  LLMTOP_CAN_DEVICE = 64, /* has a device separate from the host and stamps transfers */
  LLMTOP_CAN_HOST = 128,
  LLMTOP_CAN_OPS = 256,
  LLMTOP_CAN_PICKS = 512  /* router picks of tokens */
};

/* The kinds of events by which drops are counted. */
typedef enum {
  LLMTOP_KIND_ENGINE,
  LLMTOP_KIND_MODEL,
  LLMTOP_KIND_REQUEST,
  LLMTOP_KIND_STAGE,
  LLMTOP_KIND_TOKEN,
  LLMTOP_KIND_EXPERTS,
  LLMTOP_KIND_KV,
  LLMTOP_KIND_STEP,
  LLMTOP_KIND_COUNTERS,
  LLMTOP_KIND_LOG,
  LLMTOP_KIND_HOST,
  LLMTOP_KIND_OPS,
  LLMTOP_KIND_USAGE,
  LLMTOP_KIND_SPECULATION,
  LLMTOP_KINDS
} llmtop_kind;

/* Standard stage names. Any other literal is an engine-specific stage. */
#define LLMTOP_LOAD "model_load"
#define LLMTOP_RECEIVE "receive" /* from the first byte of a request to its tokenization */
#define LLMTOP_QUEUE "queue" /* from enqueue to dispatch, without the next */
#define LLMTOP_PACED_BY_OTHERS "paced_by_others" /* the requests that held the slots waited on purpose */
#define LLMTOP_TOKENIZE "tokenize"
#define LLMTOP_EMBED "embed"
#define LLMTOP_PREFILL "prompt"
#define LLMTOP_FIRST_TOKEN "first_token"
#define LLMTOP_HOST_TO_DEVICE "host_to_device"
#define LLMTOP_DEVICE_TO_HOST "device_to_host"
#define LLMTOP_SEND "send" /* from the first token to the next byte of the answer; emit it before that token */
#define LLMTOP_ATTENTION "attention"
#define LLMTOP_ROUTER "router"
#define LLMTOP_EXPERTS "experts"
#define LLMTOP_LM_HEAD "lm_head"
#define LLMTOP_SAMPLE "sample"
#define LLMTOP_PACE "pace"
#define LLMTOP_DECODE "decode" /* engine-specific: not part of the time to first token */

/* A model. 0 and NULL: not reported. path: its GGUF or safetensors file, or their folder: llmtop on the same machine reads
 * what is not given from it. */
typedef struct {
  const char *name, *path, *architecture, *quantisation;
  int64_t parameters, active_parameters; /* active: used per token */
  int64_t bytes, layers, width, heads, kv_heads, head_dim, vocabulary;
  int64_t experts, experts_used; /* experts: per layer; experts_used: per token */
  int64_t feed_forward, context, trained_context;
  int64_t kv_bytes;     /* per token, all layers */
  int64_t weight_bytes; /* bytes read to decode one token */
} llmtop_model;

/* A prompt that a reader asks for. NULL, -1: not given, the engine's default. Valid during the call. */
typedef struct {
  const char *prompt, *group, *label;
  const int32_t *ids; /* instead of prompt; NULL: none */
  size_t id_count;
  int64_t max_tokens, top_k, seed;
  double temperature, top_p, min_p, repeat_penalty;
  int64_t top;    /* alternatives of each token */
  int ignore_eos; /* 1: continue after the end token */
  int special;    /* 1: control tokens spelled out in prompt become ids */
  int probe, picks;
} llmtop_generation;

/* Handlers of control messages; NULL is not offered. They are called one after another on a separate thread and should
 * return soon. They return 0, or -1 after they have written a reason to why, which has room for size bytes. Nothing is
 * offered over TCP without a token. */
typedef struct {
  void *data; /* passed to them, after the socket: llmtop_open may not have returned yet */
  int (*generate)(llmtop_socket *top, void *data, const llmtop_generation *prompt, uint64_t *request, char *why, size_t size);
  int (*cancel)(llmtop_socket *top, void *data, uint64_t request, char *why, size_t size);
  int (*pause)(llmtop_socket *top, void *data, int on, char *why, size_t size); /* on 0: continue */
  int (*hooks)(llmtop_socket *top, void *data, int stages, int experts, int picks, char *why, size_t size); /* what to measure from now on */
  int (*sample)(llmtop_socket *top, void *data, int64_t every, char *why, size_t size); /* count picks in one pass of N */
} llmtop_controls;

typedef struct {
  const char *name, *version; /* of the engine; name is required */
  /* NULL: NAME-PID.sock in the default folder, where llmtop attach finds it. unix:PATH, or tcp:HOST:PORT; port 0: any. */
  const char *address;
  unsigned caps; /* bits of LLMTOP_CAN_ */
  int text;      /* 1: also send the text of prompts and tokens */
  int slots;     /* maximum number of concurrent requests */
  const char *device, *kernels;
  int threads, host;         /* host 1: there is no device separate from the host */
  const char *state;         /* NULL: ready */
  const llmtop_model *model; /* already loaded; NULL: none */
  unsigned layers, experts, experts_used; /* size of the table of router picks; 0: none, or as in model */
  unsigned ring;    /* cells of 64 bytes, a power of 2; 0: 16384. Most events use one */
  unsigned backlog; /* bytes kept for slow readers, a power of 2; 0: 4 MiB */
  int csv;          /* 1: keep stages for llmtop_csv */
  const char *token;                /* required from readers; mandatory for TCP beyond loopback */
  const llmtop_controls *controls;  /* copied */
} llmtop_options;

/* Opens the socket and starts the writer thread. On error it returns NULL and stores a message in error, unless that
 * is NULL. If a live engine holds the socket, the message contains its pid; the socket of an engine that has exited
 * is replaced. */
llmtop_socket *llmtop_open(const llmtop_options *options, char *error, size_t size);

/* Writes remaining events for at most half a second, sends bye to the readers, removes the socket and frees all
 * memory. */
void llmtop_close(llmtop_socket *top);

/* The address, in the form of llmtop attach. */
const char *llmtop_address(const llmtop_socket *top);

/* ns since llmtop_open. */
int64_t llmtop_now(const llmtop_socket *top);

/* Number of events of a kind that did not fit in the ring. Drops of slow readers are reported to those readers. */
uint64_t llmtop_dropped(const llmtop_socket *top, llmtop_kind kind);

/* The state of the engine: starting, loading, ready, failed, stopped or paused; why may be NULL. */
void llmtop_state(llmtop_socket *top, const char *state, const char *why);

/* Reports that a model has been loaded; began is the start of the load, or -1. */
void llmtop_loaded(llmtop_socket *top, const llmtop_model *model, int64_t began);

/* Data of a request. 0 and NULL: not reported. */
typedef struct {
  const char *group;  /* LoRA adapter or tenant */
  const char *label;  /* prompt kind */
  const char *name;   /* the engine's own id, if it is not numeric */
  const char *prompt; /* sent only if options.text */
  int64_t max_tokens;
  int64_t prompt_tokens; /* cached ones included */
  int cold, probe; /* cold: the first request since the load began; probe: not sent by a user */
} llmtop_request;

typedef enum { LLMTOP_FINISHED = 2, LLMTOP_CANCELLED, LLMTOP_FAILED } llmtop_outcome;

/* Token counts of a request that has ended. Initialise with LLMTOP_USAGE; -1: not reported. */
typedef struct {
  int64_t in, cached, out; /* in: prompt, including cached tokens; cached: prompt tokens from a cache; out: generated */
  int32_t pad;             /* padding tokens of a batch */
  /* Where the prompt stops to be the same as that of an earlier request (0: not reported), in tokens, and why. */
  uint64_t reuse;
  int64_t reuse_at;
  const char *reuse_why;
} llmtop_usage;
#define LLMTOP_USAGE {-1, -1, -1, -1, 0, 0, NULL}

void llmtop_queued(llmtop_socket *top, uint64_t request, const llmtop_request *what); /* what may be NULL */
void llmtop_dispatched(llmtop_socket *top, uint64_t request);
/* why: stop, length, cancelled, or the cause of a failure; usage may be NULL. */
void llmtop_ended(llmtop_socket *top, uint64_t request, llmtop_outcome outcome, const char *why, const llmtop_usage *usage);

/* Tokens. Initialise with LLMTOP_TOKENS(request). */
typedef struct {
  uint64_t request;
  int64_t at;       /* when they left the sampler; -1: now */
  int64_t sampling; /* ns; -1: not reported */
  uint64_t step;    /* number of the forward pass; 0: not reported */
  int32_t index;    /* position of the first token in the generated text, from 0; -1: not reported */
  int32_t id;       /* id of the first token; -1: not reported */
  int32_t count;    /* number of tokens with this stamp */
  float logprob;    /* natural log; above 0: not reported */
  const char *text; /* NULL: not reported; sent only if options.text */
  size_t length;    /* of text in bytes; text may end within a UTF-8 sequence */
  const uint16_t *picks; /* experts that the router picked for it, layer by layer; NULL: not reported */
  size_t pick_count;
} llmtop_tokens_info;
#define LLMTOP_TOKENS(request) {(request), -1, -1, 0, -1, -1, 1, 1.0f, NULL, 0, NULL, 0}

/* Emits one token now: position in the generated text from 0, and id; -1: not reported. */
void llmtop_token(llmtop_socket *top, uint64_t request, int32_t index, int32_t id);
void llmtop_tokens(llmtop_socket *top, const llmtop_tokens_info *tokens);

/* A timer that becomes a stage when it ends. A plain value: it may begin on one thread and end on another. */
typedef struct {
  llmtop_socket *top;
  uint64_t request;
  const char *stage;
  int64_t began;
  /* Tokens covered; 0: not reported. Those of LLMTOP_TOKENIZE are also added to the tokenizer counters. */
  int64_t tokens;
} llmtop_span;

llmtop_span llmtop_begin(llmtop_socket *top, uint64_t request, const char *stage);
void llmtop_end(llmtop_span *span); /* ending it twice has no effect */
/* A timer that ends with its scope, for C; C++ has llmtop::Span. LLMTOP_SCOPE(prefill, top, 7, LLMTOP_PREFILL);
 * prefill.tokens = 512; */
#define LLMTOP_SCOPE(span, top, request, stage) \
  __attribute__((cleanup(llmtop_end))) llmtop_span span = llmtop_begin((top), (request), (stage))
/* A stage that ends now and started at began; layer from 0, or -1. */
void llmtop_stage(llmtop_socket *top, uint64_t request, const char *stage, int layer, int64_t began, int64_t tokens);

/* A forward pass that ends now. */
typedef struct {
  int64_t began;
  uint64_t number;        /* from 1; 0: not reported */
  int32_t decode, prompt; /* tokens in the batch */
  const uint32_t *split;  /* NULL, or ns in embed, attention, router, experts, lm_head, sample */
  const char *metrics;    /* NULL, or a JSON object with forward-pass metrics, see fpm in the protocol */
} llmtop_pass;
void llmtop_step(llmtop_socket *top, const llmtop_pass *pass);

/* A forward pass that is timed while it runs: a plain value, used by one thread at a time. request: that for which it
 * works, 0 if for several. Then the time of a pass over prompt tokens is that request's prompt stage. decode, prompt:
 * tokens; they may be set until the end; -1: not reported. On an accelerator the pass, and each part, has to wait for the
 * device, otherwise it measures only launches: leave parts out there. */
typedef struct {
  llmtop_socket *top;
  uint64_t request, number;
  int32_t decode, prompt;
  int64_t began, ended, body; /* body: the end of the layers; -1: not yet */
  int64_t parts[6];           /* ns in embed, attention, router, experts, lm_head, sample */
} llmtop_forward;

llmtop_forward llmtop_step_begin(llmtop_socket *top, uint64_t request, int32_t decode, int32_t prompt);
void llmtop_step_end(llmtop_forward *step); /* ending it twice has no effect */
/* A pass that ends with its scope, for C; C++ has llmtop::Step. */
#define LLMTOP_STEP(step, top, request, decode, prompt) \
  __attribute__((cleanup(llmtop_step_end))) llmtop_forward step = llmtop_step_begin((top), (request), (decode), (prompt))

/* A part of a pass: LLMTOP_EMBED, LLMTOP_ATTENTION, LLMTOP_ROUTER, LLMTOP_EXPERTS, LLMTOP_LM_HEAD or LLMTOP_SAMPLE; any
 * other name becomes a stage of its own. layer from 0, or -1; with a layer, it is also a stage of the request. Sampling
 * may follow the end of the pass. */
typedef struct {
  llmtop_forward *step;
  const char *name;
  int layer;
  int64_t began;
} llmtop_part;
llmtop_part llmtop_part_begin(llmtop_forward *step, const char *name, int layer);
void llmtop_part_end(llmtop_part *part);
#define LLMTOP_PART(part, step, name, layer) \
  __attribute__((cleanup(llmtop_part_end))) llmtop_part part = llmtop_part_begin((step), (name), (layer))

/* As llmtop_token and llmtop_tokens, for tokens that a pass has made. They end the pass. With the first token of its
 * request comes the first_token stage. */
void llmtop_step_token(llmtop_forward *step, uint64_t request, int32_t index, int32_t id);
void llmtop_step_tokens(llmtop_forward *step, const llmtop_tokens_info *tokens);

/* Times of operations in passes forward passes, cumulative, the longest first; at most 4096. */
typedef struct {
  const char *name;
  int layer; /* -1: outside all layers */
  int64_t calls, ns;
} llmtop_op;
/* slowdown: time of a timed pass / time of one that is not timed; 0: not reported. */
void llmtop_ops(llmtop_socket *top, int64_t passes, const llmtop_op *ops, size_t n, double slowdown);

/* Speculative decoding, cumulative: drafted tokens, and those of them that were accepted, by position in the draft (at
 * most 64); ns in which drafts were computed; and shapes of decode passes (at most 256). */
typedef struct {
  int drafts; /* 1: drafts were computed for it */
  int64_t requests, tokens, passes, ns, generated;
} llmtop_shape;
void llmtop_draft(llmtop_socket *top, const int64_t *drafted, const int64_t *accepted, size_t n, int64_t ns, const llmtop_shape *shapes,
                  size_t shape_count);

/* A reading, with the names and units of the protocol. */
typedef struct {
  const char *name;
  double value;
  int derived; /* 1: computed from other values */
} llmtop_reading;
/* What the engine's threads did in the last interval ns: the protocol's usage. */
void llmtop_report_usage(llmtop_socket *top, int64_t interval, const llmtop_reading *readings, size_t n);
/* A sample of the machine: the protocol's host. cores: utilisation of each, 0..1. engine: readings of this process. */
void llmtop_host(llmtop_socket *top, int64_t interval, const double *cores, size_t core_count, const llmtop_reading *readings, size_t n,
                 const llmtop_reading *engine, size_t engine_count);
/* Samples the machine and this process once a second from now on, from /proc. For engines on another machine: llmtop
 * samples engines on its own. Linux only. */
void llmtop_sample_host(llmtop_socket *top);

/* The KV cache, in cells of one token each. Initialise with LLMTOP_CELLS(used, total). */
typedef struct {
  int64_t used, total;
  int64_t pinned;      /* stamp since when the oldest cells have been in use; -1: not reported */
  int64_t freed, held; /* number of cells just freed, and how many ns they were in use; -1: not reported */
  int32_t page;        /* cells per page; 0: no pages */
} llmtop_cells;
#define LLMTOP_CELLS(used, total) {(used), (total), -1, -1, -1, 0}
void llmtop_kv(llmtop_socket *top, const llmtop_cells *cells);

/* Adds n router picks of a layer to the table, which is sent ten times a second. phase: 0 prompt, 1 decode. */
void llmtop_picks(llmtop_socket *top, int phase, unsigned layer, const uint16_t *experts, size_t n);
/* For an engine that counts picks itself: cumulative picks of all experts of a layer. */
void llmtop_picks_total(llmtop_socket *top, int phase, unsigned layer, const uint64_t *counts);

/* Counters, cumulative, sent four times a second if changed. The calls above maintain the first seven and the
 * tokenizer's. */
enum {
  LLMTOP_REQUESTS_QUEUED,
  LLMTOP_REQUESTS_FINISHED,
  LLMTOP_REQUESTS_CANCELLED,
  LLMTOP_REQUESTS_FAILED,
  LLMTOP_PROMPT_TOKENS,
  LLMTOP_CACHED_TOKENS,
  LLMTOP_GENERATED_TOKENS,
  LLMTOP_TOKENIZER_TOKENS,
  LLMTOP_TOKENIZER_NS, /* sent in us, and as us per token */
  LLMTOP_CACHE_LOOKUPS,
  LLMTOP_CACHE_HITS, /* also sent as a ratio */
  LLMTOP_COUNTERS
};
/* Adds an engine-specific counter and returns its number; -1 if there are 32 already. The name is copied. */
int llmtop_counter(llmtop_socket *top, const char *name);
void llmtop_add(llmtop_socket *top, int counter, int64_t n);
/* Sets a reading such as an average; for engine-specific counters only. */
void llmtop_set(llmtop_socket *top, int counter, double value);

/* One line of the engine log. */
void llmtop_log(llmtop_socket *top, const char *line);

/* Writes CSV with the columns stage,elapsed_us: the engine's stages, then the stages of each request in the order in
 * which they ended, each summed over layers and repetitions. Waits until earlier events are processed. Returns the
 * number of rows; -1 with errno on error. Requires options.csv; missing, if not NULL, is set to the number of stages
 * that are not in the rows. */
long llmtop_csv(llmtop_socket *top, const char *path, uint64_t *missing);

#ifdef __cplusplus
} /* extern "C" */

#include <exception>
#include <string>
#include <utility>

namespace llmtop {

/* Span is a scoped timer: a stage from its construction to the end of its scope. */
class Span {
public:
  Span(llmtop_socket *top, uint64_t request, const char *stage, int64_t tokens = 0) : span_(llmtop_begin(top, request, stage)) {
    span_.tokens = tokens;
  }
  Span(Span &&other) noexcept : span_(other.span_) { other.span_.top = nullptr; }
  Span(const Span &) = delete;
  Span &operator=(const Span &) = delete;
  Span &operator=(Span &&) = delete;
  ~Span() { end(); }
    /* tokens sets the number of tokens that the span covers. */
  void tokens(int64_t n) { span_.tokens = n; }
  /* end ends the span before its scope does. */
  void end() { llmtop_end(&span_); }

private:
  llmtop_span span_;
};

/* Step times a forward pass until the end of its scope. A scope that an exception leaves reports the pass without its
 * numbers of tokens. */
class Step {
public:
  /* Part times a part of the pass until the end of its scope. */
  class Part {
  public:
    Part(Step &step, const char *name, int layer = -1) : part_(llmtop_part_begin(step.get(), name, layer)) {}
    Part(const Part &) = delete;
    Part &operator=(const Part &) = delete;
    ~Part() { llmtop_part_end(&part_); }

  private:
    llmtop_part part_;
  };
  Step(llmtop_socket *top, uint64_t request, int32_t decode, int32_t prompt)
      : step_(llmtop_step_begin(top, request, decode, prompt)), exceptions_(std::uncaught_exceptions()) {}
  Step(const Step &) = delete;
  Step &operator=(const Step &) = delete;
  ~Step() {
    if (std::uncaught_exceptions() > exceptions_) step_.decode = step_.prompt = -1;
    end();
  }
  /* end ends the pass before its scope does. */
  void end() { llmtop_step_end(&step_); }
  /* token and tokens emit what the pass has made, and end it. */
  void token(uint64_t request, int32_t index, int32_t id) { llmtop_step_token(&step_, request, index, id); }
  void tokens(const llmtop_tokens_info &tokens) { llmtop_step_tokens(&step_, &tokens); }
  llmtop_forward *get() { return &step_; }

private:
  llmtop_forward step_;
  int exceptions_;
};

/* Socket opens the socket on construction and closes it on destruction. Pass get() to the functions above; it is null
 * if error() is not empty. */
class Socket {
public:
  explicit Socket(const llmtop_options &options) : error_(256, '\0'), top_(llmtop_open(&options, &error_[0], error_.size())) {
    error_.resize(top_ != nullptr ? 0 : std::char_traits<char>::length(error_.c_str()));
  }
  Socket(Socket &&other) noexcept : error_(std::move(other.error_)), top_(std::exchange(other.top_, nullptr)) {}
  Socket(const Socket &) = delete;
  Socket &operator=(const Socket &) = delete;
  Socket &operator=(Socket &&) = delete;
  ~Socket() { llmtop_close(top_); }
  llmtop_socket *get() const { return top_; }
  const std::string &error() const { return error_; }

private:
  std::string error_; /* before top_, whose initialisation sets it */
  llmtop_socket *top_;
};

} // namespace llmtop
#endif /* __cplusplus */
#endif /* LLMTOP_H */

#if defined(LLMTOP_IMPLEMENTATION) && !defined(LLMTOP_IMPLEMENTED)
#define LLMTOP_IMPLEMENTED

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#ifndef CLOCK_MONOTONIC
#error "llmtop.h: include it before other headers in the file that defines LLMTOP_IMPLEMENTATION"
#endif

/* ---- text -------------------------------------------------------------------------------------------------------- */

enum {
  LLMTOPI_STRING = 64 << 10, /* the protocol's longest string, for prompts */
  LLMTOPI_SHORT = 4 << 10,   /* for all others */
  LLMTOPI_READERS = 16,
  LLMTOPI_REQUESTS = 4096,     /* live requests in the state for late joiners; the oldest are evicted */
  LLMTOPI_STAGES = 512,        /* stages of a request: a name and a layer each */
  LLMTOPI_ROWS = 1 << 16,      /* rows of the CSV, for requests that have ended */
  LLMTOPI_LINES = 1 << 16,     /* lines kept for slow readers, a power of 2 */
  LLMTOPI_BATCH = 256,         /* tokens per line */
  LLMTOPI_PICKS = 8192,        /* picks of a token */
  LLMTOPI_CONTROL = 1 << 20,   /* longest line from a reader */
  LLMTOPI_AUTH = 1 << 10,      /* the same before its token was accepted */
  LLMTOPI_ASKED = 64,          /* control messages that wait for their handler */
  LLMTOPI_CHUNK = 64 << 10,    /* bytes taken from the backlog at a time */
  LLMTOPI_OWN = 32,            /* engine-specific counters */
  LLMTOPI_COUNTERS = (int)LLMTOP_COUNTERS + LLMTOPI_OWN,
  LLMTOPI_TICK = 10            /* polling interval of the ring in ms */
};
#define LLMTOPI_SECOND 1000000000LL

typedef struct {
  char *p;
  size_t n, room;
  int failed; /* out of memory: the content is incomplete */
} llmtopi_text;

static void llmtopi_add(llmtopi_text *b, const void *p, size_t n) {
  if (b->n + n > b->room) {
    size_t room = (b->n + n) * 2 + 256;
    char *bigger = (char *)realloc(b->p, room);
    if (bigger == NULL) {
      b->failed = 1;
      return;
    }
    b->p = bigger;
    b->room = room;
  }
  if (n > 0) memcpy(b->p + b->n, p, n);
  b->n += n;
}

static size_t llmtopi_least(size_t a, size_t b) { return a < b ? a : b; }

static void llmtopi_str(llmtopi_text *b, const char *s) { llmtopi_add(b, s, strlen(s)); }

static void llmtopi_uint(llmtopi_text *b, uint64_t v) {
  char digits[20];
  int i = 20;
  do {
    digits[--i] = (char)('0' + v % 10);
    v /= 10;
  } while (v != 0);
  llmtopi_add(b, digits + i, (size_t)(20 - i));
}

static void llmtopi_int(llmtopi_text *b, int64_t v) {
  if (v < 0) llmtopi_add(b, "-", 1);
  llmtopi_uint(b, v < 0 ? 0 - (uint64_t)v : (uint64_t)v);
}

/* Numbers that JSON cannot represent become null. */
static void llmtopi_real(llmtopi_text *b, double v) {
  char s[40];
  int i, n, mark = 0;
  if (!isfinite(v)) {
    llmtopi_str(b, "null");
    return;
  }
  n = snprintf(s, sizeof s, "%.9g", v);
  for (i = 0; i < n; i++) { /* the locale may use another decimal separator, even of several bytes */
    if (strchr("0123456789+-e", s[i]) != NULL) {
      llmtopi_add(b, s + i, 1);
    } else if (!mark) {
      llmtopi_add(b, ".", 1);
      mark = 1;
    }
  }
}

static void llmtopi_number(llmtopi_text *b, double v) {
  if (v > -9e15 && v < 9e15 && v == (double)(int64_t)v) llmtopi_int(b, (int64_t)v);
  else llmtopi_real(b, v);
}

static void llmtopi_key(llmtopi_text *b, const char *name) {
  llmtopi_add(b, ",\"", 2);
  llmtopi_str(b, name);
  llmtopi_add(b, "\":", 2);
}

static void llmtopi_member(llmtopi_text *b, const char *name, int64_t v) {
  llmtopi_key(b, name);
  llmtopi_int(b, v);
}

/* The length of the UTF-8 sequence at s; 0 if none exists. */
static size_t llmtopi_rune(const unsigned char *s, size_t n) {
  size_t i, length = s[0] < 0x80 ? 1 : s[0] < 0xC2 ? 0 : s[0] < 0xE0 ? 2 : s[0] < 0xF0 ? 3 : s[0] < 0xF5 ? 4 : 0;
  if (length == 0 || length > n) return 0;
  for (i = 1; i < length; i++)
    if ((s[i] & 0xC0) != 0x80) return 0;
  if ((s[0] == 0xE0 && s[1] < 0xA0) || (s[0] == 0xED && s[1] > 0x9F)) return 0; /* overlong, surrogate */
  if ((s[0] == 0xF0 && s[1] < 0x90) || (s[0] == 0xF4 && s[1] > 0x8F)) return 0; /* overlong, beyond Unicode */
  return length;
}

/* A JSON string; bytes that are not UTF-8 become U+FFFD. */
static void llmtopi_quote(llmtopi_text *b, const char *s, size_t n) {
  static const char hex[] = "0123456789abcdef";
  size_t i = 0;
  llmtopi_add(b, "\"", 1);
  while (i < n) {
    unsigned char c = (unsigned char)s[i];
    size_t rune = llmtopi_rune((const unsigned char *)s + i, n - i);
    if (c < 0x20 || c == 0x7F) {
      char escape[6] = {'\\', 'u', '0', '0', hex[c >> 4], hex[c & 15]};
      llmtopi_add(b, escape, 6);
    } else if (c == '"' || c == '\\') {
      char escape[2] = {'\\', (char)c};
      llmtopi_add(b, escape, 2);
    } else if (rune == 0) {
      llmtopi_add(b, "\xEF\xBF\xBD", 3);
    } else {
      llmtopi_add(b, s + i, rune);
    }
    i += rune == 0 ? 1 : rune;
  }
  llmtopi_add(b, "\"", 1);
}

/* The text of a token: an array of bytes if it is not UTF-8. */
static void llmtopi_piece(llmtopi_text *b, const char *s, size_t n) {
  size_t i, rune;
  for (i = 0; i < n; i += rune) {
    rune = llmtopi_rune((const unsigned char *)s + i, n - i);
    if (rune == 0) break;
  }
  if (i == n) {
    llmtopi_quote(b, s, n);
    return;
  }
  for (i = 0; i < n; i++) {
    llmtopi_add(b, i == 0 ? "[" : ",", 1);
    llmtopi_uint(b, (unsigned char)s[i]);
  }
  llmtopi_add(b, "]", 1);
}

static void llmtopi_string(llmtopi_text *b, const char *name, const char *s) {
  if (s == NULL || s[0] == '\0') return;
  llmtopi_key(b, name);
  llmtopi_quote(b, s, strnlen(s, LLMTOPI_SHORT));
}

/* ---- the ring ---------------------------------------------------------------------------------------------------- */

enum {
  LLMTOPI_TOKEN,
  LLMTOPI_QUEUED,
  LLMTOPI_DISPATCHED,
  LLMTOPI_ENDED,
  LLMTOPI_STAGE,
  LLMTOPI_STEP,
  LLMTOPI_KV,
  LLMTOPI_LOG,
  LLMTOPI_ENGINE,
  LLMTOPI_MODEL,
  LLMTOPI_HOST, /* lines that the caller has written, and the order of llmtopi_written */
  LLMTOPI_OPS,
  LLMTOPI_DRAFT,
  LLMTOPI_USAGE
};
static const char *const llmtopi_written[] = {"host", "ops", "draft", "usage"};
static const unsigned char llmtopi_kinds[] = {LLMTOP_KIND_TOKEN, LLMTOP_KIND_REQUEST, LLMTOP_KIND_REQUEST, LLMTOP_KIND_REQUEST,
                                              LLMTOP_KIND_STAGE, LLMTOP_KIND_STEP,    LLMTOP_KIND_KV,      LLMTOP_KIND_LOG,
                                              LLMTOP_KIND_ENGINE, LLMTOP_KIND_MODEL,   LLMTOP_KIND_HOST,    LLMTOP_KIND_OPS,
                                              LLMTOP_KIND_SPECULATION, LLMTOP_KIND_USAGE};
static const char *const llmtopi_names[LLMTOP_KINDS] = {"engine",  "model", "request", "stage",    "token",
                                                        "experts", "kv",    "step",    "counters", "log",
                                                        "host",    "ops",   "usage",   "speculation"};

/* An event. Its payload of length bytes fills the following cells. The meaning of the fields is described where each
 * type is written. */
typedef struct {
  uint64_t turn; /* its position in the ring + 1, once it is complete */
  unsigned char type, flags;
  uint16_t small;
  uint32_t length;
  int32_t id, index;
  int64_t at;
  uint64_t request;
  int64_t x[3];
} llmtopi_cell;

typedef struct {
  const void *p;
  size_t n;
} llmtopi_part;

typedef struct {
  const char *name;
  int layer;
  int64_t at, took, tokens; /* the last end; sums */
} llmtopi_stage;

typedef struct {
  llmtopi_stage *p;
  size_t n, room;
} llmtopi_stages;

/* A live request, kept for late joiners. */
typedef struct llmtopi_request {
  struct llmtopi_request *chain, *older, *newer; /* chain: same hash bucket; older, newer: order of arrival */
  uint64_t id;
  int queued, dispatched;
  int64_t queued_at, dispatched_at;
  llmtopi_text what; /* members of its queued line */
  int64_t first_at, last_at, tokens;
  int32_t first_index;
  llmtopi_stages stages;
} llmtopi_request;

/* A line in the backlog. */
typedef struct {
  uint64_t from; /* position in the byte stream */
  uint32_t length;
  uint16_t kind, events;
} llmtopi_line;

typedef struct {
  int fd;
  uint64_t id;      /* of the connection */
  int open;         /* the token, if one is required, was accepted */
  int64_t since;    /* when it connected, or when bye was queued */
  llmtopi_text in;  /* an incomplete line */
  uint64_t next;    /* number of the next line of the backlog */
  llmtopi_text out; /* complete lines being sent, the first of them perhaps in part */
  size_t sent;      /* bytes of out already sent */
  uint64_t delivered, reported; /* events; drops that were reported */
  uint64_t lost[LLMTOP_KINDS], base[LLMTOP_KINDS]; /* drops of this reader; drops of the ring before it connected */
  int leaving;              /* bye has been queued */
  int stale;                /* events were dropped since the last sync */
  int64_t lossy, synced;    /* when it became stale; when the last sync was */
} llmtopi_reader;

typedef struct {
  const char *name;
  int64_t took;
} llmtopi_row;

/* A control message, or the reply to one. */
typedef struct llmtopi_message {
  struct llmtopi_message *next;
  uint64_t reader, call;
  int control; /* index in llmtopi_controls */
  llmtopi_text text;
} llmtopi_message;

/* What /proc counted at a moment. -1: it could not be read. */
typedef struct {
  int64_t at, cores[1024][3], all[3], in, out, cpu_pressure, mem_pressure, io_pressure; /* cores: ticks in all, idle, stolen */
  int64_t process, waited, faults, minor_faults, threads, read, write, read_ops, write_ops, runnable;
  int core_count;
} llmtopi_sums;

struct llmtop_socket {
  /* Producers. used counts cells that producers have claimed and the writer has not released; it keeps tail from
   * overtaking the writer. */
  uint64_t used;
  char pad0[56];
  uint64_t tail; /* position of the next cell */
  char pad1[56];
  uint64_t steps; /* numbers of passes given so far */
  uint64_t dropped[LLMTOP_KINDS];
  int64_t counters[LLMTOPI_COUNTERS]; /* bits of a double where real */
  unsigned char real[LLMTOPI_COUNTERS], set[LLMTOPI_COUNTERS];
  uint64_t *picks; /* phase, layer, expert */

  /* Constant after open. */
  llmtopi_cell *ring;
  uint64_t cells, mask;
  int64_t start;
  int text, csv, listener;
  unsigned layers, experts, used_experts;
  char *path; /* of a Unix socket */
  dev_t device;
  ino_t inode;
  char address[160], run[40];
  llmtopi_text engine, about; /* constant members of hello, before and after caps */
  char *token;
  llmtop_controls controls;
  int trusted, obeying; /* trusted: readers may control; obeying: the thread of the handlers runs */
  pthread_t writer, obedient;

  pthread_mutex_t lock; /* guards the fields below */
  pthread_cond_t written;
  char names[LLMTOPI_OWN][64];
  int own;
  const char *csv_path;
  uint64_t csv_after, csv_missing; /* the CSV is written when the ring has been read up to here */
  FILE *csv_file;
  long csv_rows;
  int csv_error, csv_waits, csv_done;
  int stop, sampled;
  pthread_cond_t asked;
  llmtopi_message *asked_first, **asked_last, *replies;
  int asked_count;

  /* Used by the writer only. */
  uint64_t head;
  llmtopi_text line, payload, state, model;
  llmtopi_cell batch[LLMTOPI_BATCH];
  size_t batch_text[LLMTOPI_BATCH]; /* offset in batch_bytes of the text of each token */
  llmtopi_text batch_bytes;
  size_t batched;
  char *bytes; /* the backlog, a ring buffer */
  uint64_t room, from, to;
  llmtopi_line *lines;
  uint64_t first_line, next_line;
  llmtopi_reader *readers[LLMTOPI_READERS];
  int count, deaf; /* deaf: no file descriptor is left for another reader */
  llmtopi_request *buckets[1024], *oldest, *newest;
  size_t live;
  int requests_reported; /* the engine reports start and end of requests */
  llmtopi_stages own_stages;
  llmtopi_cell kv;
  int kv_reported;
  unsigned caps, caps_sent;
  uint64_t connections;
  llmtopi_text written_lines[3]; /* the latest of llmtopi_written, without line end; not of usage */
  llmtopi_sums *sums;            /* of the last sample of the machine; NULL: none */
  int64_t host_due;
  llmtopi_text experts_line, counters_line; /* latest lines, without line end */
  uint64_t picked;                          /* sum of all picks when experts_line was written */
  int64_t experts_due, counters_due, clock_due;
  llmtopi_row *rows;
  size_t row_count, row_room;
  uint64_t rows_missing;
};

static int64_t llmtopi_clock(clockid_t id) {
  struct timespec t;
  clock_gettime(id, &t);
  return (int64_t)t.tv_sec * LLMTOPI_SECOND + t.tv_nsec;
}

int64_t llmtop_now(const llmtop_socket *t) { return t == NULL ? 0 : llmtopi_clock(CLOCK_MONOTONIC) - t->start; }

uint64_t llmtop_dropped(const llmtop_socket *t, llmtop_kind kind) {
  return t == NULL || (unsigned)kind >= LLMTOP_KINDS ? 0 : __atomic_load_n(&t->dropped[kind], __ATOMIC_RELAXED);
}

const char *llmtop_address(const llmtop_socket *t) { return t == NULL ? "" : t->address; }

/* Copies n bytes to a position in the ring, in bytes. */
static void llmtopi_copy_in(llmtop_socket *t, uint64_t to, const void *p, size_t n) {
  size_t size = (size_t)t->cells * sizeof(llmtopi_cell), at = (size_t)to & (size - 1), part = n < size - at ? n : size - at;
  memcpy((char *)t->ring + at, p, part);
  if (part < n) memcpy(t->ring, (const char *)p + part, n - part);
}

/* Emits an event with the parts as its payload. A cell is claimed only if cells are free, so an event never overwrites
 * one that the writer has not read. An eighth of the ring is reserved for request events: without them, the state would
 * stay wrong for long.
 *
 * Wait-free: every path is a fixed number of instructions and a copy of bounded length. Concurrent emitters cause no
 * retries, since fetch-and-add always succeeds (one instruction on x86-64 and on ARM since v8.1; older ARM repeats it on
 * contention). A thread that is suspended between claiming cells and publishing them delays only the writer: other
 * threads continue until the ring is full, and then drop. The clock is read without a system call where the kernel maps
 * it, as Linux and macOS do. */
static void llmtopi_emit(llmtop_socket *t, const llmtopi_cell *c, const llmtopi_part *parts, int n) {
  size_t length = 0;
  int i, kind = llmtopi_kinds[c->type];
  uint64_t cells, at, limit = kind == LLMTOP_KIND_REQUEST ? t->cells : t->cells - t->cells / 8;
  for (i = 0; i < n; i++) length += parts[i].n;
  cells = 1 + (length + sizeof *c - 1) / sizeof *c;
  if (__atomic_fetch_add(&t->used, cells, __ATOMIC_ACQ_REL) + cells > limit) {
    __atomic_fetch_sub(&t->used, cells, __ATOMIC_RELAXED);
    __atomic_fetch_add(&t->dropped[kind], 1, __ATOMIC_RELAXED);
    return;
  }
  at = __atomic_fetch_add(&t->tail, cells, __ATOMIC_ACQ_REL);
  {
    llmtopi_cell *to = &t->ring[at & t->mask];
    uint64_t byte = (at + 1) * sizeof *c;
    memcpy((char *)to + sizeof to->turn, (const char *)c + sizeof c->turn, sizeof *c - sizeof c->turn);
    to->length = (uint32_t)length;
    for (i = 0; i < n; i++) {
      if (parts[i].n > 0) llmtopi_copy_in(t, byte, parts[i].p, parts[i].n);
      byte += parts[i].n;
    }
    __atomic_store_n(&to->turn, at + 1, __ATOMIC_RELEASE);
  }
}

static llmtopi_cell llmtopi_event(llmtop_socket *t, int type, uint64_t request) {
  llmtopi_cell c;
  memset(&c, 0, sizeof c);
  c.type = (unsigned char)type;
  c.request = request;
  c.at = llmtop_now(t);
  return c;
}

void llmtop_add(llmtop_socket *t, int counter, int64_t n) {
  if (t == NULL || counter < 0 || counter >= LLMTOPI_COUNTERS || __atomic_load_n(&t->real[counter], __ATOMIC_RELAXED))
    return;
  __atomic_fetch_add(&t->counters[counter], n, __ATOMIC_RELAXED);
  if (!__atomic_load_n(&t->set[counter], __ATOMIC_RELAXED)) __atomic_store_n(&t->set[counter], 1, __ATOMIC_RELAXED);
}

void llmtop_set(llmtop_socket *t, int counter, double value) {
  int64_t bits;
  if (t == NULL || counter < LLMTOP_COUNTERS || counter >= LLMTOPI_COUNTERS) return;
  memcpy(&bits, &value, sizeof bits);
  __atomic_store_n(&t->real[counter], 1, __ATOMIC_RELAXED);
  __atomic_store_n(&t->counters[counter], bits, __ATOMIC_RELAXED);
  __atomic_store_n(&t->set[counter], 1, __ATOMIC_RELEASE);
}

int llmtop_counter(llmtop_socket *t, const char *name) {
  int i;
  if (t == NULL || name == NULL) return -1;
  pthread_mutex_lock(&t->lock);
  for (i = 0; i < t->own && strncmp(t->names[i], name, sizeof t->names[i] - 1) != 0; i++) {}
  if (i == t->own && i < LLMTOPI_OWN) snprintf(t->names[t->own++], sizeof t->names[0], "%s", name);
  pthread_mutex_unlock(&t->lock);
  return i < LLMTOPI_OWN ? LLMTOP_COUNTERS + i : -1;
}

/* ---- emitting ---------------------------------------------------------------------------------------------------- */

/* The payload of a queued line: four lengths, then the texts. */
void llmtop_queued(llmtop_socket *t, uint64_t request, const llmtop_request *what) {
  llmtopi_cell c;
  const char *texts[4] = {NULL, NULL, NULL, NULL};
  uint32_t lengths[4];
  llmtopi_part parts[5];
  size_t most, i;
  if (t == NULL || request == 0) return;
  c = llmtopi_event(t, LLMTOPI_QUEUED, request);
  most = (size_t)t->cells * sizeof c / 8; /* bytes of the ring */
  if (what != NULL) {
    c.x[0] = what->max_tokens;
    c.x[1] = what->prompt_tokens;
    c.flags = (unsigned char)((what->cold != 0) | (what->probe != 0) << 1);
    texts[0] = what->group;
    texts[1] = what->label;
    texts[2] = what->name;
    texts[3] = t->text ? what->prompt : NULL;
  }
  for (i = 0; i < 4; i++) {
    size_t limit = i < 3 ? 1024 : llmtopi_least(most, LLMTOPI_STRING);
    lengths[i] = texts[i] == NULL ? 0 : (uint32_t)strnlen(texts[i], limit);
    parts[i + 1].p = texts[i];
    parts[i + 1].n = lengths[i];
  }
  parts[0].p = lengths;
  parts[0].n = sizeof lengths;
  llmtopi_emit(t, &c, parts, what == NULL ? 0 : 5);
  llmtop_add(t, LLMTOP_REQUESTS_QUEUED, 1);
}

void llmtop_dispatched(llmtop_socket *t, uint64_t request) {
  llmtopi_cell c;
  if (t == NULL || request == 0) return;
  c = llmtopi_event(t, LLMTOPI_DISPATCHED, request);
  llmtopi_emit(t, &c, NULL, 0);
}

void llmtop_ended(llmtop_socket *t, uint64_t request, llmtop_outcome outcome, const char *why, const llmtop_usage *usage) {
  static const llmtop_usage nothing = LLMTOP_USAGE;
  llmtopi_cell c;
  llmtopi_part parts[3];
  char reuse[16];
  if (t == NULL || request == 0 || outcome < LLMTOP_FINISHED || outcome > LLMTOP_FAILED) return;
  if (usage == NULL) usage = &nothing;
  c = llmtopi_event(t, LLMTOPI_ENDED, request);
  c.id = (int32_t)outcome;
  c.index = usage->pad;
  c.x[0] = usage->in;
  c.x[1] = usage->cached;
  c.x[2] = usage->out;
  parts[0].p = why;
  parts[0].n = why == NULL ? 0 : strnlen(why, 1024);
  c.small = (uint16_t)parts[0].n;
  c.flags = usage->reuse != 0 || usage->reuse_why != NULL;
  memcpy(reuse, &usage->reuse, 8);
  memcpy(reuse + 8, &usage->reuse_at, 8);
  parts[1].p = reuse;
  parts[1].n = sizeof reuse;
  parts[2].p = usage->reuse_why;
  parts[2].n = usage->reuse_why == NULL ? 0 : strnlen(usage->reuse_why, 1024);
  llmtopi_emit(t, &c, parts, c.flags ? 3 : 1);
  llmtop_add(t, LLMTOP_REQUESTS_FINISHED + (int)outcome - LLMTOP_FINISHED, 1);
  if (usage->in >= 0) llmtop_add(t, LLMTOP_PROMPT_TOKENS, usage->in);
  if (usage->cached >= 0) llmtop_add(t, LLMTOP_CACHED_TOKENS, usage->cached);
}

/* A token stores its index in index, step in x[0], sampling time in x[1], count and logprob in x[2], the number of picks
 * in small; the payload is the picks and the text. */
void llmtop_tokens(llmtop_socket *t, const llmtop_tokens_info *k) {
  llmtopi_cell c;
  llmtopi_part parts[2];
  if (t == NULL || k == NULL || k->request == 0 || k->count < 1) return;
  memset(&c, 0, sizeof c);
  c.type = LLMTOPI_TOKEN;
  c.request = k->request;
  c.at = k->at >= 0 ? k->at : llmtop_now(t);
  c.id = k->id;
  c.index = k->index;
  c.x[0] = (int64_t)k->step;
  c.x[1] = k->sampling;
  memcpy((char *)&c.x[2], &k->count, 4);
  memcpy((char *)&c.x[2] + 4, &k->logprob, 4);
  c.small = (uint16_t)(k->picks != NULL && k->pick_count <= LLMTOPI_PICKS ? k->pick_count : 0);
  parts[0].p = k->picks;
  parts[0].n = c.small * sizeof k->picks[0];
  parts[1].p = k->text;
  parts[1].n = t->text && k->text != NULL ? llmtopi_least(k->length, LLMTOPI_SHORT) : 0;
  llmtopi_emit(t, &c, parts, 2);
  llmtop_add(t, LLMTOP_GENERATED_TOKENS, k->count);
}

void llmtop_token(llmtop_socket *t, uint64_t request, int32_t index, int32_t id) {
  llmtop_tokens_info k = LLMTOP_TOKENS(request);
  k.index = index;
  k.id = id;
  llmtop_tokens(t, &k);
}

/* A stage stores its layer in id, duration in x[0], tokens in x[1], name in x[2]. */
static void llmtopi_stage_at(llmtop_socket *t, uint64_t request, const char *stage, int layer, int64_t at, int64_t took, int64_t tokens) {
  llmtopi_cell c;
  if (t == NULL || stage == NULL) return;
  memset(&c, 0, sizeof c);
  c.type = LLMTOPI_STAGE;
  c.request = request;
  c.at = at;
  c.id = layer;
  c.x[0] = took > 0 ? took : 0;
  c.x[1] = tokens;
  memcpy(&c.x[2], &stage, sizeof stage);
  llmtopi_emit(t, &c, NULL, 0);
  if (tokens > 0 && strcmp(stage, LLMTOP_TOKENIZE) == 0) {
    llmtop_add(t, LLMTOP_TOKENIZER_NS, c.x[0]);
    llmtop_add(t, LLMTOP_TOKENIZER_TOKENS, tokens);
  }
}

void llmtop_stage(llmtop_socket *t, uint64_t request, const char *stage, int layer, int64_t began, int64_t tokens) {
  int64_t now = llmtop_now(t);
  llmtopi_stage_at(t, request, stage, layer, now, now - began, tokens);
}

llmtop_span llmtop_begin(llmtop_socket *t, uint64_t request, const char *stage) {
  llmtop_span s;
  s.top = t;
  s.request = request;
  s.stage = stage;
  s.began = llmtop_now(t);
  s.tokens = 0;
  return s;
}

void llmtop_end(llmtop_span *s) {
  if (s == NULL || s->top == NULL) return;
  llmtop_stage(s->top, s->request, s->stage, -1, s->began, s->tokens);
  s->top = NULL;
}

/* A pass stores its number in request, decode tokens in id, prompt tokens in index, duration in x[0]; flag 1: the
 * payload starts with a split. */
static void llmtopi_step_at(llmtop_socket *t, const llmtop_pass *p, int64_t at, int64_t took) {
  llmtopi_cell c;
  llmtopi_part parts[2];
  memset(&c, 0, sizeof c);
  c.type = LLMTOPI_STEP;
  c.request = p->number;
  c.at = at;
  c.id = p->decode;
  c.index = p->prompt;
  c.x[0] = took > 0 ? took : 0;
  c.flags = p->split != NULL;
  parts[0].p = p->split;
  parts[0].n = p->split != NULL ? 6 * sizeof p->split[0] : 0;
  parts[1].p = p->metrics;
  parts[1].n = p->metrics == NULL ? 0 : strnlen(p->metrics, LLMTOPI_SHORT + 1);
  if (parts[1].n > LLMTOPI_SHORT) parts[1].n = 0; /* a truncated object is invalid */
  llmtopi_emit(t, &c, parts, 2);
}

void llmtop_step(llmtop_socket *t, const llmtop_pass *p) {
  int64_t now = llmtop_now(t);
  if (t != NULL && p != NULL) llmtopi_step_at(t, p, now, now - p->began);
}

static const char *const llmtopi_parts[6] = {LLMTOP_EMBED, LLMTOP_ATTENTION, LLMTOP_ROUTER, LLMTOP_EXPERTS, LLMTOP_LM_HEAD, LLMTOP_SAMPLE};

llmtop_forward llmtop_step_begin(llmtop_socket *t, uint64_t request, int32_t decode, int32_t prompt) {
  llmtop_forward s;
  memset(&s, 0, sizeof s);
  s.top = t;
  s.request = request;
  s.decode = decode;
  s.prompt = prompt;
  s.ended = s.body = -1;
  s.number = t == NULL ? 0 : __atomic_add_fetch(&t->steps, 1, __ATOMIC_RELAXED);
  s.began = llmtop_now(t);
  return s;
}

llmtop_part llmtop_part_begin(llmtop_forward *s, const char *name, int layer) {
  llmtop_part p;
  p.step = s;
  p.name = name;
  p.layer = layer;
  p.began = s == NULL ? 0 : llmtop_now(s->top);
  return p;
}

void llmtop_part_end(llmtop_part *p) {
  llmtop_forward *s = p == NULL ? NULL : p->step;
  int64_t now, took;
  int i;
  if (s == NULL || s->top == NULL || p->name == NULL) return;
  p->step = NULL;
  now = llmtop_now(s->top);
  took = now - p->began;
  for (i = 0; i < 6 && strcmp(p->name, llmtopi_parts[i]) != 0; i++) {}
  if (i == 6) llmtopi_stage_at(s->top, s->request, p->name, p->layer, now, took, 0);
  else s->parts[i] += took;
  if (i < 6 && p->layer >= 0 && s->request != 0 && s->prompt > 0) llmtopi_stage_at(s->top, s->request, p->name, p->layer, now, took, s->prompt);
}

void llmtop_step_end(llmtop_forward *s) {
  uint32_t split[6];
  llmtop_pass p;
  int64_t any = 0, embed;
  int i;
  if (s == NULL || s->top == NULL || s->ended >= 0) return;
  s->ended = llmtop_now(s->top);
  s->body = s->ended - s->parts[4] - s->parts[5]; /* the LM head and sampling come after the layers */
  embed = s->parts[0];
  for (i = 0; i < 6; i++) {
    any += s->parts[i];
    split[i] = s->parts[i] > UINT32_MAX ? UINT32_MAX : (uint32_t)s->parts[i];
  }
  memset(&p, 0, sizeof p);
  p.number = s->number;
  p.decode = s->decode;
  p.prompt = s->prompt;
  p.split = any > 0 ? split : NULL;
  llmtopi_step_at(s->top, &p, s->ended, s->ended - s->began);
  if (s->request == 0 || s->prompt <= 0) return;
  if (embed > 0) llmtopi_stage_at(s->top, s->request, LLMTOP_EMBED, -1, s->began + embed, embed, s->prompt);
  llmtopi_stage_at(s->top, s->request, LLMTOP_PREFILL, -1, s->body, s->body - s->began - embed, s->prompt);
}

void llmtop_step_token(llmtop_forward *s, uint64_t request, int32_t index, int32_t id) {
  llmtop_tokens_info k = LLMTOP_TOKENS(request);
  k.index = index;
  k.id = id;
  llmtop_step_tokens(s, &k);
}

void llmtop_step_tokens(llmtop_forward *s, const llmtop_tokens_info *tokens) {
  llmtop_tokens_info k;
  if (s == NULL || s->top == NULL || tokens == NULL) return;
  llmtop_step_end(s);
  k = *tokens;
  k.step = s->number;
  if (k.at < 0) k.at = llmtop_now(s->top);
  if (k.sampling < 0 && s->parts[5] > 0 && (s->request == k.request || (s->decode == 1 && s->prompt <= 0))) k.sampling = s->parts[5];
  if (k.index == 0 && s->request == k.request && s->prompt > 0 && s->body >= 0)
    llmtopi_stage_at(s->top, k.request, LLMTOP_FIRST_TOKEN, -1, k.at, k.at - s->body, 0);
  llmtop_tokens(s->top, &k);
}

/* The cache stores its page in id, freed cells in index, used, total and pinned in x, and held in request. */
void llmtop_kv(llmtop_socket *t, const llmtop_cells *k) {
  llmtopi_cell c;
  if (t == NULL || k == NULL || k->used < 0 || k->total < 0) return;
  c = llmtopi_event(t, LLMTOPI_KV, (uint64_t)k->held);
  c.id = k->page;
  c.index = k->freed < 0 ? -1 : k->freed > INT32_MAX ? INT32_MAX : (int32_t)k->freed;
  c.x[0] = k->used;
  c.x[1] = k->total;
  c.x[2] = k->pinned;
  llmtopi_emit(t, &c, NULL, 0);
}

void llmtop_log(llmtop_socket *t, const char *line) {
  llmtopi_cell c;
  llmtopi_part part;
  if (t == NULL || line == NULL) return;
  c = llmtopi_event(t, LLMTOPI_LOG, 0);
  part.p = line;
  part.n = strnlen(line, LLMTOPI_SHORT);
  while (part.n > 0 && (line[part.n - 1] == '\n' || line[part.n - 1] == '\r')) part.n--;
  llmtopi_emit(t, &c, &part, 1);
}

static uint64_t *llmtopi_table(llmtop_socket *t, int phase, unsigned layer) {
  if (t == NULL || t->picks == NULL || phase < 0 || phase > 1 || layer >= t->layers) return NULL;
  return t->picks + ((size_t)phase * t->layers + layer) * t->experts;
}

void llmtop_picks(llmtop_socket *t, int phase, unsigned layer, const uint16_t *experts, size_t n) {
  uint64_t *table = llmtopi_table(t, phase, layer);
  size_t i;
  if (table == NULL) return;
  for (i = 0; i < n; i++)
    if (experts[i] < t->experts) __atomic_fetch_add(&table[experts[i]], 1, __ATOMIC_RELAXED);
}

void llmtop_picks_total(llmtop_socket *t, int phase, unsigned layer, const uint64_t *counts) {
  uint64_t *table = llmtopi_table(t, phase, layer);
  unsigned i;
  if (table == NULL) return;
  for (i = 0; i < t->experts; i++) __atomic_store_n(&table[i], counts[i], __ATOMIC_RELAXED);
}

static void llmtopi_emit_text(llmtop_socket *t, int type, int64_t took, llmtopi_text *b) {
  llmtopi_cell c = llmtopi_event(t, type, 0);
  llmtopi_part part;
  part.p = b->p;
  part.n = b->n;
  c.x[0] = took;
  if (!b->failed) llmtopi_emit(t, &c, &part, 1);
  free(b->p);
}

void llmtop_state(llmtop_socket *t, const char *state, const char *why) {
  llmtopi_text b = {NULL, 0, 0, 0};
  if (t == NULL) return;
  llmtopi_string(&b, "state", state);
  llmtopi_string(&b, "why", why);
  llmtopi_emit_text(t, LLMTOPI_ENGINE, 0, &b);
}

static void llmtopi_model_members(llmtopi_text *b, const llmtop_model *m) {
  const struct {
    const char *name;
    int64_t v;
  } counts[] = {{"parameters", m->parameters}, {"active_parameters", m->active_parameters}, {"bytes", m->bytes},
                {"layers", m->layers}, {"width", m->width}, {"heads", m->heads}, {"kv_heads", m->kv_heads},
                {"head_dim", m->head_dim}, {"vocabulary", m->vocabulary}, {"experts", m->experts},
                {"experts_used", m->experts_used}, {"feed_forward", m->feed_forward}, {"context", m->context},
                {"trained_context", m->trained_context}, {"kv_bytes", m->kv_bytes}, {"weight_bytes", m->weight_bytes}};
  size_t i;
  llmtopi_string(b, "name", m->name);
  llmtopi_string(b, "path", m->path);
  llmtopi_string(b, "architecture", m->architecture);
  llmtopi_string(b, "quantisation", m->quantisation);
  for (i = 0; i < sizeof counts / sizeof counts[0]; i++)
    if (counts[i].v > 0) llmtopi_member(b, counts[i].name, counts[i].v);
}

void llmtop_loaded(llmtop_socket *t, const llmtop_model *m, int64_t began) {
  llmtopi_text b = {NULL, 0, 0, 0};
  if (t == NULL || m == NULL) return;
  llmtopi_model_members(&b, m);
  llmtopi_emit_text(t, LLMTOPI_MODEL, began < 0 ? -1 : llmtop_now(t) - began, &b);
}

/* An array: numbers of rows that are size bytes apart. */
static void llmtopi_numbers_of(llmtopi_text *b, const char *name, const void *first, size_t n, size_t size) {
  size_t i;
  llmtopi_key(b, name);
  llmtopi_add(b, "[", 1);
  for (i = 0; i < n; i++) {
    int64_t v;
    memcpy(&v, (const char *)first + i * size, sizeof v);
    if (i > 0) llmtopi_add(b, ",", 1);
    llmtopi_int(b, v);
  }
  llmtopi_add(b, "]", 1);
}

void llmtop_ops(llmtop_socket *t, int64_t passes, const llmtop_op *ops, size_t n, double slowdown) {
  llmtopi_text b = {NULL, 0, 0, 0}, names = {NULL, 0, 0, 0}, places = {NULL, 0, 0, 0}, layers = {NULL, 0, 0, 0};
  const char *known[256];
  size_t i, j, count = 0;
  if (t == NULL || (ops == NULL && n > 0) || passes < 1) return;
  if (n > 4096) n = 4096;
  for (i = 0; i < n; i++) {
    for (j = 0; j < count && strcmp(known[j], ops[i].name) != 0; j++) {}
    if (j == 256) break; /* the rows after it are shorter */
    if (j == count) {
      known[count++] = ops[i].name;
      llmtopi_str(&names, j == 0 ? "" : ",");
      llmtopi_quote(&names, ops[i].name, strnlen(ops[i].name, 1024));
    }
    llmtopi_str(&places, i == 0 ? "" : ",");
    llmtopi_uint(&places, j);
    llmtopi_str(&layers, i == 0 ? "" : ",");
    llmtopi_int(&layers, ops[i].layer < 0 ? -1 : ops[i].layer);
  }
  llmtopi_member(&b, "passes", passes);
  if (slowdown > 0 && isfinite(slowdown)) {
    llmtopi_str(&b, ",\"slowdown\":[");
    llmtopi_real(&b, slowdown);
    llmtopi_str(&b, ",\"derived\"]");
  }
  llmtopi_str(&b, ",\"ops\":[");
  llmtopi_add(&b, names.p, names.n);
  llmtopi_str(&b, "],\"k\":[");
  llmtopi_add(&b, places.p, places.n);
  llmtopi_str(&b, "],\"l\":[");
  llmtopi_add(&b, layers.p, layers.n);
  llmtopi_str(&b, "]");
  llmtopi_numbers_of(&b, "n", n > 0 ? &ops[0].calls : NULL, i, sizeof *ops);
  llmtopi_numbers_of(&b, "d", n > 0 ? &ops[0].ns : NULL, i, sizeof *ops);
  b.failed |= names.failed | places.failed | layers.failed;
  free(names.p);
  free(places.p);
  free(layers.p);
  llmtopi_emit_text(t, LLMTOPI_OPS, 0, &b);
}

void llmtop_draft(llmtop_socket *t, const int64_t *drafted, const int64_t *accepted, size_t n, int64_t ns, const llmtop_shape *shapes,
                  size_t count) {
  llmtopi_text b = {NULL, 0, 0, 0};
  size_t i;
  if (t == NULL || (n > 0 && (drafted == NULL || accepted == NULL)) || (count > 0 && shapes == NULL)) return;
  if (n > 64) n = 64;
  if (count > 256) count = 256;
  llmtopi_numbers_of(&b, "drafted", drafted, n, sizeof *drafted);
  llmtopi_numbers_of(&b, "accepted", accepted, n, sizeof *accepted);
  llmtopi_member(&b, "time", ns);
  llmtopi_str(&b, ",\"s\":[");
  for (i = 0; i < count; i++) {
    llmtopi_str(&b, i == 0 ? "" : ",");
    llmtopi_str(&b, shapes[i].drafts ? "1" : "0");
  }
  llmtopi_str(&b, "]");
  llmtopi_numbers_of(&b, "r", count > 0 ? &shapes[0].requests : NULL, count, sizeof *shapes);
  llmtopi_numbers_of(&b, "n", count > 0 ? &shapes[0].tokens : NULL, count, sizeof *shapes);
  llmtopi_numbers_of(&b, "p", count > 0 ? &shapes[0].passes : NULL, count, sizeof *shapes);
  llmtopi_numbers_of(&b, "d", count > 0 ? &shapes[0].ns : NULL, count, sizeof *shapes);
  llmtopi_numbers_of(&b, "k", count > 0 ? &shapes[0].generated : NULL, count, sizeof *shapes);
  llmtopi_emit_text(t, LLMTOPI_DRAFT, 0, &b);
}

static void llmtopi_readings(llmtopi_text *b, const llmtop_reading *readings, size_t n) {
  size_t i;
  for (i = 0; i < n; i++) {
    if (readings[i].name == NULL || !isfinite(readings[i].value)) continue;
    llmtopi_key(b, readings[i].name);
    if (!readings[i].derived) {
      llmtopi_number(b, readings[i].value);
      continue;
    }
    llmtopi_add(b, "[", 1);
    llmtopi_number(b, readings[i].value);
    llmtopi_str(b, ",\"derived\"]");
  }
}

void llmtop_report_usage(llmtop_socket *t, int64_t interval, const llmtop_reading *readings, size_t n) {
  llmtopi_text b = {NULL, 0, 0, 0};
  if (t == NULL || (readings == NULL && n > 0)) return;
  llmtopi_member(&b, "interval", interval);
  llmtopi_readings(&b, readings, n);
  llmtopi_emit_text(t, LLMTOPI_USAGE, 0, &b);
}

static void llmtopi_host_members(llmtopi_text *b, int64_t interval, const double *cores, size_t core_count, const llmtop_reading *readings,
                                 size_t n, const llmtop_reading *engine, size_t engine_count) {
  size_t i;
  llmtopi_member(b, "interval", interval);
  for (i = 0; i < core_count; i++) {
    llmtopi_str(b, i == 0 ? ",\"cores\":[" : ",");
    llmtopi_real(b, cores[i]);
  }
  if (core_count > 0) llmtopi_str(b, "]");
  llmtopi_readings(b, readings, n);
  llmtopi_str(b, ",\"engine\":{\"pid\":");
  llmtopi_int(b, (int64_t)getpid());
  llmtopi_member(b, "interval", interval);
  llmtopi_readings(b, engine, engine_count);
  llmtopi_str(b, "}");
}

void llmtop_host(llmtop_socket *t, int64_t interval, const double *cores, size_t core_count, const llmtop_reading *readings, size_t n,
                 const llmtop_reading *engine, size_t engine_count) {
  llmtopi_text b = {NULL, 0, 0, 0};
  if (t == NULL || (cores == NULL && core_count > 0) || (readings == NULL && n > 0) || (engine == NULL && engine_count > 0)) return;
  llmtopi_host_members(&b, interval, cores, core_count, readings, n, engine, engine_count);
  llmtopi_emit_text(t, LLMTOPI_HOST, 0, &b);
}

void llmtop_sample_host(llmtop_socket *t) {
  if (t == NULL) return;
  pthread_mutex_lock(&t->lock);
  t->sampled = 1;
  pthread_mutex_unlock(&t->lock);
}

/* ---- the backlog and the readers --------------------------------------------------------------------------------- */

static void llmtopi_evict(llmtop_socket *t) {
  llmtopi_line *oldest = &t->lines[t->first_line & (LLMTOPI_LINES - 1)];
  int i;
  for (i = 0; i < t->count; i++)
    if (t->readers[i]->open && t->readers[i]->next == t->first_line) {
      t->readers[i]->lost[oldest->kind] += oldest->events;
      t->readers[i]->next++;
    }
  t->from += oldest->length;
  t->first_line++;
}

/* Appends t->line, which contains some events, to the backlog; the oldest lines make room. */
static void llmtopi_push(llmtop_socket *t, llmtop_kind kind, size_t events) {
  llmtopi_text *b = &t->line;
  llmtopi_line *line;
  size_t at, part;
  int i;
  if (t->count == 0) return;
  llmtopi_add(b, "}\n", 2);
  if (b->failed || b->n > t->room / 2 || b->n > 4 << 20) {
    for (i = 0; i < t->count; i++) t->readers[i]->lost[kind] += events;
    return;
  }
  while (t->to + b->n - t->from > t->room || t->next_line - t->first_line == LLMTOPI_LINES) llmtopi_evict(t);
  at = (size_t)(t->to & (t->room - 1));
  part = b->n < t->room - at ? b->n : (size_t)t->room - at;
  memcpy(t->bytes + at, b->p, part);
  memcpy(t->bytes, b->p + part, b->n - part);
  line = &t->lines[t->next_line++ & (LLMTOPI_LINES - 1)];
  line->from = t->to;
  line->length = (uint32_t)b->n;
  line->kind = (uint16_t)kind;
  line->events = (uint16_t)events;
  t->to += b->n;
}

/* Starts a line with its type and, if at is not NULL, its time. */
static llmtopi_text *llmtopi_open_line(llmtopi_text *b, const char *type, const int64_t *at) {
  llmtopi_str(b, "{\"t\":\"");
  llmtopi_str(b, type);
  llmtopi_add(b, "\"", 1);
  if (at != NULL) llmtopi_member(b, "a", *at);
  return b;
}

static llmtopi_text *llmtopi_fresh(llmtop_socket *t) {
  t->line.n = 0;
  t->line.failed = 0;
  return &t->line;
}

static uint64_t llmtopi_losses(llmtop_socket *t, const llmtopi_reader *r, uint64_t *by) {
  uint64_t sum = 0;
  int k;
  for (k = 0; k < LLMTOP_KINDS; k++) {
    uint64_t n = r->lost[k] + llmtop_dropped(t, (llmtop_kind)k) - r->base[k];
    if (by != NULL) by[k] = n;
    sum += n;
  }
  return sum;
}

static void llmtopi_report_lost(llmtop_socket *t, llmtopi_reader *r) {
  uint64_t by[LLMTOP_KINDS];
  int64_t now = llmtop_now(t);
  const char *mark = "{";
  int k;
  r->reported = llmtopi_losses(t, r, by);
  llmtopi_open_line(&r->out, "lost", &now);
  llmtopi_key(&r->out, "by");
  for (k = 0; k < LLMTOP_KINDS; k++) {
    if (by[k] == 0) continue;
    llmtopi_str(&r->out, mark);
    mark = ",";
    llmtopi_add(&r->out, "\"", 1);
    llmtopi_str(&r->out, llmtopi_names[k]);
    llmtopi_add(&r->out, "\":", 2);
    llmtopi_uint(&r->out, by[k]);
  }
  llmtopi_add(&r->out, "}", 1);
  llmtopi_member(&r->out, "q", (int64_t)(r->delivered + r->reported));
  llmtopi_add(&r->out, "}\n", 2);
  if (!r->stale) r->lossy = now;
  r->stale = 1;
}

static void llmtopi_clock_line(llmtop_socket *t, llmtopi_reader *r) {
  int64_t now = llmtop_now(t);
  llmtopi_open_line(&r->out, "clock", &now);
  llmtopi_member(&r->out, "wall", llmtopi_clock(CLOCK_REALTIME));
  llmtopi_member(&r->out, "q", (int64_t)(r->delivered + r->reported));
  llmtopi_add(&r->out, "}\n", 2);
}

/* Moves lines from the backlog to out: they count as delivered. */
static void llmtopi_take(llmtop_socket *t, llmtopi_reader *r) {
  while (r->next != t->next_line && r->out.n < LLMTOPI_CHUNK) {
    llmtopi_line *line = &t->lines[r->next & (LLMTOPI_LINES - 1)];
    size_t at = (size_t)(line->from & (t->room - 1)), part = line->length < t->room - at ? line->length : (size_t)t->room - at;
    llmtopi_add(&r->out, t->bytes + at, part);
    llmtopi_add(&r->out, t->bytes, line->length - part);
    r->delivered += line->events;
    r->next++;
  }
}

/* Drops all lines that a slow reader still has to receive, so that it can get the current state. */
static void llmtopi_skip(llmtop_socket *t, llmtopi_reader *r) {
  for (; r->next != t->next_line; r->next++) {
    llmtopi_line *line = &t->lines[r->next & (LLMTOPI_LINES - 1)];
    r->lost[line->kind] += line->events;
  }
}

static void llmtopi_sync(llmtop_socket *t, llmtopi_reader *r);

#ifdef MSG_NOSIGNAL
enum { LLMTOPI_SEND = MSG_NOSIGNAL };
#else
enum { LLMTOPI_SEND = 0 }; /* macOS: SO_NOSIGPIPE */
#endif

/* Writes what the socket accepts now. Returns 0 if the connection is lost. */
static int llmtopi_send(llmtopi_reader *r) {
  while (r->sent < r->out.n) {
    ssize_t n = send(r->fd, r->out.p + r->sent, r->out.n - r->sent, LLMTOPI_SEND);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS;
    r->sent += (size_t)n;
  }
  r->out.n = r->sent = 0;
  if (r->out.room > 1 << 20) { /* a large state */
    free(r->out.p);
    memset(&r->out, 0, sizeof r->out);
  }
  return 1;
}

/* Sends bye, and closes the connection a second later, or when the reader has closed it: otherwise what it has sent
 * meanwhile would make the system discard bye. */
static void llmtopi_dismiss(llmtopi_reader *r, const char *why, int64_t now) {
  if (r->leaving) return;
  llmtopi_open_line(&r->out, "bye", NULL);
  llmtopi_string(&r->out, "why", why);
  llmtopi_add(&r->out, "}\n", 2);
  r->leaving = 1;
  r->since = now;
}

/* Sends as much to a reader as its socket accepts. Returns 0 if the connection must be closed. */
static int llmtopi_serve(llmtop_socket *t, llmtopi_reader *r, int64_t now) {
  for (;;) {
    if (!llmtopi_send(r) || r->out.failed) return 0;
    if (r->leaving) return now - r->since < LLMTOPI_SECOND;
    if (!r->open && now - r->since > 5 * LLMTOPI_SECOND) llmtopi_dismiss(r, "no token", now);
    if (r->out.n > 0 || !r->open) return 1;
    if (llmtopi_losses(t, r, NULL) != r->reported) {
      if (r->stale && now - r->lossy > 2 * LLMTOPI_SECOND) llmtopi_skip(t, r);
      llmtopi_report_lost(t, r);
    }
    if (r->next != t->next_line) {
      llmtopi_take(t, r);
    } else if (r->stale && now - r->synced > LLMTOPI_SECOND) {
      llmtopi_sync(t, r);
      r->stale = 0;
      r->synced = now;
    } else if (r->out.n == 0) {
      return 1;
    }
  }
}

static const char *const llmtopi_controls[] = {"generate", "cancel", "pause", "hooks", "sample", "resume"};

static int llmtopi_offered(const llmtop_socket *t, int control) {
  const llmtop_controls *c = &t->controls;
  const int offered[] = {c->generate != NULL, c->cancel != NULL, c->pause != NULL, c->hooks != NULL, c->sample != NULL, c->pause != NULL};
  return t->trusted && offered[control];
}

/* Members of hello and engine. */
static void llmtopi_about(llmtop_socket *t, llmtopi_text *b) {
  static const char *const caps[] = {"stages", "tokens", "experts", "kv", "steps", "queue", "device", "host", "ops", "picks"};
  size_t i;
  llmtopi_add(b, t->engine.p, t->engine.n);
  llmtopi_str(b, ",\"caps\":[\"counters\"");
  for (i = 0; i < sizeof caps / sizeof caps[0] + 5; i++) {
    size_t control = i - sizeof caps / sizeof caps[0];
    if (i < sizeof caps / sizeof caps[0] ? !(t->caps >> i & 1) : !llmtopi_offered(t, (int)control)) continue;
    llmtopi_str(b, ",\"");
    llmtopi_str(b, i < sizeof caps / sizeof caps[0] ? caps[i] : llmtopi_controls[control]);
    llmtopi_str(b, "\"");
  }
  llmtopi_str(b, t->text ? ",\"text\"]" : "]");
  llmtopi_add(b, t->about.p, t->about.n);
}

static void llmtopi_hello(llmtop_socket *t, llmtopi_text *b) {
  int64_t now = llmtop_now(t);
  llmtopi_open_line(b, "hello", NULL);
  llmtopi_str(b, ",\"v\":\"1.0\"");
  llmtopi_string(b, "run", t->run);
  llmtopi_member(b, "a", now);
  llmtopi_member(b, "wall", llmtopi_clock(CLOCK_REALTIME));
  llmtopi_about(t, b);
  llmtopi_add(b, t->state.p, t->state.n);
  if (t->model.n > 0) {
    llmtopi_str(b, ",\"model\":{");
    llmtopi_add(b, t->model.p + 1, t->model.n - 1); /* without the comma */
    llmtopi_add(b, "}", 1);
  }
  llmtopi_add(b, "}\n", 2);
}

static void llmtopi_flags(int fd) {
  fcntl(fd, F_SETFD, FD_CLOEXEC);
  fcntl(fd, F_SETFL, O_NONBLOCK);
#ifdef SO_NOSIGPIPE
  {
    int on = 1;
    setsockopt(fd, SOL_SOCKET, SO_NOSIGPIPE, &on, sizeof on);
  }
#endif
}

/* Sends hello and the state: from now on the reader gets events. */
static void llmtopi_greet(llmtop_socket *t, llmtopi_reader *r, int64_t now) {
  int k;
  r->open = 1;
  r->next = t->next_line;
  r->synced = now;
  memset(r->lost, 0, sizeof r->lost);
  for (k = 0; k < LLMTOP_KINDS; k++) r->base[k] = llmtop_dropped(t, (llmtop_kind)k);
  llmtopi_hello(t, &r->out);
  llmtopi_sync(t, r);
}

/* Accepts waiting connections. */
static void llmtopi_accept(llmtop_socket *t, int64_t now) {
  int fd;
  while ((fd = accept(t->listener, NULL, NULL)) >= 0) {
    llmtopi_reader *r = t->count < LLMTOPI_READERS ? (llmtopi_reader *)calloc(1, sizeof *r) : NULL;
    llmtopi_flags(fd);
    if (r == NULL) {
      static const char full[] = "{\"t\":\"bye\",\"why\":\"too many readers\"}\n";
      ssize_t n = send(fd, full, sizeof full - 1, LLMTOPI_SEND);
      (void)n; /* it is rejected in any case */
      close(fd);
      continue;
    }
    r->fd = fd;
    r->id = ++t->connections;
    r->since = now;
    t->readers[t->count++] = r;
    if (t->token == NULL) llmtopi_greet(t, r, now);
    else llmtopi_str(&r->out, "{\"t\":\"auth\"}\n");
  }
  t->deaf = errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS;
}

static void llmtopi_leave(llmtop_socket *t, int i) {
  close(t->readers[i]->fd);
  free(t->readers[i]->out.p);
  free(t->readers[i]->in.p);
  free(t->readers[i]);
  t->readers[i] = t->readers[--t->count];
}

/* ---- control messages -------------------------------------------------------------------------------------------- */

typedef struct {
  const char *p, *end;
} llmtopi_scan;

static void llmtopi_space(llmtopi_scan *s) {
  while (s->p < s->end && (*s->p == ' ' || *s->p == '\t' || *s->p == '\r' || *s->p == '\n')) s->p++;
}

static int llmtopi_take_char(llmtopi_scan *s, char c) {
  llmtopi_space(s);
  if (s->p == s->end || *s->p != c) return 0;
  s->p++;
  return 1;
}

static int llmtopi_hex(const char *p, uint32_t *v) {
  int i;
  *v = 0;
  for (i = 0; i < 4; i++) {
    char c = p[i];
    int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
    if (digit < 0) return 0;
    *v = *v << 4 | (uint32_t)digit;
  }
  return 1;
}

static int llmtopi_skip_string(llmtopi_scan *s) {
  uint32_t code;
  if (!llmtopi_take_char(s, '"')) return 0;
  for (; s->p < s->end && *s->p != '"'; s->p++) {
    if ((unsigned char)*s->p < 0x20) return 0;
    if (*s->p != '\\') continue;
    if (++s->p == s->end || strchr("\"\\/bfnrtu", *s->p) == NULL || *s->p == '\0') return 0;
    if (*s->p == 'u' && (s->end - s->p < 5 || !llmtopi_hex(s->p + 1, &code))) return 0;
  }
  return s->p++ < s->end;
}

static int llmtopi_skip_digits(llmtopi_scan *s) {
  const char *begin = s->p;
  while (s->p < s->end && *s->p >= '0' && *s->p <= '9') s->p++;
  return s->p > begin;
}

static int llmtopi_skip_number(llmtopi_scan *s) {
  if (s->p < s->end && *s->p == '-') s->p++;
  if (s->p < s->end && *s->p == '0') s->p++;
  else if (!llmtopi_skip_digits(s)) return 0;
  if (s->p < s->end && *s->p == '.') {
    s->p++;
    if (!llmtopi_skip_digits(s)) return 0;
  }
  if (s->p == s->end || (*s->p != 'e' && *s->p != 'E')) return 1;
  s->p++;
  if (s->p < s->end && (*s->p == '+' || *s->p == '-')) s->p++;
  return llmtopi_skip_digits(s);
}

/* Skips a JSON value. Returns 0 if it is malformed, or nested more deeply than 16 levels. */
static int llmtopi_skip_value(llmtopi_scan *s, int depth) {
  static const char *const words[] = {"true", "false", "null"};
  char close;
  size_t i;
  llmtopi_space(s);
  if (s->p == s->end || depth > 16) return 0;
  if (*s->p == '"') return llmtopi_skip_string(s);
  for (i = 0; i < 3; i++) {
    size_t n = strlen(words[i]);
    if ((size_t)(s->end - s->p) < n || memcmp(s->p, words[i], n) != 0) continue;
    s->p += n;
    return 1;
  }
  if (*s->p != '{' && *s->p != '[') return llmtopi_skip_number(s);
  close = *s->p++ == '{' ? '}' : ']';
  if (llmtopi_take_char(s, close)) return 1;
  do {
    if (close == '}' && !(llmtopi_skip_string(s) && llmtopi_take_char(s, ':'))) return 0;
    if (!llmtopi_skip_value(s, depth + 1)) return 0;
  } while (llmtopi_take_char(s, ','));
  return llmtopi_take_char(s, close);
}

/* The value of a member of an object that is well-formed; empty if it has none. The last one counts. */
static llmtopi_scan llmtopi_get(llmtopi_scan object, const char *name) {
  llmtopi_scan found = {NULL, NULL};
  llmtopi_take_char(&object, '{');
  if (llmtopi_take_char(&object, '}')) return found;
  do {
    const char *key, *value;
    size_t n;
    llmtopi_space(&object);
    key = object.p + 1;
    llmtopi_skip_string(&object);
    n = (size_t)(object.p - 1 - key);
    llmtopi_take_char(&object, ':');
    llmtopi_space(&object);
    value = object.p;
    llmtopi_skip_value(&object, 0);
    if (n == strlen(name) && memcmp(key, name, n) == 0) {
      found.p = value;
      found.end = object.p;
    }
  } while (llmtopi_take_char(&object, ','));
  return found;
}

/* Appends the character of the escape \u at p, and returns how many bytes follow the u; 0 if it is malformed. Halves of
 * a pair without the other become U+FFFD. */
static int llmtopi_unescape(llmtopi_text *b, const char *p, const char *end) {
  uint32_t v, low;
  char out[4];
  int used = 4, n;
  if (end - p < 4 || !llmtopi_hex(p, &v)) return 0;
  if (v >= 0xD800 && v < 0xDC00 && end - p >= 10 && p[4] == '\\' && p[5] == 'u' && llmtopi_hex(p + 6, &low) && low >= 0xDC00 && low < 0xE000) {
    v = 0x10000 + ((v - 0xD800) << 10) + (low - 0xDC00);
    used = 10;
  } else if (v >= 0xD800 && v < 0xE000) {
    v = 0xFFFD;
  }
  if (v == 0) v = 0xFFFD; /* it would end the text */
  n = v < 0x80 ? 1 : v < 0x800 ? 2 : v < 0x10000 ? 3 : 4;
  out[0] = (char)(n == 1 ? v : n == 2 ? 0xC0 | v >> 6 : n == 3 ? 0xE0 | v >> 12 : 0xF0 | v >> 18);
  if (n > 1) out[n - 1] = (char)(0x80 | (v & 0x3F));
  if (n > 2) out[n - 2] = (char)(0x80 | (v >> 6 & 0x3F));
  if (n > 3) out[1] = (char)(0x80 | (v >> 12 & 0x3F));
  llmtopi_add(b, out, (size_t)n);
  return used;
}

/* Stores the text of a string with a 0 at its end. Returns 0 if the value is no string, or malformed. */
static int llmtopi_get_text(llmtopi_scan v, llmtopi_text *b) {
  static const char from[] = "bfnrt", to[] = "\b\f\n\r\t";
  const char *p = v.p;
  if (p == NULL || *p != '"') return 0;
  for (p++; p < v.end - 1; p++) {
    const char *escape;
    int used = 0;
    if (*p != '\\') {
      llmtopi_add(b, p, 1);
      continue;
    }
    escape = strchr(from, *++p);
    if (*p == 'u') used = llmtopi_unescape(b, p + 1, v.end - 1);
    else llmtopi_add(b, escape == NULL ? p : to + (escape - from), 1);
    if (*p == 'u' && used == 0) return 0;
    p += used;
  }
  llmtopi_add(b, "", 1);
  return !b->failed;
}

/* The number of a value: without the locale, whose decimal separator strtod would want. */
static int llmtopi_get_real(llmtopi_scan v, double *out) {
  double sum = 0, sign = 1;
  int scale = 0, exponent = 0, power = 1, point = 0;
  const char *p = v.p;
  if (p == NULL || (*p != '-' && (*p < '0' || *p > '9'))) return 0;
  if (*p == '-') sign = -1, p++;
  for (; p < v.end && (*p == '.' || (*p >= '0' && *p <= '9')); p++) {
    if (*p == '.') point = 1;
    else sum = sum * 10 + (*p - '0'), scale -= point;
  }
  if (p < v.end && (*p == 'e' || *p == 'E')) {
    p++;
    if (p < v.end && (*p == '-' || *p == '+')) power = *p++ == '-' ? -1 : 1;
    for (; p < v.end && *p >= '0' && *p <= '9'; p++)
      if (exponent < 10000) exponent = exponent * 10 + (*p - '0');
  }
  for (scale += power * exponent; scale > 0 && isfinite(sum); scale--) sum *= 10;
  for (; scale < 0 && sum > 0; scale++) sum /= 10;
  if (p != v.end || !isfinite(sum)) return 0;
  *out = sign * sum;
  return 1;
}

/* A whole number from 0 below 2^63. */
static int llmtopi_get_int(llmtopi_scan v, int64_t *out) {
  double real;
  const char *p = v.p;
  int64_t n = 0;
  while (p != NULL && p < v.end && *p >= '0' && *p <= '9' && n <= (INT64_MAX - (*p - '0')) / 10) n = n * 10 + (*p++ - '0');
  if (p != NULL && p == v.end && p > v.p) {
    *out = n;
    return 1;
  }
  if (!llmtopi_get_real(v, &real) || real < 0 || real >= 9.2e18) return 0;
  *out = (int64_t)real;
  return 1;
}

static int llmtopi_is(llmtopi_scan v, const char *word) {
  return v.p != NULL && (size_t)(v.end - v.p) == strlen(word) && memcmp(v.p, word, strlen(word)) == 0;
}

/* Compares in a time that depends only on the length of the given token. */
static int llmtopi_same_token(const char *given, const char *token) {
  size_t n = strlen(given), m = strlen(token), i;
  volatile unsigned differ = n != m;
  for (i = 0; i < n; i++) differ = differ | (unsigned char)(given[i] ^ (m > 0 ? token[i % m] : 0));
  return differ == 0;
}

static void llmtopi_free_message(llmtopi_message *m) {
  if (m != NULL) free(m->text.p);
  free(m);
}

/* A reply; the caller holds the lock, or m is its own. Takes over m. */
static void llmtopi_answer(llmtopi_message *m, const char *why, uint64_t request) {
  m->text.n = 0;
  llmtopi_open_line(&m->text, "reply", NULL);
  llmtopi_member(&m->text, "c", (int64_t)m->call);
  llmtopi_str(&m->text, why == NULL ? ",\"ok\":true" : ",\"ok\":false");
  llmtopi_string(&m->text, "why", why);
  if (request != 0) llmtopi_member(&m->text, "r", (int64_t)request);
  llmtopi_add(&m->text, "}\n", 2);
}

/* Hands a control message over to the thread of the handlers, or refuses it. Returns why the connection must end. */
static const char *llmtopi_ask(llmtop_socket *t, llmtopi_reader *r, int control, int64_t call) {
  llmtopi_message *m;
  char why[64] = "";
  if (!t->trusted) snprintf(why, sizeof why, "no control over TCP without a token");
  else if (!llmtopi_offered(t, control)) snprintf(why, sizeof why, "this engine does not offer %s", llmtopi_controls[control]);
  m = (llmtopi_message *)calloc(1, sizeof *m);
  if (m == NULL) return "out of memory";
  m->reader = r->id;
  m->call = (uint64_t)call;
  m->control = control;
  llmtopi_add(&m->text, r->in.p, r->in.n);
  pthread_mutex_lock(&t->lock);
  if (why[0] == '\0' && t->asked_count == LLMTOPI_ASKED) snprintf(why, sizeof why, "the queue of control messages is full");
  if (why[0] == '\0') {
    *t->asked_last = m;
    t->asked_last = &m->next;
    t->asked_count++;
    pthread_cond_signal(&t->asked);
    m = NULL;
  }
  pthread_mutex_unlock(&t->lock);
  if (m == NULL) return NULL;
  llmtopi_answer(m, why, 0);
  llmtopi_add(&r->out, m->text.p, m->text.n);
  llmtopi_free_message(m);
  return NULL;
}

/* Reads a line of an open connection. Returns why the connection must end, NULL if it goes on. */
static const char *llmtopi_read_line(llmtop_socket *t, llmtopi_reader *r, llmtopi_scan line, const char *kind) {
  int64_t call, n;
  int control = 0;
  if (strcmp(kind, "auth") == 0) return NULL; /* sent to an engine that did not ask for it */
  while (control < 6 && strcmp(kind, llmtopi_controls[control]) != 0) control++;
  if (control == 6) return "unknown message";
  if (!llmtopi_get_int(llmtopi_get(line, "c"), &call)) return "malformed line";
  if (control == 1 && !llmtopi_get_int(llmtopi_get(line, "r"), &n)) return "malformed line";
  if (control == 3 && (llmtopi_get(line, "on").p == NULL || *llmtopi_get(line, "on").p != '[')) return "malformed line";
  if (control == 4 && !llmtopi_get_int(llmtopi_get(line, "every"), &n)) return "malformed line";
  return llmtopi_ask(t, r, control, call);
}

/* Obeys the line in r->in. */
static void llmtopi_hear(llmtop_socket *t, llmtopi_reader *r, int64_t now) {
  llmtopi_scan line, rest;
  llmtopi_text kind = {NULL, 0, 0, 0}, token = {NULL, 0, 0, 0};
  const char *why = r->open ? "malformed line" : "wrong token";
  line.p = r->in.p;
  line.end = r->in.p + r->in.n;
  rest = line;
  llmtopi_space(&rest);
  if (rest.p == rest.end) return;
  if (*rest.p == '{' && llmtopi_skip_value(&rest, 0)) {
    llmtopi_space(&rest);
    if (rest.p == rest.end && llmtopi_get_text(llmtopi_get(line, "t"), &kind)) {
      if (r->open) {
        why = llmtopi_read_line(t, r, line, kind.p);
      } else if (strcmp(kind.p, "auth") == 0 && llmtopi_get_text(llmtopi_get(line, "token"), &token) && llmtopi_same_token(token.p, t->token)) {
        why = NULL;
        llmtopi_greet(t, r, now);
      }
    }
  }
  free(kind.p);
  free(token.p);
  if (why != NULL) llmtopi_dismiss(r, why, now);
}

/* Sends the replies of the handlers. */
static void llmtopi_reply(llmtop_socket *t) {
  llmtopi_message *m, *next;
  int i;
  if (!t->obeying) return;
  pthread_mutex_lock(&t->lock);
  m = t->replies;
  t->replies = NULL;
  pthread_mutex_unlock(&t->lock);
  for (; m != NULL; m = next) {
    next = m->next;
    for (i = 0; i < t->count; i++)
      if (t->readers[i]->id == m->reader && !t->readers[i]->leaving) llmtopi_add(&t->readers[i]->out, m->text.p, m->text.n);
    llmtopi_free_message(m);
  }
}

static int llmtopi_flag(llmtopi_scan line, const char *name) { return llmtopi_is(llmtopi_get(line, name), "true"); }

/* Calls the handler of generate. */
static int llmtopi_generate(llmtop_socket *t, llmtopi_scan line, uint64_t *request, char *why, size_t size) {
  llmtop_generation g;
  llmtopi_text texts[3] = {{NULL, 0, 0, 0}, {NULL, 0, 0, 0}, {NULL, 0, 0, 0}}, ids = {NULL, 0, 0, 0};
  llmtopi_scan list = llmtopi_get(line, "ids");
  int bad;
  memset(&g, 0, sizeof g);
  g.max_tokens = g.top_k = g.seed = g.top = -1;
  g.temperature = g.top_p = g.min_p = g.repeat_penalty = -1;
  if (llmtopi_get_text(llmtopi_get(line, "prompt"), &texts[0])) g.prompt = texts[0].p;
  if (llmtopi_get_text(llmtopi_get(line, "group"), &texts[1])) g.group = texts[1].p;
  if (llmtopi_get_text(llmtopi_get(line, "label"), &texts[2])) g.label = texts[2].p;
  if (list.p != NULL && *list.p == '[') {
    list.p++;
    do {
      llmtopi_scan one;
      int64_t id;
      int32_t id32;
      llmtopi_space(&list);
      one.p = list.p;
      if (!llmtopi_skip_value(&list, 0)) break;
      one.end = list.p;
      if (!llmtopi_get_int(one, &id) || id > INT32_MAX) continue;
      id32 = (int32_t)id;
      llmtopi_add(&ids, &id32, sizeof id32);
    } while (llmtopi_take_char(&list, ','));
    g.ids = (const int32_t *)(const void *)ids.p;
    g.id_count = ids.n / sizeof *g.ids;
  }
  llmtopi_get_int(llmtopi_get(line, "max"), &g.max_tokens);
  llmtopi_get_int(llmtopi_get(line, "top_k"), &g.top_k);
  llmtopi_get_int(llmtopi_get(line, "seed"), &g.seed);
  llmtopi_get_int(llmtopi_get(line, "top"), &g.top);
  llmtopi_get_real(llmtopi_get(line, "temperature"), &g.temperature);
  llmtopi_get_real(llmtopi_get(line, "top_p"), &g.top_p);
  llmtopi_get_real(llmtopi_get(line, "min_p"), &g.min_p);
  llmtopi_get_real(llmtopi_get(line, "repeat_penalty"), &g.repeat_penalty);
  g.ignore_eos = llmtopi_flag(line, "ignore_eos");
  g.special = llmtopi_flag(line, "special");
  g.probe = llmtopi_flag(line, "probe");
  g.picks = llmtopi_flag(line, "picks");
  bad = t->controls.generate(t, t->controls.data, &g, request, why, size);
  free(texts[0].p);
  free(texts[1].p);
  free(texts[2].p);
  free(ids.p);
  return bad;
}

/* Calls the handler of a control message. Returns 0 if it has obeyed. */
static int llmtopi_obey_one(llmtop_socket *t, const llmtopi_message *m, uint64_t *request, char *why, size_t size) {
  const llmtop_controls *c = &t->controls;
  llmtopi_scan line, on;
  int64_t n = 0;
  line.p = m->text.p;
  line.end = m->text.p + m->text.n;
  switch (m->control) {
  case 0: return llmtopi_generate(t, line, request, why, size);
  case 1: llmtopi_get_int(llmtopi_get(line, "r"), &n); return c->cancel(t, c->data, (uint64_t)n, why, size);
  case 3: {
    int found[3] = {0, 0, 0}, i;
    static const char *const words[] = {"\"stages\"", "\"experts\"", "\"picks\""};
    on = llmtopi_get(line, "on");
    on.p++;
    do {
      llmtopi_scan one;
      llmtopi_space(&on);
      one.p = on.p;
      if (!llmtopi_skip_value(&on, 0)) break;
      one.end = on.p;
      for (i = 0; i < 3; i++) found[i] |= llmtopi_is(one, words[i]);
    } while (llmtopi_take_char(&on, ','));
    return c->hooks(t, c->data, found[0], found[1], found[2], why, size);
  }
  case 4: llmtopi_get_int(llmtopi_get(line, "every"), &n); return c->sample(t, c->data, n < 1 ? 1 : n, why, size);
  default: return c->pause(t, c->data, m->control == 2, why, size);
  }
}

/* The thread of the handlers. */
static void *llmtopi_obey(void *arg) {
  llmtop_socket *t = (llmtop_socket *)arg;
  pthread_mutex_lock(&t->lock);
  for (;;) {
    llmtopi_message *m, **last;
    uint64_t request = 0;
    char why[512] = "";
    int bad;
    while (t->asked_first == NULL && !t->stop) pthread_cond_wait(&t->asked, &t->lock);
    if (t->stop) break;
    m = t->asked_first;
    t->asked_first = m->next;
    if (t->asked_first == NULL) t->asked_last = &t->asked_first;
    t->asked_count--;
    m->next = NULL;
    pthread_mutex_unlock(&t->lock);
    bad = llmtopi_obey_one(t, m, &request, why, sizeof why);
    llmtopi_answer(m, bad ? (why[0] != '\0' ? why : "refused") : NULL, bad ? 0 : request);
    pthread_mutex_lock(&t->lock);
    for (last = &t->replies; *last != NULL; last = &(*last)->next) {}
    *last = m;
  }
  pthread_mutex_unlock(&t->lock);
  return NULL;
}

/* Reads lines from a reader. Returns 0 if it has disconnected. */
static int llmtopi_listen_to(llmtop_socket *t, llmtopi_reader *r, int64_t now) {
  char bytes[4096];
  int i;
  for (i = 0; i < 16; i++) {
    ssize_t n = recv(r->fd, bytes, sizeof bytes, 0), at = 0;
    if (n == 0) return 0;
    if (n < 0) return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
    while (at < n && !r->leaving) {
      const char *end = (const char *)memchr(bytes + at, '\n', (size_t)(n - at));
      size_t part = end == NULL ? (size_t)(n - at) : (size_t)(end - bytes - at);
      if (r->in.n + part > (size_t)(r->open ? LLMTOPI_CONTROL : LLMTOPI_AUTH)) {
        llmtopi_dismiss(r, "a line is too long", now);
        break;
      }
      llmtopi_add(&r->in, bytes + at, part);
      at += (ssize_t)part + 1;
      if (r->in.failed) return 0;
      if (end == NULL) break;
      llmtopi_hear(t, r, now);
      r->in.n = 0;
    }
  }
  return 1;
}

static void llmtopi_serve_all(llmtop_socket *t, int beat) {
  int64_t now = llmtop_now(t);
  int i;
  for (i = t->count - 1; i >= 0; i--) {
    llmtopi_reader *r = t->readers[i];
    int alive = llmtopi_listen_to(t, r, now) && llmtopi_serve(t, r, now);
    if (alive && beat && r->out.n == 0 && r->open && !r->leaving) {
      llmtopi_clock_line(t, r);
      alive = llmtopi_send(r);
    }
    if (!alive) llmtopi_leave(t, i);
  }
}

/* ---- the state for late joiners ---------------------------------------------------------------------------------- */

static llmtopi_request **llmtopi_bucket(llmtop_socket *t, uint64_t id) {
  return &t->buckets[(id * 0x9E3779B97F4A7C15u) >> 54];
}

static llmtopi_request *llmtopi_find(llmtop_socket *t, uint64_t id) {
  llmtopi_request *q = *llmtopi_bucket(t, id);
  while (q != NULL && q->id != id) q = q->chain;
  return q;
}

/* Keeps a row for the CSV. */
static void llmtopi_row_add(llmtop_socket *t, const char *name, int64_t took) {
  llmtopi_row *row;
  if (t->row_count == t->row_room && t->row_room < LLMTOPI_ROWS) {
    size_t room = t->row_room == 0 ? 256 : t->row_room * 2;
    llmtopi_row *bigger = (llmtopi_row *)realloc(t->rows, room * sizeof *bigger);
    if (bigger != NULL) {
      t->rows = bigger;
      t->row_room = room;
    }
  }
  if (t->row_count == t->row_room) {
    t->rows_missing++;
    return;
  }
  row = &t->rows[t->row_count++];
  row->name = name;
  row->took = took;
}

/* Passes stages to f, summed over layers, in the order in which they first ended. */
static void llmtopi_sum_up(llmtop_socket *t, const llmtopi_stages *s, void (*f)(llmtop_socket *, const char *, int64_t)) {
  size_t i, j;
  for (i = 0; i < s->n; i++) {
    int64_t sum = 0;
    for (j = 0; j < s->n; j++)
      if (strcmp(s->p[j].name, s->p[i].name) == 0) {
        if (j < i) break;
        sum += s->p[j].took;
      }
    if (j == s->n) f(t, s->p[i].name, sum);
  }
}

static void llmtopi_forget(llmtop_socket *t, llmtopi_request *q) {
  llmtopi_request **link = llmtopi_bucket(t, q->id);
  if (t->csv) llmtopi_sum_up(t, &q->stages, llmtopi_row_add);
  while (*link != q) link = &(*link)->chain;
  *link = q->chain;
  if (q->older != NULL) q->older->newer = q->newer;
  else t->oldest = q->newer;
  if (q->newer != NULL) q->newer->older = q->older;
  else t->newest = q->older;
  t->live--;
  free(q->stages.p);
  free(q->what.p);
  free(q);
}

static llmtopi_request *llmtopi_live(llmtop_socket *t, uint64_t id) {
  llmtopi_request *q = llmtopi_find(t, id), **bucket = llmtopi_bucket(t, id);
  if (q != NULL) return q;
  if (t->live == LLMTOPI_REQUESTS) llmtopi_forget(t, t->oldest);
  q = (llmtopi_request *)calloc(1, sizeof *q);
  if (q == NULL) return NULL;
  q->id = id;
  q->chain = *bucket;
  *bucket = q;
  q->older = t->newest;
  if (q->older != NULL) q->older->newer = q;
  else t->oldest = q;
  t->newest = q;
  t->live++;
  return q;
}

/* Adds a stage to those of its name and layer. Returns 0 if there is no space. */
static int llmtopi_sum_stage(llmtopi_stages *s, const char *name, const llmtopi_cell *c) {
  llmtopi_stage *p;
  size_t i;
  for (i = 0; i < s->n && (s->p[i].layer != c->id || strcmp(s->p[i].name, name) != 0); i++) {}
  if (i == s->n) {
    if (s->n == s->room) {
      size_t room = s->room == 0 ? 8 : s->room * 2;
      p = s->room == LLMTOPI_STAGES ? NULL : (llmtopi_stage *)realloc(s->p, room * sizeof *p);
      if (p == NULL) return 0;
      s->p = p;
      s->room = room;
    }
    memset(&s->p[i], 0, sizeof s->p[i]);
    s->n++;
  }
  p = &s->p[i];
  p->name = name;
  p->layer = c->id;
  p->at = c->at;
  p->took += c->x[0];
  p->tokens += c->x[1];
  return 1;
}

static void llmtopi_note_stage(llmtop_socket *t, const llmtopi_cell *c) {
  const char *name;
  llmtopi_request *q = NULL;
  memcpy(&name, &c->x[2], sizeof name);
  if (c->request != 0) q = t->requests_reported ? llmtopi_find(t, c->request) : llmtopi_live(t, c->request);
  if (c->request == 0 || q != NULL) {
    if (!llmtopi_sum_stage(q == NULL ? &t->own_stages : &q->stages, name, c)) t->rows_missing++;
  } else if (t->csv) {
    llmtopi_row_add(t, name, c->x[0]); /* the request has ended already */
  }
}

static void llmtopi_note_token(llmtop_socket *t, const llmtopi_cell *c) {
  llmtopi_request *q = t->requests_reported ? llmtopi_find(t, c->request) : llmtopi_live(t, c->request);
  int32_t count;
  if (q == NULL) return;
  memcpy(&count, &c->x[2], 4);
  if (q->tokens == 0) {
    q->first_at = c->at;
    q->first_index = c->index;
  }
  q->last_at = c->at;
  q->tokens += count;
  if (c->index >= 0 && q->first_index >= 0) q->tokens = (int64_t)c->index - q->first_index + count; /* some may have been dropped */
}

static void llmtopi_write_stage(llmtopi_text *b, uint64_t request, const llmtopi_stage *s) {
  llmtopi_open_line(b, "stage", &s->at);
  if (request != 0) llmtopi_member(b, "r", (int64_t)request);
  llmtopi_member(b, "dur", s->took);
  llmtopi_string(b, "stage", s->name);
  if (s->layer >= 0) llmtopi_member(b, "l", s->layer);
  if (s->tokens > 0) llmtopi_member(b, "n", s->tokens);
}

static void llmtopi_write_request(llmtopi_text *b, const char *state, uint64_t request, int64_t at) {
  llmtopi_open_line(b, "req", &at);
  llmtopi_member(b, "r", (int64_t)request);
  llmtopi_string(b, "state", state);
}

static void llmtopi_sync_tokens(llmtopi_text *b, const llmtopi_request *q) {
  int rest;
  for (rest = 0; rest < 2; rest++) {
    if (q->tokens <= rest) continue;
    llmtopi_open_line(b, "tok", rest ? &q->last_at : &q->first_at);
    llmtopi_member(b, "r", (int64_t)q->id);
    if (q->first_index >= 0) llmtopi_member(b, "i", q->first_index + rest);
    if (q->tokens > 2 && rest) llmtopi_member(b, "n", q->tokens - 1);
    llmtopi_add(b, "}\n", 2);
  }
}

static void llmtopi_write_kv(llmtopi_text *b, const llmtopi_cell *c) {
  llmtopi_open_line(b, "kv", &c->at);
  llmtopi_member(b, "used", c->x[0]);
  llmtopi_member(b, "total", c->x[1]);
  if (c->id > 0) llmtopi_member(b, "page", c->id);
  if (c->x[2] >= 0) llmtopi_member(b, "pinned", c->x[2]);
}

static void llmtopi_sync(llmtop_socket *t, llmtopi_reader *r) {
  llmtopi_text *b = &r->out;
  llmtopi_request *q;
  size_t i;
  llmtopi_str(b, "{\"t\":\"sync\"}\n");
  for (i = 0; i < t->own_stages.n; i++) {
    llmtopi_write_stage(b, 0, &t->own_stages.p[i]);
    llmtopi_add(b, "}\n", 2);
  }
  if (t->experts_line.n > 0) llmtopi_add(b, t->experts_line.p, t->experts_line.n);
  if (t->experts_line.n > 0) llmtopi_add(b, "}\n", 2);
  if (t->kv_reported) {
    llmtopi_write_kv(b, &t->kv);
    llmtopi_add(b, "}\n", 2);
  }
  if (t->counters_line.n > 0) llmtopi_add(b, t->counters_line.p, t->counters_line.n);
  if (t->counters_line.n > 0) llmtopi_add(b, "}\n", 2);
  for (i = 0; i < 3; i++) {
    if (t->written_lines[i].n == 0) continue;
    llmtopi_add(b, t->written_lines[i].p, t->written_lines[i].n);
    llmtopi_add(b, "}\n", 2);
  }
  for (q = t->oldest; q != NULL; q = q->newer) {
    if (q->queued) {
      llmtopi_write_request(b, "queued", q->id, q->queued_at);
      llmtopi_add(b, q->what.p, q->what.n);
      llmtopi_add(b, "}\n", 2);
    }
    if (q->dispatched) {
      llmtopi_write_request(b, "dispatched", q->id, q->dispatched_at);
      llmtopi_add(b, "}\n", 2);
    }
    for (i = 0; i < q->stages.n; i++) {
      llmtopi_write_stage(b, q->id, &q->stages.p[i]);
      llmtopi_add(b, "}\n", 2);
    }
    llmtopi_sync_tokens(b, q);
  }
  llmtopi_str(b, "{\"t\":\"synced\"}\n");
}

/* ---- from the ring to lines -------------------------------------------------------------------------------------- */

/* Columns of a line of tokens. Each returns whether a token has a value, and stores it. */
typedef int (*llmtopi_column)(const llmtopi_cell *, int64_t *);

static int llmtopi_col_at(const llmtopi_cell *c, int64_t *v) { return *v = c->at, 1; }
static int llmtopi_col_request(const llmtopi_cell *c, int64_t *v) { return *v = (int64_t)c->request, 1; }
static int llmtopi_col_index(const llmtopi_cell *c, int64_t *v) { return *v = c->index, c->index >= 0; }
static int llmtopi_col_id(const llmtopi_cell *c, int64_t *v) { return *v = c->id, c->id >= 0; }
static int llmtopi_col_step(const llmtopi_cell *c, int64_t *v) { return *v = c->x[0], c->x[0] > 0; }
static int llmtopi_col_sampling(const llmtopi_cell *c, int64_t *v) { return *v = c->x[1], c->x[1] >= 0; }
static int llmtopi_col_count(const llmtopi_cell *c, int64_t *v) {
  int32_t n;
  memcpy(&n, &c->x[2], 4);
  return *v = n, n != 1;
}

/* Writes a column: a single value if all are the same, otherwise an array, in which later entries of some columns are
 * differences. */
static void llmtopi_numbers(llmtop_socket *t, const char *name, llmtopi_column get, int differences) {
  llmtopi_text *b = &t->line;
  int64_t first = 0, v = 0, last = 0;
  int has_first = get(&t->batch[0], &first), same = !differences || t->batched == 1, any = has_first;
  size_t i;
  for (i = 1; i < t->batched; i++) {
    int one = get(&t->batch[i], &v);
    any |= one;
    if (one != has_first || (one && v != first)) same = 0;
  }
  if (!any) return;
  llmtopi_key(b, name);
  if (same) {
    llmtopi_int(b, first);
    return;
  }
  for (i = 0; i < t->batched; i++) {
    llmtopi_add(b, i == 0 ? "[" : ",", 1);
    if (get(&t->batch[i], &v)) {
      llmtopi_int(b, v - last);
      if (differences) last = v;
    } else {
      llmtopi_add(b, "null", 4);
    }
  }
  llmtopi_add(b, "]", 1);
}

static void llmtopi_logprob(llmtop_socket *t, size_t i) {
  float l;
  memcpy(&l, (const char *)&t->batch[i].x[2] + 4, 4);
  llmtopi_real(&t->line, l > 0 ? (double)NAN : (double)l);
}

static void llmtopi_token_text(llmtop_socket *t, size_t i) {
  size_t picks = t->batch[i].small * sizeof(uint16_t);
  if (t->batch[i].length == picks) llmtopi_str(&t->line, "null");
  else llmtopi_piece(&t->line, t->batch_bytes.p + t->batch_text[i] + picks, t->batch[i].length - picks);
}

static void llmtopi_token_picks(llmtop_socket *t, size_t i) {
  size_t n;
  if (t->batch[i].small == 0) llmtopi_str(&t->line, "null");
  for (n = 0; n < t->batch[i].small; n++) {
    uint16_t e;
    memcpy(&e, t->batch_bytes.p + t->batch_text[i] + n * sizeof e, sizeof e);
    llmtopi_add(&t->line, n == 0 ? "[" : ",", 1);
    llmtopi_uint(&t->line, e);
  }
  if (n > 0) llmtopi_add(&t->line, "]", 1);
}

static void llmtopi_values(llmtop_socket *t, const char *name, void (*put)(llmtop_socket *, size_t)) {
  size_t i;
  llmtopi_key(&t->line, name);
  for (i = 0; i < t->batched; i++) {
    if (t->batched > 1) llmtopi_add(&t->line, i == 0 ? "[" : ",", 1);
    put(t, i);
  }
  if (t->batched > 1) llmtopi_add(&t->line, "]", 1);
}

/* Writes the collected tokens as one line. */
static void llmtopi_write_tokens(llmtop_socket *t) {
  int likely = 0, picked = 0, spelled = 0;
  size_t i;
  if (t->batched == 0) return;
  llmtopi_open_line(llmtopi_fresh(t), "tok", NULL);
  llmtopi_numbers(t, "a", llmtopi_col_at, 1);
  llmtopi_numbers(t, "r", llmtopi_col_request, 0);
  llmtopi_numbers(t, "i", llmtopi_col_index, 1);
  llmtopi_numbers(t, "d", llmtopi_col_id, 0);
  llmtopi_numbers(t, "n", llmtopi_col_count, 0);
  llmtopi_numbers(t, "s", llmtopi_col_step, 1);
  llmtopi_numbers(t, "w", llmtopi_col_sampling, 0);
  for (i = 0; i < t->batched; i++) {
    float l;
    memcpy(&l, (const char *)&t->batch[i].x[2] + 4, 4);
    likely |= l <= 0 && isfinite(l);
    picked |= t->batch[i].small > 0;
    spelled |= t->batch[i].length > t->batch[i].small * sizeof(uint16_t);
  }
  if (likely) llmtopi_values(t, "l", llmtopi_logprob);
  if (picked) llmtopi_values(t, "e", llmtopi_token_picks);
  if (spelled) llmtopi_values(t, "p", llmtopi_token_text);
  llmtopi_push(t, LLMTOP_KIND_TOKEN, t->batched);
  t->batched = 0;
  t->batch_bytes.n = 0;
}

static void llmtopi_queued_members(llmtop_socket *t, llmtopi_text *b, const llmtopi_cell *c) {
  static const char *const names[4] = {"group", "label", "name", "prompt"};
  uint32_t lengths[4];
  size_t at = sizeof lengths;
  int i;
  if (c->length < sizeof lengths) return;
  memcpy(lengths, t->payload.p, sizeof lengths);
  for (i = 0; i < 4; at += lengths[i++]) {
    if (lengths[i] == 0) continue;
    llmtopi_key(b, names[i]);
    llmtopi_quote(b, t->payload.p + at, lengths[i]);
  }
  if (c->x[0] > 0) llmtopi_member(b, "max", c->x[0]);
  if (c->x[1] > 0) llmtopi_member(b, "in", c->x[1]);
  if (c->flags & 1) llmtopi_str(b, ",\"cold\":true");
  if (c->flags & 2) llmtopi_str(b, ",\"probe\":true");
}

/* The payload of an end after why: the earlier request, the place, and the reason. */
static void llmtopi_write_reuse(llmtopi_text *b, const char *p, size_t n) {
  uint64_t with;
  int64_t at;
  memcpy(&with, p, 8);
  memcpy(&at, p + 8, 8);
  llmtopi_str(b, ",\"reuse\":{\"at\":");
  llmtopi_int(b, at < 0 ? 0 : at);
  if (with != 0) llmtopi_member(b, "with", (int64_t)with);
  if (n > 16) {
    llmtopi_key(b, "why");
    llmtopi_quote(b, p + 16, n - 16);
  }
  llmtopi_add(b, "}", 1);
}

static void llmtopi_on_request(llmtop_socket *t, const llmtopi_cell *c) {
  static const char *const states[] = {"", "dispatched", "finished", "cancelled", "failed"};
  llmtopi_request *q;
  t->requests_reported = 1;
  llmtopi_fresh(t);
  if (c->type == LLMTOPI_ENDED) {
    llmtopi_write_request(&t->line, states[c->id], c->request, c->at);
    if (c->small > 0) {
      llmtopi_key(&t->line, "why");
      llmtopi_quote(&t->line, t->payload.p, c->small);
    }
    if (c->flags) llmtopi_write_reuse(&t->line, t->payload.p + c->small, c->length - c->small);
    if (c->x[0] >= 0) llmtopi_member(&t->line, "in", c->x[0]);
    if (c->x[1] >= 0) llmtopi_member(&t->line, "cached", c->x[1]);
    if (c->index >= 0) llmtopi_member(&t->line, "pad", c->index);
    if (c->x[2] >= 0) llmtopi_member(&t->line, "out", c->x[2]);
    q = llmtopi_find(t, c->request);
    if (q != NULL) llmtopi_forget(t, q);
    return;
  }
  q = llmtopi_live(t, c->request);
  if (c->type == LLMTOPI_DISPATCHED) {
    llmtopi_write_request(&t->line, "dispatched", c->request, c->at);
    if (q != NULL) q->dispatched = 1;
    if (q != NULL) q->dispatched_at = c->at;
    return;
  }
  if (q != NULL && q->queued) { /* the id is reused */
    llmtopi_forget(t, q);
    q = llmtopi_live(t, c->request);
  }
  llmtopi_write_request(&t->line, "queued", c->request, c->at);
  {
    size_t members = t->line.n;
    llmtopi_queued_members(t, &t->line, c);
    if (q == NULL) return;
    q->queued = 1;
    q->queued_at = c->at;
    llmtopi_add(&q->what, t->line.p + members, t->line.n - members);
  }
}

static void llmtopi_on_step(llmtop_socket *t, const llmtopi_cell *c) {
  llmtopi_text *b = llmtopi_open_line(llmtopi_fresh(t), "step", &c->at);
  size_t split = c->flags ? 6 * sizeof(uint32_t) : 0, i;
  llmtopi_member(b, "dur", c->x[0]);
  if (c->request != 0) llmtopi_member(b, "s", (int64_t)c->request);
  if (c->id > 0) llmtopi_member(b, "n", c->id);
  if (c->index > 0) llmtopi_member(b, "m", c->index);
  for (i = 0; i < split / sizeof(uint32_t); i++) {
    uint32_t v;
    memcpy(&v, t->payload.p + i * sizeof v, sizeof v);
    llmtopi_str(b, i == 0 ? ",\"x\":[" : ",");
    llmtopi_uint(b, v);
  }
  if (split > 0) llmtopi_add(b, "]", 1);
  if (c->length <= split) return;
  for (i = split; i < c->length; i++)
    if ((unsigned char)t->payload.p[i] < 0x20) t->payload.p[i] = ' '; /* line breaks */
  llmtopi_key(b, "fpm");
  llmtopi_add(b, t->payload.p + split, c->length - split);
}

static void llmtopi_on_stage(llmtop_socket *t, const llmtopi_cell *c) {
  llmtopi_stage s;
  memcpy(&s.name, &c->x[2], sizeof s.name);
  s.layer = c->id;
  s.at = c->at;
  s.took = c->x[0];
  s.tokens = c->x[1];
  llmtopi_note_stage(t, c);
  llmtopi_write_stage(llmtopi_fresh(t), c->request, &s);
}

static void llmtopi_on_engine(llmtop_socket *t, const llmtopi_cell *c) {
  llmtopi_text *b = llmtopi_open_line(llmtopi_fresh(t), c->type == LLMTOPI_MODEL ? "model" : "engine", &c->at);
  llmtopi_text *kept = c->type == LLMTOPI_MODEL ? &t->model : &t->state;
  kept->n = 0;
  llmtopi_add(kept, t->payload.p, c->length);
  if (c->type == LLMTOPI_ENGINE) llmtopi_about(t, b);
  else if (c->x[0] >= 0) llmtopi_member(b, "dur", c->x[0]);
  llmtopi_add(b, t->payload.p, c->length);
}

static void llmtopi_on_kv(llmtop_socket *t, const llmtopi_cell *c) {
  llmtopi_write_kv(llmtopi_fresh(t), c);
  if (c->index >= 0) llmtopi_member(&t->line, "freed", c->index);
  if ((int64_t)c->request >= 0) llmtopi_member(&t->line, "held", (int64_t)c->request);
  t->kv = *c;
  t->kv_reported = 1;
}

static void llmtopi_on_written(llmtop_socket *t, const llmtopi_cell *c) {
  int n = c->type - LLMTOPI_HOST;
  llmtopi_open_line(llmtopi_fresh(t), llmtopi_written[n], &c->at);
  llmtopi_add(&t->line, t->payload.p, c->length);
  if (c->type == LLMTOPI_USAGE) return;
  t->written_lines[n].n = 0;
  llmtopi_add(&t->written_lines[n], t->line.p, t->line.n);
}

/* Notes what the engine emits, for its capabilities. */
static void llmtopi_note_cap(llmtop_socket *t, const llmtopi_cell *c) {
  static const unsigned caps[] = {LLMTOP_CAN_TOKENS, 0, LLMTOP_CAN_QUEUE, 0, LLMTOP_CAN_STAGES, LLMTOP_CAN_STEPS, LLMTOP_CAN_KV, 0, 0, 0,
                                  LLMTOP_CAN_HOST, LLMTOP_CAN_OPS, 0, 0};
  t->caps |= caps[c->type];
  if (c->type == LLMTOPI_TOKEN && c->small > 0) t->caps |= LLMTOP_CAN_PICKS;
}

/* Processes an event whose payload is in t->payload. */
static void llmtopi_on(llmtop_socket *t, const llmtopi_cell *c) {
  llmtopi_note_cap(t, c);
  if (c->type == LLMTOPI_TOKEN) {
    llmtopi_note_token(t, c);
    if (t->count == 0) return;
    t->batch[t->batched] = *c;
    t->batch_text[t->batched++] = t->batch_bytes.n;
    llmtopi_add(&t->batch_bytes, t->payload.p, c->length);
    if (t->batched == LLMTOPI_BATCH || t->batch_bytes.n > LLMTOPI_CHUNK) llmtopi_write_tokens(t);
    return;
  }
  llmtopi_write_tokens(t);
  switch (c->type) {
  case LLMTOPI_STAGE: llmtopi_on_stage(t, c); break;
  case LLMTOPI_STEP: llmtopi_on_step(t, c); break;
  case LLMTOPI_KV: llmtopi_on_kv(t, c); break;
  case LLMTOPI_ENGINE:
  case LLMTOPI_MODEL: llmtopi_on_engine(t, c); break;
  case LLMTOPI_HOST:
  case LLMTOPI_OPS:
  case LLMTOPI_DRAFT:
  case LLMTOPI_USAGE: llmtopi_on_written(t, c); break;
  case LLMTOPI_LOG:
    llmtopi_key(llmtopi_open_line(llmtopi_fresh(t), "log", &c->at), "m");
    llmtopi_quote(&t->line, t->payload.p, c->length);
    break;
  default: llmtopi_on_request(t, c);
  }
  llmtopi_push(t, (llmtop_kind)llmtopi_kinds[c->type], 1);
}

/* Reads complete events, at most as many as fit in the ring. Returns the number of cells. */
static uint64_t llmtopi_drain(llmtop_socket *t) {
  uint64_t begin = t->head, given = t->head;
  while (t->head - begin < t->cells) {
    llmtopi_cell *from = &t->ring[t->head & t->mask], c;
    size_t size = (size_t)t->cells * sizeof c, at, part;
    uint64_t cells, i;
    if (__atomic_load_n(&from->turn, __ATOMIC_ACQUIRE) != t->head + 1) break;
    c = *from;
    cells = 1 + (c.length + sizeof c - 1) / sizeof c;
    at = (size_t)((t->head + 1) & t->mask) * sizeof c;
    part = c.length < size - at ? c.length : size - at;
    t->payload.n = 0;
    llmtopi_add(&t->payload, (char *)t->ring + at, part);
    llmtopi_add(&t->payload, t->ring, c.length - part);
    for (i = 0; i < cells; i++) __atomic_store_n(&t->ring[(t->head + i) & t->mask].turn, 0, __ATOMIC_RELAXED); /* may contain payload */
    t->head += cells;
    if (t->payload.failed) __atomic_fetch_add(&t->dropped[llmtopi_kinds[c.type]], 1, __ATOMIC_RELAXED);
    else llmtopi_on(t, &c);
    t->payload.failed = 0;
    if (t->head - given >= 64) {
      __atomic_fetch_sub(&t->used, t->head - given, __ATOMIC_RELEASE);
      given = t->head;
    }
  }
  if (t->head != given) __atomic_fetch_sub(&t->used, t->head - given, __ATOMIC_RELEASE);
  return t->head - begin;
}

/* ---- tables ------------------------------------------------------------------------------------------------------ */

/* Writes the picks of one phase and their number of tokens, which is that of the layer with the most picks. */
static void llmtopi_phase(llmtop_socket *t, int phase, const char *picks, const char *tokens) {
  uint64_t most = 0;
  unsigned layer, i;
  llmtopi_key(&t->line, picks);
  for (layer = 0; layer < t->layers; layer++) {
    uint64_t *row = llmtopi_table(t, phase, layer), sum = 0;
    for (i = 0; i < t->experts; i++) {
      uint64_t n = __atomic_load_n(&row[i], __ATOMIC_RELAXED);
      llmtopi_add(&t->line, layer + i == 0 ? "[" : ",", 1);
      llmtopi_uint(&t->line, n);
      sum += n;
    }
    if (sum > most) most = sum;
  }
  llmtopi_add(&t->line, "]", 1);
  if (t->used_experts > 0) llmtopi_member(&t->line, tokens, (int64_t)(most / t->used_experts));
}

static void llmtopi_keep(llmtop_socket *t, llmtopi_text *kept, llmtop_kind kind) {
  kept->n = 0;
  llmtopi_add(kept, t->line.p, t->line.n);
  llmtopi_push(t, kind, 1);
}

/* Writes the table of picks if it has changed. */
static void llmtopi_experts(llmtop_socket *t, int64_t now) {
  size_t cells = (size_t)2 * t->layers * t->experts, i;
  uint64_t all = 0;
  if (t->picks == NULL) return;
  for (i = 0; i < cells; i++) all += __atomic_load_n(&t->picks[i], __ATOMIC_RELAXED);
  if (all == t->picked) return;
  t->picked = all;
  t->caps |= LLMTOP_CAN_EXPERTS;
  llmtopi_open_line(llmtopi_fresh(t), "experts", &now);
  llmtopi_member(&t->line, "layers", t->layers);
  llmtopi_member(&t->line, "experts", t->experts);
  if (t->used_experts > 0) llmtopi_member(&t->line, "used", t->used_experts);
  llmtopi_phase(t, 0, "p", "pt");
  llmtopi_phase(t, 1, "d", "dt");
  llmtopi_keep(t, &t->experts_line, LLMTOP_KIND_EXPERTS);
}

static void llmtopi_count(llmtop_socket *t, const char **mark, const char *name, double v) {
  if (!isfinite(v)) return;
  llmtopi_str(&t->line, *mark);
  *mark = ",";
  llmtopi_quote(&t->line, name, strlen(name));
  llmtopi_add(&t->line, ":", 1);
  llmtopi_number(&t->line, v);
}

/* Writes the counters if they have changed. */
static void llmtopi_counters(llmtop_socket *t, int64_t now) {
  static const char *const names[] = {"requests_queued", "requests_finished", "requests_cancelled", "requests_failed",
                                      "prompt_tokens", "cached_tokens", "generated_tokens", "tokenizer_tokens",
                                      "tokenizer_us", "cache_lookups", "cache_hits"};
  double v[LLMTOPI_COUNTERS];
  const char *mark = "{";
  size_t members;
  int i, own;
  llmtopi_open_line(llmtopi_fresh(t), "count", &now);
  members = t->line.n;
  llmtopi_key(&t->line, "c");
  pthread_mutex_lock(&t->lock);
  own = t->own;
  pthread_mutex_unlock(&t->lock);
  for (i = 0; i < LLMTOP_COUNTERS + own; i++) {
    int64_t bits = __atomic_load_n(&t->counters[i], __ATOMIC_RELAXED);
    if (__atomic_load_n(&t->real[i], __ATOMIC_RELAXED)) memcpy(&v[i], &bits, sizeof bits);
    else v[i] = (double)bits;
    if (!__atomic_load_n(&t->set[i], __ATOMIC_ACQUIRE)) continue;
    llmtopi_count(t, &mark, i < LLMTOP_COUNTERS ? names[i] : t->names[i - LLMTOP_COUNTERS],
                  i == LLMTOP_TOKENIZER_NS ? (double)(bits / 1000) : v[i]);
  }
  if (v[LLMTOP_TOKENIZER_TOKENS] > 0)
    llmtopi_count(t, &mark, "tokenizer_us_per_token", v[LLMTOP_TOKENIZER_NS] / 1e3 / v[LLMTOP_TOKENIZER_TOKENS]);
  if (v[LLMTOP_CACHE_LOOKUPS] > 0) llmtopi_count(t, &mark, "cache_hit_ratio", v[LLMTOP_CACHE_HITS] / v[LLMTOP_CACHE_LOOKUPS]);
  if (mark[0] == '{') return;
  llmtopi_add(&t->line, "}", 1);
    { /* the previous line differs at least in its time */
    const char *before = t->counters_line.n > 0 ? (const char *)memchr(t->counters_line.p + 2, '{', t->counters_line.n - 2) : NULL;
    size_t rest = t->line.n - members - 5; /* past ,"c": */
    if (before != NULL && (size_t)(t->counters_line.p + t->counters_line.n - before) == rest &&
        memcmp(before, t->line.p + members + 5, rest) == 0)
      return;
  }
  llmtopi_keep(t, &t->counters_line, LLMTOP_KIND_COUNTERS);
}

static void llmtopi_tables(llmtop_socket *t, int64_t now, int last) {
  if (t->caps != t->caps_sent) {
    t->caps_sent = t->caps;
    llmtopi_write_tokens(t);
    llmtopi_about(t, llmtopi_open_line(llmtopi_fresh(t), "engine", &now));
    llmtopi_add(&t->line, t->state.p, t->state.n);
    llmtopi_push(t, LLMTOP_KIND_ENGINE, 1);
  }
  if (now >= t->experts_due || last) {
    t->experts_due = now + LLMTOPI_SECOND / 10;
    llmtopi_write_tokens(t);
    llmtopi_experts(t, now);
  }
  if (now >= t->counters_due || last) {
    t->counters_due = now + LLMTOPI_SECOND / 4;
    llmtopi_write_tokens(t);
    llmtopi_counters(t, now);
  }
}

/* ---- samples of the machine -------------------------------------------------------------------------------------- */

/* Reads a file of /proc; empty if it cannot be read. */
static const char *llmtopi_slurp(llmtopi_text *b, const char *path) {
  FILE *f = fopen(path, "r");
  char bytes[4096];
  size_t n;
  b->n = 0;
  if (f != NULL) {
    while ((n = fread(bytes, 1, sizeof bytes, f)) > 0) llmtopi_add(b, bytes, n);
    fclose(f);
  }
  llmtopi_add(b, "", 1);
  return b->failed ? "" : b->p;
}

/* The number after a word, -1 without. */
static int64_t llmtopi_after(const char *text, const char *word) {
  const char *p = strstr(text, word);
  return p == NULL ? -1 : strtoll(p + strlen(word), NULL, 10);
}

/* Adds the lines cpu and cpuN. */
static void llmtopi_sum_cores(llmtopi_sums *s, const char *p) {
  for (; strncmp(p, "cpu", 3) == 0; p = strchr(p, '\n') == NULL ? "" : strchr(p, '\n') + 1) {
    int64_t *to = p[3] == ' ' ? s->all : s->core_count < 1024 ? s->cores[s->core_count++] : NULL, v[8] = {0};
    char *at = (char *)(size_t)strchr(p, ' ');
    int i;
    if (to == NULL || at == NULL) continue;
    for (i = 0; i < 8; i++) v[i] = strtoll(at, &at, 10);
    to[0] = v[0] + v[1] + v[2] + v[3] + v[4] + v[5] + v[6] + v[7];
    to[1] = v[3] + v[4];
    to[2] = v[7];
  }
}

static void llmtopi_sum_network(llmtopi_sums *s, const char *p) {
  int row;
  s->in = s->out = -1;
  for (row = 0; p != NULL && *p != '\0'; row++) {
    const char *colon = strchr(p, ':'), *end = strchr(p, '\n');
    if (row >= 2 && colon != NULL && (end == NULL || colon < end) && strstr(p, "lo:") != colon - 2) {
      char *at = (char *)(size_t)(colon + 1);
      int64_t v[9];
      int i;
      for (i = 0; i < 9; i++) v[i] = strtoll(at, &at, 10);
      s->in = (s->in < 0 ? 0 : s->in) + v[0];
      s->out = (s->out < 0 ? 0 : s->out) + v[8];
    }
    p = end == NULL ? NULL : end + 1;
  }
}

/* ns that the threads waited for a core; -1 for a process with many threads, which are not read. */
static int64_t llmtopi_waited(llmtopi_text *b, int64_t threads) {
  DIR *folder = threads > 256 ? NULL : opendir("/proc/self/task");
  struct dirent *d;
  int64_t sum = 0;
  if (folder == NULL) return -1;
  while ((d = readdir(folder)) != NULL) {
    char path[320];
    const char *p;
    if (d->d_name[0] == '.') continue;
    snprintf(path, sizeof path, "/proc/self/task/%s/schedstat", d->d_name);
    p = llmtopi_slurp(b, path);
    if (strchr(p, ' ') != NULL) sum += strtoll(strchr(p, ' '), NULL, 10);
  }
  closedir(folder);
  return sum;
}

static void llmtopi_sum_process(llmtopi_sums *s, llmtopi_text *b) {
  const char *p = strrchr(llmtopi_slurp(b, "/proc/self/stat"), ')');
  int64_t v[20] = {0};
  int i;
  char *at = (char *)(size_t)(p == NULL ? "" : p + 1);
  if (*at != '\0') at += 2; /* the state */
  for (i = 1; i < 20; i++) v[i] = strtoll(at, &at, 10);
  s->minor_faults = v[7];
  s->faults = v[9];
  s->process = (v[11] + v[12]) * (LLMTOPI_SECOND / (sysconf(_SC_CLK_TCK) > 0 ? sysconf(_SC_CLK_TCK) : 100));
  s->threads = v[17];
  p = llmtopi_slurp(b, "/proc/self/io");
  s->read_ops = llmtopi_after(p, "syscr: ");
  s->write_ops = llmtopi_after(p, "syscw: ");
  s->read = llmtopi_after(p, "read_bytes: ");
  s->write = llmtopi_after(p, "\nwrite_bytes: ");
  s->waited = llmtopi_waited(b, s->threads);
}

static int64_t llmtopi_pressure(llmtopi_text *b, const char *path) {
  int64_t us = llmtopi_after(llmtopi_slurp(b, path), "total=");
  return us < 0 ? -1 : us * 1000;
}

typedef struct {
  llmtop_reading p[24];
  size_t n;
} llmtopi_readings_list;

static void llmtopi_put(llmtopi_readings_list *l, const char *name, double v, int derived) {
  if (l->n == 24) return;
  l->p[l->n].name = name;
  l->p[l->n].value = v;
  l->p[l->n++].derived = derived;
}

/* Adds what a counter has grown, in units of so many ns. */
static void llmtopi_put_rate(llmtopi_readings_list *l, const char *name, int64_t now, int64_t was, double unit, int64_t ns) {
  if (now >= 0 && was >= 0 && now >= was) llmtopi_put(l, name, (double)(now - was) * unit / (double)ns, 1);
}

static double llmtopi_share(const int64_t *now, const int64_t *was, int of) {
  double all = (double)(now[0] - was[0]), part = (double)(now[of] - was[of]);
  return all <= 0 || part < 0 ? 0 : part > all ? 1 : part / all;
}

/* Memory in use and its limit: the lowest of the machine's and those of the process's control groups. */
static void llmtopi_put_memory(llmtopi_readings_list *l, llmtopi_text *b, int *limited) {
  const char *p = llmtopi_slurp(b, "/proc/meminfo");
  int64_t total = llmtopi_after(p, "MemTotal:"), available = llmtopi_after(p, "MemAvailable:"), used;
  char group[512], path[640], *end;
  *limited = 0;
  if (total < 0 || available < 0) return;
  total *= 1024;
  used = total - available * 1024;
  p = strstr(llmtopi_slurp(b, "/proc/self/cgroup"), "0::/");
  snprintf(group, sizeof group, "%s", p == NULL ? "" : p + 3);
  group[strcspn(group, "\n")] = '\0';
  for (end = group + strlen(group); p != NULL; end = strrchr(group, '/')) {
    int64_t limit, current;
    if (end == NULL) break;
    *end = '\0';
    snprintf(path, sizeof path, "/sys/fs/cgroup%s/memory.max", group);
    limit = llmtopi_after(llmtopi_slurp(b, path), "");
    snprintf(path, sizeof path, "/sys/fs/cgroup%s/memory.current", group);
    current = llmtopi_after(llmtopi_slurp(b, path), "");
    if (limit > 0 && limit < total && current > 0) {
      total = limit;
      used = current;
      *limited = 1;
    }
  }
  llmtopi_put(l, "mem_total", (double)total, 0);
  llmtopi_put(l, "mem_used", (double)used, 1);
}

static void llmtopi_write_sample(llmtop_socket *t, llmtopi_text *b, const llmtopi_sums *now, const llmtopi_sums *was) {
  llmtopi_readings_list machine = {{{NULL, 0, 0}}, 0}, engine = {{{NULL, 0, 0}}, 0};
  int64_t ns = now->at - was->at;
  double cores[1024], load;
  int i, limited, count = now->core_count == was->core_count ? now->core_count : 0;
  for (i = 0; i < count; i++) cores[i] = 1 - llmtopi_share(now->cores[i], was->cores[i], 1);
  llmtopi_put(&machine, "cpu", 1 - llmtopi_share(now->all, was->all, 1), 1);
  llmtopi_put(&machine, "steal", llmtopi_share(now->all, was->all, 2), 1);
  if (now->runnable >= 0) llmtopi_put(&machine, "runnable", (double)now->runnable, 0);
  if (getloadavg(&load, 1) == 1) llmtopi_put(&machine, "load1", load, 0);
  llmtopi_put_rate(&machine, "net_in", now->in, was->in, 1e9, ns);
  llmtopi_put_rate(&machine, "net_out", now->out, was->out, 1e9, ns);
  llmtopi_put_rate(&machine, "cpu_pressure", now->cpu_pressure, was->cpu_pressure, 1, ns);
  llmtopi_put_rate(&machine, "mem_pressure", now->mem_pressure, was->mem_pressure, 1, ns);
  llmtopi_put_rate(&machine, "io_pressure", now->io_pressure, was->io_pressure, 1, ns);
  llmtopi_put_memory(&machine, b, &limited);
  llmtopi_put_rate(&engine, "cpu", now->process, was->process, 1, ns);
  if (now->threads == was->threads) llmtopi_put_rate(&engine, "run_wait", now->waited, was->waited, 1, ns); /* a thread that ended takes its time along */
  llmtopi_put_rate(&engine, "read", now->read, was->read, 1e9, ns);
  llmtopi_put_rate(&engine, "write", now->write, was->write, 1e9, ns);
  llmtopi_put_rate(&engine, "read_ops", now->read_ops, was->read_ops, 1e9, ns);
  llmtopi_put_rate(&engine, "write_ops", now->write_ops, was->write_ops, 1e9, ns);
  llmtopi_put_rate(&engine, "faults", now->faults, was->faults, 1e9, ns);
  llmtopi_put_rate(&engine, "minor_faults", now->minor_faults, was->minor_faults, 1e9, ns);
  if (now->read >= 0) llmtopi_put(&engine, "read_sum", (double)now->read, 0);
  if (now->write >= 0) llmtopi_put(&engine, "write_sum", (double)now->write, 0);
  llmtopi_put(&engine, "threads", (double)now->threads, 0);
  {
    const char *p = llmtopi_slurp(b, "/proc/self/status");
    int64_t rss = llmtopi_after(p, "VmRSS:"), peak = llmtopi_after(p, "VmHWM:");
    if (rss >= 0) llmtopi_put(&engine, "rss", (double)rss * 1024, 0);
    if (peak >= 0) llmtopi_put(&engine, "peak", (double)peak * 1024, 0);
  }
  llmtopi_open_line(llmtopi_fresh(t), "host", &now->at);
  if (limited) llmtopi_str(&t->line, ",\"limited\":true");
  llmtopi_host_members(&t->line, ns, cores, (size_t)count, machine.p, machine.n, engine.p, engine.n);
  t->caps |= LLMTOP_CAN_HOST;
  llmtopi_keep(t, &t->written_lines[0], LLMTOP_KIND_HOST);
}

/* Samples the machine and this process once a second. */
static void llmtopi_sample(llmtop_socket *t, int64_t now) {
  llmtopi_text b = {NULL, 0, 0, 0};
  llmtopi_sums *s;
  const char *p;
  if (now < t->host_due) return;
  t->host_due = now + LLMTOPI_SECOND;
  s = (llmtopi_sums *)calloc(1, sizeof *s);
  if (s == NULL) return;
  p = llmtopi_slurp(&b, "/proc/stat");
  if (*p == '\0') { /* not Linux */
    t->host_due = INT64_MAX;
    free(s);
    free(b.p);
    return;
  }
  s->at = now;
  llmtopi_sum_cores(s, p);
  s->runnable = llmtopi_after(p, "procs_running ");
  llmtopi_sum_network(s, llmtopi_slurp(&b, "/proc/net/dev"));
  s->cpu_pressure = llmtopi_pressure(&b, "/proc/pressure/cpu");
  s->mem_pressure = llmtopi_pressure(&b, "/proc/pressure/memory");
  s->io_pressure = llmtopi_pressure(&b, "/proc/pressure/io");
  llmtopi_sum_process(s, &b);
  if (t->sums != NULL) llmtopi_write_sample(t, &b, s, t->sums);
  free(t->sums);
  free(b.p);
  t->sums = s;
}

/* ---- the CSV ----------------------------------------------------------------------------------------------------- */

static void llmtopi_csv_name(FILE *f, const char *name) {
  if (strpbrk(name, ",\"\r\n") == NULL) {
    fputs(name, f);
    return;
  }
  putc('"', f);
  for (; *name != '\0'; name++) {
    if (*name == '"') putc('"', f);
    putc(*name, f);
  }
  putc('"', f);
}

static void llmtopi_csv_row(llmtop_socket *t, const char *name, int64_t ns) {
  char fraction[8] = "";
  int n = 0;
  if (ns % 1000 != 0) n = snprintf(fraction, sizeof fraction, ".%03d", (int)(ns % 1000));
  while (n > 0 && fraction[n - 1] == '0') fraction[--n] = '\0';
  llmtopi_csv_name(t->csv_file, name);
  fprintf(t->csv_file, ",%lld%s\n", (long long)(ns / 1000), fraction);
  t->csv_rows++;
}

/* Writes the CSV for llmtop_csv. Requests are in the order in which they ended; live ones come last. */
static void llmtopi_csv(llmtop_socket *t) {
  llmtopi_request *q;
  size_t i;
  int bad;
  t->csv_rows = 0;
  t->csv_missing = t->rows_missing + llmtop_dropped(t, LLMTOP_KIND_STAGE);
  t->csv_file = fopen(t->csv_path, "w");
  bad = t->csv_file == NULL;
  if (!bad) {
    fputs("stage,elapsed_us\n", t->csv_file);
    llmtopi_sum_up(t, &t->own_stages, llmtopi_csv_row);
    for (i = 0; i < t->row_count; i++) llmtopi_csv_row(t, t->rows[i].name, t->rows[i].took);
    for (q = t->oldest; q != NULL; q = q->newer) llmtopi_sum_up(t, &q->stages, llmtopi_csv_row);
    bad = ferror(t->csv_file);
    bad |= fclose(t->csv_file) != 0;
  }
  t->csv_error = errno;
  if (bad) t->csv_rows = -1;
}

long llmtop_csv(llmtop_socket *t, const char *path, uint64_t *missing) {
  long rows;
  int e;
  if (t == NULL || !t->csv || path == NULL) {
    errno = EINVAL;
    return -1;
  }
  pthread_mutex_lock(&t->lock);
  while (t->csv_waits) pthread_cond_wait(&t->written, &t->lock); /* until the CSV of another caller is written */
  t->csv_path = path;
  t->csv_after = __atomic_load_n(&t->tail, __ATOMIC_ACQUIRE);
  t->csv_waits = 1;
  t->csv_done = 0;
  while (!t->csv_done) pthread_cond_wait(&t->written, &t->lock);
  rows = t->csv_rows;
  e = t->csv_error;
  if (missing != NULL) *missing = t->csv_missing;
  t->csv_waits = 0;
  pthread_cond_broadcast(&t->written);
  pthread_mutex_unlock(&t->lock);
  if (rows < 0) errno = e;
  return rows;
}

/* ---- the writer -------------------------------------------------------------------------------------------------- */

static int llmtopi_asked(llmtop_socket *t, int *sampled) {
  int stop;
  pthread_mutex_lock(&t->lock);
  if (t->csv_waits && !t->csv_done && t->head >= t->csv_after) {
    llmtopi_csv(t);
    t->csv_done = 1;
    pthread_cond_broadcast(&t->written);
  }
  stop = t->stop;
  *sampled = t->sampled;
  pthread_mutex_unlock(&t->lock);
  return stop;
}

static void llmtopi_wait(llmtop_socket *t) {
  struct pollfd fds[LLMTOPI_READERS + 1];
  int i;
  fds[0].fd = t->deaf ? -1 : t->listener; /* otherwise a waiting connection would end every poll at once */
  fds[0].events = POLLIN;
  for (i = 0; i < t->count; i++) {
    fds[i + 1].fd = t->readers[i]->fd;
    fds[i + 1].events = (short)(t->readers[i]->out.n > 0 ? POLLIN | POLLOUT : POLLIN);
  }
  poll(fds, (nfds_t)t->count + 1, LLMTOPI_TICK);
}

/* Writes remaining lines, then bye, for at most half a second. */
static void llmtopi_farewell(llmtop_socket *t) {
  int64_t until = llmtop_now(t) + LLMTOPI_SECOND / 2;
  int i, pending = 1;
  llmtopi_tables(t, llmtop_now(t), 1);
  llmtopi_reply(t);
  while (pending && llmtop_now(t) < until) {
    pending = 0;
    llmtopi_serve_all(t, 0);
    for (i = 0; i < t->count; i++) {
      llmtopi_reader *r = t->readers[i];
      if (r->out.n == 0 && !r->leaving) {
        llmtopi_dismiss(r, "the engine has ended", llmtop_now(t));
        llmtopi_send(r);
      }
      pending |= r->out.n > 0;
    }
    if (pending) llmtopi_wait(t);
  }
}

static void *llmtopi_write(void *arg) {
  llmtop_socket *t = (llmtop_socket *)arg;
  for (;;) {
    int sampled = 0, stop = llmtopi_asked(t, &sampled), beat = 0;
    uint64_t read = llmtopi_drain(t);
    int64_t now = llmtop_now(t);
    llmtopi_write_tokens(t);
    if (stop && read == 0) break;
    llmtopi_tables(t, now, 0);
    if (sampled) llmtopi_sample(t, now);
    llmtopi_accept(t, now);
    llmtopi_reply(t);
    if (now >= t->clock_due) {
      t->clock_due = now + LLMTOPI_SECOND;
      beat = 1;
    }
    llmtopi_serve_all(t, beat);
    if (read < t->cells / 4) llmtopi_wait(t);
  }
  llmtopi_farewell(t);
  while (t->count > 0) llmtopi_leave(t, 0);
  return NULL;
}

/* ---- opening and closing ----------------------------------------------------------------------------------------- */

#if defined(__GNUC__)
__attribute__((format(printf, 3, 4)))
#endif
static int llmtopi_fail(char *error, size_t size, const char *format, ...) {
  va_list args;
  va_start(args, format);
  if (error != NULL && size > 0) vsnprintf(error, size, format, args);
  va_end(args);
  return -1;
}

static long llmtopi_peer(int fd) {
#if defined(SO_PEERCRED)
  struct ucred who;
  socklen_t n = sizeof who;
  return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &n) == 0 ? (long)who.pid : 0;
#elif defined(SOL_LOCAL) && defined(LOCAL_PEERPID)
  pid_t pid;
  socklen_t n = sizeof pid;
  return getsockopt(fd, SOL_LOCAL, LOCAL_PEERPID, &pid, &n) == 0 ? (long)pid : 0;
#else
  (void)fd;
  return 0;
#endif
}

/* Removes the socket of an engine that has exited; that of a live one is an error. */
static int llmtopi_reclaim(const struct sockaddr_un *a, char *error, size_t size) {
  struct stat s;
  int fd, answered, e;
  long pid;
  if (lstat(a->sun_path, &s) != 0) return 0;
  if (!S_ISSOCK(s.st_mode)) return llmtopi_fail(error, size, "open event socket: %s exists and is not a socket", a->sun_path);
  fd = socket(AF_UNIX, SOCK_STREAM, 0);
  if (fd < 0) return llmtopi_fail(error, size, "open event socket: %s", strerror(errno));
  llmtopi_flags(fd);
  answered = connect(fd, (const struct sockaddr *)a, sizeof *a) == 0;
  e = errno;
  pid = answered ? llmtopi_peer(fd) : 0;
  close(fd);
  if (answered) return llmtopi_fail(error, size, "open event socket: %s is held by a live engine, pid %ld", a->sun_path, pid);
  if (e != ECONNREFUSED) return llmtopi_fail(error, size, "open event socket: %s is in use: %s", a->sun_path, strerror(e));
  unlink(a->sun_path);
  return 0;
}

/* Locks the folder of the socket, so that only one of two engines replaces the socket of an exited one. */
static int llmtopi_lock_folder(const char *path) {
  char folder[sizeof(((struct sockaddr_un *)0)->sun_path)];
  char *slash;
  int fd, i;
  snprintf(folder, sizeof folder, "%s", path);
  slash = strrchr(folder, '/');
  if (slash == NULL) snprintf(folder, sizeof folder, ".");
  else slash[slash == folder] = '\0';
  fd = open(folder, O_RDONLY | O_CLOEXEC);
  for (i = 0; fd >= 0 && i < 100 && flock(fd, LOCK_EX | LOCK_NB) != 0; i++) poll(NULL, 0, 10);
  return fd;
}

static int llmtopi_listen_unix(llmtop_socket *t, const char *path, char *error, size_t size) {
  struct sockaddr_un a;
  struct stat s;
  int folder, fd, ok;
  memset(&a, 0, sizeof a);
  a.sun_family = AF_UNIX;
  if (strlen(path) >= sizeof a.sun_path)
    return llmtopi_fail(error, size, "open event socket: %s: the path is longer than %zu bytes", path, sizeof a.sun_path - 1);
  memcpy(a.sun_path, path, strlen(path));
  folder = llmtopi_lock_folder(path);
  if (folder < 0) return llmtopi_fail(error, size, "open event socket: folder of %s: %s", path, strerror(errno));
  if (llmtopi_reclaim(&a, error, size) != 0) {
    close(folder);
    return -1;
  }
  fd = socket(AF_UNIX, SOCK_STREAM, 0);
  if (fd >= 0) llmtopi_flags(fd);
  /* Nobody can connect before listen, so the mode is set in time. */
  ok = fd >= 0 && bind(fd, (const struct sockaddr *)&a, sizeof a) == 0 && chmod(path, 0600) == 0 && listen(fd, 16) == 0 &&
       lstat(path, &s) == 0 && (t->path = strdup(path)) != NULL;
  if (!ok) llmtopi_fail(error, size, "open event socket: %s: %s", path, strerror(errno));
  close(folder);
  if (!ok) {
    if (fd >= 0) close(fd);
    return -1;
  }
  t->device = s.st_dev;
  t->inode = s.st_ino;
  snprintf(t->address, sizeof t->address, "unix:%s", path);
  return fd;
}

static int llmtopi_bind_tcp(const char *host, int port, int *six) {
  struct sockaddr_in a4;
  struct sockaddr_in6 a6;
  int on = 1, fd;
  memset(&a4, 0, sizeof a4);
  memset(&a6, 0, sizeof a6);
  *six = strcmp(host, "::1") == 0 || strcmp(host, "[::1]") == 0;
  a4.sin_family = AF_INET;
  a6.sin6_family = AF_INET6;
  a4.sin_port = a6.sin6_port = htons((uint16_t)port);
  a6.sin6_addr = in6addr_loopback;
  inet_pton(AF_INET, strcmp(host, "localhost") == 0 ? "127.0.0.1" : host, &a4.sin_addr);
  fd = socket(*six ? AF_INET6 : AF_INET, SOCK_STREAM, 0);
  if (fd < 0) return -1;
  llmtopi_flags(fd);
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if ((*six ? bind(fd, (struct sockaddr *)&a6, sizeof a6) : bind(fd, (struct sockaddr *)&a4, sizeof a4)) != 0 || listen(fd, 16) != 0) {
    int e = errno;
    close(fd);
    errno = e;
    return -1;
  }
  return fd;
}

static int llmtopi_listen_tcp(llmtop_socket *t, const char *where, char *error, size_t size) {
  char host[64];
  const char *colon = strrchr(where, ':');
  struct sockaddr_in6 bound; /* large enough for both; the port is at the same offset */
  struct in_addr four;
  socklen_t n = sizeof bound;
  char *end = NULL;
  long port = colon == NULL ? -1 : strtol(colon + 1, &end, 10);
  int fd, six, loopback;
  if (colon == NULL || end == colon + 1 || *end != '\0' || port < 0 || port > 65535 || (size_t)(colon - where) >= sizeof host)
    return llmtopi_fail(error, size, "open event socket: tcp:%s: want tcp:HOST:PORT", where);
  snprintf(host, sizeof host, "%.*s", (int)(colon - where), where);
  loopback = strcmp(host, "localhost") == 0 || strcmp(host, "::1") == 0 || strcmp(host, "[::1]") == 0 ||
             (inet_pton(AF_INET, host, &four) == 1 && ntohl(four.s_addr) >> 24 == 127);
  if (!loopback && t->token == NULL)
    return llmtopi_fail(error, size, "open event socket: tcp:%s: not a loopback address, which needs a token", where);
  fd = llmtopi_bind_tcp(host, (int)port, &six);
  if (fd < 0 || getsockname(fd, (struct sockaddr *)&bound, &n) != 0)
    return llmtopi_fail(error, size, "open event socket: tcp:%s: %s", where, strerror(errno));
  snprintf(t->address, sizeof t->address, "tcp:%s:%d", six ? "[::1]" : host, ntohs(bound.sin6_port));
  return fd;
}

/* The default folder, created if it does not exist. It must belong to this user only. */
static int llmtopi_folder(char *folder, size_t room, char *error, size_t size) {
  const char *base = getenv("XDG_RUNTIME_DIR");
  struct stat s;
  int n;
  if (base != NULL && base[0] == '/') {
    n = snprintf(folder, room, "%s/llmtop", base);
  } else {
    base = "/tmp";
#ifdef __APPLE__
    if (getenv("TMPDIR") != NULL) base = getenv("TMPDIR");
#endif
    n = snprintf(folder, room, "%s/llmtop-%u", base, (unsigned)getuid());
  }
  if (n < 0 || (size_t)n >= room) return llmtopi_fail(error, size, "open event socket: the path of the folder is too long");
  if (mkdir(folder, 0700) != 0 && errno != EEXIST)
    return llmtopi_fail(error, size, "make folder %s: %s", folder, strerror(errno));
  if (lstat(folder, &s) != 0) return llmtopi_fail(error, size, "open event socket: folder %s: %s", folder, strerror(errno));
  if (!S_ISDIR(s.st_mode))
    return llmtopi_fail(error, size, "open event socket: %s is not a folder: remove it, or set XDG_RUNTIME_DIR to a folder of your own", folder);
  if (s.st_uid != geteuid())
    return llmtopi_fail(error, size, "open event socket: folder %s belongs to user %u: set XDG_RUNTIME_DIR to a folder of your own", folder,
                        (unsigned)s.st_uid);
  if ((s.st_mode & 022) != 0)
    return llmtopi_fail(error, size, "open event socket: other users may write to folder %s: chmod 700 %s", folder, folder);
  return 0;
}

static int llmtopi_listen(llmtop_socket *t, const llmtop_options *o, char *error, size_t size) {
  char path[256], folder[128], name[48];
  size_t i;
  if (o->address != NULL && strncmp(o->address, "tcp:", 4) == 0) return llmtopi_listen_tcp(t, o->address + 4, error, size);
  if (o->address != NULL && strncmp(o->address, "unix:", 5) == 0) return llmtopi_listen_unix(t, o->address + 5, error, size);
  if (o->address != NULL)
    return llmtopi_fail(error, size, "open event socket: %s: want unix:PATH or tcp:HOST:PORT", o->address);
  if (llmtopi_folder(folder, sizeof folder, error, size) != 0) return -1;
  snprintf(name, sizeof name, "%s", o->name);
  for (i = 0; name[i] != '\0'; i++)
    if (strchr("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-", name[i]) == NULL || (i == 0 && name[i] == '.'))
      name[i] = '_';
  snprintf(path, sizeof path, "%s/%s-%ld.sock", folder, name, (long)getpid());
  return llmtopi_listen_unix(t, path, error, size);
}

/* Renders the constant members of hello. */
static void llmtopi_introduce(llmtop_socket *t, const llmtop_options *o) {
  llmtopi_text *b = &t->engine;
  llmtopi_string(b, "name", o->name);
  llmtopi_string(b, "version", o->version);
  llmtopi_string(b, "sdk", "c");
  llmtopi_member(b, "pid", (int64_t)getpid());
  t->caps = t->caps_sent = o->caps & 1023;
  b = &t->about;
  if (o->slots > 0) llmtopi_member(b, "slots", o->slots);
  if (o->device != NULL || o->kernels != NULL || o->threads > 0 || o->host) {
    llmtopi_str(b, o->host ? ",\"device\":{\"host\":true" : ",\"device\":{\"host\":false");
    llmtopi_string(b, "name", o->device);
    llmtopi_string(b, "kernels", o->kernels);
    if (o->threads > 0) llmtopi_member(b, "threads", o->threads);
    llmtopi_str(b, "}");
  }
  llmtopi_string(&t->state, "state", o->state == NULL ? "ready" : o->state);
  if (o->model != NULL) llmtopi_model_members(&t->model, o->model);
}

static void llmtopi_free(llmtop_socket *t) {
  llmtopi_message *m, *next;
  int i;
  while (t->oldest != NULL) llmtopi_forget(t, t->oldest);
  for (i = 0; i < 3; i++) free(t->written_lines[i].p);
  for (m = t->asked_first; m != NULL; m = next) {
    next = m->next;
    llmtopi_free_message(m);
  }
  for (m = t->replies; m != NULL; m = next) {
    next = m->next;
    llmtopi_free_message(m);
  }
  free(t->own_stages.p);
  free(t->sums);
  free(t->token);
  free(t->about.p);
  free(t->rows);
  free(t->engine.p);
  free(t->state.p);
  free(t->model.p);
  free(t->line.p);
  free(t->payload.p);
  free(t->batch_bytes.p);
  free(t->experts_line.p);
  free(t->counters_line.p);
  free(t->lines);
  free(t->bytes);
  free(t->ring);
  free(t->picks);
  free(t->path);
  pthread_cond_destroy(&t->asked);
  pthread_cond_destroy(&t->written);
  pthread_mutex_destroy(&t->lock);
  free(t);
}

/* Allocates all memory for emitting. Returns 0 if memory is insufficient or an option is invalid. */
static int llmtopi_prepare(llmtop_socket *t, const llmtop_options *o) {
  const llmtop_model *m = o->model;
  t->cells = o->ring == 0 ? 1 << 14 : o->ring;
  t->room = o->backlog == 0 ? 4 << 20 : o->backlog;
  if (t->cells < 64 || (t->cells & (t->cells - 1)) != 0 || t->room < 4096 || (t->room & (t->room - 1)) != 0) return 0;
  t->mask = t->cells - 1;
  t->layers = o->layers > 0 || m == NULL ? o->layers : (unsigned)m->layers;
  t->experts = o->experts > 0 || m == NULL ? o->experts : (unsigned)m->experts;
  t->used_experts = o->experts_used > 0 || m == NULL ? o->experts_used : (unsigned)m->experts_used;
  if (t->layers > 512 || t->experts > 4096) return 0;
  t->ring = (llmtopi_cell *)calloc((size_t)t->cells, sizeof *t->ring);
  t->bytes = (char *)malloc((size_t)t->room);
  t->lines = (llmtopi_line *)malloc(LLMTOPI_LINES * sizeof *t->lines);
  if (t->layers > 0 && t->experts > 0) t->picks = (uint64_t *)calloc((size_t)2 * t->layers * t->experts, sizeof *t->picks);
  llmtopi_introduce(t, o);
  return t->ring != NULL && t->bytes != NULL && t->lines != NULL && !t->engine.failed && !t->model.failed &&
         (t->picks != NULL || t->layers == 0 || t->experts == 0);
}

/* Starts the writer thread with the engine's signals blocked. */
static int llmtopi_start(llmtop_socket *t) {
  sigset_t all, before;
  int e, control;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  for (control = 0; control < 5; control++) t->obeying |= llmtopi_offered(t, control);
  e = t->obeying ? pthread_create(&t->obedient, NULL, llmtopi_obey, t) : 0;
  if (e != 0) t->obeying = 0;
  else e = pthread_create(&t->writer, NULL, llmtopi_write, t);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return e;
}

/* Ends the threads: that of the handlers first, whose replies the writer sends. */
static void llmtopi_stop(llmtop_socket *t) {
  pthread_mutex_lock(&t->lock);
  t->stop = 1;
  pthread_cond_broadcast(&t->asked);
  pthread_mutex_unlock(&t->lock);
  if (t->obeying) pthread_join(t->obedient, NULL);
}

static void llmtopi_unlisten(llmtop_socket *t) {
  struct stat s;
  close(t->listener);
  if (t->path != NULL && lstat(t->path, &s) == 0 && s.st_dev == t->device && s.st_ino == t->inode) unlink(t->path);
}

llmtop_socket *llmtop_open(const llmtop_options *o, char *error, size_t size) {
  llmtop_socket *t;
  int e;
  if (o == NULL || o->name == NULL || o->name[0] == '\0') {
    llmtopi_fail(error, size, "open event socket: options.name is missing");
    return NULL;
  }
  t = (llmtop_socket *)calloc(1, sizeof *t);
  if (t == NULL) {
    llmtopi_fail(error, size, "open event socket: out of memory");
    return NULL;
  }
  pthread_mutex_init(&t->lock, NULL);
  pthread_cond_init(&t->written, NULL);
  pthread_cond_init(&t->asked, NULL);
  t->start = llmtopi_clock(CLOCK_MONOTONIC);
  t->clock_due = LLMTOPI_SECOND;
  t->text = o->text != 0;
  t->asked_last = &t->asked_first;
  if (o->controls != NULL) t->controls = *o->controls;
  if (o->token != NULL && o->token[0] != '\0') t->token = strdup(o->token);
  t->trusted = t->token != NULL || o->address == NULL || strncmp(o->address, "tcp:", 4) != 0;
  t->csv = o->csv != 0;
  snprintf(t->run, sizeof t->run, "%llx-%lx", (unsigned long long)llmtopi_clock(CLOCK_REALTIME), (unsigned long)getpid());
  if (!llmtopi_prepare(t, o) || (t->token == NULL && o->token != NULL && o->token[0] != '\0')) {
    llmtopi_fail(error, size, "open event socket: out of memory, ring or backlog is not a power of 2, or too many layers or experts");
    llmtopi_free(t);
    return NULL;
  }
  t->listener = llmtopi_listen(t, o, error, size);
  if (t->listener < 0) {
    llmtopi_free(t);
    return NULL;
  }
  e = llmtopi_start(t);
  if (e != 0) {
    llmtopi_fail(error, size, "start writer thread of the event socket: %s", strerror(e));
    llmtopi_stop(t);
    llmtopi_unlisten(t);
    llmtopi_free(t);
    return NULL;
  }
  return t;
}

void llmtop_close(llmtop_socket *t) {
  if (t == NULL) return;
  llmtopi_stop(t);
  pthread_join(t->writer, NULL);
  llmtopi_unlisten(t);
  llmtopi_free(t);
}

#endif /* LLMTOP_IMPLEMENTATION */
