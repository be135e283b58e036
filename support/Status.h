// The outcome of an operation: fine, or an exit status with a message.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <string>
#include <utility>

namespace ortc {

/// What the process exits with.
enum class ExitCode : int { Done = 0, Failed = 1, Refused = 2 };

/// Fine, or a code with one message: lower case, no full stop, naming file, thing, value, limit and the next
/// step.
class [[nodiscard]] Status {
public:
  Status() = default;
  /// It failed while running: file, disk, data that does not fit.
  static Status failure(std::string message) { return Status(ExitCode::Failed, std::move(message)); }
  /// The request itself cannot be met: flags, an artifact without the entry.
  static Status refusal(std::string message) { return Status(ExitCode::Refused, std::move(message)); }

  bool isOk() const { return code == ExitCode::Done; }
  ExitCode getCode() const { return code; }
  const std::string &getMessage() const { return message; }

private:
  Status(ExitCode code, std::string message) : code(code), message(std::move(message)) {}
  ExitCode code = ExitCode::Done;
  std::string message;
};

} // namespace ortc

/// Returns from the enclosing function when `expression` is a Status that is not fine.
#define ORTC_TRY(expression)                                                                                 \
  do {                                                                                                       \
    if (::ortc::Status ortcStatus = (expression); !ortcStatus.isOk())                                        \
      return ortcStatus;                                                                                     \
  } while (false)
