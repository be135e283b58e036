// Mean loss and accuracy over a data file.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "host/evaluate.h"

#include "host/text.h"

namespace ortc::host {
namespace {

/// One slice of an evaluation: what the step needs and what becomes of it.
class SliceEvaluator {
public:
  SliceEvaluator(Session &session, const Artifact &artifact, const Entry &entry, Evaluation &result)
      : session(session), loss(artifact.getLoss()), entry(entry), result(result) {
    outputEntry = &entry;
    if (!hasOutput(entry)) {
      const Entry *predict = artifact.findEntryBeside(ORTC_ENTRY_PREDICT, entry);
      outputEntry = predict && predict->binding == entry.binding && hasOutput(*predict) ? predict : nullptr;
    }
  }

  Status run(const Batches &batches, int64_t slice) {
    ORTC_TRY(session.feed(entry, batches, slice, nullptr));
    int64_t rows = batches.getRealRows(slice);
    bool isShort = batches.isBatch() && rows < batches.getBatch();
    bool hasLabel = loss.kind != LossKind::Output;
    label = hasLabel ? session.view(entry, "label") : TensorView();
    hasLabel = label.type != DataType::None;
    bool masks = isShort && hasLabel && canIgnoreLabels(loss, label);
    if (masks) {
      uint8_t *data = nullptr;
      ORTC_TRY(session.getBuffer(entry, "label", data));
      ignoreLabels(loss, label, rows, data);
    }
    double mean = 0;
    ORTC_TRY(session.step(entry, mean));
    TensorView output;
    if (outputEntry && hasLabel && (loss.hasClasses() || isShort)) {
      if (outputEntry != &entry) {
        double none = 0;
        ORTC_TRY(session.step(*outputEntry, none));
      }
      output = session.view(*outputEntry, loss.output);
    }
    double weight = batches.isBatch() ? double(rows) : 1;
    if (hasLabel && canIgnoreLabels(loss, label))
      weight = countLabels(loss, label, label.shape.empty() || !batches.isBatch() ? getLeading(label) : rows);
    if (isShort && !masks) {
      if (output.type != DataType::None && canComputeLoss(loss, output, label))
        mean = computeLoss(loss, output, label, rows);
      else
        result.note = "the loss of the last slice averages over " + std::to_string(batches.getBatch()) +
                      " samples, of which only " + std::to_string(rows) + " are different";
    }
    result.loss.add(mean, weight);
    if (output.type != DataType::None && loss.hasClasses())
      result.hasAccuracy |= addAccuracy(loss, output, label, batches.isBatch() ? rows : getLeading(output),
                                        result.right, result.counted, result.notNumbers);
    result.items += batches.isBatch() ? rows : 1;
    ++result.slices;
    return Status();
  }

private:
  bool hasOutput(const Entry &candidate) const {
    for (const OutputSpec &output : candidate.outputs)
      if (output.name == loss.output)
        return true;
    return false;
  }
  static int64_t getLeading(const TensorView &view) { return view.shape.empty() ? 1 : view.shape[0]; }

  Session &session;
  const LossInfo &loss;
  const Entry &entry;
  const Entry *outputEntry; ///< of the same binding, or nullptr
  Evaluation &result;
  TensorView label;
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

Status evaluate(Session &session, const Artifact &artifact, const Entry &entry, const Batches &batches,
                int64_t slices, const std::function<bool(int64_t slice)> &progress, Evaluation &result) {
  result = Evaluation();
  SliceEvaluator evaluator(session, artifact, entry, result);
  for (int64_t slice = 0; slice < slices; ++slice) {
    if (Status status = evaluator.run(batches, slice); !status.isOk())
      return Status::failure(status.getMessage() + " (slice " + std::to_string(slice) + " of " +
                             batches.getPath() + ")");
    if (!progress(slice))
      return Status();
  }
  return Status();
}

} // namespace ortc::host
