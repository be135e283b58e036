// The npy format: one array with a header in Python syntax.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "support/Array.h"
#include "support/Status.h"

namespace ortc {

/// Takes the npy file in [data, data + bytes) apart; `where` begins messages. The array points into `data`
/// unless byte order or Fortran order ask for a copy; `owner` is then replaced.
Status parseNpy(const uint8_t *data, size_t bytes, const std::string &where,
                std::shared_ptr<const void> owner, Array &array);

/// What the header of an npy file says.
struct NpyHeader {
  DataType type = DataType::None;
  Shape shape;
  bool isBigEndian = false, isFortran = false;
  size_t offset = 0, bytes = 0; ///< of the values, which end where the file does
};

/// Reads the header from the first `bytes` of a file of `total` bytes. Where it is longer, `needed` says how
/// many it takes, and nothing else is set; else `needed` is 0.
Status parseNpyHeader(const uint8_t *data, size_t bytes, size_t total, const std::string &where,
                      NpyHeader &header, size_t &needed);

/// The array of that name without its values.
Array describeNpy(const std::string &name, const NpyHeader &header);

/// The bytes that precede the data of an array in an npy file of version 1.0. bfloat16 has no npy type.
std::string formatNpyHeader(DataType type, const Shape &shape);

} // namespace ortc
