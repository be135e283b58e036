// Metrics over an evaluation whose loop is a program's own: --metric of ortc eval, slice by slice.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "bindings/training/evaluation.h"

#include <algorithm>

#include "support/Json.h"
#include "support/Plural.h"

namespace ortc::bindings {

using engine::TensorShape;

TensorShape Evaluation::Binding::find(const std::string &tensor) const {
  TensorShape found = engine::findShape(outputs, tensor);
  return found.type == DataType::None ? engine::findShape(inputs, tensor) : found;
}

Status Evaluation::open(const std::string &manifest) {
  ORTC_TRY(engine::parseLosses(manifest, "the artifact", losses));
  batches = engine::BatchTable::parse(manifest);
  const auto parsed = parseJson(manifest);
  if (parsed.contains("bindings"))
    for (const auto &binding : parsed["bindings"])
      bindings.push_back({binding.value("name", ""), {}, {}});
  return Status();
}

Status Evaluation::addValue(size_t binding, bool isInput, const TensorShape &value) {
  if (binding >= bindings.size())
    return Status::failure("the manifest does not name binding " + std::to_string(binding));
  std::vector<TensorShape> &all = isInput ? bindings[binding].inputs : bindings[binding].outputs;
  if (engine::findShape(all, value.name).type == DataType::None)
    all.push_back(value);
  return Status();
}

Status Evaluation::add(const std::string &metric) {
  ORTC_TRY(metrics.add(metric));
  return begin();
}

Status Evaluation::begin() {
  auto first = std::find_if(bindings.begin(), bindings.end(),
                            [](const Binding &binding) { return !binding.outputs.empty(); });
  if (first == bindings.end())
    return Status::refusal("the artifact has no eval or predict step that gives outputs to compare");
  ORTC_TRY(metrics.begin(losses, first->outputs, first->inputs));
  tensors = metrics.getTensors();
  return Status();
}

Status Evaluation::getPlace(size_t binding, size_t tensor, std::vector<uint8_t> *&place) {
  const Binding &own = bindings[binding];
  const TensorShape shape = own.find(tensors[tensor]);
  size_t bytes = 0;
  if (shape.type == DataType::None || !countBytes(shape.shape, shape.type, bytes))
    return Status::refusal("evaluation has no '" + tensors[tensor] + "' in binding '" + own.name + "'");
  place = &places[tensors[tensor]];
  place->resize(bytes);
  return Status();
}

/// The samples of a batch: rows of all inputs, as far as the model says.
Status Evaluation::countBatch(const Binding &binding, int64_t rows, int64_t &batch) const {
  const std::vector<TensorShape> &inputs = binding.inputs;
  batch = inputs.empty() || inputs.front().shape.empty() ? 0 : inputs.front().shape.front();
  const bool isBatch = std::all_of(inputs.begin(), inputs.end(), [&](const TensorShape &input) {
    return !input.shape.empty() && input.shape.front() == batch &&
           batches.find(binding.name, input.name, /*isInput=*/true).value_or(true);
  });
  if (batch == 0 || !isBatch)
    return Status::refusal("rows cannot be counted: those of the inputs of binding '" + binding.name +
                           "' are no samples");
  if (rows < 0 || rows > batch)
    return Status::refusal(std::to_string(rows) + " rows cannot count of a batch of " +
                           formatCount(batch, "sample"));
  return Status();
}

Status Evaluation::addSlice(size_t binding, std::optional<int64_t> rows) {
  const Binding &own = bindings[binding];
  int64_t batch = 0;
  if (rows)
    ORTC_TRY(countBatch(own, *rows, batch));
  auto view = [&](const std::string &name) {
    const TensorShape shape = own.find(name);
    return engine::TensorView{shape.type, shape.shape, places[name].data()};
  };
  return metrics.addSlice(view, rows.value_or(0), batch);
}

} // namespace ortc::bindings
