// An artifact that is open, and what its steps take and give.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <nanobind/nanobind.h>
#include <ortc/ortc.h>
#include <string>
#include <vector>

namespace ortc::python {

/// An input or output of the steps of a binding.
struct Spec {
  std::string name;
  nanobind::str key; ///< the name, interned: names of keyword arguments are the same object
  bool isInput = false;
  uint8_t type = 0; ///< TensorProto.DataType
  uint8_t rank = 0;
  uint64_t bytes = 0;
  int64_t dims[ORTC_MAX_RANK] = {};
};

/// A step of a binding: positions of its inputs and outputs among the binding's values, in the graph's order.
struct Entry {
  bool exists = false;
  std::vector<uint32_t> inputs, outputs;
};

struct Binding {
  std::string name;
  std::vector<Spec> values; ///< each once, whichever steps have it
  Entry entries[ORTC_ENTRY_ROLES];
};

/// What steps run on.
class Device {
public:
  /// "cpu", or "cuda", "hip", "cuda:1", ... Raises what its driver says.
  explicit Device(const std::string &name);
  ~Device();
  Device(const Device &) = delete;
  Device &operator=(const Device &) = delete;

  const ortc_device *get() const { return device; } ///< nullptr: this processor
  /// Of DLPack's enumeration, and the number of the GPU.
  int getType() const { return type; }
  int getId() const { return id; }

private:
  const ortc_device *device = nullptr;
  void (*close)(const ortc_device *) = nullptr;
  int type = 1, id = 0;
};

/// ortc_program, on a processor or a GPU.
class Program {
public:
  /// Raises what the runtime says.
  Program(const std::string &path, const std::string &device);
  ~Program();
  Program(const Program &) = delete;
  Program &operator=(const Program &) = delete;

  const ortc_program *get() const { return program; }
  bool isOnDevice() const { return device.get() != nullptr; }
  const Device &getDevice() const { return device; }
  const std::vector<Binding> &getBindings() const { return bindings; }
  const ortc_program_info &getInfo() const { return info; }
  /// The row of the tensor table.
  const ortc_file_tensor &getRow(uint32_t tensor) const { return rows[tensor]; }
  ortc_tensor_info getTensor(uint32_t index) const;
  /// By its name; raises NotFoundError.
  ortc_tensor_info findTensor(const std::string &name) const;
  /// The type and shape of a parameter's gradient; raises NotFoundError.
  ortc_tensor_info findGradient(const std::string &parameter) const;
  nanobind::bytes readSection(uint32_t kind) const;

private:
  void readEntries();

  Device device; // outlives the program
  ortc_program *program = nullptr;
  ortc_program_info info;
  const ortc_file_tensor *rows = nullptr;
  std::vector<Binding> bindings;
};

} // namespace ortc::python
