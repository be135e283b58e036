// Mean loss and accuracy over a data file.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "engine/training/evaluate.h"

#include <cstring>
#include <limits>

#include "engine/session/failed_step.h"
#include "support/Elements.h"
#include "support/Text.h"

namespace ortc::engine {
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

/// What an evaluation gives and is given.
struct Tensors {
  Tensors(const Artifact &artifact, const Entry &entry) {
    for (const Entry *from : {&entry, findPredict(artifact, entry)})
      for (size_t i = 0; from && i < from->outputs.size(); ++i)
        if (const OutputSpec &output = from->outputs[i]; from == &entry || !findOutput(entry, output.name))
          outputs.push_back({output.name, output.type, output.shape});
    for (const InputSpec &input : entry.inputs)
      inputs.push_back({input.name, input.type, input.shape});
  }

  std::vector<TensorShape> outputs, inputs;
};

/// One slice of an evaluation: what the step needs and what becomes of it.
class SliceEvaluator {
public:
  SliceEvaluator(Session &session, const Artifact &artifact, const Entry &entry, MetricSet &metrics,
                 Evaluation &result)
      : session(session), artifact(artifact), entry(&entry), predict(findPredict(artifact, entry)),
        metrics(metrics), result(result) {
    const Tensors tensors(artifact, entry);
    for (const LossInfo &loss : artifact.getLosses()) {
      Part &part = parts.emplace_back(loss);
      LossMeasure &measure = result.losses.emplace_back();
      measure.name = loss.name;
      if (!loss.hasClasses || !compareLoss(loss.kind, loss, findShape(tensors.outputs, loss.output),
                                           findShape(tensors.inputs, loss.label), part.comparison)
                                   .isOk())
        continue;
      measure.accuracy.emplace(part.comparison.facts.classes);
      isElsewhere |= !findOutput(entry, loss.output);
    }
    for (const std::string &name : metrics.getOutputs())
      isElsewhere |= !findOutput(entry, name);
    if (metrics.readsAll() && predict)
      for (const OutputSpec &output : predict->outputs)
        isElsewhere |= !findOutput(entry, output.name);
  }

  /// The weights of several losses; that of a single one is in its value.
  Status readWeights() {
    for (size_t i = 0; i < parts.size() && parts.size() > 1; ++i)
      ORTC_TRY(session.getScalar(parts[i].loss.weight, result.losses[i].weight));
    return Status();
  }

  /// `isThere`: whether there was a slice.
  Status run(SliceSource &source, bool &isThere) {
    const Entry *fed = entry;
    ORTC_TRY(source.feed(session, fed));
    isThere = fed != nullptr;
    if (!isThere)
      return Status();
    if (fed != entry) { // of another binding
      entry = fed;
      predict = findPredict(artifact, *entry);
    }
    const int64_t rows = source.getRows(), batch = source.getBatch();
    const bool isBatch = batch > 0, isShort = isBatch && rows < batch;
    for (Part &part : parts)
      ORTC_TRY(takeInputs(part, isShort ? rows : -1));
    std::vector<double> means, counts;
    ORTC_TRY(step(means));
    for (const Part &part : parts)
      counts.push_back(count(part, isBatch ? rows : -1));
    if (double none = 0; isElsewhere)
      ORTC_TRY(session.step(*predict, none));
    for (size_t i = 0; i < parts.size(); ++i)
      addRight(parts[i], rows, batch, result.losses[i]);
    ORTC_TRY(metrics.addSlice([this](const std::string &name) { return view(name); }, rows, batch));
    if (isShort)
      ORTC_TRY(correct(batch, rows, means));
    for (size_t i = 0; i < parts.size(); ++i) {
      WeightedSum &sum = result.losses[i].sum;
      if (parts[i].loss.isSum) { // of all slices, as if they were one
        sum.sum += means[i];
        sum.weight = 1;
      } else {
        sum.add(means[i], counts[i]);
      }
    }
    result.items += isBatch ? rows : 1;
    ++result.slices;
    return Status();
  }

  /// The one that the last slice was fed to.
  const Entry &getEntry() const { return *entry; }

private:
  struct Part {
    explicit Part(const LossInfo &loss) : loss(loss) {}
    const LossInfo &loss;
    Comparison comparison; ///< where there is an accuracy
    TensorView label, weights;
    bool hasLabel() const { return label.type != DataType::None; }
    bool hasWeights() const { return weights.type != DataType::None; }
    bool ignoresLabels() const { return hasLabel() && canIgnoreLabels(loss, label); }
  };

  /// An input, or an output of either entry.
  TensorView view(const std::string &name) {
    TensorView found = session.view(*entry, name);
    return found.type == DataType::None && predict ? session.view(*predict, name) : found;
  }

  /// Finds label and weights; what repeats samples, from row `rows` on, counts nothing where that can be.
  Status takeInputs(Part &part, int64_t rows) {
    const std::string weights = part.loss.findSampleWeight();
    part.label = part.loss.isInGraph ? TensorView() : session.view(*entry, part.loss.label);
    part.weights = weights.empty() ? TensorView() : session.view(*entry, weights);
    uint8_t *data = nullptr;
    if (rows >= 0 && part.ignoresLabels()) {
      ORTC_TRY(session.getBuffer(*entry, part.loss.label, data));
      ignoreLabels(part.loss, part.label, rows, data);
    }
    if (rows >= 0 && part.hasWeights()) {
      ORTC_TRY(session.getBuffer(*entry, weights, data));
      const size_t element = getElementBytes(part.weights.type);
      std::memset(data + size_t(rows) * element, 0, size_t(getLeading(part.weights) - rows) * element);
    }
    return Status();
  }

  /// Runs the entry: what it gives for every loss.
  Status step(std::vector<double> &means) {
    means.assign(1, 0);
    ORTC_TRY(session.step(*entry, means.front()));
    if (parts.size() == 1)
      return Status();
    means.clear();
    for (const Part &part : parts) {
      TensorView value = session.view(*entry, part.loss.value);
      if (value.type == DataType::None)
        return Status::failure("the artifact has no output '" + part.loss.value +
                               "', which its manifest names");
      means.push_back(loadAsDouble(value.type, value.data));
    }
    return Status();
  }

  /// What the mean over the first `rows` rows, or all, weighs.
  double count(const Part &part, int64_t rows) const {
    if (!part.ignoresLabels() && !part.hasWeights())
      return rows < 0 ? 1 : double(rows);
    const TensorView &counted = part.hasLabel() ? part.label : part.weights;
    return countLabels(part.loss, part.label, part.weights,
                       counted.shape.empty() || rows < 0 ? getLeading(counted) : rows);
  }

  /// Counts right predictions of the first `rows` samples.
  void addRight(const Part &part, int64_t rows, int64_t batch, LossMeasure &measure) {
    if (measure.accuracy)
      readPredictions(
          part.comparison, [this](const std::string &name) { return view(name); }, rows, batch,
          [&](const Prediction &prediction) { measure.accuracy->add(prediction); });
  }

  /// Takes what repeats samples out of the means, but of losses where it counts nothing.
  Status correct(int64_t batch, int64_t rows, std::vector<double> &means) {
    std::vector<size_t> wrong;
    for (size_t i = 0; i < parts.size(); ++i) {
      const Part &part = parts[i];
      if (part.ignoresLabels() || part.hasWeights())
        continue;
      if (averagesOverRows(part, batch))
        wrong.push_back(i);
      else
        result.note = "the loss of the last slice averages over " + std::to_string(batch) +
                      " samples, of which only " + std::to_string(rows) + " are different";
    }
    if (wrong.empty())
      return Status();
    std::vector<double> corrected = means;
    scaleSums(1 / double(batch), corrected);
    ORTC_TRY(takeOutRepeats(batch, rows, corrected));
    scaleSums(double(rows), corrected);
    for (size_t i : wrong)
      means[i] = corrected[i];
    return Status();
  }

  /// Multiplies losses that are sums.
  void scaleSums(double factor, std::vector<double> &means) const {
    for (size_t i = 0; i < parts.size(); ++i)
      if (parts[i].loss.isSum)
        means[i] *= factor;
  }

  /// Whether the loss is a mean over rows, by what a loss is. What a graph computes may be anything.
  bool averagesOverRows(const Part &part, int64_t batch) {
    if (part.loss.isInGraph)
      return false;
    TensorView rows = part.hasLabel() ? part.label : view(part.loss.output);
    return rows.type != DataType::None && getLeading(rows) == batch && !rows.shape.empty() &&
           !(part.loss.hasClasses && part.loss.axis == 0) && !part.loss.comparesSamples;
  }

  /// From the mean of a slice whose `batch` rows repeat the first `rows` to the mean of these alone. The slice has
  /// them all equally often, and the first batch % rows once more: those come from a slice that repeats them alone.
  /// Differences are of parts of a sum, so nothing cancels. Few steps: the numbers of rows are remainders of the batch.
  Status takeOutRepeats(int64_t batch, int64_t rows, std::vector<double> &means) {
    const int64_t rest = batch % rows, times = batch / rows;
    if (rest == 0)
      return Status();
    ORTC_TRY(repeatRows(batch, rest));
    std::vector<double> more;
    ORTC_TRY(step(more));
    scaleSums(1 / double(batch), more);
    ORTC_TRY(takeOutRepeats(batch, rest, more));
    for (size_t i = 0; i < means.size(); ++i)
      means[i] = (means[i] * double(batch) - more[i] * double(rest)) / double(times * rows);
    return Status();
  }

  /// Fills every input with copies of its first rows.
  Status repeatRows(int64_t batch, int64_t rows) {
    for (const InputSpec &input : entry->inputs) {
      uint8_t *data = nullptr;
      ORTC_TRY(session.getBuffer(*entry, input.name, data));
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
  const Artifact &artifact;
  const Entry *entry;
  const Entry *predict; ///< of the same binding, or nullptr
  MetricSet &metrics;
  Evaluation &result;
  std::vector<Part> parts;  ///< as the losses
  bool isElsewhere = false; ///< outputs are needed that predict alone gives
};

} // namespace

std::string LossMeasure::formatAccuracy() const {
  const int64_t notNumbers = accuracy->notNumbers;
  return "accuracy " + formatShort(100 * getAccuracy()) + " % (" + std::to_string(accuracy->right) + " of " +
         std::to_string(accuracy->counted) +
         (notNumbers ? "; " + formatCount(notNumbers, "prediction") + (notNumbers == 1 ? " is" : " are") +
                           " NaN and counted as wrong"
                     : "") +
         ")";
}

double Evaluation::getLoss() const {
  if (losses.size() == 1)
    return losses.front().sum.mean();
  double total = 0;
  for (const LossMeasure &measure : losses)
    total += measure.weight * measure.sum.mean();
  return total;
}

std::string Evaluation::formatLosses(const std::function<std::string(double)> &format) const {
  std::string text = "loss " + format(getLoss());
  for (const LossMeasure &measure : losses) {
    if (!measure.name.empty())
      text += ", " + measure.name + " " + format(measure.sum.mean());
    if (measure.accuracy)
      text += (measure.name.empty() ? ", " : " with ") + measure.formatAccuracy();
  }
  return text;
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
  for (const LossMeasure &measure : losses) {
    if (metric == measure.key("loss"))
      return measure.sum.mean();
    if (metric == measure.key("accuracy") && measure.accuracy)
      return measure.getAccuracy();
  }
  return metric == "loss" ? getLoss() : std::numeric_limits<double>::quiet_NaN();
}

std::vector<std::string> listFigures(const Artifact &artifact) {
  std::vector<std::string> figures{"loss"};
  for (const LossInfo &loss : artifact.getLosses()) {
    LossMeasure measure;
    measure.name = loss.name;
    if (!loss.name.empty())
      figures.push_back(measure.key("loss"));
    if (!loss.name.empty() && loss.hasClasses)
      figures.push_back(measure.key("accuracy"));
  }
  return figures;
}

Status checkMetrics(const Artifact &artifact, const Entry &entry, MetricSet &metrics) {
  const Tensors tensors(artifact, entry);
  return metrics.begin(artifact.getLosses(), tensors.outputs, tensors.inputs);
}

Status evaluate(Session &session, const Artifact &artifact, const Entry &entry, SliceSource &source,
                const std::function<bool()> &progress, MetricSet &metrics, Evaluation &result) {
  result = Evaluation();
  ORTC_TRY(checkMetrics(artifact, entry, metrics));
  SliceEvaluator evaluator(session, artifact, entry, metrics, result);
  ORTC_TRY(evaluator.readWeights());
  for (bool isThere = true; isThere;) {
    if (Status status = evaluator.run(source, isThere); !status.isOk())
      return Status::failure(status.getMessage() + source.explain(status.getMessage(), session,
                                                                  evaluator.getEntry(),
                                                                  artifact.getLosses()));
    if (isThere && !progress())
      return Status();
  }
  for (auto &[name, value] : metrics.compute())
    if (!result.hasAccuracy() || name != "accuracy") // which is there
      result.metrics.push_back({name, value});
  return Status();
}

namespace {

/// Slices of data that are there as a whole.
class DataSlices : public SliceSource {
public:
  DataSlices(const Batches &batches, int64_t slices) : batches(batches), slices(slices) {}
  Status feed(Session &session, const Entry *&entry) override {
    if (++slice < slices)
      return session.feed(*entry, batches, slice, nullptr);
    entry = nullptr;
    return Status();
  }
  int64_t getBatch() const override { return batches.getBatch(); }
  int64_t getRows() const override { return batches.getRealRows(slice); }
  std::string explain(const std::string &message, Session &session, const Entry &entry,
                      const std::vector<LossInfo> &losses) const override {
    return " (slice " + std::to_string(slice) + " of " + batches.getPath() + ")" +
           describeIndex(message, {session, entry, losses, &batches, slice, nullptr});
  }
  int64_t getSlice() const { return slice; }

private:
  const Batches &batches;
  const int64_t slices;
  int64_t slice = -1;
};

} // namespace

std::unique_ptr<SliceSource> makeSlices(const Batches &batches, int64_t slices) {
  return std::make_unique<DataSlices>(batches, slices);
}

Status evaluate(Session &session, const Artifact &artifact, const Entry &entry, const Batches &batches,
                int64_t slices, const std::function<bool(int64_t slice)> &progress, MetricSet &metrics,
                Evaluation &result) {
  DataSlices source(batches, slices);
  return evaluate(
      session, artifact, entry, source, [&] { return progress(source.getSlice()); }, metrics, result);
}

} // namespace ortc::engine
