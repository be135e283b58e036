// Whether dicts and lists of Python still have what they had.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "bindings/python/containers.h"

namespace nb = nanobind;

namespace ortc::python {

/// Calls `visit(object)` for each key, value and item until it gives false; whether it never did.
template <typename Visit> static bool visitContents(PyObject *container, Visit visit) {
  if (PyDict_Check(container)) {
    Py_ssize_t position = 0;
    PyObject *key, *value;
    while (PyDict_Next(container, &position, &key, &value))
      if (!visit(key) || !visit(value))
        return false;
    return true;
  }
  for (Py_ssize_t i = 0; i < PyList_Size(container); ++i)
    if (!visit(PyList_GetItem(container, i)))
      return false;
  return true;
}

static void check(nb::handle container) {
  if (!PyDict_Check(container.ptr()) && !PyList_Check(container.ptr()))
    throw nb::type_error("containers are dicts and lists");
}

nb::tuple takeSnapshot(const nb::tuple &containers) {
  nb::list all;
  for (nb::handle container : containers) {
    check(container);
    nb::list contents;
    visitContents(container.ptr(), [&](PyObject *object) {
      contents.append(nb::handle(object));
      return true;
    });
    all.append(nb::tuple(contents));
  }
  return nb::tuple(all);
}

bool isUnchanged(const nb::tuple &containers, const nb::tuple &snapshot) {
  const size_t count = containers.size();
  if (snapshot.size() != count)
    return false;
  for (size_t i = 0; i < count; ++i) {
    PyObject *container = PyTuple_GetItem(containers.ptr(), Py_ssize_t(i));
    PyObject *contents = PyTuple_GetItem(snapshot.ptr(), Py_ssize_t(i));
    check(container);
    if (!PyTuple_Check(contents))
      throw nb::type_error("a snapshot has tuples");
    const Py_ssize_t size = PyTuple_Size(contents);
    Py_ssize_t next = 0;
    bool isSame = visitContents(container, [&](PyObject *object) {
      return next < size && PyTuple_GetItem(contents, next++) == object;
    });
    if (!isSame || next != size)
      return false;
  }
  return true;
}

bool haveItems(const nb::tuple &items, nb::handle absent) {
  for (nb::handle item : items) {
    if (!PyTuple_Check(item.ptr()) || PyTuple_Size(item.ptr()) < 3)
      throw nb::type_error("an item is a dict, a name and a value");
    PyObject *dict = PyTuple_GetItem(item.ptr(), 0), *value = PyTuple_GetItem(item.ptr(), 2);
    if (!PyDict_Check(dict))
      throw nb::type_error("names are those of dicts");
    PyObject *found = PyDict_GetItemWithError(dict, PyTuple_GetItem(item.ptr(), 1));
    if (!found && PyErr_Occurred())
      nb::raise_python_error();
    if ((found ? found : absent.ptr()) != value)
      return false;
  }
  return true;
}

} // namespace ortc::python
