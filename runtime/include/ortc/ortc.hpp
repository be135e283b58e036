// The C++ interface of the ortc runtime: ortc.h and threads.h with owners, exceptions and containers.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// C++17, this header alone; link libortc, and libortc_threads where there is a Pool. Every function is the
// call of ortc.h that it names and nothing more: what is said there about threads, layouts and lifetimes
// holds here.
//
// Sizes are in elements of the caller's type, which must be the tensor's (ortc_tensor_info.dtype), or bytes: they are
// copied as they are, and another number is refused with SHAPE. float16 and bfloat16 are numbers of 16 bits. Ranges are
// what std::data and std::size take: vectors, arrays, spans. Objects that own can be moved, not copied; one that was
// moved from can be destroyed and assigned to only. A call that fails throws Error and has changed nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <iterator>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "ortc/ortc.h"
#include "ortc/threads.h"

namespace ortc {

/// A call that failed. what() is the text of the runtime, or the status as a word where it has none.
class Error : public std::runtime_error {
public:
  Error(ortc_status status, const std::string &text)
      : std::runtime_error(text.empty() ? ortc_status_name(status) : text), code(status) {}
  /// enum ortc_status_code, never ORTC_OK.
  ortc_status status() const noexcept { return code; }

private:
  ortc_status code;
};

/// The element type of numbers in C++, as ONNX's TensorProto.DataType; 0 for what is no number, or may be any: bytes.
template <typename T> constexpr uint8_t elementType() {
  using Element = std::remove_cv_t<T>;
  if constexpr (std::is_same_v<Element, bool>)
    return 9;
  else if constexpr (sizeof(Element) == 1 || !std::is_arithmetic_v<Element>)
    return 0;
  else if constexpr (std::is_floating_point_v<Element>)
    return sizeof(Element) == 4 ? 1 : sizeof(Element) == 8 ? 11 : 255;
  else if constexpr (std::is_signed_v<Element>)
    return sizeof(Element) == 2 ? 5 : sizeof(Element) == 4 ? 6 : 7;
  else
    return sizeof(Element) == 2 ? 4 : sizeof(Element) == 4 ? 12 : 13;
}

/// Strings of a checkpoint by key, UTF-8.
using Metadata = std::map<std::string, std::string>;

/// What a checkpoint brought: ortc_load_info.
struct LoadInfo {
  bool hasFreshState = false; ///< the file had weights alone; optimizer state and step counter were reset
  uint32_t loaded = 0, ignored = 0;
  Metadata metadata; ///< without the runtime's own
};

/// A function that C calls back. What it throws must not pass through C: it is thrown where C has returned.
template <typename Function> struct Callback {
  Function &function;
  std::exception_ptr thrown;

  /// Whether it returned.
  template <typename... Arguments> bool call(Arguments... arguments) noexcept {
    try {
      function(arguments...);
      return true;
    } catch (...) {
      thrown = std::current_exception();
      return false;
    }
  }
  void rethrow() const {
    if (thrown)
      std::rethrow_exception(thrown);
  }
};

/// Threads for sessions: ortc_pool. It must outlive the sessions that use it, which use it one at a time.
class Pool {
public:
  /// 1 to ORTC_POOL_MAX_WORKERS workers, the calling thread among them. Throws with MEMORY where there are no
  /// threads to be had, with ARGUMENT for another number.
  explicit Pool(uint32_t workers) : handle(ortc_pool_create(workers)) {
    if (!handle)
      throw Error(workers - 1 < ORTC_POOL_MAX_WORKERS ? ORTC_E_MEMORY : ORTC_E_ARGUMENT,
                  "there is no pool of " + std::to_string(workers) + " workers");
  }
  uint32_t workers() const { return ortc_pool_workers(handle.get()); }
  /// For a Session with as many workers: the program's max_workers must be at least that.
  ortc_session_options options() const {
    auto options = ORTC_INIT(ortc_session_options);
    options.workers = workers();
    options.parallel_for = ortc_pool_parallel_for;
    options.pool = handle.get();
    return options;
  }
  ortc_pool *get() const noexcept { return handle.get(); }

private:
  struct Destroy {
    void operator()(ortc_pool *pool) const noexcept { ortc_pool_destroy(pool); }
  };
  std::unique_ptr<ortc_pool, Destroy> handle;
};

/// An opened artifact: ortc_program. Immutable: sessions in any threads may use it, and it must outlive them.
/// Texts and sections that it gives live as long as it does.
class Program {
public:
  /// ortc_program_open_file. The hooks of `host` must not throw. Throws with IO, FORMAT, VERSION, HASH,
  /// TARGET, MEMORY.
  explicit Program(const std::string &path, const ortc_host *host = nullptr) {
    ortc_program *program = nullptr;
    ortc_message message{};
    ortc_status status = ortc_program_open_file(path.c_str(), host, &program, &message);
    own(program, status, message);
  }
  /// ortc_program_open_memory: `image` is used in place, aligned to ORTC_ALIGNMENT and unchanged while the
  /// program lives.
  Program(const void *image, size_t bytes, const ortc_host *host = nullptr) {
    ortc_program *program = nullptr;
    ortc_message message{};
    ortc_status status = ortc_program_open_memory(image, bytes, host, &program, &message);
    own(program, status, message);
  }
  ortc_program *get() const noexcept { return handle.get(); }

  /// ortc_program_get_info.
  ortc_program_info info() const {
    auto result = ORTC_INIT(ortc_program_info);
    check(ortc_program_get_info(get(), &result), "program");
    return result;
  }
  /// All tensors, in the order of the table: ortc_tensor_get.
  std::vector<ortc_tensor_info> tensors() const {
    return list<ortc_tensor_info>([this](uint32_t i, auto *row) { return ortc_tensor_get(get(), i, row); });
  }
  /// ortc_tensor_find. Throws with NOT_FOUND.
  ortc_tensor_info tensor(const std::string &name) const {
    auto result = ORTC_INIT(ortc_tensor_info);
    check(ortc_tensor_find(get(), name.c_str(), &result), "tensor '" + name + "'");
    return result;
  }
  /// The entries of the chosen code: ortc_entry_get.
  std::vector<ortc_entry_info> entries() const {
    return list<ortc_entry_info>([this](uint32_t i, auto *row) { return ortc_entry_get(get(), i, row); });
  }
  /// Inputs, outputs, gradients and loss of an entry, with the shapes that they have there: ortc_entry_value.
  std::vector<ortc_tensor_info> values(uint32_t entry) const {
    return list<ortc_tensor_info>(
        [&](uint32_t i, auto *row) { return ortc_entry_value(get(), entry, i, row); });
  }
  /// Names of the bindings, by index: ortc_binding_name.
  std::vector<std::string> bindings() const {
    std::vector<std::string> result;
    while (const char *name = ortc_binding_name(get(), static_cast<uint32_t>(result.size())))
      result.emplace_back(name);
    return result;
  }
  /// Contents of a section (enum ortc_section_kind): ortc_program_section. Throws with NOT_FOUND, HASH.
  std::string_view section(uint32_t kind) const {
    const void *data = nullptr;
    uint64_t bytes = 0;
    check(ortc_program_section(get(), kind, &data, &bytes), "section " + std::to_string(kind));
    return {static_cast<const char *>(data), static_cast<size_t>(bytes)};
  }
  /// What a session takes, in bytes: ortc_session_sizes. Throws with ARGUMENT.
  ortc_sizes sizes(const ortc_session_options &options = ORTC_INIT(ortc_session_options)) const {
    auto result = ORTC_INIT(ortc_sizes);
    check(ortc_session_sizes(get(), &options, &result), "session");
    return result;
  }

private:
  struct Close {
    void operator()(ortc_program *program) const noexcept { ortc_program_close(program); }
  };
  void own(ortc_program *program, ortc_status status, const ortc_message &message) {
    handle.reset(program);
    if (status != ORTC_OK)
      throw Error(status, message.text);
  }
  /// Look-ups have no text of their own.
  static void check(ortc_status status, const std::string &what) {
    if (status != ORTC_OK)
      throw Error(status, what + ": " + ortc_status_name(status));
  }
  template <typename Row, typename Get> static std::vector<Row> list(Get get) {
    std::vector<Row> result;
    for (auto row = ORTC_INIT(Row); get(static_cast<uint32_t>(result.size()), &row) == ORTC_OK;)
      result.push_back(row);
    return result;
  }

  std::unique_ptr<ortc_program, Close> handle;
};

/// Parameters, optimizer state and buffers that steps work on: ortc_session. Used by one thread at a time.
class Session {
public:
  /// ortc_session_create. The program, the pool and memory of the options must outlive the session; hooks
  /// must not throw. Throws with ARGUMENT, MEMORY, HASH.
  explicit Session(const Program &program,
                   const ortc_session_options &options = ORTC_INIT(ortc_session_options))
      : opened(program.get()) {
    ortc_session *session = nullptr;
    ortc_message message{};
    ortc_status status = ortc_session_create(program.get(), &options, &session, &message);
    handle.reset(session);
    if (status != ORTC_OK)
      throw Error(status, message.text);
  }
  ortc_session *get() const noexcept { return handle.get(); }

  /// Parameters, state and scalars as they were at first: ortc_session_reset.
  void reset() { check(ortc_session_reset(get())); }
  /// The binding that steps and names of inputs and outputs refer to: ortc_session_use_binding. Throws with
  /// NOT_FOUND.
  void useBinding(uint32_t index) {
    if (ortc_status status = ortc_session_use_binding(get(), index)) // has no text of its own
      throw Error(status, "no such binding");
  }
  /// By its name: ortc_binding_find.
  void useBinding(const std::string &name) { useBinding(ortc_binding_find(opened, name.c_str())); }

  // ---- Tensors, by their ONNX names, row-major. Throw with NOT_FOUND, SHAPE, ARGUMENT, STATE.

  /// Copies in parameters, state, scalars and inputs: ortc_write.
  template <typename Range> void write(const std::string &name, const Range &values) {
    checkType(name, std::data(values));
    check(ortc_write(get(), name.c_str(), std::data(values), bytesOf(values)));
  }
  /// Copies out, into elements that are there: ortc_read.
  template <typename Range> void read(const std::string &name, Range &&values) {
    checkType(name, std::data(values));
    check(ortc_read(get(), name.c_str(), std::data(values), bytesOf(values)));
  }
  /// Copies out, into as many elements as Program::tensor says. Throws with SHAPE where an input or output
  /// has another size in the binding in use.
  template <typename T> std::vector<T> read(const std::string &name) {
    auto info = ORTC_INIT(ortc_tensor_info);
    std::vector<T> values(1);
    if (ortc_tensor_find(opened, name.c_str(), &info) == ORTC_OK)
      values.resize(static_cast<size_t>(info.bytes) / sizeof(T));
    read(name, values);
    return values;
  }
  /// The place itself, where the stored layout is the ONNX layout; valid while the session lives: ortc_data.
  template <typename T> T *data(const std::string &name) {
    void *place = nullptr;
    checkType(name, static_cast<const T *>(nullptr));
    check(ortc_data(get(), name.c_str(), &place));
    return static_cast<T *>(place);
  }
  /// Lets steps read an input from, or write an output to, the elements of `values`: ortc_bind. They stay the
  /// caller's, and where they are, until the name is bound anew or the session ends: a vector must not grow
  /// meanwhile.
  template <typename Range> void bind(const std::string &name, Range &values) {
    checkType(name, std::data(values));
    check(ortc_bind(get(), name.c_str(), std::data(values), bytesOf(values)));
  }
  /// Back to the session's own memory.
  void unbind(const std::string &name) { check(ortc_bind(get(), name.c_str(), nullptr, 0)); }
  /// Scalars and other tensors of one element as a number: ortc_set_scalar, ortc_get_scalar.
  void setScalar(const std::string &name, double value) {
    check(ortc_set_scalar(get(), name.c_str(), value));
  }
  double getScalar(const std::string &name) {
    double value = 0;
    check(ortc_get_scalar(get(), name.c_str(), &value));
    return value;
  }
  /// The gradient of a parameter, after gradientsStep and before any other step: ortc_read_gradient,
  /// ortc_write_gradient.
  template <typename Range> void readGradient(const std::string &parameter, Range &&values) {
    checkType(parameter, std::data(values), true);
    check(ortc_read_gradient(get(), parameter.c_str(), std::data(values), bytesOf(values)));
  }
  template <typename Range> void writeGradient(const std::string &parameter, const Range &values) {
    checkType(parameter, std::data(values), true);
    check(ortc_write_gradient(get(), parameter.c_str(), std::data(values), bytesOf(values)));
  }

  // ---- Steps, of the binding in use; they give the loss before the update. Throw with NOT_FOUND (no such
  // entry), STATE, RANGE, NOT_FINITE, INTERNAL.

  double trainStep() { return step(ortc_train_step); }
  double accumulateStep() { return step(ortc_accumulate_step); }
  double evalStep() { return step(ortc_eval_step); }
  double gradientsStep() { return step(ortc_gradients_step); }
  void predictStep() { check(ortc_predict_step(get())); }
  void updateStep() { check(ortc_update_step(get())); }
  /// The same without the loss: a device is not waited for, and the next step that is throws what these met.
  void startTrainStep() { check(ortc_train_step(get(), nullptr)); }
  void startAccumulateStep() { check(ortc_accumulate_step(get(), nullptr)); }

  // ---- Checkpoints: safetensors files.

  /// ortc_checkpoint_save: `path` is the old file or the whole new one. Throws with IO, ARGUMENT.
  void save(const std::string &path, const Metadata &metadata = {}) {
    std::vector<ortc_metadata> rows = listRows(metadata);
    check(ortc_checkpoint_save(get(), path.c_str(), rows.data(), rows.size()));
  }
  /// ortc_checkpoint_write: sink(std::string_view) gets one part of the file after the other. What it throws
  /// ends the writing and is thrown here.
  template <typename Sink> void writeCheckpoint(Sink &&sink, const Metadata &metadata = {}) {
    using To = Callback<std::remove_reference_t<Sink>>;
    To to{sink, nullptr};
    auto pass = [](void *context, const void *data, size_t bytes) -> int32_t {
      return !static_cast<To *>(context)->call(std::string_view(static_cast<const char *>(data), bytes));
    };
    std::vector<ortc_metadata> rows = listRows(metadata);
    ortc_status status = ortc_checkpoint_write(get(), pass, &to, rows.data(), rows.size());
    to.rethrow();
    check(status);
  }
  /// ortc_checkpoint_load: checks the whole file before it takes any of it. Throws with IO, FORMAT, HASH,
  /// NOT_FOUND, SHAPE.
  LoadInfo load(const std::string &path) {
    return take([&](ortc_load_info *info) { return ortc_checkpoint_load(get(), path.c_str(), info); });
  }
  /// ortc_checkpoint_read: the same from memory.
  template <typename Range> LoadInfo readCheckpoint(const Range &file) {
    return take([&](ortc_load_info *info) {
      return ortc_checkpoint_read(get(), std::data(file), bytesOf(file), info);
    });
  }

private:
  struct Destroy {
    void operator()(ortc_session *session) const noexcept { ortc_session_destroy(session); }
  };
  void check(ortc_status status) const {
    if (status != ORTC_OK)
      throw Error(status, ortc_session_message(get()));
  }
  template <typename Range> static size_t bytesOf(const Range &values) {
    using Element = std::remove_reference_t<decltype(*std::data(values))>;
    static_assert(std::is_trivially_copyable_v<Element>, "tensors have numbers");
    return std::size(values) * sizeof(Element);
  }
  /// Throws where elements of a tensor are other numbers than the caller's: as bytes they might fit. The call
  /// itself tells where there is no such tensor.
  template <typename T> void checkType(const std::string &name, const T *, bool isGradient = false) const {
    auto info = ORTC_INIT(ortc_tensor_info);
    if (elementType<T>() == 0 || ortc_tensor_find(opened, name.c_str(), &info) != ORTC_OK)
      return;
    const bool isHalf = info.dtype == 10 || info.dtype == 16;
    const uint8_t wanted = isGradient && info.dtype == 16 ? 1 : isHalf ? 4 : info.dtype;
    if (wanted != elementType<T>())
      throw Error(ORTC_E_SHAPE, "'" + name + "' has elements of type " + std::to_string(info.dtype) +
                                    " (TensorProto.DataType), and is given " +
                                    std::to_string(elementType<T>()));
  }
  double step(ortc_status (*run)(ortc_session *, double *)) {
    double loss = 0;
    check(run(get(), &loss));
    return loss;
  }
  static std::vector<ortc_metadata> listRows(const Metadata &metadata) {
    std::vector<ortc_metadata> rows;
    for (const auto &[key, value] : metadata)
      rows.push_back({key.c_str(), value.c_str()});
    return rows;
  }
  template <typename Load> LoadInfo take(Load load) {
    LoadInfo result;
    auto keep = [&](const char *key, const char *value) { result.metadata[key] = value; };
    using To = Callback<decltype(keep)>;
    To to{keep, nullptr};
    auto info = ORTC_INIT(ortc_load_info);
    info.metadata = [](void *context, const char *key, const char *value) {
      static_cast<To *>(context)->call(key, value);
    };
    info.metadata_context = &to;
    check(load(&info));
    to.rethrow();
    result.hasFreshState = info.fresh_state != 0;
    result.loaded = info.loaded;
    result.ignored = info.ignored;
    return result;
  }

  const ortc_program *opened;
  std::unique_ptr<ortc_session, Destroy> handle;
};

} // namespace ortc
