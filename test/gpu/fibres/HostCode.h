// Bitcode that was made for an AMD GPU as functions of this process.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "support/Expected.h"
#include "test/gpu/fibres/Faults.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/ExecutionEngine/Orc/LLJIT.h"

#include <memory>
#include <string>
#include <vector>

namespace ortc::fibres {

/// Kernels whose lanes are fibres.
class HostCode {
public:
  /// `bitcode`: of one module (emitDeviceCode), with a fault where one is given. Fails where it uses something of the
  /// GPU that fibres have not.
  static Expected<HostCode> load(const std::string &bitcode, const Fault *fault = nullptr);

  /// What can be put into it.
  static Expected<std::vector<Fault>> listFaults(const std::string &bitcode);

  /// Calls a lane of a kernel with the pointers of its arguments.
  using Lane = void (*)(void *const *arguments);
  Lane find(const std::string &kernel) const;

  bool multipliesMatrices() const { return hasProducts; }

  /// Whether nobody has written beyond so many bytes of an array whose size the launch says, after `spoilShared`.
  bool sharesAtMost(size_t bytes) const;
  /// Puts NaN into all that blocks share.
  void spoilShared() const;

private:
  struct Array {
    std::string name;
    size_t bytes;
    void *data = nullptr;
  };
  std::unique_ptr<llvm::orc::LLJIT> machine;
  std::vector<Array> shared;
  bool hasProducts = false;
};

} // namespace ortc::fibres
