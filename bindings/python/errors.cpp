// Failures of the runtime as exceptions of Python.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "bindings/python/errors.h"

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

} // namespace ortc::python
