// One forward step and its backward step, over memory of a framework.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "bindings/python/frame.h"

#include <algorithm>

#include "bindings/python/arrays.h"
#include "bindings/python/errors.h"

namespace nb = nanobind;

namespace ortc::python {

static constexpr const char *kSeed = "random.seed", *kStep = "random.step";

Frame::Frame(std::shared_ptr<Program> of, std::shared_ptr<Pool> with)
    : program(std::move(of)), pool(std::move(with)) {
  if (program->isOnDevice())
    raise(ORTC_E_ARGUMENT, "frames are of processors");
  readEntries();
  ortc_session_options options = ORTC_INIT(ortc_session_options);
  options.flags = ORTC_SESSION_BIND_ALL;
  options.workers = std::min(pool->getWorkers(), program->getInfo().max_workers);
  pool->give(options);
  ortc_message message{};
  ortc_status status;
  {
    nb::gil_scoped_release release;
    status = ortc_session_create(program->get(), &options, &session, &message);
  }
  python::check(status, message.text, "frame");
}

Frame::~Frame() { ortc_session_destroy(session); }

void Frame::readEntries() {
  bool hasForward = false, hasBackward = false;
  ortc_entry_info entry = ORTC_INIT(ortc_entry_info);
  const bool hasPredictAlone = ortc_entry_get(program->get(), 0, &entry) == ORTC_OK &&
                               entry.role == ORTC_ENTRY_PREDICT &&
                               ortc_entry_get(program->get(), 1, &entry) != ORTC_OK;
  forwardRole = hasPredictAlone ? ORTC_ENTRY_PREDICT : ORTC_ENTRY_FORWARD;
  for (uint32_t i = 0; ortc_entry_get(program->get(), i, &entry) == ORTC_OK; ++i) {
    const bool isForward = entry.role == forwardRole;
    if (entry.binding != 0 || !(isForward || entry.role == ORTC_ENTRY_BACKWARD))
      continue;
    (isForward ? hasForward : hasBackward) = true;
    for (uint32_t n = 0; n < entry.value_count; ++n) {
      ortc_tensor_info value = ORTC_INIT(ortc_tensor_info);
      python::check(ortc_entry_value(program->get(), i, n, &value), "", "value");
      Slot slot{value.name, value.bytes};
      bool isGradient = value.role == ORTC_ROLE_OUTPUT && value.owner != ORTC_NONE;
      if (value.flags & ORTC_TENSOR_BOUND) {
        auto isSame = [&](const Slot &other) { return other.name == slot.name; };
        if (std::none_of(bound.begin(), bound.end(), isSame))
          bound.push_back(slot);
      } else if (isForward) {
        (value.role == ORTC_ROLE_INPUT ? inputs : outputs).push_back(slot);
      } else if (isGradient) {
        slot.offset = gradientBytes;
        gradientBytes += (slot.bytes + ORTC_ALIGNMENT - 1) / ORTC_ALIGNMENT * ORTC_ALIGNMENT;
        gradients.push_back(slot);
      } else {
        auto find = [&](const std::vector<Slot> &slots) {
          return size_t(std::find_if(slots.begin(), slots.end(),
                                     [&](const Slot &other) { return other.name == slot.name; }) -
                        slots.begin());
        };
        // Forward comes first in an artifact; what it has, backward reads again.
        if (size_t input = find(inputs); input < inputs.size())
          kept.push_back(input);
        else if (size_t output = find(outputs); output < outputs.size())
          reread.push_back(output);
        else
          (value.role == ORTC_ROLE_INPUT ? cotangents : inputGradients).push_back(slot);
      }
    }
  }
  if (!hasForward || !(hasBackward || hasPredictAlone))
    raise(ORTC_E_ARGUMENT, "the artifact was not compiled with --cotangents");
  ortc_tensor_info seed = ORTC_INIT(ortc_tensor_info);
  isRandom = ortc_tensor_find(program->get(), kSeed, &seed) == ORTC_OK && seed.role == ORTC_ROLE_SCALAR;
}

std::vector<std::string> Frame::list(const std::string &kind) const {
  const std::pair<const char *, const std::vector<Slot> *> lists[] = {
      {"inputs", &inputs},         {"bound", &bound},         {"outputs", &outputs},
      {"cotangents", &cotangents}, {"gradients", &gradients}, {"input_gradients", &inputGradients}};
  std::vector<std::string> names;
  for (auto [name, slots] : lists)
    if (kind == name)
      for (const Slot &slot : *slots)
        names.push_back(slot.name);
  for (size_t i : kind == "reread" ? reread : std::vector<size_t>())
    names.push_back(outputs[i].name);
  for (size_t i : kind == "kept" ? kept : std::vector<size_t>())
    names.push_back(inputs[i].name);
  return names;
}

void Frame::place(Slot &slot, void *address) {
  if (slot.address == address)
    return;
  if (!address && slot.bytes) // the runtime would take it for memory of its own
    raise(ORTC_E_SHAPE, "'" + slot.name + "' has no memory: its storage was resized");
  python::check(ortc_bind(session, slot.name.c_str(), address, slot.bytes), ortc_session_message(session),
                slot.name);
  slot.address = address;
}

void Frame::place(std::vector<Slot> &slots, const nb::tuple &tensors, const char *what,
                  const std::vector<size_t> *which) {
  const size_t count = which ? which->size() : slots.size();
  if (tensors.size() != count)
    raise(ORTC_E_ARGUMENT,
          std::to_string(tensors.size()) + " " + what + ", but the step has " + std::to_string(count));
  for (size_t i = 0; i < count; ++i)
    place(slots[which ? (*which)[i] : i], readAddress(tensors[i]));
}

std::vector<uint64_t> Frame::getGradientOffsets() const {
  std::vector<uint64_t> offsets;
  for (const Slot &slot : gradients)
    offsets.push_back(slot.offset);
  return offsets;
}

void Frame::step(uint32_t role) {
  ortc_status status;
  {
    nb::gil_scoped_release release;
    std::lock_guard lock(pool->mutex);
    status = ortc_step(session, role, nullptr);
  }
  python::check(status, ortc_session_message(session));
}

void Frame::forward(nb::tuple given, nb::tuple weights, nb::tuple results, int64_t seed) {
  place(inputs, given, "inputs");
  place(bound, weights, "bound tensors");
  place(outputs, results, "outputs");
  if (isRandom) { // whatever steps this frame has run before
    python::check(ortc_set_scalar(session, kSeed, double(seed)), ortc_session_message(session));
    python::check(ortc_set_scalar(session, kStep, 0), ortc_session_message(session));
  }
  step(forwardRole);
}

void Frame::backward(nb::tuple given, uintptr_t buffer, nb::tuple results, nb::tuple readAgain,
                     nb::tuple weights, nb::tuple written) {
  place(cotangents, given, "cotangents");
  place(inputGradients, results, "gradients of inputs");
  place(inputs, readAgain, "kept inputs", &kept);
  place(bound, weights, "bound tensors");
  place(outputs, written, "outputs that are read again", &reread);
  for (Slot &slot : gradients)
    place(slot, reinterpret_cast<void *>(buffer + slot.offset));
  step(ORTC_ENTRY_BACKWARD);
}

} // namespace ortc::python
