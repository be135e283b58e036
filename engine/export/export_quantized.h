// Quantisers of --qat as those of the standard.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cstdint>
#include <string>

#include "support/Status.h"

namespace ortc::proto {
class ModelProto;
} // namespace ortc::proto

namespace ortc::engine {

/// Replaces every quantiser (compiler/frontend/FakeQuantizers.h) by what the standard has for it, with the scale and
/// the zero point of its range: weights become integers and a DequantizeLinear, what layers read goes through
/// QuantizeLinear and DequantizeLinear. One that has seen nothing, as its layer takes no part in the outputs, is left
/// out. `count` is how many there were. Initializers have their data. `where` begins messages.
Status writeQuantized(const std::string &where, proto::ModelProto &model, int64_t &count);

} // namespace ortc::engine
