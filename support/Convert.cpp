// Conversion of array elements to the type a graph wants: one template over pairs of types.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "support/Convert.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "support/Elements.h"
#include "support/MappedFile.h"
#include "support/Text.h"

namespace ortc {

using namespace elements;

namespace {

template <typename To, typename From> To narrow(From value) {
  if constexpr (std::is_same_v<To, Half>)
    return Half{floatToHalf(static_cast<float>(value))};
  else if constexpr (std::is_same_v<To, Bfloat>)
    return Bfloat{floatToBfloat(static_cast<float>(value))};
  else
    return static_cast<To>(value);
}

template <typename From, typename To> void convertAll(const uint8_t *from, uint8_t *to, size_t count) {
  for (size_t i = 0; i < count; ++i) {
    To value = narrow<To>(widen(load<From>(from + i * sizeof(From))));
    std::memcpy(to + i * sizeof(To), &value, sizeof(To));
  }
}

/// Whether one value survives: integers exactly; floats rounded, but finite ones stay finite.
template <typename From, typename To> bool fits(From raw) {
  auto value = widen(raw);
  if constexpr (kIsFloat<From> && !kIsFloat<To>) {
    return std::trunc(value) == value && double(value) >= double(std::numeric_limits<To>::min()) &&
           double(value) < std::ldexp(1.0, std::numeric_limits<To>::digits);
  } else if constexpr (kIsFloat<From>) {
    return !std::isfinite(value) || std::isfinite(widen(narrow<To>(value)));
  } else if constexpr (kIsFloat<To>) {
    auto converted = static_cast<double>(widen(narrow<To>(value)));
    // Above 2^53 doubles are no longer exact; rounding up may have left the type, which cannot be converted back.
    return std::abs(converted) <= 0x1p53 &&
           converted < static_cast<double>(std::numeric_limits<From>::max()) + 1 &&
           static_cast<From>(converted) == value;
  } else if constexpr (std::is_same_v<To, bool>) {
    return value == From(0) || value == From(1);
  } else if constexpr (std::is_same_v<From, bool>) {
    return true;
  } else {
    return std::in_range<To>(value);
  }
}

/// Whether every value survives, so that none has to be looked at.
template <typename From, typename To> constexpr bool alwaysFits() {
  if constexpr (kIsNarrow<From> || kIsNarrow<To> || std::is_same_v<To, bool>) {
    return std::is_same_v<From, To>;
  } else if constexpr (kIsFloat<From> && !kIsFloat<To>) {
    return false;
  } else if constexpr (kIsFloat<From>) {
    return sizeof(From) <= sizeof(To);
  } else if constexpr (kIsFloat<To>) {
    return std::numeric_limits<From>::digits <= std::numeric_limits<To>::digits;
  } else {
    return std::in_range<To>(std::numeric_limits<From>::min()) &&
           std::in_range<To>(std::numeric_limits<From>::max());
  }
}

/// Index of the first value that does not fit, or -1.
template <typename From, typename To> int64_t findMisfit(const uint8_t *from, size_t count) {
  for (size_t i = 0; i < count; ++i)
    if (!fits<From, To>(load<From>(from + i * sizeof(From))))
      return int64_t(i);
  return -1;
}

struct Pair {
  ConvertFn convert = nullptr;
  int64_t (*findMisfit)(const uint8_t *, size_t) = nullptr; ///< nullptr: every value fits
};

template <typename From, typename To, typename As = To> Pair makePair() {
  if constexpr (alwaysFits<From, As>())
    return {convertAll<From, To>, nullptr};
  else
    return {convertAll<From, To>, findMisfit<From, As>};
}

} // namespace

/// `isText`: floats of 64 bits that are whole numbers may be integers.
static Pair findPair(DataType from, DataType to, bool isText) {
  return dispatch(from, [=](auto source) {
    using From = decltype(source);
    return dispatch(to, [=](auto target) -> Pair {
      using To = decltype(target);
      if constexpr (kIsFloat<From> && !kIsFloat<To>) {
        if constexpr (std::is_same_v<From, double>)
          if (isText && to != DataType::Bool)
            return makePair<From, To>();
        return {};
      } else if constexpr (!kIsFloat<From> && std::is_same_v<To, uint8_t>) {
        if (to == DataType::Bool)
          return makePair<From, uint8_t, bool>();
        return makePair<From, To>();
      } else {
        return makePair<From, To>();
      }
    });
  });
}

/// Pages of a mapped file are let go behind it.
static int64_t findMisfit(const Array &array, const Pair &pair, size_t count) {
  constexpr size_t kPiece = 1 << 18;
  size_t element = getElementBytes(array.type);
  for (size_t at = 0; at < count; at += kPiece) {
    size_t piece = std::min(kPiece, count - at);
    const uint8_t *data = array.data + at * element;
    if (int64_t misfit = pair.findMisfit(data, piece); misfit >= 0)
      return int64_t(at) + misfit;
    if (array.file)
      forgetPages(data, piece * element);
  }
  return -1;
}

Status planConversion(const Array &array, DataType type, const std::string &where, Conversion &conversion) {
  conversion = Conversion();
  size_t count = array.bytes / getElementBytes(array.type);
  if (array.type == type && type != DataType::Bool)
    return Status();
  Pair pair = findPair(array.type, type, array.isText);
  if (!pair.convert)
    return Status::failure(where + " is " + getTypeName(array.type) + " but the graph wants " +
                           getTypeName(type) + "; convert it with numpy's astype");
  int64_t misfit = pair.findMisfit ? findMisfit(array, pair, count) : -1;
  if (misfit >= 0) {
    const uint8_t *at = array.data + size_t(misfit) * getElementBytes(array.type);
    std::string value = isFloat(array.type)              ? formatNumber(loadAsDouble(array.type, at))
                        : array.type == DataType::UInt64 ? std::to_string(load<uint64_t>(at))
                                                         : std::to_string(loadAsInteger(array.type, at));
    return Status::failure(where + " holds " + value + " at element " + std::to_string(misfit) +
                           ", which does not fit the graph's " + getTypeName(type));
  }
  if (array.type == type)
    return Status();
  conversion.convert = pair.convert;
  if (isFloat(type))
    conversion.note =
        where + " is " + getTypeName(array.type) + "; it is converted to the graph's " + getTypeName(type);
  return Status();
}

} // namespace ortc
