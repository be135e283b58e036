// eval, predict and gradients: one entry applied to a data file.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "engine/training/apply.h"

#include <cmath>
#include <cstring>
#include <map>

#include "engine/checkpoints/checkpoint_tensors.h"
#include "engine/data/writers.h"
#include "engine/report.h"
#include "engine/session/averages.h"
#include "engine/training/evaluate.h"
#include "support/Elements.h"
#include "support/OutputPaths.h"
#include "support/Printable.h"
#include "support/Text.h"

namespace ortc::engine {
namespace {

/// What the three commands begin with.
struct Application {
  explicit Application(const ApplyOptions &options) : options(options), reporter(options.quiet) {}

  Status open(uint32_t role, Remainder remainder = Remainder::Repeat) {
    ORTC_TRY(Device::open(options.device, device));
    ORTC_TRY(Artifact::open(options.artifact, artifact, device));
    ORTC_TRY(artifact.findEntry(role, options.binding, entry));
    std::unique_ptr<DataSource> source;
    ORTC_TRY(openData(options.data, source));
    if (role != ORTC_ENTRY_EVAL)
      ORTC_TRY(checkOutput(*source)); // before the work, not after it
    std::vector<std::string> notes;
    ORTC_TRY(Batches::create(*source, entry->inputs, remainder, data, notes));
    ORTC_TRY(Session::create(artifact, {options.threads, false}, session));
    for (const std::string &note : notes)
      reporter.note(note);
    if (!options.load.empty()) {
      LoadResult loaded;
      ORTC_TRY(session.load(options.load, loaded));
      if (!loaded.unused.empty())
        reporter.note(loaded.unused);
    } else {
      ORTC_TRY(artifact.checkWeights());
    }
    ORTC_TRY(takeAverages(artifact, session, options.weights));
    slices = std::min(data.getSlices(), options.steps.value_or(data.getSlices()));
    if (options.steps > slices)
      reporter.note(options.data + ": has " + formatCount(slices, "slice") + ", fewer than --steps " +
                    std::to_string(*options.steps));
    return Status();
  }

  /// Runs the entry on slice k of the data.
  Status run(int64_t slice, double &loss) {
    ORTC_TRY(session.feed(*entry, data, slice, nullptr));
    Status status = session.step(*entry, loss);
    return status.isOk() ? status
                         : Status::failure(status.getMessage() + " (slice " + std::to_string(slice) + " of " +
                                           options.data + ")");
  }

  /// Says that the last slice was filled up, where it was run, and what `more` there is to say of it.
  void noteFilling(const std::string &more = "") {
    std::string filling = slices == data.getSlices() ? data.describeFilling() : "";
    if (std::string text = filling + (filling.empty() || more.empty() ? "" : "; ") + more; !text.empty())
      reporter.note(text);
  }

  Status checkOutput(const DataSource &source) const {
    std::vector<NamedFile> inputs = listArtifactFiles(options.artifact);
    for (NamedFile &file : listLoadedFiles(options.load))
      inputs.push_back(std::move(file));
    for (const std::string &file : source.getFiles())
      inputs.push_back({"--data", file});
    ORTC_TRY(checkOutputs(inputs, {{"-o", options.output}}));
    std::string place;
    return resolveOutput(options.output, place);
  }

  const ApplyOptions &options;
  Reporter reporter;
  Device device;
  Artifact artifact;
  Session session;
  const Entry *entry = nullptr;
  Batches data;
  int64_t slices = 0;
};

/// Collects an output over the slices, one after the other along the axis of the samples.
class Collector {
public:
  Collector(const OutputSpec &spec, const Batches &batches) {
    name = spec.name;
    array.name = spec.graphName;
    array.type = spec.type;
    array.shape = spec.shape.empty() ? Shape{1} : spec.shape;
    const int64_t batch = batches.isBatch() ? batches.getBatch() : 0;
    if (batch > 0 && spec.batchAxis < array.shape.size() && array.shape[spec.batchAxis] == batch)
      axis = spec.batchAxis;
    length = array.shape[axis];
    rowBytes = getElementBytes(array.type);
    for (size_t i = 0; i < array.shape.size(); ++i)
      if (i < axis)
        parts.resize(parts.size() * size_t(array.shape[i]));
      else if (i > axis)
        rowBytes *= size_t(array.shape[i]);
    // The leading dimension follows the samples when it is a multiple of theirs ([batch * tokens, classes],
    // say), unless the model has it for another one.
    bool mayFollow = axis > 0 || (!spec.shape.empty() && spec.isBatch != false);
    perSample = batch > 0 && mayFollow && length % batch == 0 ? length / batch : 0;
    array.shape[axis] = 0;
  }
  void add(const uint8_t *from, int64_t realRows) {
    const int64_t rows = perSample ? perSample * realRows : length;
    for (std::vector<uint8_t> &part : parts) {
      part.insert(part.end(), from, from + size_t(rows) * rowBytes);
      from += size_t(length) * rowBytes;
    }
    array.shape[axis] += rows;
  }
  OutputArray finish() {
    for (std::vector<uint8_t> &part : parts)
      if (array.data.empty())
        array.data = std::move(part);
      else
        array.data.insert(array.data.end(), part.begin(), part.end());
    return std::move(array);
  }
  std::string name; ///< in the artifact

private:
  OutputArray array;
  /// for each index of the axes in front
  std::vector<std::vector<uint8_t>> parts = std::vector<std::vector<uint8_t>>(1);
  size_t axis = 0, rowBytes = 0;
  int64_t length = 1, perSample = 0; ///< of a slice, along the axis
};

} // namespace

/// `item`: what is counted.
static std::string formatJson(const Evaluation &result, const char *item) {
  std::string text = "{\"loss\":" + formatJsonNumber(float(result.getLoss()));
  auto add = [&text](const std::string &key, const std::string &value) {
    text += "," + formatJsonString(key) + ":" + value;
  };
  for (const LossMeasure &measure : result.losses) {
    if (!measure.name.empty())
      add(measure.key("loss"), formatJsonNumber(float(measure.sum.mean())));
    if (!measure.accuracy)
      continue;
    add(measure.key("accuracy"), formatJsonNumber(measure.getAccuracy()));
    add(measure.key("right"), std::to_string(measure.accuracy->right));
    add(measure.key("counted"), std::to_string(measure.accuracy->counted));
    add(measure.key("not_numbers"), std::to_string(measure.accuracy->notNumbers));
  }
  for (const auto &[name, value] : result.metrics)
    text += "," + formatJsonString(name) + ":" + formatJsonNumber(value);
  add(std::string(item) + "s", std::to_string(result.items));
  return text + "}";
}

Status evaluateData(const ApplyOptions &options) {
  MetricSet metrics;
  for (const std::string &metric : options.metrics)
    ORTC_TRY(metrics.add(metric));
  Application application(options);
  ORTC_TRY(application.open(ORTC_ENTRY_EVAL));
  Reporter &reporter = application.reporter;
  Evaluation result;
  ORTC_TRY(evaluate(
      application.session, application.artifact, *application.entry, application.data, application.slices,
      [&](int64_t slice) {
        reporter.count("slice", slice + 1, application.slices);
        return true;
      },
      metrics, result));
  application.noteFilling(result.note);
  const char *item = application.data.isBatch() ? "sample" : "slice";
  if (options.json) {
    reporter.result(formatJson(result, item) + "\n");
    return Status();
  }
  std::string text = result.formatLosses([](double value) { return formatNumber(float(value)); });
  text += result.formatMetrics();
  // The result itself is no chatter: quiet keeps it.
  reporter.result(makePrintable(text) + ", over " + formatCount(result.items, item) + "\n");
  return Status();
}

Status predictData(const ApplyOptions &options) {
  Application application(options);
  ORTC_TRY(application.open(ORTC_ENTRY_PREDICT));
  std::vector<Collector> collectors;
  for (const OutputSpec &output : application.entry->outputs)
    collectors.emplace_back(output, application.data);
  for (int64_t slice = 0; slice < application.slices; ++slice) {
    double none = 0;
    ORTC_TRY(application.run(slice, none));
    for (Collector &collector : collectors) {
      uint8_t *from = nullptr;
      ORTC_TRY(application.session.getBuffer(*application.entry, collector.name, from));
      collector.add(from, application.data.getRealRows(slice));
    }
    application.reporter.count("slice", slice + 1, application.slices);
  }
  std::vector<OutputArray> arrays;
  std::string shapes;
  for (Collector &collector : collectors) {
    arrays.push_back(collector.finish());
    shapes += (shapes.empty() ? "" : ", ") + arrays.back().name + " " + formatShape(arrays.back().shape);
  }
  ORTC_TRY(writeNpz(options.output, arrays));
  application.noteFilling();
  application.reporter.line("wrote " + options.output + ": " + shapes);
  return Status();
}

/// Adds a gradient (float32 or float64) into doubles.
static void accumulate(const std::vector<uint8_t> &from, DataType type, std::vector<double> &sum) {
  for (size_t i = 0; i < sum.size(); ++i)
    sum[i] += loadAsDouble(type, from.data() + i * getElementBytes(type));
}

/// Elements of a float type from sums over `count` slices.
static std::vector<uint8_t> makeMean(std::vector<double> sum, int64_t count, DataType type) {
  for (double &each : sum)
    each /= double(count);
  return fromDoubles(type, sum);
}

/// An array for the gradient of every parameter, in the order of these. Gradients may be of a wider type.
static Status makeGradientArrays(const Artifact &artifact, std::vector<OutputArray> &arrays) {
  std::map<uint32_t, size_t> places; // of parameters, by their number
  for (uint8_t role : {ORTC_ROLE_PARAMETER, ORTC_ROLE_GRADIENT})
    for (uint32_t i = 0; i < artifact.getInfo().tensor_count; ++i) {
      ortc_tensor_info tensor = ORTC_INIT(ortc_tensor_info);
      if (ortc_tensor_get(artifact.getProgram(), i, &tensor) != ORTC_OK)
        return Status::failure(artifact.getPath() + ": tensor " + std::to_string(i) + " cannot be read");
      auto type = static_cast<DataType>(tensor.dtype);
      Shape shape(tensor.dims, tensor.dims + tensor.rank);
      size_t bytes = 0;
      if (tensor.role != role || !countBytes(shape, type, bytes))
        continue;
      OutputArray array{tensor.name, type, std::move(shape), std::vector<uint8_t>(bytes)};
      if (role == ORTC_ROLE_PARAMETER) {
        places[i] = arrays.size();
        arrays.push_back(std::move(array));
      } else if (auto place = places.find(tensor.owner); place != places.end()) {
        arrays[place->second] = std::move(array);
      }
    }
  return Status();
}

Status computeGradients(const ApplyOptions &options) {
  Application application(options);
  // A sample that is repeated to fill a slice would have twice its gradient in the mean.
  ORTC_TRY(application.open(ORTC_ENTRY_GRADIENTS, Remainder::Drop));
  int64_t slices = std::min(application.data.getSlices(), options.steps.value_or(1));
  if (options.steps.value_or(1) > slices && application.data.getDropped())
    application.reporter.note(application.data.describeDropped("the data"));
  std::vector<OutputArray> arrays;
  ORTC_TRY(makeGradientArrays(application.artifact, arrays));
  std::vector<std::vector<double>> sums(arrays.size());
  double lossSum = 0;
  for (int64_t slice = 0; slice < slices; ++slice) {
    double loss = 0;
    ORTC_TRY(application.run(slice, loss));
    lossSum += loss;
    for (size_t i = 0; i < arrays.size(); ++i) {
      ortc_status status = ortc_read_gradient(application.session.get(), arrays[i].name.c_str(),
                                              arrays[i].data.data(), arrays[i].data.size());
      if (status != ORTC_OK)
        return Status::failure(application.artifact.getPath() + ": gradient of '" + arrays[i].name +
                               "': " + ortc_session_message(application.session.get()));
      if (slices == 1)
        continue;
      sums[i].resize(arrays[i].data.size() / getElementBytes(arrays[i].type));
      accumulate(arrays[i].data, arrays[i].type, sums[i]);
      if (slice + 1 == slices)
        arrays[i].data = makeMean(std::move(sums[i]), slices, arrays[i].type);
    }
  }
  double loss = lossSum / double(slices);
  bool isTaken = false;
  for (const OutputArray &array : arrays)
    isTaken |= array.name == "loss";
  if (isTaken) {
    application.reporter.note(
        "'loss' is the gradient of a parameter of that name; the loss is in the file's metadata alone");
  } else {
    DataType type = application.entry->lossType == DataType::Float64 ? DataType::Float64 : DataType::Float32;
    arrays.push_back({"loss", type, {}, fromDoubles(type, {loss})});
  }
  ORTC_TRY(writeSafetensors(options.output, arrays, {{"loss", formatNumber(loss)}}));
  application.reporter.line("wrote " + options.output + ": loss " + formatShort(loss, 6) +
                            " and the gradients of " +
                            formatCount(int64_t(arrays.size()) - !isTaken, "parameter"));
  return Status();
}

} // namespace ortc::engine
