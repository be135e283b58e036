// The original graph with trained weights.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The source section holds the model without the bytes that the tensor table has. Every initializer of the
// graph that the table knows as one of the model gets its bytes from a session, so that a checkpoint's
// weights and running statistics go where the file had them; all others are as they were.
#include "engine/export/export_model.h"

#include <filesystem>
#include <set>

#include "compiler/frontend/onnx.pb.h"
#include "engine/artifact/adapters.h"
#include "engine/export/export_adapters.h"
#include "engine/export/export_gradients.h"
#include "engine/export/export_inference.h"
#include "engine/export/export_quantized.h"
#include "engine/export/exported_data.h"
#include "engine/report.h"
#include "engine/session/averages.h"
#include "engine/session/session.h"
#include "support/AtomicFile.h"
#include "support/OutputPaths.h"
#include "support/Text.h"

namespace ortc::engine {

/// 2 or 4 for the integers that artifacts hold in whole bytes, else 0.
static unsigned lowBitsOf(int32_t type) {
  bool isFour = type == proto::TensorProto::INT4 || type == proto::TensorProto::UINT4;
  bool isTwo = type == proto::TensorProto::INT2 || type == proto::TensorProto::UINT2;
  return isFour ? 4 : isTwo ? 2 : 0;
}

/// Several elements a byte, the first one lowest.
static std::string pack(const std::string &bytes, unsigned bits) {
  size_t perByte = 8 / bits;
  std::string packed((bytes.size() + perByte - 1) / perByte, 0);
  for (size_t i = 0; i < bytes.size(); ++i) {
    unsigned element = static_cast<unsigned char>(bytes[i]) & ((1u << bits) - 1);
    packed[i / perByte] =
        static_cast<char>(static_cast<unsigned char>(packed[i / perByte]) | element << i % perByte * bits);
  }
  return packed;
}

static bool hasData(const proto::TensorProto &tensor) {
  return tensor.has_raw_data() || tensor.float_data_size() || tensor.int32_data_size() ||
         tensor.int64_data_size() || tensor.double_data_size() || tensor.uint64_data_size() ||
         tensor.string_data_size();
}

/// Fills the initializers; counts those that came from the tensor table.
static Status fillInitializers(const Artifact &artifact, Session &session, proto::GraphProto &graph,
                               int64_t &filled) {
  std::set<std::string> quantized; // of these, mergeAdapters has the numbers
  for (const Adapter &adapter : artifact.getAdapters())
    if (!adapter.quantized.empty())
      quantized.insert(adapter.weight);
  for (proto::TensorProto &initializer : *graph.mutable_initializer()) {
    ortc_tensor_info tensor = ORTC_INIT(ortc_tensor_info);
    bool isKnown = ortc_tensor_find(artifact.getProgram(), initializer.name().c_str(), &tensor) == ORTC_OK &&
                   (tensor.flags & ORTC_TENSOR_IN_MODEL);
    Shape shape(initializer.dims().begin(), initializer.dims().end());
    unsigned low = lowBitsOf(initializer.data_type());
    auto type = low ? static_cast<DataType>(tensor.dtype) : static_cast<DataType>(initializer.data_type());
    size_t wanted = 0;
    if (!isKnown && quantized.count(initializer.name()))
      continue;
    if (!isKnown) {
      if (hasData(initializer) || (countBytes(shape, type, wanted) && wanted == 0))
        continue;
      return Status::failure(
          artifact.getPath() + ": initializer '" + initializer.name() +
          "' is neither in the source section nor in the tensor table; compile the artifact again");
    }
    if (Shape(tensor.dims, tensor.dims + tensor.rank) != shape || getElementBytes(type) == 0)
      return Status::failure(artifact.getPath() + ": initializer '" + initializer.name() + "' is " +
                             formatShape(shape) + " in the source section but " +
                             formatShape(Shape(tensor.dims, tensor.dims + tensor.rank)) +
                             " in the tensor table");
    std::string bytes;
    ORTC_TRY(readTensor(artifact, session, tensor, type, bytes));
    replaceData(initializer, low ? pack(bytes, low) : std::move(bytes));
    ++filled;
  }
  return Status();
}

/// The model of the source section, without the weights that the tensor table has.
static Status readSource(const Artifact &artifact, proto::ModelProto &model) {
  const void *source = nullptr;
  uint64_t bytes = 0;
  ortc_status status = ortc_program_section(artifact.getProgram(), ORTC_SECTION_SOURCE, &source, &bytes);
  if (status == ORTC_E_NOT_FOUND)
    return Status::refusal(
        artifact.getPath() +
        ": was compiled with --no-source or --no-weights and has no graph to export; compile "
        "it without that flag, checkpoints stay valid");
  if (status != ORTC_OK || bytes > INT32_MAX || !model.ParseFromArray(source, int(bytes)))
    return Status::failure(artifact.getPath() + ": its source section is damaged");
  return Status();
}

static Status writeFile(const ExportOptions &options, const proto::ModelProto &model, size_t &bytes) {
  if (model.ByteSizeLong() > size_t(INT32_MAX))
    return Status::failure(options.output + ": would have " + std::to_string(model.ByteSizeLong()) +
                           " bytes, and an ONNX file in one piece has at most 2147483647");
  std::string text;
  if (!model.SerializeToString(&text))
    return Status::failure(options.output + ": the model cannot be written");
  bytes = text.size();
  return ortc::writeFile(options.output, text);
}

static Status writeModel(const ExportOptions &options, const Artifact &artifact, Session &session,
                         proto::ModelProto &model, const frontend::InferenceReport &report) {
  int64_t filled = 0;
  ORTC_TRY(fillInitializers(artifact, session, *model.mutable_graph(), filled));
  ORTC_TRY(mergeAdapters(artifact, session, *model.mutable_graph()));
  writeChosenGradients(model);
  int64_t quantized = 0;
  ORTC_TRY(writeQuantized(artifact.getPath(), model, quantized));
  size_t bytes = 0;
  ORTC_TRY(writeFile(options, model, bytes));
  size_t merged = artifact.getAdapters().size();
  Reporter(options.quiet)
      .line("wrote " + options.output + ": " + formatBytes(bytes) + ", " + formatCount(filled, "tensor") +
            " from " + (options.load.empty() ? "the artifact" : options.load) +
            (merged ? ", " + formatCount(int64_t(merged), "adapter") + " merged" : "") +
            (quantized ? ", " + formatCount(quantized, "tensor") + " quantised" : "") +
            describeInference(report));
  return Status();
}

/// A file of ONNX in place of an artifact.
static Status exportFile(const ExportOptions &options) {
  const char *flag = !options.load.empty()      ? "--load"
                     : !options.weights.empty() ? "--weights"
                     : !options.adapter.empty() ? "--adapter"
                     : options.isForTraining    ? "--training"
                                                : nullptr;
  if (flag)
    return Status::refusal(options.artifact + ": is a model, and " + flag + " goes with an artifact");
  if (options.output.empty())
    return Status::refusal("ortc export of a model needs -o INFERENCE.onnx");
  ORTC_TRY(checkOutputs({{"the model", options.artifact}}, {{"-o", options.output}}));
  std::string place;
  ORTC_TRY(resolveOutput(options.output, place));
  proto::ModelProto model;
  frontend::InferenceReport report;
  ORTC_TRY(readForInference(options.artifact, model, report));
  size_t bytes = 0;
  ORTC_TRY(writeFile(options, model, bytes));
  Reporter reporter(options.quiet);
  if (std::string warning = warnOfDraws(report); !warning.empty())
    reporter.warn(warning);
  reporter.line("wrote " + options.output + ": " + formatBytes(bytes) + describeInference(report));
  return Status();
}

/// Before anything is written: both outputs can be, and are two.
static Status checkFolders(const ExportOptions &options) {
  std::string place;
  if (!options.output.empty())
    ORTC_TRY(resolveOutput(options.output, place));
  if (options.adapter.empty())
    return Status();
  if (options.output == options.adapter)
    return Status::refusal("-o and --adapter are both " + options.output +
                           ", and one is a file, one a folder");
  ORTC_TRY(checkOutside({"the artifact", options.artifact}, {"--adapter", options.adapter}));
  std::error_code error;
  if (std::filesystem::exists(options.adapter, error) &&
      !std::filesystem::is_directory(options.adapter, error))
    return Status::refusal(options.adapter + ": is a file, and --adapter writes a folder");
  for (const char *file : {kPeftConfig, kPeftTensors})
    if (std::filesystem::is_directory(options.adapter + "/" + file, error))
      return Status::refusal(options.adapter + "/" + file + ": is a folder, which is not replaced");
  return Status();
}

Status exportModel(const ExportOptions &options) {
  if (options.output.empty() && options.adapter.empty())
    return Status::refusal("ortc export needs -o TRAINED.onnx, or --adapter DIR for adapters alone");
  if (std::filesystem::path(options.artifact).extension() == ".onnx" &&
      std::filesystem::is_regular_file(options.artifact))
    return exportFile(options);
  Artifact artifact;
  ORTC_TRY(Artifact::open(options.artifact, artifact));
  proto::ModelProto model;
  if (!options.output.empty())
    ORTC_TRY(readSource(artifact, model));
  std::vector<NamedFile> inputs = listArtifactFiles(options.artifact), outputs;
  for (NamedFile &file : listLoadedFiles(options.load))
    inputs.push_back(std::move(file));
  if (!options.output.empty())
    outputs.push_back({"-o", options.output});
  if (!options.adapter.empty())
    for (const char *file : {kPeftConfig, kPeftTensors})
      outputs.push_back({"--adapter", options.adapter + "/" + file});
  ORTC_TRY(checkOutputs(inputs, outputs));
  ORTC_TRY(checkFolders(options));
  Session session;
  ORTC_TRY(Session::create(artifact, {1, false}, session));
  frontend::InferenceReport report;
  if (!options.output.empty() && !options.isForTraining)
    ORTC_TRY(stopTraining(artifact, session, model, report));
  if (!options.load.empty()) {
    LoadResult loaded;
    ORTC_TRY(session.load(options.load, loaded));
    if (!loaded.unused.empty())
      Reporter(options.quiet).note(loaded.unused);
  }
  ORTC_TRY(takeAverages(artifact, session, options.weights));
  if (std::string warning = warnOfDraws(report); !warning.empty())
    Reporter(options.quiet).warn(warning);
  if (!options.output.empty())
    ORTC_TRY(writeModel(options, artifact, session, model, report));
  if (options.adapter.empty())
    return Status();
  ORTC_TRY(writePeftFolder(artifact, session, options.adapter));
  Reporter(options.quiet)
      .line("wrote " + options.adapter + ": " +
            formatCount(int64_t(artifact.getAdapters().size()), "adapter"));
  return Status();
}

} // namespace ortc::engine
