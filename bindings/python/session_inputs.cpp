// Which arrays of Python become which inputs and outputs of a session.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <algorithm>

#include "bindings/python/errors.h"
#include "bindings/python/session.h"
#include "bindings/python/types.h"
#include "support/FormatNames.h"

namespace nb = nanobind;

namespace ortc::python {

/// A role of no step: any value of a binding is meant.
static constexpr uint32_t kAnyRole = ORTC_ENTRY_ROLES;

/// The binding in use where it has the step, else the first that has it.
uint32_t Session::findBinding(uint32_t role) const {
  if (role == kAnyRole || getEntry(binding, role))
    return binding;
  for (uint32_t i = 0; i < slots.size(); ++i)
    if (getEntry(i, role))
      return i;
  raise(ORTC_E_NOT_FOUND, std::string("the artifact has no ") + getEntryRoleName(role) + " step" +
                              (role == ORTC_ENTRY_GRADIENTS    ? "; compile it with gradients=True"
                               : role == ORTC_ENTRY_ACCUMULATE ? "; compile it with accumulate=N"
                                                               : ""));
}

/// nullptr where the binding has no such step.
const Entry *Session::getEntry(uint32_t which, uint32_t role) const {
  const Entry *entry = role == kAnyRole ? nullptr : &program->getBindings()[which].entries[role];
  return entry && entry->exists ? entry : nullptr;
}

/// The input or output of a binding that an argument is meant for, or nullptr.
const Spec *Session::findSpec(uint32_t which, uint32_t role, const Given &given) const {
  const Binding &from = program->getBindings()[which];
  const Entry *entry = getEntry(which, role);
  if (role != kAnyRole && !entry)
    return nullptr;
  if (!given.name.is_valid())
    return given.position < entry->inputs.size() ? &from.values[entry->inputs[given.position]] : nullptr;
  for (const Spec &spec : from.values)
    if (spec.key.is(given.name))
      return &spec;
  for (const Spec &spec : from.values)
    if (spec.name == given.name.c_str())
      return &spec;
  return nullptr;
}

/// The binding in use where all arrays fit it, else the first that they fit.
uint32_t Session::chooseBinding(uint32_t role, const std::vector<Given> &given) const {
  auto fits = [&](uint32_t which, const Given &each) {
    const Spec *spec = findSpec(which, role, each);
    return spec && each.array.fits(*spec);
  };
  auto fitsAll = [&](uint32_t which) {
    return std::all_of(given.begin(), given.end(), [&](const Given &each) { return fits(which, each); });
  };
  if (fitsAll(binding))
    return binding;
  for (uint32_t i = 0; i < slots.size(); ++i)
    if (fitsAll(i))
      return i;
  for (const Given &each : given)
    if (!fits(findBinding(role), each))
      refuse(role, each);
  raise(ORTC_E_SHAPE, "no binding takes all of these arrays");
}

void Session::refuse(uint32_t role, const Given &given) const {
  std::string wanted;
  for (uint32_t i = 0; i < slots.size(); ++i)
    if (const Spec *spec = findSpec(i, role, given))
      wanted += (wanted.empty() ? "" : " or ") + python::describe(spec->type, spec->rank, spec->dims) +
                (slots.size() > 1 ? " (binding " + program->getBindings()[i].name + ")" : "");
  raise(ORTC_E_SHAPE, "'" + findSpec(findBinding(role), role, given)->name + "' is " +
                          given.array.describe() + ", but must be " + wanted);
}

static std::string nameDevice(int type, int id) {
  switch (type) {
  case nb::device::cpu::value:
    return "cpu";
  case nb::device::cuda::value:
    return "cuda:" + std::to_string(id);
  case nb::device::rocm::value:
    return "hip:" + std::to_string(id);
  default:
    return "device " + std::to_string(id) + " of DLPack's type " + std::to_string(type);
  }
}

/// Whether steps can use an array where it lies; raises otherwise.
void Session::checkPlace(const Spec &spec, const Array &array) const {
  const Device &own = program->getDevice();
  bool isHost =
      array.deviceType == nb::device::cpu::value || array.deviceType == nb::device::cuda_host::value;
  if (!isHost && (array.deviceType != own.getType() || array.deviceId != own.getId()))
    raise(ORTC_E_SHAPE, "'" + spec.name + "' is on " + nameDevice(array.deviceType, array.deviceId) +
                            ", but the session is on " + nameDevice(own.getType(), own.getId()));
  if (reinterpret_cast<uintptr_t>(array.data) % getElementBytes(spec.type))
    raise(ORTC_E_SHAPE,
          "'" + spec.name + "' does not lie at a multiple of the size of its elements; copy it");
}

/// Makes an array what steps use; it has the type and shape.
void Session::attach(uint32_t value, Array &&array) {
  Slot &slot = slots[binding][value];
  if (slot.address != array.data) {
    const Spec &spec = current().values[value];
    check(ortc_bind(session, spec.name.c_str(), array.data, spec.bytes), "'" + spec.name + "'");
    slot.address = array.data;
  }
  slot.array = std::move(array);
}

/// Takes those tensors of a step that have other memory since the last one.
void Session::follow(uint32_t role) {
  const Entry *entry = getEntry(binding, role);
  if (!entry)
    return; // which the step says
  for (const std::vector<uint32_t> *values : {&entry->inputs, &entry->outputs})
    for (uint32_t value : *values) {
      const Array &kept = slots[binding][value].array;
      const Spec &spec = current().values[value];
      if (!kept.hasMoved(spec, exchange))
        continue;
      Array now(kept.object, spec.name, spec.isInput ? Use::Place : Use::Write);
      if (!now.fits(spec))
        raise(ORTC_E_SHAPE, "the tensor that is bound as '" + spec.name + "' was changed since: it is " +
                                now.describe() + ", but must be " +
                                python::describe(spec.type, spec.rank, spec.dims) + "; bind another one");
      checkPlace(spec, now);
      attach(value, std::move(now));
    }
}

void Session::give(uint32_t role, const nb::args *positional, const nb::kwargs &named, Use use) {
  const uint32_t likely = findBinding(role);
  const Binding &expected = program->getBindings()[likely];
  std::vector<Given> given((positional ? positional->size() : 0) + named.size());
  auto next = given.begin();
  for (size_t i = 0; positional && i < positional->size(); ++i, ++next) {
    next->position = uint32_t(i);
    const Spec *spec = findSpec(likely, role, *next);
    if (!spec)
      throw nb::type_error(("the step takes " + std::to_string(getEntry(likely, role)->inputs.size()) +
                            " inputs, but " + std::to_string(positional->size()) + " were given")
                               .c_str());
    next->array = Array((*positional)[i], spec->name, use);
  }
  for (auto [key, value] : named) {
    if (!PyUnicode_Check(key.ptr()) || !PyUnicode_AsUTF8(key.ptr())) {
      PyErr_Clear();
      throw nb::type_error(
          ("the name of an input is " + std::string(nb::repr(key).c_str()) + ", but must be a text").c_str());
    }
    next->name = nb::borrow<nb::str>(key);
    const Spec *spec = findSpec(likely, role, *next);
    if (!spec) {
      std::string all;
      for (const Spec &other : expected.values)
        all += (all.empty() ? "" : ", ") + other.name;
      throw nb::type_error(
          ("there is no input '" + std::string(next->name.c_str()) + "'; there are " + all).c_str());
    }
    next->array = Array(value, spec->name, spec->isInput ? use : Use::Write);
    ++next;
  }
  uint32_t chosen = chooseBinding(role, given);
  for (const Given &each : given)
    checkPlace(*findSpec(chosen, role, each), each.array);
  if (chosen != binding) {
    python::check(ortc_session_use_binding(session, chosen), "", "binding");
    binding = chosen;
  }
  for (Given &each : given)
    attach(uint32_t(findSpec(binding, role, each) - current().values.data()), std::move(each.array));
}

void Session::bind(const nb::kwargs &arrays) {
  Guard guard(*this);
  give(kAnyRole, nullptr, arrays, Use::Place);
}

void Session::bindAddress(const std::string &name, uintptr_t address) {
  Guard guard(*this);
  for (size_t i = 0; i < current().values.size(); ++i)
    if (const Spec &spec = current().values[i]; spec.name == name) {
      check(ortc_bind(session, name.c_str(), reinterpret_cast<void *>(address), spec.bytes),
            "'" + name + "'");
      slots[binding][i] = Slot();
      return;
    }
  raise(ORTC_E_NOT_FOUND, "there is no input or output '" + name + "'");
}

} // namespace ortc::python
