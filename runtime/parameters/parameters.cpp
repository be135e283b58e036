// Parameters of a session as one buffer of float32.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// A float32 tensor is copied by ortc_read or ortc_write where it lies in the buffer. Others pass through the scratch
// memory, which is as large as the largest of them.
#include "ortc/parameters.h"

#include <string.h>

namespace ortc::parameters {
namespace {

// ONNX TensorProto.DataType.
constexpr uint8_t kFloat = 1, kDouble = 11, kBfloat16 = 16;

// What can go wrong: a status, and a text with '#' for each number.
#define ORTC_PARAMETERS_INCOMPLETE "\1the size, `which` or the buffer is missing"
#define ORTC_PARAMETERS_SCRATCH                                                                              \
  "\6scratch memory of # bytes is too small: # are needed (ortc_parameters_size)"
#define ORTC_PARAMETERS_COUNT "\11the buffer has # numbers, but the parameters have # (ortc_parameters_size)"
static_assert(ORTC_E_ARGUMENT == 1 && ORTC_E_MEMORY == 6 && ORTC_E_SHAPE == 011);

bool isOf(uint32_t which, const ortc_tensor_info &info) {
  bool isFloat = info.dtype == kFloat || info.dtype == kDouble || info.dtype == kBfloat16;
  bool isStatistic = info.role == ORTC_ROLE_STATE && info.flags & ORTC_TENSOR_IN_MODEL;
  return isFloat && (info.role == ORTC_ROLE_PARAMETER || (which == ORTC_PARAMETERS_ALL && isStatistic));
}

uint64_t countOf(const ortc_tensor_info &info) {
  return info.bytes / (info.dtype == kDouble ? 8 : info.dtype == kFloat ? 4 : 2);
}

/// The next tensor of the table from number `i` on; false behind the last one.
bool next(const ortc_program *program, uint32_t which, uint32_t &i, ortc_tensor_info &info) {
  info.size = sizeof info;
  while (!ortc_tensor_get(program, i++, &info))
    if (isOf(which, info))
      return true;
  return false;
}

void widen(uint8_t dtype, const void *data, float *values, uint64_t count) {
  for (uint64_t i = 0; i < count; i++) {
    if (dtype == kDouble)
      values[i] = (float)((const double *)data)[i];
    else {
      uint32_t bits = (uint32_t)((const uint16_t *)data)[i] << 16;
      memcpy(values + i, &bits, 4);
    }
  }
}

uint16_t narrow(float value) {
  uint32_t bits;
  memcpy(&bits, &value, 4);
  if (value != value)
    return (uint16_t)(bits >> 16 | 0x40); // a NaN whose upper half is none would become infinite
  return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

void convert(uint8_t dtype, const float *values, void *data, uint64_t count) {
  for (uint64_t i = 0; i < count; i++) {
    if (dtype == kDouble)
      ((double *)data)[i] = (double)values[i];
    else
      ((uint16_t *)data)[i] = narrow(values[i]);
  }
}

ortc_status fail(ortc_message *message, const char *text, uint64_t first = 0, uint64_t second = 0) {
  ortc_status status = *text++;
  if (!message)
    return status;
  char *at = message->text, *end = at + sizeof message->text - 1;
  for (; *text && at < end; text++) {
    if (*text != '#') {
      *at++ = *text;
      continue;
    }
    char digits[24], *digit = digits + sizeof digits - 1;
    *digit = 0;
    do
      *--digit = (char)('0' + first % 10);
    while (first /= 10);
    while (*digit && at < end)
      *at++ = *digit++;
    first = second;
  }
  *at = 0;
  return status;
}

/// The session's own words.
void pass(ortc_message *message, const char *text) {
  if (!message)
    return;
  size_t bytes = strlen(text), most = sizeof message->text - 1;
  bytes = bytes < most ? bytes : most;
  memcpy(message->text, text, bytes);
  message->text[bytes] = 0;
}

ortc_status check(const ortc_program *program, const ortc_parameters &given, ortc_message *message) {
  ortc_parameters needed = given;
  if (ortc_parameters_size(program, &needed) || (!given.values && needed.count))
    return fail(message, ORTC_PARAMETERS_INCOMPLETE);
  if (given.count != needed.count)
    return fail(message, ORTC_PARAMETERS_COUNT, given.count, needed.count);
  uint64_t room = given.scratch ? given.scratch_bytes : 0;
  if (room < needed.scratch_bytes)
    return fail(message, ORTC_PARAMETERS_SCRATCH, room, needed.scratch_bytes);
  return ORTC_OK;
}

ortc_status transfer(const ortc_program *program, ortc_session *session, const ortc_parameters &given,
                     bool isRead, ortc_message *message) {
  if (ortc_status status = check(program, given, message))
    return status;
  float *values = given.values;
  ortc_tensor_info info;
  for (uint32_t i = 0; next(program, given.which, i, info);) {
    uint64_t count = countOf(info);
    bool isFloat = info.dtype == kFloat;
    void *place = isFloat ? values : given.scratch;
    if (!isRead && !isFloat)
      convert(info.dtype, values, place, count);
    ortc_status status = isRead ? ortc_read(session, info.name, place, (size_t)info.bytes)
                                : ortc_write(session, info.name, place, (size_t)info.bytes);
    if (status) {
      pass(message, ortc_session_message(session));
      return status;
    }
    if (isRead && !isFloat)
      widen(info.dtype, place, values, count);
    values += count;
  }
  return ORTC_OK;
}

} // namespace
} // namespace ortc::parameters

using namespace ortc::parameters;

extern "C" {

ortc_status ortc_parameters_size(const ortc_program *program, ortc_parameters *parameters) {
  if (parameters->size < sizeof *parameters || parameters->which > ORTC_PARAMETERS_ALL)
    return ORTC_E_ARGUMENT;
  parameters->count = parameters->scratch_bytes = 0;
  ortc_tensor_info info;
  for (uint32_t i = 0; next(program, parameters->which, i, info);) {
    parameters->count += countOf(info);
    if (info.dtype != kFloat && info.bytes > parameters->scratch_bytes)
      parameters->scratch_bytes = info.bytes;
  }
  return ORTC_OK;
}

ortc_status ortc_parameters_read(const ortc_program *program, ortc_session *session,
                                 const ortc_parameters *parameters, ortc_message *message) {
  return transfer(program, session, *parameters, true, message);
}

ortc_status ortc_parameters_write(const ortc_program *program, ortc_session *session,
                                  const ortc_parameters *parameters, ortc_message *message) {
  return transfer(program, session, *parameters, false, message);
}
}
