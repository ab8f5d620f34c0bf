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
  llmtop_request what = {"adapter-\"x\"", "chat", NULL, "Once upon a time", 64, 4, 0, 0};
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

/* Passes that are timed while they run, and what else an engine may report. */
static void passes(void) {
  static const uint16_t picks[4] = {1, 3, 0, 2};
  static const llmtop_op ops[3] = {{"MUL_MAT", 0, 480, 540000}, {"MUL_MAT", -1, 120, 90000}, {"ROPE", 0, 240, 81000}};
  static const int64_t drafted[2] = {10, 8}, accepted[2] = {9, 6};
  static const llmtop_shape shapes[2] = {{1, 1, 4, 8, 960000, 24}, {0, 1, 1, 5, 400000, 5}};
  static const llmtop_reading usage[2] = {{"run", 381000, 0}, {"cores", 2, 1}}, machine[1] = {{"cpu", 0.5, 1}}, process[1] = {{"rss", 137438953472.0, 0}};
  static const double cores[2] = {0.25, 0.75};
  llmtop_tokens_info k = LLMTOP_TOKENS(8000);
  llmtop_usage end = LLMTOP_USAGE;
  llmtop_queued(top, 7999, NULL);
  llmtop_ended(top, 7999, LLMTOP_FINISHED, "stop", NULL);
  llmtop_queued(top, 8000, NULL);
  llmtop_dispatched(top, 8000);
  k.index = 0;
  k.id = 7;
  k.picks = picks;
  k.pick_count = 4;
  {
    LLMTOP_STEP(s, top, 8000, -1, 4);
    { LLMTOP_PART(embed, &s, LLMTOP_EMBED, -1); rest(1000); }
    { LLMTOP_PART(attention, &s, LLMTOP_ATTENTION, 0); rest(1000); }
    { LLMTOP_PART(rotary, &s, "rotary", -1); rest(1000); }
    { LLMTOP_PART(head, &s, LLMTOP_LM_HEAD, -1); rest(1000); }
    llmtop_picks(top, 0, 0, picks, 2);
    llmtop_picks(top, 0, 1, picks + 2, 2);
    llmtop_step_end(&s);
    { LLMTOP_PART(sample, &s, LLMTOP_SAMPLE, -1); rest(1000); }
    llmtop_step_tokens(&s, &k);
  }
  {
    LLMTOP_STEP(s, top, 0, 2, -1);
    llmtop_step_end(&s);
    k.index = 1;
    k.picks = NULL;
    llmtop_step_tokens(&s, &k);
  }
  {
    LLMTOP_STEP(s, top, 8000, -1, 4);
    s.prompt = -1; /* it has failed */
  }
  llmtop_ops(top, 120, ops, 3, 2.5);
  llmtop_draft(top, drafted, accepted, 2, 800000, shapes, 2);
  llmtop_report_usage(top, 200000, usage, 2);
  llmtop_host(top, 100000, cores, 2, machine, 1, process, 1);
  end.in = 4;
  end.cached = 2;
  end.out = 2;
  end.reuse = 7999;
  end.reuse_at = 3;
  end.reuse_why = "tokens";
  llmtop_ended(top, 8000, LLMTOP_FINISHED, "stop", &end);
}

/* Handlers of control messages, which log what they are asked for. */
static int asked_generate(llmtop_socket *t, void *data, const llmtop_generation *g, uint64_t *request, char *why, size_t size) {
  char line[512];
  if (g->prompt != NULL && strcmp(g->prompt, "refuse") == 0) {
    snprintf(why, size, "no more than \"%s\"", (const char *)data);
    return -1;
  }
  if (g->prompt != NULL && strcmp(g->prompt, "wait") == 0) rest(300000);
  snprintf(line, sizeof line, "generate %s|%s|%s|%zu|%d|%lld|%lld|%lld|%g|%g|%g|%g|%d%d%d%d", g->prompt == NULL ? "-" : g->prompt, g->group == NULL ? "-" : g->group,
           g->label == NULL ? "-" : g->label, g->id_count, g->id_count > 0 ? (int)g->ids[g->id_count - 1] : -1, (long long)g->max_tokens,
           (long long)g->top_k, (long long)g->seed, g->temperature, g->top_p, g->min_p, g->repeat_penalty, g->ignore_eos, g->special, g->probe, g->picks);
  llmtop_log(t, line);
  *request = 77;
  return 0;
}

static int asked_cancel(llmtop_socket *t, void *data, uint64_t request, char *why, size_t size) {
  (void)t, (void)data;
  if (request == 77) return 0;
  snprintf(why, size, "no request %llu", (unsigned long long)request);
  return -1;
}

static int asked_pause(llmtop_socket *t, void *data, int on, char *why, size_t size) {
  (void)data, (void)why, (void)size;
  llmtop_state(t, on ? "paused" : "ready", NULL);
  return 0;
}

static int asked_hooks(llmtop_socket *t, void *data, int stages_on, int experts, int picks, char *why, size_t size) {
  char line[64];
  (void)data, (void)why, (void)size;
  snprintf(line, sizeof line, "hooks %d%d%d", stages_on, experts, picks);
  llmtop_log(t, line);
  return 0;
}

static void *work(void *arg) {
  uint64_t first = (uint64_t)(size_t)arg, r;
  for (r = first; r <= (uint64_t)requests; r += (uint64_t)threads) generate(r);
  return NULL;
}

int main(void) {
  llmtop_model model;
  llmtop_options options;
  llmtop_controls controls;
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
  options.token = getenv("TOKEN");
  memset(&controls, 0, sizeof controls);
  controls.data = (void *)(size_t)"this";
  controls.generate = asked_generate;
  controls.cancel = asked_cancel;
  controls.pause = asked_pause;
  controls.hooks = asked_hooks;
  if (number("CONTROL", 0)) options.controls = &controls;
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
  if (number("SAMPLED", 0)) llmtop_sample_host(top);
  await("go");
  if (number("PASSES", 0)) passes();
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
