// Names that exporters make up.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <string>

namespace ortc::frontend {

/// Whether an exporter made the name up: "val_12", "onnx::Mul_40", "/layer/Constant_output_0", "123", ...
bool isGeneratedName(const std::string &name);

/// Whether a name looks like a parameter's: "norm.weight", "encoder.0.bn.running_var", and not like one that
/// an exporter makes up for a result. A name may look like neither.
bool isParameterName(const std::string &name);

/// Whether it is what PyTorch's exporter calls the result of an operation that moves elements at most:
/// "permute", "view_3".
bool isViewName(const std::string &name);

} // namespace ortc::frontend
