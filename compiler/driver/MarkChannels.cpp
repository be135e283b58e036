// Which output channels are trained.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/driver/MarkChannels.h"

#include "compiler/legalize/ChannelAxes.h"
#include "compiler/passes/train/Channels.h"
#include "dialects/train/TrainDialect.h"
#include "llvm/ADT/StringMap.h"

#include <algorithm>
#include <cmath>

using namespace mlir;

namespace ortc::driver {

Expected<std::map<std::string, int64_t>> markChannels(ModuleOp source, ModuleOp program,
                                                      const CompileOptions &options) {
  std::map<std::string, int64_t> trained;
  if (std::all_of(options.channels.begin(), options.channels.end(), [](double share) { return share == 1; }))
    return trained;
  llvm::StringMap<onnx::InitializerOp> initializers;
  source.walk([&](onnx::InitializerOp op) { initializers.try_emplace(op.getName(), op); });
  for (auto parameter : program.getOps<train::TensorOp>()) {
    std::string name = parameter.getName().str();
    double share = channelsOf(options, name);
    auto found = initializers.find(name);
    if (parameter.getRole() != train::Role::parameter || share == 1 || found == initializers.end())
      continue;
    Expected<int64_t> axis = legalize::findChannelAxis(found->second);
    if (!axis)
      return Status::refusal("--train ...:channels=" + formatValue(share) + ": '" + name +
                             "' has no output channels of which a part could be trained: " +
                             axis.getStatus().getMessage() + "; train it whole, or freeze it");
    auto type = cast<RankedTensorType>(parameter.getType());
    int64_t all = type.getRank() == 0 ? 1 : type.getDimSize(*axis),
            count = std::max<int64_t>(1, static_cast<int64_t>(std::ceil(share * static_cast<double>(all))));
    if (count >= all)
      continue;
    train::markChannels(parameter, *axis, count);
    trained[name] = type.getNumElements() / all * count;
  }
  return trained;
}

} // namespace ortc::driver
