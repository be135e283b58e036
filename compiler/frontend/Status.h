// Success, or a message for the user.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <string>
#include <utility>

namespace ortc::frontend {

/// What reading a model came to. The message says what, where, which value and limit, and the next step.
class [[nodiscard]] Status {
public:
  Status() = default;
  static Status error(std::string message) {
    Status status;
    status.text = std::move(message);
    return status;
  }
  bool ok() const { return text.empty(); }
  const std::string &message() const { return text; }

private:
  std::string text;
};

/// Returns from the calling function when the expression is an error.
#define ORTC_RETURN_IF_ERROR(expression)                                                                     \
  do {                                                                                                       \
    if (::ortc::frontend::Status status_ = (expression); !status_.ok())                                      \
      return status_;                                                                                        \
  } while (0)

} // namespace ortc::frontend
