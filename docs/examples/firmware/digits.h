/* Something to learn, as a sensor would give it: ten patterns of 8 x 8 pixels, each with noise.
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception */
#pragma once

#include <stdint.h>

enum { PIXELS = 64, CLASSES = 10 };

/* Fills `count` images and their labels; `random` is the state of the generator. */
static void draw(float *pixels, int64_t *labels, int count, uint32_t *random) {
  for (int i = 0; i < count; i++) {
    *random = *random * 1664525u + 1013904223u;
    int label = (int)((*random >> 16) % CLASSES);
    labels[i] = label;
    for (int p = 0; p < PIXELS; p++) {
      *random = *random * 1664525u + 1013904223u;
      int isInk = (p * 7 + label * 13) % 11 < 4; /* another pattern for each label */
      pixels[i * PIXELS + p] = (float)isInk + (float)(*random >> 20) * (1.0f / 8192) - 0.25f;
    }
  }
}
