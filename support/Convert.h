// Conversion of array elements to the type a graph wants.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "support/Array.h"
#include "support/Status.h"

namespace ortc {

/// Converts `count` elements; neither side needs to be aligned.
using ConvertFn = void (*)(const uint8_t *from, uint8_t *to, size_t count);

/// How the elements of an array become those of a type (planConversion).
struct Conversion {
  ConvertFn convert = nullptr; ///< nullptr: the bytes are taken as they are
  std::string note;            ///< what the log should say, "" if nothing
};

/// Decides how `array` becomes `type`, and looks at every value when some might not fit. Integers and
/// booleans go to any integer type where the value fits, and to floats where they are exact; floats go to
/// floats, and may be rounded but not overflow, and those of text that are whole go to integers. `where` begins
/// messages ("data.npz: array 'x'").
Status planConversion(const Array &array, DataType type, const std::string &where, Conversion &conversion);

} // namespace ortc
