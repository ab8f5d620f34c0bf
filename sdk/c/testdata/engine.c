/* An example engine in C that simulates its work. The test starts and ends it through standard input. */
#define LLMTOP_IMPLEMENTATION
#include "llmtop.h"

#include "engine.h"

static llmtop_socket *top;
static long requests, tokens, threads, steps, pause_us;

static void pass(uint64_t request, int32_t index) {
  static const uint32_t split[6] = {10, 200, 30, 400, 50, 60};
  static const uint16_t picks[2] = {1, 3};
  llmtop_tokens_info k = LLMTOP_TOKENS(0);
  llmtop_pass p = {0, 0, 1, 0, NULL, NULL};
  p.began = llmtop_now(top);
  p.number = (request - 1) * (uint64_t)tokens + (uint64_t)index + 1;
  p.split = split;
  if (!steps) { /* the minimum */
    llmtop_token(top, request, index, 1000 + index);
    return;
  }
  p.metrics = "{\"dp_rank\":0,\n\"scheduled_requests\":{\"num_decode_requests\":1}}";
  llmtop_picks(top, 1, 0, picks, 2);
  llmtop_step(top, &p);
  k.request = request;
  k.index = index;
  k.id = 1000 + index;
  k.step = p.number;
  k.logprob = -0.25f;
  k.sampling = 60;
  k.text = index % 2 ? "\xE2\x96" : " \"word\"\n";
  k.length = strlen(k.text);
  llmtop_tokens(top, &k);
}

static void tokenize(uint64_t request) {
  LLMTOP_SCOPE(encode, top, request, LLMTOP_TOKENIZE);
  encode.tokens = 4;
}

static void prefill(uint64_t request) {
  static const uint16_t picks[4] = {0, 1, 2, 3};
  LLMTOP_SCOPE(whole, top, request, LLMTOP_PREFILL);
  llmtop_stage(top, request, LLMTOP_ATTENTION, 0, whole.began, 4);
  llmtop_stage(top, request, LLMTOP_ATTENTION, 1, whole.began, 4);
  llmtop_picks(top, 0, 1, picks, 4);
  whole.tokens = 4;
}

static void generate(uint64_t request) {
  llmtop_request what = {"adapter-\"x\"", "chat", NULL, "Once upon a time", 64, 0, 0};
  llmtop_cells cells = LLMTOP_CELLS(16, 4096);
  llmtop_usage usage = LLMTOP_USAGE;
  llmtop_span span;
  int32_t i;
  llmtop_queued(top, request, &what);
  span = llmtop_begin(top, request, LLMTOP_QUEUE);
  llmtop_end(&span);
  llmtop_dispatched(top, request);
  tokenize(request);
  cells.pinned = llmtop_now(top);
  prefill(request);
  llmtop_kv(top, &cells);
  span = llmtop_begin(top, request, LLMTOP_DECODE);
  for (i = 0; i < tokens; i++) {
    pass(request, i);
    if (pause_us > 0) rest(pause_us);
  }
  span.tokens = tokens;
  llmtop_end(&span);
  llmtop_end(&span); /* no effect */
  usage.in = 4;
  usage.cached = 1;
  usage.out = tokens;
  llmtop_ended(top, request, LLMTOP_FINISHED, "length", &usage);
}

static void *work(void *arg) {
  uint64_t first = (uint64_t)(size_t)arg, r;
  for (r = first; r <= (uint64_t)requests; r += (uint64_t)threads) generate(r);
  return NULL;
}

int main(void) {
  llmtop_model model;
  llmtop_options options;
  char error[256];
  pthread_t running[16];
  uint64_t missing = 0;
  long i, rows;
  memset(&model, 0, sizeof model);
  memset(&options, 0, sizeof options);
  model.name = "tiny";
  model.layers = number("LAYERS", 2);
  model.experts = number("EXPERTS", 4);
  model.experts_used = 2;
  options.name = "example-c";
  options.version = "1.2";
  options.address = getenv("ADDRESS");
  options.caps = LLMTOP_CAN_STAGES | LLMTOP_CAN_TOKENS | LLMTOP_CAN_EXPERTS | LLMTOP_CAN_KV | LLMTOP_CAN_STEPS | LLMTOP_CAN_QUEUE;
  options.model = &model;
  options.text = number("TEXT", 0) != 0;
  options.csv = getenv("CSV") != NULL;
  options.ring = (unsigned)number("RING", 0);
  options.backlog = (unsigned)number("BACKLOG", 0);
  requests = number("REQUESTS", 3);
  tokens = number("TOKENS", 5);
  threads = number("THREADS", 1);
  steps = number("STEPS", 1);
  pause_us = number("PAUSE_US", 0);
  if (threads > 16) threads = 16;
  top = llmtop_open(&options, error, sizeof error);
  if (top == NULL) {
    fprintf(stderr, "%s\n", error);
    return 1;
  }
  printf("%s\n", llmtop_address(top));
  fflush(stdout);
  if (number("HELD", 0)) { /* a live request in the state for late joiners */
    llmtop_queued(top, 9000, NULL);
    llmtop_dispatched(top, 9000);
    for (i = 0; i < 10; i++) llmtop_token(top, 9000, (int32_t)i, (int32_t)i);
  }
  await("go");
  for (i = 0; i < threads; i++) pthread_create(&running[i], NULL, work, (void *)(size_t)(i + 1));
  for (i = 0; i < threads; i++) pthread_join(running[i], NULL);
  llmtop_log(top, "all is done\n");
  if (options.csv) {
    rows = llmtop_csv(top, getenv("CSV"), &missing);
    printf("rows %ld missing %llu\n", rows, (unsigned long long)missing);
  }
  printf("done\n");
  fflush(stdout);
  await("end");
  llmtop_close(top);
  return 0;
}
