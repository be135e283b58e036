// A session: arrays of Python in, steps, tensors out.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "bindings/python/session.h"

#include <algorithm>
#include <limits>
#include <sys/mman.h>
#include <thread>

#include "bindings/python/errors.h"
#include "bindings/python/types.h"
#include "support/FormatNames.h"

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

Session::Guard::Guard(Session &session) : session(session) {
  if (session.isBusy.test_and_set(std::memory_order_acquire))
    raise(ORTC_E_STATE, "another thread is in this session; a session is used by one thread at a time");
}

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
  pool = std::make_unique<Pool>(threads);
  pool->give(options);
  ortc_message message{};
  ortc_status status;
  {
    nb::gil_scoped_release release;
    status = ortc_session_create(program->get(), &options, &session, &message);
  }
  python::check(status, message.text, "session");
  for (const Binding &each : program->getBindings())
    slots.emplace_back(each.values.size());
}

Session::~Session() { ortc_session_destroy(session); }

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

// ---- Steps.

void Session::checkProcess() const {
  if (pool->isOfParent())
    raise(ORTC_E_STATE,
          "the session's threads are another process's; a forked child makes a session of its own");
}

double Session::step(uint32_t role) {
  checkProcess();
  follow(role);
  double loss = std::numeric_limits<double>::quiet_NaN();
  ortc_status status;
  {
    nb::gil_scoped_release release;
    status = ortc_step(session, role, &loss);
  }
  if (status != ORTC_OK)
    check(status, getEntryRoleName(role));
  return loss;
}

ortc_status Session::perform(uint32_t of, bool writes, const std::function<ortc_status()> &run) {
  Guard guard(*this);
  checkProcess();
  if (of != binding) {
    python::check(ortc_session_use_binding(session, of), "", "binding");
    binding = of;
  }
  for (size_t i = 0; writes && i < slots[binding].size(); ++i)
    if (current().values[i].isInput)
      slots[binding][i] = Slot();
  nb::gil_scoped_release release;
  return run();
}

uint32_t Session::accept(uint32_t role, const nb::kwargs &named) {
  Guard guard(*this);
  give(role, nullptr, named, Use::Read);
  return binding;
}

double Session::run(uint32_t role) {
  Guard guard(*this);
  return step(role);
}

double Session::run(uint32_t role, const nb::args &positional, const nb::kwargs &named) {
  Guard guard(*this);
  return giveAndStep(role, positional, named);
}

double Session::giveAndStep(uint32_t role, const nb::args &positional, const nb::kwargs &named) {
  if (positional.size() || named.size())
    give(role, &positional, named, Use::Read);
  return step(role);
}

nb::dict Session::predict(const nb::args &positional, const nb::kwargs &named) {
  Guard guard(*this);
  giveAndStep(ORTC_ENTRY_PREDICT, positional, named);
  nb::dict results;
  for (uint32_t value : current().entries[ORTC_ENTRY_PREDICT].outputs) {
    const Slot &slot = slots[binding][value];
    const Spec &spec = current().values[value];
    results[spec.key] = slot.array.object.is_valid() ? slot.array.object : copy(spec.name);
  }
  return results;
}

// ---- Tensors.

nb::object Session::read(const std::string &name) {
  Guard guard(*this);
  return copy(name);
}

nb::object Session::copy(const std::string &name) {
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
