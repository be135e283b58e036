// Code for programs that a model is linked into.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/backends/cpu/isa/Isa.h"
#include "compiler/backends/cpu/object/Object.h"
#include "compiler/options/ObjectFormat.h"
#include "support/Expected.h"

#include <string>
#include <vector>

namespace ortc::cpu {

/// An archive with one object, whose only section is `blob`, as it is: executable, read-only, aligned as blobs are
/// loaded. The functions of its entries are `symbols`, in their order, hidden where the format knows that. The same
/// bytes of code whatever the format. Refuses WebAssembly, whose code is a module of its own, and formats that no
/// program of the architecture is in.
Expected<Bytes> makeArchive(const Bytes &blob, const std::vector<std::string> &symbols, const Isa &isa,
                            ObjectFormat format);

} // namespace ortc::cpu
