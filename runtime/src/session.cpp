// Sessions: their memory, their tensors, their steps.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/src/internal.h"

namespace ortc {
namespace {

/// Position of a tensor among the external values of the binding in use; ORTC_NONE if it is not there. With
/// `place`, it gets that place in all entries of the binding.
uint32_t findExternal(const ortc_session *s, uint32_t tensor, void *const *place) {
  const ortc_program *p = s->program;
  uint32_t found = ORTC_NONE;
  for (uint32_t i = 0; i < p->stepCount; i++) {
    const ortc_file_entry &e = *p->steps[i].entry;
    for (uint32_t row = e.first_value; e.binding == s->binding && row < e.first_value + e.ext_count; row++) {
      if (p->value(row).tensor != tensor)
        continue;
      found = row;
      if (place)
        s->ext[row] = *place;
    }
  }
  return found;
}

View valueView(const ortc_session *s, const ortc_file_value &v, void *place) {
  const ortc_file_tensor &t = s->program->tensor(v.tensor);
  return makeView((uint8_t *)place, t.dtype, t.rank, v.dims, v.strides);
}

const Step *findStep(const ortc_session *s, uint32_t role) {
  for (uint32_t i = 0; i < s->program->stepCount; i++) {
    const ortc_file_entry &e = *s->program->steps[i].entry;
    if (e.role == role && e.binding == s->binding && !e.segment)
      return &s->program->steps[i];
  }
  return nullptr;
}

const char *bindingName(const ortc_session *s) { return ortc_binding_name(s->program, s->binding); }

enum class Operation { Read, Write, Place, Bind, GetScalar, SetScalar, ReadGradient, WriteGradient };

/// Where the gradient of a tensor lies.
ortc_status findGradient(ortc_session *s, uint32_t owner, const char *name, View &view) {
  const Step *step = findStep(s, ORTC_ENTRY_GRADIENTS);
  if (s->gradients != s->binding || !step)
    return fail(&s->message, E_STATE "there are no gradients: the last step was not a gradients step");
  const ortc_file_entry &e = *step->entry;
  for (uint32_t row = e.first_value + e.ext_count; row < e.first_value + e.value_count; row++) {
    const ortc_file_value &v = s->program->value(row);
    const ortc_file_tensor &t = s->program->tensor(v.tensor);
    if (t.role == ORTC_ROLE_GRADIENT && t.owner == owner) {
      view = valueView(s, v, s->regions[v.region] + v.offset);
      return ORTC_OK;
    }
  }
  return fail(&s->message, E_NOT_FOUND "there is no gradient of '%s'", name);
}

/// Where an input or output lies, for an operation; inputs that are given to the session come into its own
/// memory.
ortc_status findPlace(ortc_session *s, uint32_t tensor, const char *name, Operation operation, void *data,
                      View &view) {
  uint32_t row = findExternal(s, tensor, nullptr);
  if (row == ORTC_NONE)
    return fail(&s->message, E_NOT_FOUND "binding '%s' has no '%s'", bindingName(s), name);
  const ortc_file_value &v = s->program->value(row);
  uint8_t *io = s->regions[ORTC_REGION_IO];
  void *place = s->ext[row], *own = io ? io + v.offset : nullptr;
  bool isInput = s->program->tensor(tensor).role == ORTC_ROLE_INPUT;
  if (operation == Operation::Bind)
    place = data ? data : own;
  else if (isInput && (operation == Operation::Write || (operation != Operation::Read && !place)))
    place = own;
  else if (operation == Operation::Write)
    return fail(&s->message, E_ARGUMENT "'%s' is an output: it can only be read", name);
  view = valueView(s, v, place);
  return place || operation == Operation::Bind
             ? ORTC_OK
             : fail(&s->message, E_STATE "'%s' is not bound and the session has no memory for it", name);
}

/// Converts between a number and the one element of a tensor. False for dtypes that no scalar has.
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
  bool isInteger = dtype == 6 || dtype == 7; // TensorProto.DataType
  double limit = dtype == 6 ? 2147483647.0 : 9007199254740992.0;
  if (isInteger && !toNumber && !(value <= limit && value >= -limit))
    return false;
  return dtype == 1    ? convert(0.0f)
         : dtype == 6  ? convert((int32_t)0)
         : dtype == 7  ? convert((int64_t)0)
         : dtype == 11 ? convert(0.0)
                       : false;
}

/// Everything that is done with one tensor by name. `bytes`: of the caller's memory at `data`.
ortc_status access(ortc_session *s, const char *name, Operation operation, void *data, size_t bytes) {
  if (!s)
    return ORTC_E_ARGUMENT;
  ortc_message *m = &s->message;
  bool isBind = operation == Operation::Bind;
  if (!name || (!data && !isBind))
    return fail(m, E_ARGUMENT "a NULL pointer");
  uint32_t index = findTensor(s->program, name);
  if (index == ORTC_NONE)
    return fail(m, E_NOT_FOUND "the artifact has no tensor '%s'", name);
  const ortc_file_tensor &t = s->program->tensor(index);
  bool isStored = t.role <= ORTC_ROLE_SCALAR, isGradient = operation >= Operation::ReadGradient;
  bool isScalar = operation == Operation::GetScalar || operation == Operation::SetScalar;
  View view = {};
  ortc_status status = ORTC_OK;
  if (isGradient)
    status = findGradient(s, index, name, view);
  else if (!isStored)
    status = findPlace(s, index, name, operation, data, view);
  else if (isBind)
    return fail(m, E_NOT_FOUND "'%s' is neither input nor output", name);
  else if (t.role == ORTC_ROLE_CONSTANT && operation != Operation::Read)
    return fail(m, E_ARGUMENT "'%s' is a constant: it can only be read", name);
  else
    view = storedView(s, t);
  if (status)
    return status;
  if (operation == Operation::Place
          ? !view.isDense()
          : (!isScalar && data && bytes != view.bytes()) || (isScalar && view.count != 1))
    return fail(m, E_SHAPE "'%s' has %u bytes, not %u, or is not stored densely", name, view.bytes(),
                (uint64_t)bytes);
  if (isBind && (uintptr_t)view.data % view.element)
    return fail(m, E_ARGUMENT "memory for '%s' is not aligned to its elements", name);
  if (isScalar) {
    if (!convertScalar(t.dtype, view.data, *(double *)data, operation == Operation::GetScalar))
      return fail(m, E_SHAPE "'%s' cannot be this number", name);
  } else if (operation == Operation::Place) {
    *(void **)data = view.data;
  } else if (!isBind) {
    transfer(view, 0, view.count, (uint8_t *)data,
             operation == Operation::Read || operation == Operation::ReadGradient);
  }
  void *place = view.data;
  if (!isStored && operation != Operation::Read)
    findExternal(s, index, &place);
  return ORTC_OK;
}

ortc_status runStep(ortc_session *s, uint32_t role, double *loss) {
  static const char kNames[][10] = {"train", "eval", "predict", "gradients", "update"};
  if (!s)
    return ORTC_E_ARGUMENT;
  const ortc_program *p = s->program;
  ortc_message *m = &s->message;
  const Step *step = findStep(s, role);
  if (!step)
    return fail(m, E_NOT_FOUND "binding '%s' has no %s entry", bindingName(s), kNames[role]);
  const ortc_file_entry &e = *step->entry;
  void **ext = s->ext + e.first_value;
  for (uint32_t i = 0; i < e.ext_count; i++)
    if (!ext[i])
      return fail(m, E_STATE "'%s' was never given", p->name(p->tensor(p->value(e.first_value + i).tensor)));
  if (role == ORTC_ENTRY_UPDATE && s->gradients != s->binding)
    return fail(m, E_STATE "there are no gradients: the last step was not a gradients step");
  s->gradients = ORTC_NONE;

  const ortc_session_options &o = s->options;
  ortc_detail detail = {};
  ortc_call call = {};
  call.size = sizeof call;
  call.flags = o.flags & ORTC_SESSION_STOP_ON_NOT_FINITE;
  call.bases = (void *const *)s->regions;
  call.ext = ext;
  call.parallel_for = o.workers > 1 ? o.parallel_for : nullptr;
  call.pool = o.pool;
  call.workers = call.parallel_for ? o.workers : 1;
  call.trace = o.trace;
  call.trace_context = o.trace_context;
  call.detail = &detail;
  int32_t result = step->function(&call);

  if (loss && e.loss != ORTC_NONE && (result == ORTC_STEP_OK || result == ORTC_STEP_NOT_FINITE)) {
    const ortc_file_value &v = p->value(e.first_value + e.loss);
    void *place = e.loss < e.ext_count ? ext[e.loss] : s->regions[v.region] + v.offset;
    convertScalar(p->tensor(v.tensor).dtype, (uint8_t *)place, *loss, true);
  }
  if (result == ORTC_STEP_RANGE) {
    bool isKnown = detail.name < p->tables[ORTC_SECTION_CHECK_NAMES].count;
    return fail(m, E_RANGE "index %d in '%s' is out of range: it must be below %d", detail.index,
                isKnown ? p->string(p->row<uint32_t>(ORTC_SECTION_CHECK_NAMES, detail.name)) : "?",
                detail.limit);
  }
  if (result == ORTC_STEP_NOT_FINITE)
    return fail(m, E_NOT_FINITE "the loss is not finite; nothing was updated");
  if (result != ORTC_STEP_OK)
    return fail(m, E_INTERNAL "the %s step returned status %d", kNames[role], (int64_t)result);
  if (role == ORTC_ENTRY_GRADIENTS)
    s->gradients = s->binding;
  return ORTC_OK;
}
static_assert((int)ORTC_SESSION_STOP_ON_NOT_FINITE == ORTC_CALL_STOP_ON_NOT_FINITE, "passed on as it is");

/// The options with what they leave open filled in, and the sizes that follow.
ortc_status plan(const ortc_program *p, const ortc_session_options *given, ortc_session_options &options,
                 ortc_sizes &sizes, ortc_message *m) {
  options = copyIn(given);
  options.workers += !options.workers;
  if (options.workers > p->header.max_workers)
    return fail(m, E_ARGUMENT "%u workers, but the artifact was compiled for at most %u",
                (uint64_t)options.workers, (uint64_t)p->header.max_workers);
  if (((uintptr_t)options.persistent | (uintptr_t)options.transient | (uintptr_t)options.io) %
          ORTC_ALIGNMENT ||
      options.flags >> 2)
    return fail(m, E_ARGUMENT "memory for a session must be aligned to 64 bytes, and its flags known");
  sizes = {};
  sizes.persistent = p->header.persistent_bytes;
  for (uint32_t i = 0; i < p->stepCount; i++) {
    const ortc_file_entry &e = *p->steps[i].entry;
    uint64_t bytes = e.fixed_bytes + options.workers * e.worker_bytes;
    sizes.transient = bytes > sizes.transient ? bytes : sizes.transient;
  }
  sizes.io = options.flags & ORTC_SESSION_BIND_ALL ? 0 : p->header.io_bytes;
  // The places of all values, and the marks for loading, follow the handle.
  sizes.handle =
      sizeof(ortc_session) + p->tables[ORTC_SECTION_VALUES].count * sizeof(void *) + p->tensorCount();
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
  ortc_session_options own;
  ortc_sizes out;
  ortc_status status = plan(program, options, own, out, nullptr);
  return status ? status : copyOut(sizes, out);
}

ortc_status ortc_session_create(const ortc_program *program, const ortc_session_options *options,
                                ortc_session **session, ortc_message *message) {
  ortc_session_options own;
  ortc_sizes sizes;
  *session = nullptr;
  if (ortc_status status = plan(program, options, own, sizes, message))
    return status;
  uint64_t bytes[] = {sizes.handle, sizes.persistent, sizes.transient, sizes.io};
  void *memory[] = {nullptr, own.persistent, own.transient, sizes.io ? own.io : nullptr};
  uint32_t owned = 0;
  for (uint32_t i = 0; i < 4; i++) { // the handle, then the regions
    if (memory[i] || (i && !bytes[i]))
      continue;
    memory[i] = allocate(program->host, bytes[i]);
    owned |= (uint32_t)(memory[i] != nullptr) << i;
    if (memory[i])
      continue;
    while (i--)
      if (owned >> i & 1)
        release(program->host, memory[i], bytes[i]);
    return fail(message, E_MEMORY "out of memory: the session takes %u + %u + %u bytes", bytes[1], bytes[2],
                bytes[3]);
  }
  ortc_session *s = (ortc_session *)memset(memory[0], 0, sizes.handle);
  s->program = program;
  s->options = own;
  s->sizes = sizes;
  s->owned = owned;
  s->ext = (void **)(s + 1);
  s->seen = (uint8_t *)(s->ext + program->tables[ORTC_SECTION_VALUES].count);
  memcpy(s->regions, memory, sizeof memory);
  s->regions[ORTC_REGION_CONSTANTS] = (uint8_t *)program->tables[ORTC_SECTION_CONSTANTS].data;
  uint8_t *io = s->regions[ORTC_REGION_IO];
  for (uint32_t i = 0; io && i < program->stepCount; i++) {
    const ortc_file_entry &e = *program->steps[i].entry;
    for (uint32_t row = e.first_value; row < e.first_value + e.ext_count; row++)
      if (program->tensor(program->value(row).tensor).role == ORTC_ROLE_OUTPUT)
        s->ext[row] = io + program->value(row).offset; // inputs have their place once they are given
  }
  *session = s;
  return ortc_session_reset(s);
}

void ortc_session_destroy(ortc_session *session) {
  if (!session)
    return;
  const ortc_host &host = session->program->host;
  const ortc_sizes &sizes = session->sizes;
  uint64_t bytes[] = {0, sizes.persistent, sizes.transient, sizes.io};
  for (uint32_t i = 1; i < 4; i++)
    if (session->owned >> i & 1)
      release(host, session->regions[i], bytes[i]);
  release(host, session, sizes.handle);
}

const char *ortc_session_message(const ortc_session *session) { return session->message.text; }

ortc_status ortc_session_reset(ortc_session *session) {
  const Table &image = session->program->tables[ORTC_SECTION_PERSISTENT];
  uint8_t *target = session->regions[ORTC_REGION_PERSISTENT];
  session->gradients = ORTC_NONE;
  if (session->sizes.persistent)
    memset(target, 0, session->sizes.persistent);
  if (image.bytes)
    memcpy(target, image.data, image.bytes);
  return ORTC_OK;
}

ortc_status ortc_session_use_binding(ortc_session *session, uint32_t binding) {
  if (!ortc_binding_name(session->program, binding))
    return fail(&session->message, E_NOT_FOUND "there is no binding %u", (uint64_t)binding);
  session->binding = binding;
  return ORTC_OK;
}

ortc_status ortc_write(ortc_session *session, const char *name, const void *source, size_t bytes) {
  return access(session, name, Operation::Write, (void *)source, bytes);
}
ortc_status ortc_read(ortc_session *session, const char *name, void *target, size_t bytes) {
  return access(session, name, Operation::Read, target, bytes);
}
ortc_status ortc_data(ortc_session *session, const char *name, void **data) {
  return access(session, name, Operation::Place, data, 0);
}
ortc_status ortc_bind(ortc_session *session, const char *name, void *data, size_t bytes) {
  return access(session, name, Operation::Bind, data, bytes);
}
ortc_status ortc_set_scalar(ortc_session *session, const char *name, double value) {
  return access(session, name, Operation::SetScalar, &value, 0);
}
ortc_status ortc_get_scalar(ortc_session *session, const char *name, double *value) {
  return access(session, name, Operation::GetScalar, value, 0);
}
ortc_status ortc_read_gradient(ortc_session *session, const char *parameter, void *target, size_t bytes) {
  return access(session, parameter, Operation::ReadGradient, target, bytes);
}
ortc_status ortc_write_gradient(ortc_session *session, const char *parameter, const void *source,
                                size_t bytes) {
  return access(session, parameter, Operation::WriteGradient, (void *)source, bytes);
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
