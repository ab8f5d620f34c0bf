/* Shared by the two example engines: configuration and commands of the test. */
#ifndef ENGINE_H
#define ENGINE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The value of an environment variable as a number. */
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

/* Waits for a line from the test. */
static inline void await(const char *word) {
  char line[64];
  while (fgets(line, sizeof line, stdin) != NULL && strncmp(line, word, strlen(word)) != 0) {}
}

#endif
