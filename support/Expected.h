// A value, or why there is none.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <optional>
#include <utility>

#include "support/Status.h"

namespace ortc {

/// What a function gives that may fail: a value, or a Status that is not fine.
template <typename Value> class [[nodiscard]] Expected {
public:
  Expected(Value value) : value(std::move(value)) {}
  Expected(Status status) : status(std::move(status)) {}

  explicit operator bool() const { return value.has_value(); }
  /// Of a value: there must be one.
  Value &operator*() { return *value; }
  const Value &operator*() const { return *value; }
  Value *operator->() { return &*value; }
  const Value *operator->() const { return &*value; }
  /// Gives `target` the value, where there is one.
  template <typename Target> Status moveTo(Target &target) {
    if (value)
      target = std::move(*value);
    return status;
  }
  /// Fine where there is a value.
  const Status &getStatus() const { return status; }

private:
  std::optional<Value> value;
  Status status;
};

} // namespace ortc
