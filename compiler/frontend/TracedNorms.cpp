// What PyTorch's exporter notes about batch normalisations.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/frontend/TracedNorms.h"

#include "compiler/frontend/Metadata.h"
#include "compiler/frontend/onnx.pb.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace ortc::frontend {

/// "(args = (%x, %w, None, True, 0.1, 1e-05), kwargs = {})" has %x, %w, None, True, 0.1 and 1e-05.
static std::vector<std::string_view> splitArguments(std::string_view text) {
  constexpr std::string_view kBefore = "](args = (";
  size_t at = text.find(kBefore);
  if (at == text.npos)
    return {};
  text.remove_prefix(at + kBefore.size());
  text = text.substr(0, text.find(')'));
  std::vector<std::string_view> arguments;
  while (!text.empty()) {
    arguments.push_back(text.substr(0, text.find(", ")));
    text.remove_prefix(std::min(text.size(), arguments.back().size() + 2));
  }
  return arguments;
}

/// Whether an argument is a buffer or a parameter of the module, which outlives a step.
static bool isKept(std::string_view argument, std::string_view signature) {
  if (argument.empty() || argument.front() != '%')
    return false;
  std::string name = "\n" + std::string(argument.substr(1));
  return signature.find(name + ": BUFFER") != signature.npos ||
         signature.find(name + ": PARAMETER") != signature.npos;
}

TracedNorm findTracedNorm(const proto::NodeProto &node, const proto::GraphProto &graph) {
  std::string_view text = findMetadata(node, "pkg.torch.onnx.fx_node");
  size_t target = text.find("target=torch.ops.aten.");
  if (target == text.npos ||
      text.substr(target, text.find(']', target) - target).find("batch_norm") == text.npos)
    return TracedNorm::unknown;
  // x, weight, bias, then the statistics unless the operation has none, then the mode.
  std::vector<std::string_view> arguments = splitArguments(text);
  size_t mode = 3;
  while (mode < arguments.size() && arguments[mode] != "True" && arguments[mode] != "False")
    ++mode;
  if (mode == arguments.size() || arguments[mode] == "False")
    return TracedNorm::unknown;
  std::string_view signature = findMetadata(graph, "pkg.torch.export.ExportedProgram.graph_signature");
  return mode == 5 && isKept(arguments[3], signature) && isKept(arguments[4], signature)
             ? TracedNorm::batch
             : TracedNorm::batchOnly;
}

} // namespace ortc::frontend
