// ONNX functions as formulas of losses and optimizers.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/frontend/FunctionFile.h"
#include "compiler/options/Keys.h"
#include "dialects/nn/TensorBuilder.h"
#include "llvm/ADT/StringMap.h"

namespace ortc::train {

// Numbers of TensorProto.DataType.
inline constexpr int32_t kFloat = 1, kInt32 = 6, kInt64 = 7, kDouble = 11;

/// Splits `FILE[:key=value,...]`, what stands behind `onnx:`, and reads the file.
Status openFunction(std::string_view text, std::shared_ptr<const frontend::FunctionFile> &file,
                    std::string_view &keys);
/// "'onnx:NAME' of a loss", with the name of the file alone.
std::string functionName(const frontend::FunctionFile &file);

/// The key of an input that is a scalar, or of an attribute. What has no default must be given.
Key functionKey(const frontend::FunctionValue &value, const char *name);
Key functionKey(const frontend::FunctionInteger &value, const char *name);
/// Fails with the first key that has no default and no value. `what` begins the message.
Status checkRequired(const std::vector<Key> &keys, const Settings &settings, const std::string &what);

/// Sizes of named dimensions.
using DimSizes = std::map<std::string, int64_t>;
/// Takes the names of dimensions from an operand's shape. Says what does not fit, or nothing.
std::string matchShape(const frontend::FunctionValue &value, mlir::RankedTensorType given, DimSizes &sizes);

/// The results, in the order of the file, of floating-point computations in f64 (`isWide`) or in the types of the file.
/// `operands` are by name, those without a value are keys; each is cast to the type that the file declares. Fails with
/// an error.
mlir::FailureOr<llvm::SmallVector<mlir::Value>>
computeFunction(nn::TensorBuilder &builder, const frontend::FunctionFile &file, const Settings &settings,
                const llvm::StringMap<mlir::Value> &operands, bool isWide);

} // namespace ortc::train
