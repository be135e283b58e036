// Sessions: their memory, their tensors, their steps.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/src/internal.h"

namespace ortc {
namespace {

/// What a failing call says; the text is the session's.
template <typename... Arguments>
ortc_status refuse(ortc_session *session, ortc_status status, const char *format, Arguments... arguments) {
  return fail(&session->message, status, format, arguments...);
}

uint64_t align(uint64_t bytes) { return (bytes + ORTC_ALIGNMENT - 1) / ORTC_ALIGNMENT * ORTC_ALIGNMENT; }

/// Bytes of the handle with what follows it: the places of all values, and the marks for loading.
uint64_t handleBytes(const ortc_program *p) {
  return align(sizeof(ortc_session)) + align((uint64_t)p->values.count * sizeof(void *)) + p->tensors.count;
}

ortc_status readOptions(const ortc_program *p, const ortc_session_options *given,
                        ortc_session_options &options, ortc_message *message) {
  options = {};
  if (given)
    memcpy(&options, given, given->size < sizeof options ? given->size : sizeof options);
  if (!options.workers)
    options.workers = 1;
  if (options.workers > p->header.max_workers)
    return fail(message, ORTC_E_ARGUMENT, "%u workers, but the artifact was compiled for at most %u",
                (uint64_t)options.workers, (uint64_t)p->header.max_workers);
  if (options.flags & ~(uint32_t)(ORTC_SESSION_STOP_ON_NOT_FINITE | ORTC_SESSION_BIND_ALL))
    return fail(message, ORTC_E_ARGUMENT, "unknown session flags");
  void *memory[] = {options.persistent, options.transient, options.io};
  for (void *m : memory)
    if ((uintptr_t)m % ORTC_ALIGNMENT)
      return fail(message, ORTC_E_ARGUMENT, "memory for a session must be aligned to 64 bytes");
  return ORTC_OK;
}

ortc_sizes sizesOf(const ortc_program *p, const ortc_session_options &options) {
  ortc_sizes sizes = {};
  sizes.persistent = p->header.persistent_bytes;
  for (uint32_t i = 0; i < p->stepCount; i++) {
    const ortc_file_entry &e = *p->steps[i].entry;
    uint64_t bytes = e.fixed_bytes + options.workers * e.worker_bytes;
    sizes.transient = bytes > sizes.transient ? bytes : sizes.transient;
  }
  sizes.io = options.flags & ORTC_SESSION_BIND_ALL ? 0 : p->header.io_bytes;
  sizes.handle = handleBytes(p);
  return sizes;
}

/// Position of a tensor among the external values of the binding in use; ORTC_NONE if it is not there.
uint32_t findExternal(const ortc_session *s, uint32_t tensor) {
  const ortc_program *p = s->program;
  for (uint32_t i = 0; i < p->stepCount; i++) {
    const ortc_file_entry &e = *p->steps[i].entry;
    for (uint32_t k = 0; e.binding == s->binding && k < e.ext_count; k++)
      if (p->values[e.first_value + k].tensor == tensor)
        return e.first_value + k;
  }
  return ORTC_NONE;
}

/// Sets the place of an external value in every entry of the binding in use.
void setExternal(ortc_session *s, uint32_t tensor, void *data) {
  const ortc_program *p = s->program;
  for (uint32_t i = 0; i < p->stepCount; i++) {
    const ortc_file_entry &e = *p->steps[i].entry;
    for (uint32_t k = 0; e.binding == s->binding && k < e.ext_count; k++)
      if (p->values[e.first_value + k].tensor == tensor)
        s->ext[e.first_value + k] = data;
  }
}

View valueView(const ortc_session *s, const ortc_file_value &v, void *place) {
  const ortc_file_tensor &t = s->program->tensors[v.tensor];
  uint8_t *data = place ? (uint8_t *)place : s->regions[v.region] + v.offset;
  return makeView(data, t.dtype, t.rank, v.dims, v.strides);
}

enum class Access { Read, Write, Place };

/// Finds what a name means in this session. For inputs and outputs `external` is their row of the values
/// table.
ortc_status resolve(ortc_session *s, const char *name, Access access, View &view, uint32_t *tensor,
                    uint32_t *external) {
  if (!name)
    return refuse(s, ORTC_E_ARGUMENT, "no name");
  uint32_t index = *tensor = findTensor(s->program, name);
  if (index == ORTC_NONE)
    return refuse(s, ORTC_E_NOT_FOUND, "the artifact has no tensor '%s'", name);
  const ortc_file_tensor &t = s->program->tensors[index];
  *external = ORTC_NONE;
  if (t.role <= ORTC_ROLE_SCALAR) {
    if (t.role == ORTC_ROLE_CONSTANT && access != Access::Read)
      return refuse(s, ORTC_E_ARGUMENT, "'%s' is a constant: it can only be read", name);
    view = storedView(s, t);
    return ORTC_OK;
  }
  uint32_t row = *external = findExternal(s, index);
  if (row == ORTC_NONE)
    return refuse(s, ORTC_E_NOT_FOUND, "binding '%s' has no '%s'", ortc_binding_name(s->program, s->binding),
                  name);
  const ortc_file_value &v = s->program->values[row];
  void *place = s->ext[row];
  if (access != Access::Read && t.role == ORTC_ROLE_INPUT && (access == Access::Write || !place))
    place = s->regions[ORTC_REGION_IO] ? s->regions[ORTC_REGION_IO] + v.offset : nullptr;
  if (access == Access::Write && t.role == ORTC_ROLE_OUTPUT)
    return refuse(s, ORTC_E_ARGUMENT, "'%s' is an output: it can only be read", name);
  if (!place)
    return refuse(s, ORTC_E_STATE, "'%s' is not bound and the session has no memory for it", name);
  view = valueView(s, v, place);
  return ORTC_OK;
}

ortc_status checkSize(ortc_session *s, const char *name, const View &view, const void *data, size_t bytes) {
  uint64_t expected = view.count * view.element;
  if (bytes != expected)
    return refuse(s, ORTC_E_SHAPE, "'%s' has %u bytes, not %u", name, expected, (uint64_t)bytes);
  return data || !bytes ? ORTC_OK : refuse(s, ORTC_E_ARGUMENT, "no memory for '%s'", name);
}

const Step *findStep(const ortc_session *s, uint32_t role) {
  for (uint32_t i = 0; i < s->program->stepCount; i++) {
    const Step &step = s->program->steps[i];
    if (step.entry->role == role && step.entry->binding == s->binding && !step.entry->segment)
      return &step;
  }
  return nullptr;
}

const char *entryName(uint32_t role) {
  static const char kNames[][10] = {"train", "eval", "predict", "gradients", "update"};
  return kNames[role];
}

double readLoss(const ortc_session *s, const ortc_file_entry &e) {
  const ortc_file_value &v = s->program->values[e.first_value + e.loss];
  void *place = e.loss < e.ext_count ? s->ext[e.first_value + e.loss] : s->regions[v.region] + v.offset;
  if (v.bytes == sizeof(double)) {
    double value;
    memcpy(&value, place, sizeof value);
    return value;
  }
  float value;
  memcpy(&value, place, sizeof value);
  return value;
}

ortc_status reportRange(ortc_session *s, const ortc_detail &detail) {
  const ortc_program *p = s->program;
  const char *name = detail.name < p->checkNames.count ? p->string(p->checkNames[detail.name]) : "?";
  return refuse(s, ORTC_E_RANGE, "index %d in '%s' is out of range: it must be below %d", detail.index, name,
                detail.limit);
}

ortc_status runStep(ortc_session *s, uint32_t role, double *loss) {
  if (!s)
    return ORTC_E_ARGUMENT;
  const ortc_program *p = s->program;
  const Step *step = findStep(s, role);
  if (!step)
    return refuse(s, ORTC_E_NOT_FOUND, "binding '%s' has no %s entry", ortc_binding_name(p, s->binding),
                  entryName(role));
  const ortc_file_entry &e = *step->entry;
  void **ext = s->ext + e.first_value;
  for (uint32_t i = 0; i < e.ext_count; i++) {
    const ortc_file_tensor &t = p->tensors[p->values[e.first_value + i].tensor];
    if (!ext[i])
      return refuse(s, ORTC_E_STATE, "%s '%s' was never given",
                    t.role == ORTC_ROLE_INPUT ? "input" : "output", p->string(t.name));
  }
  if (role == ORTC_ENTRY_UPDATE && s->gradients != s->binding)
    return refuse(s, ORTC_E_STATE, "there are no gradients to apply: the last step was not a gradients step");
  s->gradients = ORTC_NONE;

  ortc_detail detail = {};
  ortc_call call = {};
  call.size = sizeof call;
  if (s->options.flags & ORTC_SESSION_STOP_ON_NOT_FINITE)
    call.flags |= ORTC_CALL_STOP_ON_NOT_FINITE;
  call.bases = (void *const *)s->regions;
  call.ext = ext;
  call.parallel_for = s->options.workers > 1 ? s->options.parallel_for : nullptr;
  call.pool = s->options.pool;
  call.workers = call.parallel_for ? s->options.workers : 1;
  call.trace = s->options.trace;
  call.trace_context = s->options.trace_context;
  call.detail = &detail;
  int32_t result = step->function(&call);

  if ((result == ORTC_STEP_OK || result == ORTC_STEP_NOT_FINITE) && loss && e.loss != ORTC_NONE)
    *loss = readLoss(s, e);
  if (result == ORTC_STEP_RANGE)
    return reportRange(s, detail);
  if (result == ORTC_STEP_NOT_FINITE)
    return refuse(s, ORTC_E_NOT_FINITE, "the loss is not finite; nothing was updated");
  if (result != ORTC_STEP_OK)
    return refuse(s, ORTC_E_INTERNAL, "the %s step returned status %d", entryName(role), (int64_t)result);
  if (role == ORTC_ENTRY_GRADIENTS)
    s->gradients = s->binding;
  return ORTC_OK;
}

/// The gradient of a parameter in the transient region.
ortc_status findGradient(ortc_session *s, const char *parameter, View &view) {
  if (!s)
    return ORTC_E_ARGUMENT;
  if (!parameter)
    return refuse(s, ORTC_E_ARGUMENT, "no name");
  const ortc_program *p = s->program;
  uint32_t index = findTensor(p, parameter);
  const Step *step = findStep(s, ORTC_ENTRY_GRADIENTS);
  if (!step)
    return refuse(s, ORTC_E_NOT_FOUND, "binding '%s' has no %s entry", ortc_binding_name(p, s->binding),
                  entryName(ORTC_ENTRY_GRADIENTS));
  if (s->gradients != s->binding)
    return refuse(s, ORTC_E_STATE, "there are no gradients: the last step was not a gradients step");
  const ortc_file_entry &e = *step->entry;
  for (uint32_t i = e.ext_count; index != ORTC_NONE && i < e.value_count; i++) {
    const ortc_file_value &v = p->values[e.first_value + i];
    const ortc_file_tensor &t = p->tensors[v.tensor];
    if (t.role == ORTC_ROLE_GRADIENT && t.owner == index) {
      view = valueView(s, v, nullptr);
      return ORTC_OK;
    }
  }
  return refuse(s, ORTC_E_NOT_FOUND, "there is no gradient of '%s'", parameter);
}

/// Converts between a number and the first element of a tensor. False for dtypes that no scalar has.
bool convertScalar(uint8_t dtype, uint8_t *place, double &value, bool toNumber) {
  auto convert = [&](auto stored) {
    if (toNumber) {
      memcpy(&stored, place, sizeof stored);
      value = (double)stored;
    } else {
      stored = (decltype(stored))value;
      memcpy(place, &stored, sizeof stored);
    }
    return true;
  };
  switch (dtype) { // TensorProto.DataType
  case 1:
    return convert(0.0f);
  case 6:
    return (toNumber || (value >= -2147483648.0 && value <= 2147483647.0)) && convert((int32_t)0);
  case 7:
    return (toNumber || (value >= -9007199254740992.0 && value <= 9007199254740992.0)) && convert((int64_t)0);
  case 11:
    return convert(0.0);
  default:
    return false;
  }
}

ortc_status accessScalar(ortc_session *s, const char *name, double &value, bool toNumber) {
  View view;
  uint32_t tensor, external;
  if (ortc_status status =
          resolve(s, name, toNumber ? Access::Read : Access::Place, view, &tensor, &external))
    return status;
  if (view.count != 1 || !convertScalar(s->program->tensors[tensor].dtype, view.data, value, toNumber))
    return refuse(s, ORTC_E_SHAPE, "'%s' is not one number of a type that can hold it", name);
  if (external != ORTC_NONE && !toNumber)
    setExternal(s, tensor, view.data);
  return ORTC_OK;
}

} // namespace

View storedView(const ortc_session *s, const ortc_file_tensor &t) {
  return makeView(s->regions[t.region] + t.offset, t.dtype, t.rank, t.dims, t.strides);
}

} // namespace ortc

using namespace ortc;

extern "C" {

ortc_status ortc_session_sizes(const ortc_program *program, const ortc_session_options *options,
                               ortc_sizes *sizes) {
  if (!program)
    return ORTC_E_ARGUMENT;
  ortc_session_options own;
  if (ortc_status status = readOptions(program, options, own, nullptr))
    return status;
  return copyOut(sizes, sizesOf(program, own));
}

ortc_status ortc_session_create(const ortc_program *program, const ortc_session_options *options,
                                ortc_session **session, ortc_message *message) {
  if (!program || !session)
    return fail(message, ORTC_E_ARGUMENT, "no program, or no place for the session");
  *session = nullptr;
  ortc_session_options own;
  if (ortc_status status = readOptions(program, options, own, message))
    return status;
  ortc_sizes sizes = sizesOf(program, own);
  ortc_session *s = (ortc_session *)allocate(program->host, sizes.handle);
  if (!s)
    return fail(message, ORTC_E_MEMORY, "out of memory: a session's handle takes %u bytes", sizes.handle);
  memset((void *)s, 0, sizes.handle);
  s->program = program;
  s->handleBytes = sizes.handle;
  s->options = own;
  s->transientBytes = sizes.transient;
  s->ioBytes = sizes.io;
  s->gradients = ORTC_NONE;
  s->ext = (void **)((uint8_t *)s + align(sizeof *s));
  s->seen = (uint8_t *)s->ext + align((uint64_t)program->values.count * sizeof(void *));
  s->regions[ORTC_REGION_CONSTANTS] = (uint8_t *)program->constants;
  void *given[] = {nullptr, own.persistent, own.transient, own.io};
  uint64_t bytes[] = {0, sizes.persistent, sizes.transient, sizes.io};
  static const char kNames[][11] = {"constants", "persistent", "transient", "io"};
  for (uint32_t i = ORTC_REGION_PERSISTENT; i <= ORTC_REGION_IO; i++) {
    if (given[i] || !bytes[i]) {
      s->regions[i] = bytes[i] ? (uint8_t *)given[i] : nullptr;
      continue;
    }
    s->regions[i] = (uint8_t *)allocate(program->host, bytes[i]);
    if (!s->regions[i]) {
      ortc_session_destroy(s);
      return fail(message, ORTC_E_MEMORY, "out of memory: the %s region takes %u bytes", kNames[i], bytes[i]);
    }
    s->owned |= 1u << i;
  }
  if (sizes.io) { // outputs have their place from the start, inputs once they are given
    memset(s->regions[ORTC_REGION_IO], 0, sizes.io);
    for (uint32_t i = 0; i < program->stepCount; i++) {
      const ortc_file_entry &e = *program->steps[i].entry;
      for (uint32_t k = e.first_value; k < e.first_value + e.ext_count; k++)
        if (program->tensors[program->values[k].tensor].role == ORTC_ROLE_OUTPUT)
          s->ext[k] = s->regions[ORTC_REGION_IO] + program->values[k].offset;
    }
  }
  ortc_session_reset(s);
  *session = s;
  return ORTC_OK;
}

void ortc_session_destroy(ortc_session *session) {
  if (!session)
    return;
  const ortc_host &host = session->program->host;
  uint64_t bytes[] = {0, session->program->header.persistent_bytes, session->transientBytes,
                      session->ioBytes};
  for (uint32_t i = ORTC_REGION_PERSISTENT; i <= ORTC_REGION_IO; i++)
    if (session->owned >> i & 1)
      release(host, session->regions[i], bytes[i]);
  release(host, session, session->handleBytes);
}

const char *ortc_session_message(const ortc_session *session) { return session ? session->message.text : ""; }

ortc_status ortc_session_reset(ortc_session *session) {
  if (!session)
    return ORTC_E_ARGUMENT;
  const ortc_program *p = session->program;
  uint8_t *target = session->regions[ORTC_REGION_PERSISTENT];
  if (p->persistentBytes)
    memcpy(target, p->persistent, p->persistentBytes);
  if (p->header.persistent_bytes > p->persistentBytes)
    memset(target + p->persistentBytes, 0, p->header.persistent_bytes - p->persistentBytes);
  session->gradients = ORTC_NONE;
  return ORTC_OK;
}

ortc_status ortc_session_use_binding(ortc_session *session, uint32_t binding) {
  if (!session)
    return ORTC_E_ARGUMENT;
  if (binding >= session->program->bindings.count)
    return refuse(session, ORTC_E_NOT_FOUND, "binding %u of %u", (uint64_t)binding,
                  (uint64_t)session->program->bindings.count);
  session->binding = binding;
  return ORTC_OK;
}

ortc_status ortc_write(ortc_session *session, const char *name, const void *source, size_t bytes) {
  if (!session)
    return ORTC_E_ARGUMENT;
  View view;
  uint32_t tensor, external;
  ortc_status status = resolve(session, name, Access::Write, view, &tensor, &external);
  if (!status)
    status = checkSize(session, name, view, source, bytes);
  if (status)
    return status;
  transfer(view, 0, view.count, (uint8_t *)source, false);
  if (external != ORTC_NONE)
    setExternal(session, tensor, view.data);
  return ORTC_OK;
}

ortc_status ortc_read(ortc_session *session, const char *name, void *target, size_t bytes) {
  if (!session)
    return ORTC_E_ARGUMENT;
  View view;
  uint32_t tensor, external;
  ortc_status status = resolve(session, name, Access::Read, view, &tensor, &external);
  if (!status)
    status = checkSize(session, name, view, target, bytes);
  if (!status)
    transfer(view, 0, view.count, (uint8_t *)target, true);
  return status;
}

ortc_status ortc_data(ortc_session *session, const char *name, void **data) {
  if (!session || !data)
    return ORTC_E_ARGUMENT;
  View view;
  uint32_t tensor, external;
  if (ortc_status status = resolve(session, name, Access::Place, view, &tensor, &external))
    return status;
  if (!view.isDense())
    return refuse(session, ORTC_E_SHAPE, "'%s' is stored in another layout: use ortc_read and ortc_write",
                  name);
  if (external != ORTC_NONE)
    setExternal(session, tensor, view.data);
  *data = view.data;
  return ORTC_OK;
}

ortc_status ortc_bind(ortc_session *session, const char *name, void *data, size_t bytes) {
  if (!session)
    return ORTC_E_ARGUMENT;
  uint32_t tensor = name ? findTensor(session->program, name) : ORTC_NONE;
  uint32_t row = tensor == ORTC_NONE ? ORTC_NONE : findExternal(session, tensor);
  if (row == ORTC_NONE)
    return refuse(session, ORTC_E_NOT_FOUND, "binding '%s' has no input or output '%s'",
                  ortc_binding_name(session->program, session->binding), name ? name : "");
  const ortc_file_value &v = session->program->values[row];
  uint8_t *io = session->regions[ORTC_REGION_IO];
  if (!data) {
    setExternal(session, tensor, io ? io + v.offset : nullptr);
    return ORTC_OK;
  }
  if (bytes != v.bytes)
    return refuse(session, ORTC_E_SHAPE, "'%s' has %u bytes, not %u", name, v.bytes, (uint64_t)bytes);
  if ((uintptr_t)data % elementSize(session->program->tensors[tensor].dtype))
    return refuse(session, ORTC_E_ARGUMENT, "memory for '%s' is not aligned to its elements", name);
  setExternal(session, tensor, data);
  return ORTC_OK;
}

ortc_status ortc_set_scalar(ortc_session *session, const char *name, double value) {
  return session ? accessScalar(session, name, value, false) : ORTC_E_ARGUMENT;
}

ortc_status ortc_get_scalar(ortc_session *session, const char *name, double *value) {
  return session && value ? accessScalar(session, name, *value, true) : ORTC_E_ARGUMENT;
}

ortc_status ortc_read_gradient(ortc_session *session, const char *parameter, void *target, size_t bytes) {
  View view;
  ortc_status status = findGradient(session, parameter, view);
  if (!status)
    status = checkSize(session, parameter, view, target, bytes);
  if (!status)
    transfer(view, 0, view.count, (uint8_t *)target, true);
  return status;
}

ortc_status ortc_write_gradient(ortc_session *session, const char *parameter, const void *source,
                                size_t bytes) {
  View view;
  ortc_status status = findGradient(session, parameter, view);
  if (!status)
    status = checkSize(session, parameter, view, source, bytes);
  if (!status)
    transfer(view, 0, view.count, (uint8_t *)source, false);
  return status;
}

ortc_status ortc_train_step(ortc_session *session, double *loss) {
  return runStep(session, ORTC_ENTRY_TRAIN, loss);
}
ortc_status ortc_eval_step(ortc_session *session, double *loss) {
  return runStep(session, ORTC_ENTRY_EVAL, loss);
}
ortc_status ortc_predict_step(ortc_session *session) { return runStep(session, ORTC_ENTRY_PREDICT, nullptr); }
ortc_status ortc_gradients_step(ortc_session *session, double *loss) {
  return runStep(session, ORTC_ENTRY_GRADIENTS, loss);
}
ortc_status ortc_update_step(ortc_session *session) { return runStep(session, ORTC_ENTRY_UPDATE, nullptr); }
}
