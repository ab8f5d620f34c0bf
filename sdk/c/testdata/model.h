/* A small mixture of experts that really computes, for the engines of README.md. */
#ifndef MODEL_H
#define MODEL_H

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { LAYERS = 2, EXPERTS = 4, USED = 2, WIDTH = 16, WORDS = 64, CONTEXT = 128, PROMPT = 26 };

typedef struct {
  double attention[LAYERS][WIDTH][WIDTH], gate[LAYERS][EXPERTS][WIDTH], expert[LAYERS][EXPERTS][WIDTH][WIDTH];
  double embedding[WORDS][WIDTH], state[WIDTH];
} model;

static double model_random(void) { return (double)rand() / RAND_MAX - 0.5; }

static inline model *model_load(const char *path) { /* the weights are random */
  model *m = (model *)calloc(1, sizeof *m);
  double *p = &m->attention[0][0][0];
  size_t i;
  (void)path;
  for (i = 0; m != NULL && i < (sizeof *m - sizeof m->state) / sizeof *p; i++) p[i] = model_random();
  return m;
}

static void model_times(const double (*w)[WIDTH], int rows, const double *x, double *out) {
  int i, j;
  for (i = 0; i < rows; i++)
    for (out[i] = 0, j = 0; j < WIDTH; j++) out[i] += w[i][j] * x[j];
}

/* Waits, at most 20 s, for the file with which the test says that it watches. */
static void model_wait(void) {
  const char *path = getenv("MODEL_WAIT");
  int i;
  for (i = 0; path != NULL && i < 20000; i++) {
    FILE *f = fopen(path, "r");
    struct timespec ms = {0, 1000000};
    if (f != NULL) fclose(f);
    if (f != NULL) return;
    nanosleep(&ms, NULL);
  }
}

static inline int model_tokenize(const char *text, int32_t *ids) {
  int n = 0;
  model_wait();
  for (; text[n] != '\0' && n < CONTEXT / 2; n++) ids[n] = text[n] % WORDS;
  return n;
}

static inline void model_embed(model *m, const int32_t *ids, int n) {
  int i, j;
  for (i = 0; i < n; i++)
    for (j = 0; j < WIDTH; j++) m->state[j] = m->state[j] / 2 + m->embedding[ids[i]][j];
}

static inline void model_attention(model *m, int layer) {
  double out[WIDTH];
  int i;
  model_times((const double (*)[WIDTH])m->attention[layer], WIDTH, m->state, out);
  for (i = 0; i < WIDTH; i++) m->state[i] += tanh(out[i]);
}

static inline void model_router(model *m, int layer, uint16_t picks[USED]) {
  double out[EXPERTS];
  int i, n;
  model_times((const double (*)[WIDTH])m->gate[layer], EXPERTS, m->state, out);
  for (n = 0; n < USED; n++) {
    int best = 0;
    for (i = 1; i < EXPERTS; i++)
      if (out[i] > out[best]) best = i;
    picks[n] = (uint16_t)best;
    out[best] = -1e9;
  }
}

static inline void model_experts(model *m, int layer, const uint16_t picks[USED]) {
  double out[WIDTH];
  int i, n;
  for (n = 0; n < USED; n++) {
    model_times((const double (*)[WIDTH])m->expert[layer][picks[n]], WIDTH, m->state, out);
    for (i = 0; i < WIDTH; i++) m->state[i] = tanh(m->state[i] + out[i]);
  }
}

static inline void model_head(const model *m, double logits[WORDS]) { model_times((const double (*)[WIDTH])m->embedding, WORDS, m->state, logits); }

static inline int32_t model_sample(const double logits[WORDS]) {
  int i, best = rand() % WORDS;
  for (i = 0; i < WORDS; i++)
    if (logits[i] + model_random() > logits[best]) best = i;
  return best;
}

static inline int32_t model_forward(model *m, const int32_t *ids, int n) {
  double logits[WORDS];
  uint16_t picks[USED];
  int layer;
  model_embed(m, ids, n);
  for (layer = 0; layer < LAYERS; layer++) {
    model_attention(m, layer);
    model_router(m, layer, picks);
    model_experts(m, layer, picks);
  }
  model_head(m, logits);
  return model_sample(logits);
}

#endif
