// Faults of exporters in nodes, and the way round them.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/frontend/ExporterFaults.h"

#include "compiler/frontend/InitializerOrigins.h"
#include "compiler/frontend/onnx.pb.h"

namespace ortc::frontend {

std::string findExporterFault(const proto::NodeProto &node) {
  if (node.op_type() == "ScatterElements" && node.domain().empty()) {
    TracedOperation operation = findOperation(node);
    bool isMean = operation.target == "torch.ops.aten.scatter_reduce.two" &&
                  operation.positional.size() > 4 && operation.positional[4] == "mean";
    return isMean ? "PyTorch's exporter has written scatter_reduce with reduce='mean' as one that keeps the "
                    "last "
                    "of several values; divide a 'sum' by the counts, which are a 'sum' of ones"
                  : "";
  }
  if (node.op_type() != "LSTM" || !node.domain().empty())
    return "";
  TracedOperation operation = findOperation(node);
  if (operation.target.find("aten.lstm") == std::string::npos ||
      operation.text.find("weight_hr_l") == std::string::npos)
    return "";
  return "PyTorch's exporter has left out the projection of an LSTM with proj_size, which ONNX does not "
         "have, "
         "and cut its weights in the wrong places; use the layer without proj_size, or write its steps as a "
         "loop of Linear layers";
}

std::string explainArity(const proto::NodeProto &node) {
  if (node.op_type() != "BatchNormalization" || node.output_size() != 5)
    return "";
  return "; PyTorch's TorchScript exporter writes instance norms with running statistics so in training "
         "mode: "
         "export with opset_version=13, or with dynamo=True, which leaves the running statistics out";
}

} // namespace ortc::frontend
