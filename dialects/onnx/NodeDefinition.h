// A node against its operator's definition.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "dialects/onnx/OnnxDialect.h"
#include "dialects/onnx/OnnxOperators.h"

namespace ortc::onnx {

/// What is wrong with the numbers of inputs and outputs, or with the attributes, of a node of that operator; or "". The
/// verifier asks for operators of the standard. It cannot know whether a node of version 0 calls a function
/// of the file, so whoever reads such nodes after functions are inlined asks again.
std::string checkDefinition(NodeOp op, const onnx::OperatorDefinition &definition);

} // namespace ortc::onnx
