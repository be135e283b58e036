// Arrays and functions of Python as what the engine reads: data, batches that come one after the other, metrics.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "bindings/python/data.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <nanobind/stl/string.h>

#include "bindings/python/errors.h"
#include "bindings/python/types.h"
#include "support/FormatNames.h"

namespace nb = nanobind;

namespace ortc::python {

bool Pending::isExit() const {
  try {
    std::rethrow_exception(exception);
  } catch (const nb::python_error &error) {
    return !error.matches(PyExc_Exception);
  } catch (...) {
    return false;
  }
}

void Pending::raise() {
  if (exception)
    std::rethrow_exception(std::exchange(exception, nullptr));
}

namespace {

/// Keeps an array of Python and a claim on its memory, on whichever thread it is let go.
std::shared_ptr<const void> keepArray(Array &&array) {
  return std::shared_ptr<const void>(new Array(std::move(array)), [](const void *kept) {
    nb::gil_scoped_acquire acquire;
    delete static_cast<const Array *>(kept);
  });
}

class ArraySource : public engine::DataSource {
public:
  ArraySource(const std::string &path, const nb::dict &from) : DataSource(path) {
    for (auto [key, value] : from) {
      const std::string name = nb::cast<std::string>(key);
      python::Array array(value, name, Use::Read);
      if (array.type == 0)
        python::raise(ORTC_E_SHAPE, path + ": array '" + name + "' has a type that no input has");
      ortc::Array view;
      view.name = name;
      view.type = DataType(array.type);
      view.shape.assign(array.dims, array.dims + array.rank);
      view.data = static_cast<const uint8_t *>(array.data);
      if (!countBytes(view.shape, view.type, view.bytes))
        python::raise(ORTC_E_SHAPE, path + ": array '" + name + "' is too large");
      view.owner = keepArray(std::move(array));
      names.push_back(name);
      arrays[name] = std::move(view);
    }
  }
  std::vector<std::string> getFiles() const override { return {}; }
  Status load(const std::string &name, ortc::Array &array) const override {
    array = arrays.at(name);
    return Status();
  }

private:
  std::map<std::string, ortc::Array> arrays;
};

} // namespace

std::unique_ptr<engine::DataSource> makeSource(const std::string &path, const nb::dict &arrays) {
  return std::make_unique<ArraySource>(path, arrays);
}

// ---- Batches.

/// Gives a session the next batch; nullptr where there is none left.
static const engine::Entry *takeBatch(nb::handle batches, Session &own, const engine::Artifact &artifact,
                                      engine::Session &session, uint32_t role) {
  nb::object batch = nb::steal(PyIter_Next(batches.ptr()));
  if (!batch.is_valid()) {
    if (PyErr_Occurred())
      throw nb::python_error();
    return nullptr;
  }
  const auto named = nb::borrow<nb::kwargs>(batch);
  const uint32_t binding = own.accept(role, named);
  if (const engine::Entry *entry = artifact.findEntry(role, binding)) {
    for (const engine::InputSpec &input : entry->inputs) // it would be that of the batch before
      if (!named.contains(input.name.c_str()))
        raise(ORTC_E_NOT_FOUND,
              "a batch has no '" + input.name + "', which the " + getEntryRoleName(role) + " step takes");
    session.accept(*entry);
    return entry;
  }
  raise(ORTC_E_NOT_FOUND,
        std::string("the artifact has no ") + getEntryRoleName(role) + " step for such a batch");
}

Status Stream::begin(int64_t epoch) {
  return pending.run([&] { batches = function(epoch); });
}

Status Stream::next(engine::Session &session, uint32_t role, const engine::Entry *&entry) {
  return pending.run([&] { entry = takeBatch(batches, own, artifact, session, role); });
}

namespace {

class StreamSlices : public engine::SliceSource {
public:
  StreamSlices(nb::handle begin, int64_t epoch, Session &own, const engine::Artifact &artifact,
               Pending &pending)
      : function(begin), epoch(epoch), own(own), artifact(artifact), pending(pending) {}

  Status feed(engine::Session &session, const engine::Entry *&entry) override {
    ++number;
    ORTC_TRY(pending.run([&] {
      if (number == 0)
        batches = function(epoch);
      entry = takeBatch(batches, own, artifact, session, ORTC_ENTRY_EVAL);
      if (number == 0 && !entry)
        raise(ORTC_E_ARGUMENT,
              "the data of an evaluation have no batch; an iterator gives its batches only once");
    }));
    if (entry)
      rows = entry->inputs.empty() || entry->inputs[0].shape.empty() ? 1 : entry->inputs[0].shape[0];
    return Status();
  }
  int64_t getBatch() const override { return rows; }
  int64_t getRows() const override { return rows; }
  std::string explain(const std::string &message, engine::Session &session, const engine::Entry &entry,
                      const std::vector<engine::LossInfo> &losses) const override {
    return " (batch " + std::to_string(number) + ")" +
           engine::describeIndex(message, {session, entry, losses, nullptr, number, nullptr});
  }

private:
  nb::handle function;
  nb::object batches;
  int64_t epoch, number = -1, rows = 1;
  Session &own;
  const engine::Artifact &artifact;
  Pending &pending;
};

} // namespace

std::unique_ptr<engine::SliceSource> Stream::makeSlices(int64_t epoch) {
  return std::make_unique<StreamSlices>(function, epoch, own, artifact, pending);
}

// ---- Metrics.

namespace {

class FunctionMetric : public engine::SliceMetric {
public:
  FunctionMetric(nb::handle function, const engine::Artifact &artifact, const engine::Entry &entry,
                 Pending &pending)
      : function(function), pending(pending) {
    for (const engine::InputSpec &input : entry.inputs)
      inputs.push_back({input.name, 0, true});
    const engine::Entry *predict = artifact.findEntryBeside(ORTC_ENTRY_PREDICT, entry);
    for (const engine::Entry *from : {&entry, predict})
      for (size_t i = 0; from && i < from->outputs.size(); ++i)
        add(from->outputs[i], artifact);
  }

  void begin() override { total = count = 0; }
  Status addSlice(const engine::FindTensor &find, int64_t rows, int64_t batch) override {
    return pending.run([&] {
      nb::object found = function(makeDict(outputs, find, rows, batch), makeDict(inputs, find, rows, batch));
      double numbers[2] = {0, -1};
      if (nb::isinstance<nb::tuple>(found) && nb::len(found) == 2)
        for (size_t i = 0; i < 2; ++i)
          if (numbers[i] = PyFloat_AsDouble(nb::object(found[i]).ptr()); PyErr_Occurred()) {
            PyErr_Clear();
            numbers[1] = -1;
            break;
          }
      if (!(numbers[1] >= 0))
        raise(ORTC_E_ARGUMENT,
              "a metric's function has given " + std::string(nb::repr(found).c_str()) +
                  ", but must give a sum and a count, two numbers of which the second is at least 0");
      total += numbers[0];
      count += numbers[1];
    });
  }
  double compute() override { return count ? total / count : std::numeric_limits<double>::quiet_NaN(); }

private:
  struct Tensor {
    std::string name;
    size_t axis;  ///< of the samples
    bool hasRows; ///< the leading dimension has those of all samples
  };

  /// Outputs of both entries, each once.
  void add(const engine::OutputSpec &output, const engine::Artifact &artifact) {
    for (const Tensor &known : outputs)
      if (known.name == output.name)
        return;
    bool hasRows = true;
    for (const engine::LossInfo &loss : artifact.getLosses())
      if (loss.output == output.name && ((loss.hasClasses && loss.axis == 0) || loss.blank >= 0))
        hasRows = false;
    outputs.push_back({output.name, output.batchAxis, hasRows});
  }

  /// Copies of those samples that count.
  static nb::dict makeDict(const std::vector<Tensor> &tensors, const engine::FindTensor &find, int64_t rows,
                           int64_t batch) {
    nb::dict arrays;
    for (const Tensor &tensor : tensors) {
      const engine::TensorView view = find(tensor.name);
      if (view.type == DataType::None)
        continue;
      size_t bytes = 0;
      void *data = nullptr;
      nb::object array = makeArray(uint8_t(view.type), view.shape.size(), view.shape.data(), data);
      if (countBytes(view.shape, view.type, bytes))
        std::memcpy(data, view.data, bytes);
      const size_t axis = tensor.axis;
      if (batch > rows && axis < view.shape.size() &&
          (axis > 0 || (tensor.hasRows && view.shape[0] % batch == 0))) {
        nb::list cut;
        for (size_t i = 0; i < axis; ++i)
          cut.append(nb::slice(nb::none(), nb::none(), nb::none()));
        const int64_t kept = axis > 0 ? rows : view.shape[0] / batch * rows;
        cut.append(nb::slice(nb::none(), nb::int_(kept), nb::none()));
        array = array[nb::tuple(cut)];
      }
      arrays[tensor.name.c_str()] = array;
    }
    return arrays;
  }

  nb::handle function;
  Pending &pending;
  std::vector<Tensor> inputs, outputs;
  double total = 0, count = 0;
};

} // namespace

std::shared_ptr<engine::SliceMetric> makeMetric(nb::handle function, const engine::Artifact &artifact,
                                                const engine::Entry &entry, Pending &pending) {
  return std::make_shared<FunctionMetric>(function, artifact, entry, pending);
}

} // namespace ortc::python
