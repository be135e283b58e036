// Mean loss and accuracy over a data file.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "host/evaluate.h"

#include <cstring>
#include <limits>

#include "host/index_place.h"
#include "host/text.h"

namespace ortc::host {
namespace {

const OutputSpec *findOutput(const Entry &entry, const std::string &name) {
  for (const OutputSpec &output : entry.outputs)
    if (output.name == name)
      return &output;
  return nullptr;
}

/// Of the same binding, or nullptr.
const Entry *findPredict(const Artifact &artifact, const Entry &entry) {
  const Entry *predict = artifact.findEntryBeside(ORTC_ENTRY_PREDICT, entry);
  return predict && predict->binding == entry.binding ? predict : nullptr;
}

/// One slice of an evaluation: what the step needs and what becomes of it.
class SliceEvaluator {
public:
  SliceEvaluator(Session &session, const Artifact &artifact, const Entry &entry, MetricSet &metrics,
                 Evaluation &result)
      : session(session), loss(artifact.getLoss()), entry(entry), predict(findPredict(artifact, entry)),
        metrics(metrics), result(result) {
    hasOutput = findOutput(entry, loss.output) || (predict && findOutput(*predict, loss.output));
    for (const std::string &name : metrics.getOutputs())
      isElsewhere |= !findOutput(entry, name);
    isElsewhere |= loss.hasClasses && hasOutput && !findOutput(entry, loss.output);
  }

  Status run(const Batches &batches, int64_t slice) {
    ORTC_TRY(session.feed(entry, batches, slice, nullptr));
    int64_t rows = batches.getRealRows(slice);
    bool isShort = batches.isBatch() && rows < batches.getBatch();
    label = loss.isInGraph ? TensorView() : session.view(entry, "label");
    const bool hasLabel = label.type != DataType::None;
    bool masks = isShort && hasLabel && canIgnoreLabels(loss, label);
    if (masks) {
      uint8_t *data = nullptr;
      ORTC_TRY(session.getBuffer(entry, "label", data));
      ignoreLabels(loss, label, rows, data);
    }
    weights = loss.reads(kSampleWeight) ? session.view(entry, kSampleWeight) : TensorView();
    if (isShort && weights.type != DataType::None) {
      ORTC_TRY(clearWeights(rows));
      masks = true;
    }
    double mean = 0;
    ORTC_TRY(session.step(entry, mean));
    double weight = batches.isBatch() ? double(rows) : 1;
    if (hasLabel && (canIgnoreLabels(loss, label) || weights.type != DataType::None))
      weight = countLabels(loss, label, weights,
                           label.shape.empty() || !batches.isBatch() ? getLeading(label) : rows);
    if (double none = 0; isElsewhere)
      ORTC_TRY(session.step(*predict, none));
    if (hasOutput && hasLabel && loss.hasClasses) {
      TensorView output = view(loss.output);
      result.hasAccuracy |= addAccuracy(loss, output, label, batches.isBatch() ? rows : getLeading(output),
                                        result.right, result.counted, result.notNumbers);
    }
    ORTC_TRY(
        metrics.addSlice([this](const std::string &name) { return view(name); }, rows, batches.getBatch()));
    if (isShort && !masks) {
      const int64_t batch = batches.getBatch();
      if (averagesOverRows(batch)) {
        if (loss.isSum)
          mean /= double(batch);
        ORTC_TRY(takeOutRepeats(batch, rows, mean));
        if (loss.isSum)
          mean *= double(rows);
      } else
        result.note = "the loss of the last slice averages over " + std::to_string(batches.getBatch()) +
                      " samples, of which only " + std::to_string(rows) + " are different";
    }
    if (loss.isSum) { // of all slices, as if they were one
      result.loss.sum += mean;
      result.loss.weight = 1;
    } else {
      result.loss.add(mean, weight);
    }
    result.items += batches.isBatch() ? rows : 1;
    ++result.slices;
    return Status();
  }

private:
  /// An input, or an output of either entry.
  TensorView view(const std::string &name) {
    TensorView found = session.view(entry, name);
    return found.type == DataType::None && predict ? session.view(*predict, name) : found;
  }
  /// Whether the loss is a mean over the rows of the label, by what a loss is. What a graph computes may be anything.
  bool averagesOverRows(int64_t batch) const {
    return label.type != DataType::None && getLeading(label) == batch && !label.shape.empty() &&
           !(loss.hasClasses && loss.axis == 0) && !loss.comparesSamples;
  }

  /// From the mean of a slice whose `batch` rows repeat the first `rows` to the mean of these alone. The slice has
  /// them all equally often, and the first batch % rows once more: those come from a slice that repeats them alone.
  /// Differences are of parts of a sum, so nothing cancels. Few steps: the numbers of rows are remainders of the batch.
  Status takeOutRepeats(int64_t batch, int64_t rows, double &mean) {
    const int64_t rest = batch % rows, times = batch / rows;
    if (rest == 0)
      return Status();
    ORTC_TRY(repeatRows(batch, rest));
    double more = 0;
    ORTC_TRY(session.step(entry, more));
    if (loss.isSum)
      more /= double(batch);
    ORTC_TRY(takeOutRepeats(batch, rest, more));
    mean = (mean * double(batch) - more * double(rest)) / double(times * rows);
    return Status();
  }

  /// Samples from row `rows` on count nothing.
  Status clearWeights(int64_t rows) {
    uint8_t *data = nullptr;
    ORTC_TRY(session.getBuffer(entry, kSampleWeight, data));
    const size_t element = getElementBytes(weights.type);
    std::memset(data + size_t(rows) * element, 0, size_t(getLeading(weights) - rows) * element);
    return Status();
  }

  /// Fills every input with copies of its first rows.
  Status repeatRows(int64_t batch, int64_t rows) {
    for (const InputSpec &input : entry.inputs) {
      uint8_t *data = nullptr;
      ORTC_TRY(session.getBuffer(entry, input.name, data));
      size_t rowBytes = getElementBytes(input.type);
      for (size_t i = 1; i < input.shape.size(); ++i)
        rowBytes *= size_t(input.shape[i]);
      for (int64_t row = rows; row < batch; ++row)
        std::memcpy(data + size_t(row) * rowBytes, data + size_t(row % rows) * rowBytes, rowBytes);
    }
    return Status();
  }

  static int64_t getLeading(const TensorView &view) { return view.shape.empty() ? 1 : view.shape[0]; }

  Session &session;
  const LossInfo &loss;
  const Entry &entry;
  const Entry *predict; ///< of the same binding, or nullptr
  MetricSet &metrics;
  Evaluation &result;
  TensorView label, weights;
  bool hasOutput = false;   ///< what feeds the loss is an output
  bool isElsewhere = false; ///< outputs are needed that predict alone gives
};

} // namespace

std::string Evaluation::formatAccuracy() const {
  return "accuracy " + formatShort(100 * getAccuracy()) + " % (" + std::to_string(right) + " of " +
         std::to_string(counted) +
         (notNumbers ? "; " + formatCount(notNumbers, "prediction") + (notNumbers == 1 ? " is" : " are") +
                           " NaN and counted as wrong"
                     : "") +
         ")";
}

std::string Evaluation::formatMetrics() const {
  std::string text;
  for (const auto &[name, value] : metrics)
    text += ", " + name + " " + formatShort(value, 6);
  return text;
}

double Evaluation::find(const std::string &metric) const {
  for (const auto &[name, value] : metrics)
    if (name == metric)
      return value;
  return metric == "loss"                      ? loss.mean()
         : metric == "accuracy" && hasAccuracy ? getAccuracy()
                                               : std::numeric_limits<double>::quiet_NaN();
}

Status checkMetrics(const Artifact &artifact, const Entry &entry, MetricSet &metrics) {
  std::vector<TensorShape> outputs, inputs;
  for (const Entry *from : {&entry, findPredict(artifact, entry)})
    for (size_t i = 0; from && i < from->outputs.size(); ++i)
      if (const OutputSpec &output = from->outputs[i]; from == &entry || !findOutput(entry, output.name))
        outputs.push_back({output.name, output.type, output.shape});
  for (const InputSpec &input : entry.inputs)
    inputs.push_back({input.name, input.type, input.shape});
  return metrics.begin(artifact.getLoss(), outputs, inputs);
}

Status evaluate(Session &session, const Artifact &artifact, const Entry &entry, const Batches &batches,
                int64_t slices, const std::function<bool(int64_t slice)> &progress, MetricSet &metrics,
                Evaluation &result) {
  result = Evaluation();
  ORTC_TRY(checkMetrics(artifact, entry, metrics));
  SliceEvaluator evaluator(session, artifact, entry, metrics, result);
  for (int64_t slice = 0; slice < slices; ++slice) {
    if (Status status = evaluator.run(batches, slice); !status.isOk()) {
      std::string place = describeIndex(status.getMessage(), session, entry, batches, slice, nullptr);
      return Status::failure(status.getMessage() + " (slice " + std::to_string(slice) + " of " +
                             batches.getPath() + ")" + place);
    }
    if (!progress(slice))
      return Status();
  }
  for (auto &[name, value] : metrics.compute())
    if (!result.hasAccuracy || name != "accuracy") // which is there
      result.metrics.push_back({name, value});
  return Status();
}

} // namespace ortc::host
