/* Measures the cost of emitting. For each line "KIND N" on standard input it emits N events one after the other, and prints how many ns
 * each took and how many events of any kind have been dropped so far. */
#define LLMTOP_IMPLEMENTATION
#include "llmtop.h"

#include "engine.h"

enum { REQUESTS = 8 };

static llmtop_socket *top;

/* Each of these functions returns the measured ns. */

/* The cost of the loop and of reading the clock. */
static int64_t clocks(long n) {
  int64_t began = llmtop_now(top);
  volatile int64_t last = began;
  while (n-- > 0) last = llmtop_now(top);
  return last - began;
}

static void emit_token(void) {
  static int32_t index;
  llmtop_token(top, (uint64_t)(index % REQUESTS) + 1, index / REQUESTS, index % 4096);
  index++;
}

static int64_t tokens(long n) {
  int64_t began = llmtop_now(top);
  while (n-- > 0) emit_token();
  return llmtop_now(top) - began;
}

static int64_t spans(long n) {
  int64_t began = llmtop_now(top);
  while (n-- > 0) {
    LLMTOP_SCOPE(timer, top, (uint64_t)(n % REQUESTS) + 1, LLMTOP_DECODE);
    timer.tokens = 1;
  }
  return llmtop_now(top) - began;
}

/* A token each 20 us, while the writer runs concurrently; each measurement includes a reading of the clock. */
static int64_t apart(long n) {
  int64_t began = llmtop_now(top), next = began, took = 0;
  for (; n > 0; n--) {
    next += 20000;
    while ((began = llmtop_now(top)) < next) {}
    emit_token();
    took += llmtop_now(top) - began;
  }
  return took;
}

static unsigned long long dropped(void) {
  unsigned long long sum = 0;
  int kind;
  for (kind = 0; kind < LLMTOP_KINDS; kind++) sum += llmtop_dropped(top, (llmtop_kind)kind);
  return sum;
}

static void measure(const char *kind, long n) {
  int64_t (*const run)(long) =
      strcmp(kind, "token") == 0 ? tokens : strcmp(kind, "span") == 0 ? spans : strcmp(kind, "apart") == 0 ? apart : clocks;
  int64_t took = run(n);
  printf("%.2f %llu\n", (double)took / (double)n, dropped());
  fflush(stdout);
}

int main(void) {
  llmtop_options options = {0};
  char error[256], kind[16];
  uint64_t request;
  long n;
  options.name = "bench-c";
  options.address = getenv("ADDRESS");
  options.caps = LLMTOP_CAN_STAGES | LLMTOP_CAN_TOKENS;
  top = llmtop_open(&options, error, sizeof error);
  if (top == NULL) {
    fprintf(stderr, "%s\n", error);
    return 1;
  }
  printf("%s\n", llmtop_address(top));
  fflush(stdout);
  for (request = 1; request <= REQUESTS; request++) llmtop_queued(top, request, NULL);
  while (scanf("%15s %ld", kind, &n) == 2) measure(kind, n);
  llmtop_close(top);
  return 0;
}
