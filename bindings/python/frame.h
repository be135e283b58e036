// One forward step and its backward step, over memory of a framework.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "bindings/python/pool.h"
#include "bindings/python/program.h"

namespace ortc::python {

/// A session of an artifact that was compiled with `--cotangents` and `--bind parameters,gradients`. Several frames of
/// one program are several forward steps that wait for their backward steps; parameters are the caller's. Of an
/// artifact that has only `predict` that is the forward step, and there is no backward step.
///
/// Tensors are any objects with a method data_ptr(), in the order of names(): type, shape, strides and device are the
/// caller's to check. Their memory must stay until the step that reads or writes it has ended.
class Frame {
public:
  Frame(std::shared_ptr<Program> program, std::shared_ptr<Pool> pool);
  ~Frame();
  Frame(const Frame &) = delete;
  Frame &operator=(const Frame &) = delete;

  /// What a step takes: "inputs", "bound", "outputs" of forward; "cotangents", "gradients", "input_gradients" of
  /// backward, gradients in the order in which they are final; "reread": outputs, and "kept": inputs, that backward
  /// reads, too.
  std::vector<std::string> list(const std::string &kind) const;
  /// Runs the step; the GIL is free meanwhile. `seed` goes to random operations.
  void forward(nanobind::tuple inputs, nanobind::tuple bound, nanobind::tuple outputs, int64_t seed);
  /// `gradients`: address of a buffer that has all of them, one behind the other, at multiples of 64 bytes.
  /// `kept`, `bound` and `reread`: what forward was given and has written, where it is now.
  void backward(nanobind::tuple cotangents, uintptr_t gradients, nanobind::tuple inputGradients,
                nanobind::tuple kept, nanobind::tuple bound, nanobind::tuple reread);
  /// Of that buffer.
  uint64_t getGradientBytes() const { return gradientBytes; }
  /// Where each gradient is in it, in bytes, in the order of names().
  std::vector<uint64_t> getGradientOffsets() const;

private:
  struct Slot {
    std::string name;
    uint64_t bytes = 0;
    void *address = nullptr; ///< that the runtime knows
    uint64_t offset = 0;     ///< of a gradient, in the buffer of all
  };
  void readEntries();
  void place(Slot &slot, void *address);
  /// Of all slots, or of those with these names, in their order.
  void place(std::vector<Slot> &slots, const nanobind::tuple &tensors, const char *what,
             const std::vector<size_t> *which = nullptr);
  void step(uint32_t role);

  std::shared_ptr<Program> program;
  std::shared_ptr<Pool> pool;
  ortc_session *session = nullptr;
  std::vector<Slot> inputs, bound, outputs, cotangents, gradients, inputGradients;
  std::vector<size_t> reread, kept; ///< of outputs, of inputs
  uint64_t gradientBytes = 0;
  bool isRandom = false;
  uint32_t forwardRole = ORTC_ENTRY_FORWARD;
};

} // namespace ortc::python
