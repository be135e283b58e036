// An ONNX file that is a formula: a function of inputs and outputs that are known by their names.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// The file is a function (FunctionProto), a model whose graph is empty and which has one function that no other calls,
// or a model whose graph is the formula. A scalar initializer of an input's name is the value that the input has when
// nothing else is said.
#pragma once

#include "compiler/frontend/Model.h"
#include "support/Expected.h"

#include <optional>

namespace ortc::frontend {

/// A dimension as a file declares it: a size, a name, or neither.
struct DeclaredDim {
  int64_t size = -1;
  std::string name;
};

struct FunctionValue {
  std::string name;
  int32_t type = 0;                             ///< proto::TensorProto::DataType; 0: not declared
  std::optional<std::vector<DeclaredDim>> dims; ///< absent: any
  std::optional<double> initial;                ///< of inputs: the scalar that they are otherwise
  bool isAttribute = false; ///< of inputs: the function has a float attribute of this name instead

  /// "FLOAT[...]", "FLOAT[N,10]", "INT64[]", as far as it is declared.
  std::string describeType() const;
  bool isScalar() const { return !dims || dims->empty(); }
};

/// An attribute that is a whole number.
struct FunctionInteger {
  std::string name;
  std::optional<int64_t> initial;
};

/// The type that a use of the function gives an input.
struct OperandType {
  int32_t type = 0;
  std::vector<int64_t> dims;
};

class FunctionFile {
public:
  /// Reads and checks a file. Messages name it.
  static Status load(const std::string &path, std::shared_ptr<const FunctionFile> &file);
  ~FunctionFile();

  const std::string &getPath() const { return path; }
  const std::string &getBytes() const { return bytes; }
  const std::vector<FunctionValue> &getInputs() const { return inputs; }
  const std::vector<FunctionValue> &getOutputs() const { return outputs; }
  const std::vector<FunctionInteger> &getIntegers() const { return integers; }
  /// Null where there is none.
  const FunctionValue *findInput(std::string_view name) const;
  const FunctionValue *findOutput(std::string_view name) const;

  /// The formula as the graph of a model, with inputs of these types, in the order of getInputs().
  Status instantiate(const std::vector<OperandType> &types, const std::map<std::string, int64_t> &values,
                     std::shared_ptr<const Model> &model) const;

private:
  FunctionFile();
  Status read();
  Status takeFunction();
  Status takeGraph(const Model &model);
  Status refuse(const std::string &reason) const;

  std::string path, folder, bytes;
  /// Its graph is the formula, without initializers of inputs. Integers are references to attributes still.
  std::unique_ptr<proto::ModelProto> proto;
  std::vector<FunctionValue> inputs, outputs;
  std::vector<FunctionInteger> integers;
};

} // namespace ortc::frontend
