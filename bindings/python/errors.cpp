// Failures of the runtime as exceptions of Python.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "bindings/python/errors.h"

#include <cctype>
#include <nanobind/nanobind.h>

#include "support/Printable.h"

namespace nb = nanobind;

namespace ortc::python {

void raise(ortc_status status, const std::string &text) {
  nb::object type = nb::module_::import_("ortc._errors").attr("of_status")(ortc_status_name(status));
  const std::string shown = makePrintable(text);
  PyErr_SetObject(type.ptr(), nb::str(shown.c_str(), shown.size()).ptr());
  throw nb::python_error();
}

std::string nameArguments(const std::string &text) {
  auto isName = [](char c) { return std::islower(static_cast<unsigned char>(c)) != 0; };
  std::string named;
  for (size_t i = 0; i < text.size();) {
    const bool begins = i == 0 || text[i - 1] == ' ' || text[i - 1] == '(';
    if (!begins || text.compare(i, 2, "--") != 0 || i + 2 == text.size() || !isName(text[i + 2])) {
      named += text[i++];
      continue;
    }
    for (i += 2; i < text.size() &&
                 (isName(text[i]) || (text[i] == '-' && i + 1 < text.size() && isName(text[i + 1])));
         ++i)
      named += text[i] == '-' ? '_' : text[i];
  }
  return named;
}

void check(const Status &status, ortc_status failure, const std::string &front) {
  if (!status.isOk())
    raise(status.getCode() == ExitCode::Refused ? ORTC_E_ARGUMENT : failure,
          front + nameArguments(status.getMessage()));
}

} // namespace ortc::python
