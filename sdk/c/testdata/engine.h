/* What the two example engines share: how they are told what to do. */
#ifndef ENGINE_H
#define ENGINE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The value of a variable of the environment as a number. */
static inline long number(const char *name, long otherwise) {
  const char *value = getenv(name);
  return value == NULL ? otherwise : strtol(value, NULL, 10);
}

static inline void rest(long us) {
  struct timespec t;
  t.tv_sec = us / 1000000;
  t.tv_nsec = us % 1000000 * 1000;
  nanosleep(&t, NULL);
}

/* Waits until the line that the test sends. */
static inline void await(const char *word) {
  char line[64];
  while (fgets(line, sizeof line, stdin) != NULL && strncmp(line, word, strlen(word)) != 0) {}
}

#endif
