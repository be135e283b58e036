// Status and result type of the planner: a code and a message, no exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <cassert>
#include <string>
#include <utility>

namespace ortc::planning {

enum class Code {
  kOk,
  kInvalidProblem, ///< the problem contradicts itself (bad id, read before write, ...)
  kTooLarge,       ///< sizes do not fit 63 bits, or ids do not fit 32
  kSyntax,         ///< a CSV cannot be read
  kInvalidPlan,    ///< the validator refused a plan
};

/// Outcome of an operation. Messages start in lower case and have no full stop.
struct [[nodiscard]] Status {
  Code code = Code::kOk;
  std::string message;

  bool ok() const { return code == Code::kOk; }
};

/// A value or the reason why there is none.
template <typename T> class [[nodiscard]] Expected {
public:
  Expected(T value) : held(std::move(value)) {}
  Expected(Status why) : outcome(std::move(why)) {
    assert(!outcome.ok() && "a result needs a value or an error");
  }

  bool ok() const { return outcome.ok(); }
  explicit operator bool() const { return ok(); }
  const Status &status() const { return outcome; }

  T &operator*() {
    assert(ok() && "the value of a failed result was read");
    return held;
  }
  const T &operator*() const {
    assert(ok() && "the value of a failed result was read");
    return held;
  }
  T *operator->() { return &**this; }
  const T *operator->() const { return &**this; }

private:
  Status outcome;
  T held{};
};

} // namespace ortc::planning
