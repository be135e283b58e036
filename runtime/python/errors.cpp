// Failures of the runtime as exceptions of Python.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "runtime/python/errors.h"

#include <nanobind/nanobind.h>

namespace nb = nanobind;

namespace ortc::python {

void raise(ortc_status status, const std::string &text) {
  nb::object type = nb::module_::import_("ortc._errors").attr("of_status")(ortc_status_name(status));
  PyErr_SetObject(type.ptr(), nb::str(text.c_str(), text.size()).ptr());
  throw nb::python_error();
}

} // namespace ortc::python
