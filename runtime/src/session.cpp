// Sessions: their memory, their tensors, their steps.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/src/internal.h"
#include "runtime/src/sha256.h"
#include "runtime/src/transfer.h"

namespace ortc {
namespace {

/// Position of a tensor among the external values of the binding in use; ORTC_NONE if it is not there. With
/// `place`, it gets that place in all entries of the binding.
__attribute__((noinline)) uint32_t findExternal(const ortc_session *s, uint32_t tensor, void *const *place) {
  const ortc_program *p = s->program;
  uint32_t found = ORTC_NONE;
  for (uint32_t i = 0; i < p->step_count; i++) {
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

const Step *findStep(const ortc_session *s, uint32_t role) {
  for (uint32_t i = 0; i < s->program->step_count; i++) {
    const ortc_file_entry &e = *s->program->steps[i].entry;
    if (e.role == role && e.binding == s->binding && !e.segment)
      return &s->program->steps[i];
  }
  return nullptr;
}

const char *bindingName(const ortc_session *s) { return ortc_binding_name(s->program, s->binding); }

enum class Operation { Read, Write, Place, Bind, GetScalar, SetScalar, ReadGradient, WriteGradient };

/// Where the gradient of a tensor lies.
Error findGradient(ortc_session *s, uint32_t owner, View &view) {
  if (!s->gradients || s->gradients->binding != s->binding)
    return kNoGradients;
  const ortc_file_entry &e = *s->gradients;
  for (uint32_t row = e.first_value + e.ext_count; row < e.first_value + e.value_count; row++) {
    const ortc_file_value &v = s->program->value(row);
    const ortc_file_tensor &t = s->program->tensor(v.tensor);
    if (t.owner == owner) {
      view = locate(s, v.view);
      return kNoError;
    }
  }
  return kNoGradient;
}

/// Where an input or output lies, for an operation; inputs that are given to the session come into its own
/// memory.
Error findPlace(ortc_session *s, uint32_t tensor, Operation operation, void *data, View &view) {
  uint32_t row = findExternal(s, tensor, nullptr);
  if (row == ORTC_NONE)
    return kNoTensor;
  const ortc_file_value &v = s->program->value(row);
  uint8_t *io = s->regions[ORTC_REGION_IO];
  void *place = s->ext[row], *own = io ? io + v.view.offset : nullptr;
  bool isInput = s->program->tensor(tensor).role == ORTC_ROLE_INPUT;
  if (operation == Operation::Bind)
    place = data ? data : own;
  else if (operation == Operation::Write && !isInput)
    return kReadOnly;
  else if (operation == Operation::Write || (operation != Operation::Read && !place))
    place = own;
  view = makeView(place, v.view);
  return place || operation == Operation::Bind ? kNoError : kNotGiven;
}

/// Converts between a double and the one element of a tensor, in place. False for dtypes that no scalar has.
bool convertScalar(uint8_t dtype, void *place, bool toNumber) {
  double value;
  memcpy(&value, place, sizeof value);
  auto convert = [&](auto stored) {
    if (toNumber) {
      memcpy(&stored, place, sizeof stored);
      value = (double)stored;
      memcpy(place, &value, sizeof value);
    } else {
      stored = (decltype(stored))value;
      memcpy(place, &stored, sizeof stored);
    }
    return true;
  };
  switch (dtype) { // TensorProto.DataType
  case 1:
    return convert(0.0f);
  case 7: // what a double can count to
    return (toNumber || (value <= 9007199254740992.0 && value >= -9007199254740992.0)) && convert((int64_t)0);
  case 11:
    return convert(0.0);
  default:
    return false;
  }
}

/// Everything that is done with one tensor by name. `bytes`: of the caller's memory at `data`.
Error access(ortc_session *s, const char *name, void *data, size_t bytes, Operation operation) {
  bool isBind = operation == Operation::Bind;
  bool toDense = operation == Operation::Read || operation == Operation::ReadGradient ||
                 operation == Operation::GetScalar;
  if (!name || (!data && !isBind))
    return kNullPointer;
  s->arguments.set(0, name);
  s->arguments.set(1, bindingName(s));
  uint32_t index = findTensor(s->program, name);
  if (index == ORTC_NONE)
    return kNoTensor;
  const ortc_file_tensor &t = s->program->tensor(index);
  bool isStored = t.role <= ORTC_ROLE_SCALAR;
  bool isScalar = operation == Operation::GetScalar || operation == Operation::SetScalar;
  View view;
  Error error = kNoError;
  if (operation >= Operation::ReadGradient)
    error = findGradient(s, index, view);
  else if (!isStored)
    error = findPlace(s, index, operation, data, view);
  else if (isBind)
    error = kNotBindable;
  else if (t.role == ORTC_ROLE_CONSTANT && operation != Operation::Read)
    error = kReadOnly;
  else
    view = locate(s, t.view);
  if (error)
    return error;
  if (isScalar)
    bytes = view.element;
  s->arguments.set(1, view.bytes());
  s->arguments.set(2, bytes);
  if (operation == Operation::Place ? !view.isDense() : data && bytes != view.bytes())
    return kWrongSize;
  if (isBind && (uintptr_t)view.data & (view.element - 1))
    return kTensorMisaligned;
  if (operation == Operation::SetScalar && !convertScalar(t.view.dtype, data, false))
    return kWrongNumber;
  if (operation == Operation::Place) {
    if (s->memory)
      return kOnDevice;
    *(void **)data = view.data;
  } else if (!isBind) {
    error = move(s, view, 0, view.count, (uint8_t *)data, toDense);
  }
  if (error)
    return error;
  if (operation == Operation::GetScalar && !convertScalar(t.view.dtype, data, true))
    return kWrongNumber;
  void *place = view.data;
  if (!isStored && operation != Operation::Read)
    findExternal(s, index, &place);
  return kNoError;
}

/// The operation comes last: arguments stay where callers have them.
ortc_status perform(ortc_session *s, const char *name, void *data, size_t bytes, Operation operation) {
  return s ? report(access(s, name, data, bytes, operation), s->arguments) : ORTC_E_ARGUMENT;
}

__attribute__((noinline)) Error run(ortc_session *s, uint32_t role, double *loss) {
  const ortc_program *p = s->program;
  const Step *step = findStep(s, role);
  if (!step)
    return s->arguments.set(0, bindingName(s)), kNoEntry;
  const ortc_file_entry &e = *step->entry;
  void **ext = s->ext + e.first_value;
  for (uint32_t i = 0; i < e.ext_count; i++) {
    if (ext[i])
      continue;
    const ortc_file_value &v = p->value(e.first_value + i);
    const ortc_file_tensor &t = p->tensor(v.tensor);
    uint8_t *io = s->regions[ORTC_REGION_IO];
    if (!io || t.role == ORTC_ROLE_INPUT)
      return s->arguments.set(0, p->string(t.name)), kNotGiven;
    void *place = io + v.view.offset;
    findExternal(s, v.tensor, &place);
  }
  // An update needs gradients; backward what forward has kept.
  uint32_t last = s->gradients && s->gradients->binding == s->binding ? s->gradients->role : 0;
  if ((role == ORTC_ENTRY_UPDATE && (last & 3) != 3) ||
      (role == ORTC_ENTRY_BACKWARD && last != ORTC_ENTRY_FORWARD))
    return kNoGradients;
  s->gradients = nullptr;

  s->call.ext = ext;
  int32_t result;
  if (s->memory) {
    result = p->host.device->run(s->memory, step, &s->call, loss, &s->arguments.message);
    if (result < 0)
      return tell(-result, s->arguments);
    loss = nullptr; // the device has put it there
  } else {
    result = ((ortc_step_fn)(uintptr_t)step->list)(&s->call);
  }

  if (loss && e.loss != ORTC_NONE && !(result & ~ORTC_STEP_NOT_FINITE)) {
    const ortc_file_value &v = p->value(e.first_value + e.loss);
    const uint8_t *place = s->regions[v.view.region] + v.view.offset;
    *loss = v.view.dtype == 1 ? (double)*(const float *)place : *(const double *)place;
  }
  if (result == ORTC_STEP_RANGE) {
    const char *name = p->listed(ORTC_SECTION_CHECK_NAMES, s->detail.name);
    return s->arguments.set(0, (uint64_t)s->detail.index), s->arguments.set(1, name ? name : "?"),
           s->arguments.set(2, 0 - (uint64_t)s->detail.limit * !!s->detail.from_end),
           s->arguments.set(3, (uint64_t)s->detail.limit), kOutOfRange;
  }
  if (result == ORTC_STEP_NOT_FINITE)
    return kNotFinite;
  if (result != ORTC_STEP_OK)
    return s->arguments.set(0, (uint64_t)result), kUnknownResult;
  if (role >= ORTC_ENTRY_FORWARD || role == ORTC_ENTRY_GRADIENTS)
    s->gradients = &e;
  return kNoError;
}
static_assert((ORTC_ENTRY_GRADIENTS & ORTC_ENTRY_BACKWARD & 3) == 3 && !(ORTC_ENTRY_FORWARD & 1),
              "told apart by 3");
static_assert((int)ORTC_SESSION_STOP_ON_NOT_FINITE == ORTC_CALL_STOP_ON_NOT_FINITE, "passed on as it is");

/// The options with what they leave open filled in, and the sizes that follow.
Error plan(const ortc_program *p, ortc_session_options &options, ortc_sizes &sizes, Arguments &arguments) {
  options.workers += !options.workers;
  arguments.set(0, options.workers);
  arguments.set(1, p->head->max_workers);
  if (options.workers > p->head->max_workers)
    return kTooManyWorkers;
  // A device's memory is its own.
  if (((uintptr_t)options.persistent | (uintptr_t)options.transient | (uintptr_t)options.io) &
      (p->host.device ? ~(uintptr_t)0 : ORTC_ALIGNMENT - 1))
    return kMisaligned;
  sizes.persistent = sizes.transient = sizes.io = 0;
  if (!p->host.device) { // which has all memory
    sizes.persistent = p->head->persistent_bytes;
    sizes.io = options.flags & ORTC_SESSION_BIND_ALL ? 0 : p->head->io_bytes;
  }
  for (uint32_t i = 0; i < p->step_count && !p->host.device; i++) {
    const ortc_file_entry &e = *p->steps[i].entry;
    uint64_t bytes = e.fixed_bytes + options.workers * e.worker_bytes;
    sizes.transient = bytes > sizes.transient ? bytes : sizes.transient;
  }
  if ((sizes.persistent | sizes.transient | sizes.io) > SIZE_MAX)
    return kNoMemory;
  // The places of all values, and the marks for loading, follow the handle.
  uint64_t bytes =
      sizeof(ortc_session) + p->tables[ORTC_SECTION_VALUES].count * sizeof(void *) + p->tensorCount();
  sizes.handle = (bytes + ORTC_ALIGNMENT - 1) / ORTC_ALIGNMENT * ORTC_ALIGNMENT;
  return kNoError;
}

/// Checks the images before the first session uses them: constants where they are, initial parameters where
/// they are copied from. Threads may do it at the same time.
Error checkImages(const ortc_program *p, Arguments &arguments) {
  for (uint32_t kind = ORTC_SECTION_CONSTANTS; kind <= ORTC_SECTION_PERSISTENT; kind++) {
    const ortc_file_section *section = p->chosen[kind];
    arguments.set(0, kPartSectionKind);
    arguments.set(1, kind);
    if (section && !hasDigest(p->tables[kind].data, section->bytes, section->sha256))
      return kDamaged;
  }
  __atomic_store_n(&p->areImagesGood, 1, __ATOMIC_RELAXED);
  return kNoError;
}

/// Fills the persistent region. `isZero`: it is.
void initialise(ortc_session *s, bool isZero) {
  const ortc_program *p = s->program;
  const Table image = p->tables[ORTC_SECTION_PERSISTENT];
  uint8_t *target = s->regions[ORTC_REGION_PERSISTENT];
  if (image.count)
    memcpy(target, image.data, image.count);
  // Before the rest is touched: a second copy of the parameters is no part of the peak.
  forgetPages(p->file);
  if (!isZero && image.count < p->head->persistent_bytes)
    memset(target + image.count, 0, p->head->persistent_bytes - image.count);
}

} // namespace

View locate(const ortc_session *s, const ortc_file_view &v) {
  return makeView(s->regions[v.region] + v.offset, v);
}

Error move(ortc_session *s, const View &view, uint64_t first, uint64_t count, uint8_t *dense, bool toDense) {
  if (s->memory)
    return tell(
        s->program->host.device->copy(s->memory, &view, first, count, dense, toDense, &s->arguments.message),
        s->arguments);
  return transfer(view, first, count, dense, toDense), kNoError;
}

} // namespace ortc

using namespace ortc;

extern "C" {

ortc_status ortc_session_sizes(const ortc_program *program, const ortc_session_options *options,
                               ortc_sizes *sizes) {
  ortc_session_options own = copyIn(options);
  Arguments arguments;
  return report(nullptr, plan(program, own, *sizes, arguments), &arguments);
}

ortc_status ortc_session_create(const ortc_program *program, const ortc_session_options *options,
                                ortc_session **session, ortc_message *message) {
  ortc_session_options own = copyIn(options);
  ortc_sizes sizes;
  Arguments arguments;
  *session = nullptr;
  Error error = plan(program, own, sizes, arguments);
  if (!error && !__atomic_load_n(&program->areImagesGood, __ATOMIC_RELAXED))
    error = checkImages(program, arguments);
  if (error)
    return report(message, error, &arguments);
  // One piece of memory for the handle and the regions that are not given.
  const uint64_t *bytes = &sizes.persistent;
  void *const *given = &own.persistent;
  uint64_t total = sizes.handle; // each is below 2^ORTC_REGION_BITS
  for (int i = 0; i < 3; i++)
    total += given[i] ? 0 : bytes[i];
  uint8_t *memory = total > SIZE_MAX ? nullptr : (uint8_t *)allocate(program->host, (size_t)total);
  if (!memory)
    return report(message, kNoMemory);
  ortc_session *s = (ortc_session *)memset(memory, 0, sizes.handle);
  s->program = program;
  s->allocated = total;
  s->ext = (void **)(s + 1);
  s->seen = (uint8_t *)(s->ext + program->tables[ORTC_SECTION_VALUES].count);
  s->regions[ORTC_REGION_CONSTANTS] = (uint8_t *)program->tables[ORTC_SECTION_CONSTANTS].data;
  memory += sizes.handle;
  for (int i = 0; i < 3; i++) {
    s->regions[ORTC_REGION_PERSISTENT + i] = !bytes[i] ? nullptr : given[i] ? (uint8_t *)given[i] : memory;
    memory += given[i] ? 0 : bytes[i];
  }
  ortc_call &call = s->call;
  call.size = sizeof call;
  call.flags = own.flags & ORTC_CALL_STOP_ON_NOT_FINITE;
  call.bases = (void *const *)s->regions;
  call.detail = &s->detail;
  call.parallel_for = own.parallel_for;
  call.workers = own.parallel_for ? own.workers : 1;
  call.pool = own.pool;
  call.trace = own.trace;
  call.trace_context = own.trace_context;
  if (const ortc_device *device = program->host.device)
    error = tell(
        device->create(program->module, call.flags, (void **)s->regions, &s->memory, &s->arguments.message),
        s->arguments);
  else
    initialise(s, !program->host.allocate && !own.persistent);
  if (error) {
    ortc_status status = report(message, error, &s->arguments);
    ortc_session_destroy(s);
    return status;
  }
  *session = s;
  return ORTC_OK;
}

void ortc_session_destroy(ortc_session *session) {
  if (!session)
    return;
  if (session->memory)
    session->program->host.device->destroy(session->memory);
  release(session->program->host, session, session->allocated);
}

const char *ortc_session_message(const ortc_session *session) { return session->arguments.message.text; }

ortc_status ortc_session_reset(ortc_session *session) {
  session->gradients = nullptr;
  if (session->memory)
    return report(tell(session->program->host.device->reset(session->memory, &session->arguments.message),
                       session->arguments),
                  session->arguments);
  initialise(session, false);
  return ORTC_OK;
}

ortc_status ortc_session_use_binding(ortc_session *session, uint32_t binding) {
  if (!ortc_binding_name(session->program, binding))
    return ORTC_E_NOT_FOUND;
  session->binding = binding;
  return ORTC_OK;
}

ortc_status ortc_write(ortc_session *session, const char *name, const void *source, size_t bytes) {
  return perform(session, name, (void *)source, bytes, Operation::Write);
}
ortc_status ortc_read(ortc_session *session, const char *name, void *target, size_t bytes) {
  return perform(session, name, target, bytes, Operation::Read);
}
ortc_status ortc_data(ortc_session *session, const char *name, void **data) {
  return perform(session, name, data, 0, Operation::Place);
}
ortc_status ortc_bind(ortc_session *session, const char *name, void *data, size_t bytes) {
  return perform(session, name, data, bytes, Operation::Bind);
}
ortc_status ortc_set_scalar(ortc_session *session, const char *name, double value) {
  return perform(session, name, &value, 0, Operation::SetScalar);
}
ortc_status ortc_get_scalar(ortc_session *session, const char *name, double *value) {
  return perform(session, name, value, 0, Operation::GetScalar);
}
ortc_status ortc_read_gradient(ortc_session *session, const char *parameter, void *target, size_t bytes) {
  return perform(session, parameter, target, bytes, Operation::ReadGradient);
}
ortc_status ortc_write_gradient(ortc_session *session, const char *parameter, const void *source,
                                size_t bytes) {
  return perform(session, parameter, (void *)source, bytes, Operation::WriteGradient);
}

ortc_status ortc_step(ortc_session *session, uint32_t role, double *loss) {
  return session ? report(run(session, role, loss), session->arguments) : ORTC_E_ARGUMENT;
}
ortc_status ortc_train_step(ortc_session *session, double *loss) {
  return ortc_step(session, ORTC_ENTRY_TRAIN, loss);
}
ortc_status ortc_accumulate_step(ortc_session *session, double *loss) {
  return ortc_step(session, ORTC_ENTRY_ACCUMULATE, loss);
}
ortc_status ortc_eval_step(ortc_session *session, double *loss) {
  return ortc_step(session, ORTC_ENTRY_EVAL, loss);
}
ortc_status ortc_predict_step(ortc_session *session) {
  return ortc_step(session, ORTC_ENTRY_PREDICT, nullptr);
}
ortc_status ortc_gradients_step(ortc_session *session, double *loss) {
  return ortc_step(session, ORTC_ENTRY_GRADIENTS, loss);
}
ortc_status ortc_update_step(ortc_session *session) { return ortc_step(session, ORTC_ENTRY_UPDATE, nullptr); }
}
