// Whether dicts and lists of Python still have what they had.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <nanobind/nanobind.h>

namespace ortc::python {

/// The keys and values of each dict, the items of each list: one tuple for each container.
nanobind::tuple takeSnapshot(const nanobind::tuple &containers);

/// Whether they are the same objects in the same order. Some nanoseconds for each of them.
bool isUnchanged(const nanobind::tuple &containers, const nanobind::tuple &snapshot);

/// Whether dicts have what they had under some names. Each item is a tuple of a dict, a name, and the object or
/// `absent`.
bool haveItems(const nanobind::tuple &items, nanobind::handle absent);

} // namespace ortc::python
