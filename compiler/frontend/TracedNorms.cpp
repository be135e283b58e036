// What PyTorch's exporter notes about batch normalisations.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/frontend/TracedNorms.h"

#include "compiler/frontend/InitializerOrigins.h"
#include "compiler/frontend/onnx.pb.h"

namespace ortc::frontend {

TracedNorm findTracedNorm(const proto::NodeProto &node, const proto::GraphProto &graph) {
  TracedOperation operation = findOperation(node);
  if (operation.target.find("batch_norm") == std::string::npos)
    return TracedNorm::unknown;
  // x, weight, bias, then the statistics unless the operation has none, then the mode.
  const std::vector<std::string> &given = operation.positional;
  size_t mode = 3;
  while (mode < given.size() && given[mode] != "True" && given[mode] != "False")
    ++mode;
  if (mode >= given.size() || given[mode] == "False")
    return TracedNorm::unknown;
  if (mode != 5)
    return TracedNorm::batchOnly;
  // A buffer or a parameter of the module outlives a step.
  std::map<std::string, std::string> kept = findSignature(graph).parameters;
  auto isKept = [&](const std::string &name) { return name[0] == '%' && kept.count(name.substr(1)) != 0; };
  return isKept(given[3]) && isKept(given[4]) ? TracedNorm::batch : TracedNorm::batchOnly;
}

} // namespace ortc::frontend
