// A session: arrays of Python in, steps, tensors out.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>

#include "bindings/python/arrays.h"
#include "bindings/python/pool.h"

namespace ortc::python {

/// Memory in pages of the system, in huge ones where there are some, as the runtime's own is.
class Region {
public:
  /// `bytes` may be 0. Throws std::bad_alloc.
  explicit Region(size_t bytes);
  ~Region();
  Region(const Region &) = delete;
  Region &operator=(const Region &) = delete;

  void *const data;

private:
  const size_t bytes;
};

/// What a checkpoint says beside its tensors, and how it was taken.
struct Loaded {
  bool hasFreshState = false;
  uint32_t loaded = 0, ignored = 0;
  std::map<std::string, std::string> metadata;
};

/// ortc_session with its threads. Steps, checkpoints and copies let other threads of Python run; whoever of those calls
/// the session meanwhile gets a StateError. Parameters, state and scalars are in memory of this object, which arrays
/// over it keep.
class Session {
public:
  /// `threads`: 0 takes what the artifact allows and the machine has.
  Session(std::shared_ptr<Program> program, uint32_t threads, bool stopOnNotFinite);
  ~Session();

  ortc_session *get() const { return session; }
  uint32_t getThreads() const { return threads; }
  const std::string &getBinding() const { return current().name; }
  void useBinding(const std::string &name);
  void reset();

  /// Inputs and outputs by name: steps use the arrays in place until they are bound anew. Shapes choose the binding.
  /// Tensors of a framework are asked before each step where their memory is; a step raises ShapeError where one does
  /// not fit any more.
  void bind(const nanobind::kwargs &arrays);
  /// The same of dense memory that the caller keeps, of the host or of the session's device; 0: the session's own.
  void bindAddress(const std::string &name, uintptr_t address);
  /// The step of a role, after the inputs that are given: in the graph's order, or by name. NaN where it has no loss.
  double run(uint32_t role, const nanobind::args &positional, const nanobind::kwargs &named);
  double run(uint32_t role);
  /// A predict step and its outputs by name: arrays that are bound, copies of the others.
  nanobind::dict predict(const nanobind::args &positional, const nanobind::kwargs &named);

  /// Copies: of every tensor in the ONNX layout.
  nanobind::object read(const std::string &name);
  void write(const std::string &name, nanobind::handle values);
  nanobind::object readGradient(const std::string &parameter);
  void writeGradient(const std::string &parameter, nanobind::handle values);
  double getScalar(const std::string &name);
  void setScalar(const std::string &name, double value);
  /// Parameters, state and scalars where they lie, in whatever layout: address, type (TensorProto.DataType), shape,
  /// strides in bytes. Raises StateError on a GPU.
  nanobind::tuple locate(const std::string &name);
  nanobind::object view(const std::string &name);
  /// The same as an object with __dlpack__.
  nanobind::object exportTensor(const std::string &name);

  /// Of the engine, which trains over this session. A step of a binding; `writes`: it writes its inputs into the
  /// session first, and what was bound as these no longer is. Raises as the other steps do.
  ortc_status perform(uint32_t binding, bool writes, const std::function<ortc_status()> &step);
  /// Takes inputs by name for a step of the role; gives their binding.
  uint32_t accept(uint32_t role, const nanobind::kwargs &named);
  const std::shared_ptr<Program> &getProgram() const { return program; }
  uint32_t getBindingIndex() const { return binding; }

  void save(const std::string &path, const std::map<std::string, std::string> &metadata);
  Loaded load(const std::string &path);
  nanobind::bytes writeCheckpoint(const std::map<std::string, std::string> &metadata);
  Loaded readCheckpoint(const nanobind::bytes &file);

private:
  /// Entry of a thread into a session.
  class Guard {
  public:
    explicit Guard(Session &session);
    ~Guard() { session.isBusy.clear(std::memory_order_release); }
    Guard(const Guard &) = delete;
    Guard &operator=(const Guard &) = delete;

  private:
    Session &session;
  };
  /// An input or output of a binding, and what is bound to it.
  struct Slot {
    Array array;
    void *address = nullptr; ///< of the array, that the runtime knows
  };
  /// What is to become of an array: its place among the values of a binding.
  struct Given {
    uint32_t position = 0; ///< in the arguments, of a positional one
    nanobind::str name;    ///< null: positional
    Array array;
  };

  const Binding &current() const { return program->getBindings()[binding]; }
  uint32_t findBinding(uint32_t role) const;
  const Entry *getEntry(uint32_t binding, uint32_t role) const;
  void give(uint32_t role, const nanobind::args *positional, const nanobind::kwargs &named, Use use);
  uint32_t chooseBinding(uint32_t role, const std::vector<Given> &given) const;
  const Spec *findSpec(uint32_t binding, uint32_t role, const Given &given) const;
  [[noreturn]] void refuse(uint32_t role, const Given &given) const;
  void checkPlace(const Spec &spec, const Array &array) const;
  void attach(uint32_t value, Array &&array);
  void follow(uint32_t role);
  Array takeDense(const ortc_tensor_info &tensor, const std::string &name, nanobind::handle values) const;
  const ortc_file_view &findPlace(const std::string &name, const char *&base) const;
  double giveAndStep(uint32_t role, const nanobind::args &positional, const nanobind::kwargs &named);
  double step(uint32_t role);
  void checkProcess() const;
  nanobind::object copy(const std::string &name);
  void check(ortc_status status, const std::string &what) const;
  template <typename Load> Loaded take(Load load);

  std::shared_ptr<Program> program;
  std::shared_ptr<Region> persistent;
  uint32_t threads = 1, binding = 0;
  std::unique_ptr<Pool> pool;
  ortc_session *session = nullptr;
  std::vector<std::vector<Slot>> slots; ///< by binding, as Binding::values
  Exchange exchange;                    ///< of the class of the bound tensors
  std::atomic_flag isBusy = ATOMIC_FLAG_INIT;
};

} // namespace ortc::python
