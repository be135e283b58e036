// The code of the test artifact: y = x w^T, loss = mean((y - onehot(label))^2), SGD with momentum 0.5.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Linked as a flat blob (steps.ld). Places of everything are those of TestArtifact.cpp. w has the ONNX shape
// [2, 3] and is stored transposed, as [3][2].
#include "ortc/call.h"

enum { kIn = 3, kOut = 2 };
// Persistent region, in bytes.
enum { kW = 0, kMomentum = 64, kStep = 128, kRate = 192 };
// Transient region.
enum { kLoss = 0, kGradient = 64, kResidual = 128 };

__asm__(".section .head,\"a\"\n"
        "head: .long 0x424f524f, 1, 7, 16\n"
        ".long 0, 0, 0, train_4 - head\n"
        ".long 1, 0, 0, eval_4 - head\n"
        ".long 2, 0, 0, predict_4 - head\n"
        ".long 3, 0, 0, gradients_4 - head\n"
        ".long 4, 0, 0, update_4 - head\n"
        ".long 2, 1, 0, predict_1 - head\n"
        ".long 1, 1, 0, eval_1 - head\n"
        ".text\n");

#define HIDDEN __attribute__((visibility("hidden"), used))

static float *at(const ortc_call *call, int base, int offset) {
  return (float *)((char *)call->bases[base] + offset);
}

struct rows {
  const float *x, *w;
  float *y;
};

static void row(void *context, int64_t chunk, int64_t worker) {
  const struct rows *a = (const struct rows *)context;
  for (int o = 0; o < kOut; o++) {
    float sum = 0;
    for (int i = 0; i < kIn; i++)
      sum += a->x[chunk * kIn + i] * a->w[i * kOut + o];
    a->y[chunk * kOut + o] = sum;
  }
  (void)worker;
}

static void forward(const ortc_call *call, int batch, const float *x, float *y) {
  struct rows a = {x, at(call, ORTC_BASE_PERSISTENT, kW), y};
  if (call->trace)
    call->trace(call->trace_context, 0, ORTC_TRACE_BEGIN);
  if (call->parallel_for) {
    call->parallel_for(call->pool, batch, row, &a);
  } else {
    for (int64_t chunk = 0; chunk < batch; chunk++)
      row(&a, chunk, 0);
  }
  if (call->trace)
    call->trace(call->trace_context, 0, ORTC_TRACE_END);
}

static int32_t loss(const ortc_call *call, int batch, const float *y, const int64_t *label, float *residual) {
  float sum = 0;
  for (int b = 0; b < batch; b++)
    if (label[b] < 0 || label[b] >= kOut) {
      call->detail->name = 0;
      call->detail->from_end = 0;
      call->detail->index = label[b];
      call->detail->limit = kOut;
      return ORTC_STEP_RANGE;
    }
  for (int b = 0; b < batch; b++)
    for (int o = 0; o < kOut; o++) {
      float r = y[b * kOut + o] - (label[b] == o ? 1.0f : 0.0f);
      residual[b * kOut + o] = r;
      sum += r * r;
    }
  float mean = sum / (float)(batch * kOut);
  *at(call, ORTC_BASE_TRANSIENT, kLoss) = mean;
  return (call->flags & ORTC_CALL_STOP_ON_NOT_FINITE) && mean - mean != 0 ? ORTC_STEP_NOT_FINITE
                                                                          : ORTC_STEP_OK;
}

static int32_t gradients(const ortc_call *call, int batch, float *y) {
  const float *x = (const float *)call->ext[0];
  float *residual = at(call, ORTC_BASE_TRANSIENT, kResidual);
  forward(call, batch, x, y);
  int32_t status = loss(call, batch, y, (const int64_t *)call->ext[1], residual);
  float *g = at(call, ORTC_BASE_TRANSIENT, kGradient);
  for (int i = 0; i < kIn; i++)
    for (int o = 0; o < kOut; o++) {
      float sum = 0;
      for (int b = 0; b < batch; b++)
        sum += residual[b * kOut + o] * x[b * kIn + i];
      g[i * kOut + o] = sum * (2.0f / (float)(batch * kOut));
    }
  return status;
}

static void update(const ortc_call *call) {
  float *w = at(call, ORTC_BASE_PERSISTENT, kW), *m = at(call, ORTC_BASE_PERSISTENT, kMomentum);
  const float *g = at(call, ORTC_BASE_TRANSIENT, kGradient);
  float rate = *at(call, ORTC_BASE_PERSISTENT, kRate);
  for (int k = 0; k < kIn * kOut; k++) {
    m[k] = 0.5f * m[k] + g[k];
    w[k] -= rate * m[k];
  }
  ++*(int64_t *)at(call, ORTC_BASE_PERSISTENT, kStep);
}

HIDDEN int32_t train_4(const ortc_call *call) {
  int32_t status = gradients(call, 4, (float *)call->ext[2]);
  if (status == ORTC_STEP_OK)
    update(call);
  return status;
}
HIDDEN int32_t gradients_4(const ortc_call *call) {
  return gradients(call, 4, at(call, ORTC_BASE_TRANSIENT, kResidual + 64));
}
HIDDEN int32_t update_4(const ortc_call *call) {
  update(call);
  return ORTC_STEP_OK;
}
static int32_t eval(const ortc_call *call, int batch) {
  forward(call, batch, (const float *)call->ext[0], (float *)call->ext[2]);
  return loss(call, batch, (const float *)call->ext[2], (const int64_t *)call->ext[1],
              at(call, ORTC_BASE_TRANSIENT, kResidual));
}
static int32_t predict(const ortc_call *call, int batch) {
  const float *shift = at(call, ORTC_BASE_CONSTANTS, 0);
  float *y = (float *)call->ext[1];
  forward(call, batch, (const float *)call->ext[0], y);
  for (int k = 0; k < batch * kOut; k++)
    y[k] += shift[k % kOut];
  return ORTC_STEP_OK;
}
HIDDEN int32_t eval_4(const ortc_call *call) { return eval(call, 4); }
HIDDEN int32_t eval_1(const ortc_call *call) { return eval(call, 1); }
HIDDEN int32_t predict_4(const ortc_call *call) { return predict(call, 4); }
HIDDEN int32_t predict_1(const ortc_call *call) { return predict(call, 1); }
