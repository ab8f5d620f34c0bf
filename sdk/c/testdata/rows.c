/* Writes the stages of more requests than are kept to the given file, twice, and prints the results. */
#define LLMTOP_IMPLEMENTATION
#include "llmtop.h"

#include "engine.h"

int main(int argc, char **argv) {
  llmtop_options options = {.name = "rows", .csv = 1, .ring = 1 << 18};
  llmtop_socket *top = llmtop_open(&options, NULL, 0);
  uint64_t missing = 0;
  if (top == NULL || argc != 2) return 1;
  llmtop_stage(top, 0, "stage, \"warm\"", -1, llmtop_now(top), 0);
  for (uint64_t request = 1; request <= (1 << 16) + 3; request++) {
    llmtop_queued(top, request, NULL);
    llmtop_stage(top, request, LLMTOP_PREFILL, -1, llmtop_now(top), 0);
    llmtop_ended(top, request, LLMTOP_FINISHED, NULL, NULL);
  }
  llmtop_queued(top, 1 << 17, NULL);
  llmtop_stage(top, 1 << 17, LLMTOP_DECODE, -1, llmtop_now(top), 0);
  for (int i = 0; i < 2; i++) {
    long rows = llmtop_csv(top, argv[1], &missing);
    printf("%ld rows, %llu missing\n", rows, (unsigned long long)missing);
  }
  printf("%ld\n", llmtop_csv(top, "/dev/null/x", NULL));
  llmtop_close(top);
  return 0;
}
