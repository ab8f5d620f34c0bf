/* Reads control messages as the emitter does, for a fuzz test: each one on standard input after its length in 4 bytes. For each
 * it prints whether it is an object that is well-formed, the number c, and the bytes of the prompt in hexadecimal. */
#define LLMTOP_IMPLEMENTATION
#include "llmtop.h"

static void answer(const char *message, size_t n) {
  llmtopi_scan line, rest;
  llmtopi_text prompt = {NULL, 0, 0, 0};
  int64_t call = -1;
  double real = -1;
  size_t i;
  line.p = message;
  line.end = message + n;
  rest = line;
  llmtopi_space(&rest);
  if (rest.p == rest.end || *rest.p != '{' || !llmtopi_skip_value(&rest, 0) || (llmtopi_space(&rest), rest.p != rest.end)) {
    printf("malformed\n");
    return;
  }
  llmtopi_get_int(llmtopi_get(line, "c"), &call);
  llmtopi_get_real(llmtopi_get(line, "c"), &real);
  printf("%lld %.6g ", (long long)call, real);
  if (llmtopi_get_text(llmtopi_get(line, "prompt"), &prompt)) {
    for (i = 0; i + 1 < prompt.n; i++) printf("%02x", (unsigned char)prompt.p[i]);
    printf(".\n");
  } else {
    printf("none\n");
  }
  free(prompt.p);
}

int main(void) {
  uint32_t n;
  while (fread(&n, sizeof n, 1, stdin) == 1) {
    char *message = (char *)malloc(n + (n == 0)); /* of that size, so that a sanitizer finds what is read behind it */
    if (message == NULL || fread(message, 1, n, stdin) != n) return 1;
    answer(message, n);
    fflush(stdout);
    free(message);
  }
  return 0;
}
