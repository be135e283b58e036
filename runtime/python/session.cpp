// A session: arrays of Python in, steps, tensors out.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/python/session.h"

#include <algorithm>
#include <limits>
#include <sys/mman.h>
#include <thread>

#include "runtime/python/errors.h"
#include "runtime/python/types.h"

namespace nb = nanobind;

namespace ortc::python {

Region::Region(size_t wanted)
    : data(mmap(nullptr, std::max<size_t>(wanted, 1), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
                0)),
      bytes(std::max<size_t>(wanted, 1)) {
  if (data == MAP_FAILED)
    throw std::bad_alloc();
  madvise(data, bytes, MADV_HUGEPAGE); // a wish
}

Region::~Region() { munmap(data, bytes); }

/// Entry of a thread into a session.
class Session::Guard {
public:
  explicit Guard(Session &session) : session(session) {
    if (session.isBusy.test_and_set(std::memory_order_acquire))
      raise(ORTC_E_STATE, "another thread is in this session; a session is used by one thread at a time");
  }
  ~Guard() { session.isBusy.clear(std::memory_order_release); }
  Guard(const Guard &) = delete;
  Guard &operator=(const Guard &) = delete;

private:
  Session &session;
};

Session::Session(std::shared_ptr<Program> of, uint32_t wanted, bool stopOnNotFinite)
    : program(std::move(of)) {
  uint32_t most = program->getInfo().max_workers;
  if (wanted > most && !program->isOnDevice())
    raise(ORTC_E_ARGUMENT, std::to_string(wanted) + " threads, but the artifact was compiled for at most " +
                               std::to_string(most) +
                               "; compile it with max_workers=" + std::to_string(wanted));
  threads = program->isOnDevice() ? 1
            : wanted              ? wanted
                                  : std::clamp(std::thread::hardware_concurrency(), 1u, most);
  ortc_session_options options = ORTC_INIT(ortc_session_options);
  options.flags = stopOnNotFinite ? ORTC_SESSION_STOP_ON_NOT_FINITE : 0;
  options.workers = threads;
  if (!program->isOnDevice()) {
    persistent = std::make_shared<Region>(program->getInfo().persistent_bytes);
    options.persistent = persistent->data;
  }
  if (threads > 1) {
    pool = ortc_pool_create(threads);
    if (!pool)
      raise(ORTC_E_MEMORY, "cannot start " + std::to_string(threads) + " threads; try threads=1");
    options.parallel_for = ortc_pool_parallel_for;
    options.pool = pool;
  }
  ortc_message message{};
  ortc_status status;
  {
    nb::gil_scoped_release release;
    status = ortc_session_create(program->get(), &options, &session, &message);
  }
  if (status != ORTC_OK)
    ortc_pool_destroy(pool);
  python::check(status, message.text, "session");
  for (const Binding &each : program->getBindings())
    slots.emplace_back(each.values.size());
}

Session::~Session() {
  ortc_session_destroy(session);
  ortc_pool_destroy(pool);
}

void Session::check(ortc_status status, const std::string &what) const {
  if (status != ORTC_OK)
    python::check(status, ortc_session_message(session), what);
}

void Session::useBinding(const std::string &name) {
  Guard guard(*this);
  uint32_t index = ortc_binding_find(program->get(), name.c_str());
  python::check(ortc_session_use_binding(session, index), "", "binding '" + name + "'");
  binding = index;
}

void Session::reset() {
  Guard guard(*this);
  check(ortc_session_reset(session), "reset");
}

// ---- Inputs and outputs.

/// A role of no step: any value of a binding is meant.
static constexpr uint32_t kAnyRole = ORTC_ENTRY_ROLES;

/// The binding in use where it has the step, else the first that has it.
uint32_t Session::findBinding(uint32_t role) const {
  if (role == kAnyRole || getEntry(binding, role))
    return binding;
  for (uint32_t i = 0; i < slots.size(); ++i)
    if (getEntry(i, role))
      return i;
  raise(ORTC_E_NOT_FOUND, std::string("the artifact has no ") + getRoleName(role) + " step" +
                              (role == ORTC_ENTRY_GRADIENTS    ? "; compile it with gradients=True"
                               : role == ORTC_ENTRY_ACCUMULATE ? "; compile it with accumulate=N"
                                                               : ""));
}

/// nullptr where the binding has no such step.
const Entry *Session::getEntry(uint32_t which, uint32_t role) const {
  const Entry *entry = role == kAnyRole ? nullptr : &program->getBindings()[which].entries[role];
  return entry && entry->exists ? entry : nullptr;
}

/// The input or output of a binding that an argument is meant for, or nullptr.
const Spec *Session::findSpec(uint32_t which, uint32_t role, const Given &given) const {
  const Binding &from = program->getBindings()[which];
  const Entry *entry = getEntry(which, role);
  if (role != kAnyRole && !entry)
    return nullptr;
  if (!given.name.is_valid())
    return given.position < entry->inputs.size() ? &from.values[entry->inputs[given.position]] : nullptr;
  for (const Spec &spec : from.values)
    if (spec.key.is(given.name))
      return &spec;
  for (const Spec &spec : from.values)
    if (spec.name == given.name.c_str())
      return &spec;
  return nullptr;
}

/// The binding in use where all arrays fit it, else the first that they fit.
uint32_t Session::chooseBinding(uint32_t role, const std::vector<Given> &given) const {
  auto fits = [&](uint32_t which, const Given &each) {
    const Spec *spec = findSpec(which, role, each);
    return spec && each.array.fits(*spec);
  };
  auto fitsAll = [&](uint32_t which) {
    return std::all_of(given.begin(), given.end(), [&](const Given &each) { return fits(which, each); });
  };
  if (fitsAll(binding))
    return binding;
  for (uint32_t i = 0; i < slots.size(); ++i)
    if (fitsAll(i))
      return i;
  for (const Given &each : given)
    if (!fits(findBinding(role), each))
      refuse(role, each);
  raise(ORTC_E_SHAPE, "no binding takes all of these arrays");
}

void Session::refuse(uint32_t role, const Given &given) const {
  std::string wanted;
  for (uint32_t i = 0; i < slots.size(); ++i)
    if (const Spec *spec = findSpec(i, role, given))
      wanted += (wanted.empty() ? "" : " or ") + python::describe(spec->type, spec->rank, spec->dims) +
                (slots.size() > 1 ? " (binding " + program->getBindings()[i].name + ")" : "");
  raise(ORTC_E_SHAPE, "'" + findSpec(findBinding(role), role, given)->name + "' is " +
                          given.array.describe() + ", but must be " + wanted);
}

static std::string nameDevice(int type, int id) {
  switch (type) {
  case nb::device::cpu::value:
    return "cpu";
  case nb::device::cuda::value:
    return "cuda:" + std::to_string(id);
  case nb::device::rocm::value:
    return "hip:" + std::to_string(id);
  default:
    return "device " + std::to_string(id) + " of DLPack's type " + std::to_string(type);
  }
}

/// Makes an array what steps use; it has the type and shape.
void Session::attach(uint32_t value, Array &&array) {
  const Spec &spec = current().values[value];
  Slot &slot = slots[binding][value];
  bool isHost =
      array.deviceType == nb::device::cpu::value || array.deviceType == nb::device::cuda_host::value;
  bool isOwn =
      array.deviceType == program->getDevice().getType() && array.deviceId == program->getDevice().getId();
  if (!isHost && !isOwn)
    raise(ORTC_E_SHAPE, "'" + spec.name + "' is on " + nameDevice(array.deviceType, array.deviceId) +
                            ", but the session is on " +
                            nameDevice(program->getDevice().getType(), program->getDevice().getId()));
  if (slot.address != array.data) {
    check(ortc_bind(session, spec.name.c_str(), array.data, spec.bytes), "'" + spec.name + "'");
    slot.address = array.data;
  }
  slot.array = std::move(array);
}

void Session::give(uint32_t role, const nb::args *positional, const nb::kwargs &named, Use use) {
  const uint32_t likely = findBinding(role);
  const Binding &expected = program->getBindings()[likely];
  std::vector<Given> given((positional ? positional->size() : 0) + named.size());
  auto next = given.begin();
  for (size_t i = 0; positional && i < positional->size(); ++i, ++next) {
    next->position = uint32_t(i);
    const Spec *spec = findSpec(likely, role, *next);
    if (!spec)
      throw nb::type_error(("the step takes " + std::to_string(getEntry(likely, role)->inputs.size()) +
                            " inputs, but " + std::to_string(positional->size()) + " were given")
                               .c_str());
    next->array = Array((*positional)[i], spec->name, use);
  }
  for (auto [key, value] : named) {
    next->name = nb::borrow<nb::str>(key);
    const Spec *spec = findSpec(likely, role, *next);
    if (!spec) {
      std::string all;
      for (const Spec &other : expected.values)
        all += (all.empty() ? "" : ", ") + other.name;
      throw nb::type_error(
          ("there is no input '" + std::string(next->name.c_str()) + "'; there are " + all).c_str());
    }
    next->array = Array(value, spec->name, spec->isInput ? use : Use::Write);
    ++next;
  }
  uint32_t chosen = chooseBinding(role, given);
  if (chosen != binding) {
    python::check(ortc_session_use_binding(session, chosen), "", "binding");
    binding = chosen;
  }
  for (Given &each : given)
    attach(uint32_t(findSpec(binding, role, each) - current().values.data()), std::move(each.array));
}

void Session::bind(const nb::kwargs &arrays) {
  Guard guard(*this);
  give(kAnyRole, nullptr, arrays, Use::Place);
}

void Session::bindAddress(const std::string &name, uintptr_t address) {
  Guard guard(*this);
  for (size_t i = 0; i < current().values.size(); ++i)
    if (const Spec &spec = current().values[i]; spec.name == name) {
      check(ortc_bind(session, name.c_str(), reinterpret_cast<void *>(address), spec.bytes),
            "'" + name + "'");
      slots[binding][i] = Slot();
      return;
    }
  raise(ORTC_E_NOT_FOUND, "there is no input or output '" + name + "'");
}

// ---- Steps.

double Session::step(uint32_t role) {
  double loss = std::numeric_limits<double>::quiet_NaN();
  ortc_status status;
  {
    nb::gil_scoped_release release;
    status = ortc_step(session, role, &loss);
  }
  if (status != ORTC_OK)
    check(status, getRoleName(role));
  return loss;
}

double Session::run(uint32_t role) {
  Guard guard(*this);
  return step(role);
}

double Session::run(uint32_t role, const nb::args &positional, const nb::kwargs &named) {
  Guard guard(*this);
  if (positional.size() || named.size())
    give(role, &positional, named, Use::Read);
  return step(role);
}

nb::dict Session::predict(const nb::args &positional, const nb::kwargs &named) {
  run(ORTC_ENTRY_PREDICT, positional, named);
  nb::dict results;
  for (uint32_t value : current().entries[ORTC_ENTRY_PREDICT].outputs) {
    const Slot &slot = slots[binding][value];
    const Spec &spec = current().values[value];
    results[spec.key] = slot.array.object.is_valid() ? slot.array.object : read(spec.name);
  }
  return results;
}

// ---- Tensors.

nb::object Session::read(const std::string &name) {
  Guard guard(*this);
  ortc_tensor_info tensor = program->findTensor(name);
  const int64_t *dims = tensor.dims;
  uint64_t bytes = tensor.bytes;
  for (const Spec &spec : current().values) // whose shapes are the binding's
    if (spec.name == name) {
      dims = spec.dims;
      bytes = spec.bytes;
    }
  void *data = nullptr;
  nb::object array = makeArray(tensor.dtype, tensor.rank, dims, data);
  check(ortc_read(session, name.c_str(), data, bytes), "'" + name + "'");
  return array;
}

Array Session::takeDense(const ortc_tensor_info &tensor, const std::string &name, nb::handle values) const {
  Spec spec;
  spec.name = name;
  spec.type = tensor.dtype;
  spec.rank = tensor.rank;
  std::copy_n(tensor.dims, ORTC_MAX_RANK, spec.dims);
  for (const Spec &each : current().values)
    if (each.name == name)
      spec = each;
  Array array(values, name, Use::Read);
  if (!array.fits(spec))
    raise(ORTC_E_SHAPE, "'" + name + "' is " + python::describe(spec.type, spec.rank, spec.dims) +
                            ", but the values are " + array.describe());
  if (array.deviceType != nb::device::cpu::value)
    raise(ORTC_E_SHAPE, "the values of '" + name + "' are on a device; copy them to the host");
  return array;
}

void Session::write(const std::string &name, nb::handle values) {
  Guard guard(*this);
  ortc_tensor_info tensor = program->findTensor(name);
  Array array = takeDense(tensor, name, values);
  for (size_t i = 0; i < current().values.size(); ++i)
    if (const Spec &spec = current().values[i]; spec.name == name) {
      check(ortc_write(session, name.c_str(), array.data, spec.bytes), "'" + name + "'");
      slots[binding][i] = Slot(); // the session's own memory has it
      return;
    }
  check(ortc_write(session, name.c_str(), array.data, tensor.bytes), "'" + name + "'");
}

nb::object Session::readGradient(const std::string &parameter) {
  Guard guard(*this);
  ortc_tensor_info tensor = program->findGradient(parameter);
  void *data = nullptr;
  nb::object array = makeArray(tensor.dtype, tensor.rank, tensor.dims, data);
  check(ortc_read_gradient(session, parameter.c_str(), data, tensor.bytes), "'" + parameter + "'");
  return array;
}

void Session::writeGradient(const std::string &parameter, nb::handle values) {
  Guard guard(*this);
  ortc_tensor_info tensor = program->findGradient(parameter);
  Array array = takeDense(tensor, "gradient of " + parameter, values);
  check(ortc_write_gradient(session, parameter.c_str(), array.data, tensor.bytes), "'" + parameter + "'");
}

double Session::getScalar(const std::string &name) {
  Guard guard(*this);
  double value = 0;
  check(ortc_get_scalar(session, name.c_str(), &value), "'" + name + "'");
  return value;
}

void Session::setScalar(const std::string &name, double value) {
  Guard guard(*this);
  check(ortc_set_scalar(session, name.c_str(), value), "'" + name + "'");
}

const ortc_file_view &Session::findPlace(const std::string &name, const char *&base) const {
  if (!persistent)
    raise(ORTC_E_STATE, "'" + name + "' is on a device; read() copies it");
  const ortc_file_view &view = program->getRow(program->findTensor(name).index).view;
  if (view.region != ORTC_REGION_PERSISTENT)
    raise(ORTC_E_STATE, "'" + name + "' is no parameter, state or scalar of the session");
  base = static_cast<const char *>(persistent->data);
  return view;
}

nb::tuple Session::locate(const std::string &name) {
  const char *base = nullptr;
  const ortc_file_view &place = findPlace(name, base);
  nb::list shape, strides;
  for (int i = 0; i < place.rank; ++i) {
    shape.append(place.dims[i]);
    strides.append(place.strides[i]);
  }
  return nb::make_tuple(uintptr_t(base + place.offset), place.dtype, nb::tuple(shape), nb::tuple(strides));
}

/// What keeps the memory of a session.
static nb::capsule keep(const std::shared_ptr<Region> &region) {
  return nb::capsule(new std::shared_ptr<Region>(region),
                     [](void *owner) noexcept { delete static_cast<std::shared_ptr<Region> *>(owner); });
}

nb::object Session::view(const std::string &name) {
  const char *base = nullptr;
  const ortc_file_view &place = findPlace(name, base);
  return viewAsArray(const_cast<char *>(base) + place.offset, place.dtype, place.rank, place.dims,
                     place.strides, keep(persistent));
}

nb::object Session::exportTensor(const std::string &name) {
  const char *base = nullptr;
  const ortc_file_view &place = findPlace(name, base);
  size_t shape[ORTC_MAX_RANK];
  int64_t strides[ORTC_MAX_RANK];
  for (int i = 0; i < place.rank; ++i) {
    shape[i] = size_t(place.dims[i]);
    strides[i] = place.strides[i] / int64_t(getElementBytes(place.dtype));
  }
  nb::ndarray<nb::array_api> tensor(const_cast<char *>(base) + place.offset, place.rank, shape,
                                    keep(persistent), strides, toDlpack(place.dtype), nb::device::cpu::value);
  return tensor.cast(nb::rv_policy::reference);
}

// ---- Checkpoints.

static std::vector<ortc_metadata> listRows(const std::map<std::string, std::string> &metadata) {
  std::vector<ortc_metadata> rows;
  for (const auto &[key, value] : metadata)
    rows.push_back({key.c_str(), value.c_str()});
  return rows;
}

void Session::save(const std::string &path, const std::map<std::string, std::string> &metadata) {
  Guard guard(*this);
  std::vector<ortc_metadata> rows = listRows(metadata);
  ortc_status status;
  {
    nb::gil_scoped_release release;
    status = ortc_checkpoint_save(session, path.c_str(), rows.data(), rows.size());
  }
  check(status, path);
}

nb::bytes Session::writeCheckpoint(const std::map<std::string, std::string> &metadata) {
  Guard guard(*this);
  std::vector<ortc_metadata> rows = listRows(metadata);
  std::string file;
  auto append = [](void *context, const void *data, size_t bytes) -> int32_t {
    static_cast<std::string *>(context)->append(static_cast<const char *>(data), bytes);
    return 0;
  };
  check(ortc_checkpoint_write(session, append, &file, rows.data(), rows.size()), "checkpoint");
  return nb::bytes(file.data(), file.size());
}

template <typename Load> Loaded Session::take(Load load) {
  Guard guard(*this);
  Loaded result;
  ortc_load_info info = ORTC_INIT(ortc_load_info);
  info.metadata_context = &result.metadata;
  info.metadata = [](void *context, const char *key, const char *value) {
    (*static_cast<std::map<std::string, std::string> *>(context))[key] = value;
  };
  ortc_status status;
  {
    nb::gil_scoped_release release;
    status = load(&info);
  }
  check(status, "checkpoint");
  result.hasFreshState = info.fresh_state != 0;
  result.loaded = info.loaded;
  result.ignored = info.ignored;
  return result;
}

Loaded Session::load(const std::string &path) {
  return take([&](ortc_load_info *info) { return ortc_checkpoint_load(session, path.c_str(), info); });
}

Loaded Session::readCheckpoint(const nb::bytes &file) {
  return take(
      [&](ortc_load_info *info) { return ortc_checkpoint_read(session, file.c_str(), file.size(), info); });
}

} // namespace ortc::python
