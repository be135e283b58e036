// Models for inference, from artifacts and from files that train.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "engine/export/export_inference.h"

#include "compiler/frontend/GraphEdits.h"
#include "compiler/options/CompileOptions.h"
#include "engine/export/exported_data.h"
#include "support/Json.h"
#include "support/Lists.h"
#include "support/Text.h"

namespace ortc::engine {

/// The manifest's entry for masks that the graph draws.
static Status readMasks(const Artifact &artifact, bool &findsMasks, std::set<std::string> &wide) {
  auto manifest = parseJson(artifact.getManifest());
  try {
    const nlohmann::json none = nlohmann::json::object();
    const nlohmann::json &flags =
        manifest.is_object() && manifest.contains("flags") ? manifest["flags"] : none;
    // which is what others are
    Expected<DropoutSpec> dropout = parseDropout(flags.value("dropout", "as-exported"));
    if (!dropout)
      return Status::failure(artifact.getPath() + ": its manifest says: " + dropout.getStatus().getMessage());
    findsMasks = dropout->findsMasks;
    if (manifest.contains("wide_masks"))
      wide = manifest.at("wide_masks").get<std::set<std::string>>();
  } catch (const nlohmann::json::exception &) {
    return Status::failure(artifact.getPath() + ": its manifest does not say how it was compiled");
  }
  return Status();
}

Status stopTraining(const Artifact &artifact, Session &session, proto::ModelProto &model,
                    frontend::InferenceReport &report) {
  bool findsMasks = true;
  std::set<std::string> wide;
  ORTC_TRY(readMasks(artifact, findsMasks, wide));
  std::string bytes; // of the tensor that was read last
  auto read = [&](const proto::TensorProto &tensor, frontend::TensorData &data) {
    ortc_tensor_info info = ORTC_INIT(ortc_tensor_info);
    bool isHeld = ortc_tensor_find(artifact.getProgram(), tensor.name().c_str(), &info) != ORTC_OK ||
                  !(info.flags & ORTC_TENSOR_IN_MODEL);
    if (isHeld)
      return frontend::readHeldData(tensor, data);
    auto type = static_cast<DataType>(tensor.data_type());
    if (getElementBytes(type) == 0)
      return Status::refusal("its type is not read");
    ORTC_TRY(readTensor(artifact, session, info, type, bytes));
    data = {tensor.data_type(), {tensor.dims().begin(), tensor.dims().end()}, bytes, {}, nullptr};
    return Status();
  };
  frontend::makeInference(model, findsMasks ? frontend::ReadTensor(read) : nullptr, wide, report);
  return Status();
}

Status readForInference(const std::string &path, proto::ModelProto &model,
                        frontend::InferenceReport &report) {
  std::shared_ptr<const frontend::Model> loaded;
  ORTC_TRY(frontend::Model::load(path, loaded));
  auto read = [&](const proto::TensorProto &tensor, frontend::TensorData &data) {
    return loaded->tensor(tensor, data);
  };
  model = loaded->getProto();
  frontend::makeInference(model, read, {}, report);
  for (proto::TensorProto &tensor : *model.mutable_graph()->mutable_initializer())
    if (frontend::TensorData data; tensor.data_location() == proto::TensorProto::EXTERNAL) {
      if (Status status = loaded->tensor(tensor, data); !status.isOk())
        return Status::refusal(path + ": initializer '" + tensor.name() + "': " + status.getMessage());
      replaceData(tensor, std::string(data.bytes));
    }
  return loaded->checkFiles();
}

std::string describeInference(const frontend::InferenceReport &report) {
  std::vector<std::string> parts;
  for (auto [count, what] : {std::pair(report.norms, "batch normalisation"),
                             {report.dropouts, "dropout"},
                             {int64_t(report.masks.size()), "drawn mask"}})
    if (count)
      parts.push_back(formatCount(count, what));
  if (parts.empty())
    return "";
  std::string last = parts.back();
  parts.pop_back();
  return ", " + (parts.empty() ? "" : joinSome(parts, parts.size()) + " and ") + last +
         " made those of inference";
}

std::string warnOfDraws(const frontend::InferenceReport &report) {
  size_t count = report.random.size();
  return count ? joinSome(report.random, 4) + (count == 1 ? " draws" : " draw") +
                     " random numbers in the exported model, too"
               : "";
}

} // namespace ortc::engine
