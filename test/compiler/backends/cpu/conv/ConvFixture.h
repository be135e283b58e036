// Convolutions as tensor programs, and their kernels.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "test/compiler/backends/cpu/EvaluatorFixture.h"

#include "compiler/backends/cpu/conv/ConvKernel.h"
#include "test/compiler/kernels/FormFixture.h"

namespace ortc::cpu::test {

struct Conv {
  int64_t batch;
  Sizes input; ///< spatial
  int64_t channels;
  Sizes filter; ///< spatial
  int64_t features;
  Sizes strides = {}, low = {}, high = {}, dilations = {}; ///< empty: 1, 0, as low, 1
  int64_t groups = 1;
  int64_t parts = 1; ///< of the batch, with a filter gradient of their own each
};

enum class Kind { Forward, InputGrad, FilterGrad };

inline std::string tensor(Sizes leading, const Sizes &spatial, Sizes trailing, const std::string &element) {
  std::string text = "tensor<";
  for (const Sizes &part : {leading, spatial, trailing})
    for (int64_t size : part)
      text += std::to_string(size) + "x";
  return text + element + ">";
}

inline Conv complete(Conv c) {
  size_t rank = c.input.size();
  auto fill = [&](Sizes &sizes, int64_t value) {
    if (sizes.empty())
      sizes.assign(rank, value);
  };
  fill(c.strides, 1);
  fill(c.low, 0);
  if (c.high.empty())
    c.high = c.low;
  fill(c.dilations, 1);
  return c;
}

inline Sizes outputOf(const Conv &c) {
  Sizes output;
  for (size_t d = 0; d < c.input.size(); ++d)
    output.push_back(
        (c.input[d] + c.low[d] + c.high[d] - c.dilations[d] * (c.filter[d] - 1) - 1) / c.strides[d] + 1);
  return output;
}

inline std::string programOf(const Conv &c, Kind kind, const std::string &element) {
  std::string x = tensor({c.batch}, c.input, {c.channels}, element),
              y = tensor({c.batch}, outputOf(c), {c.features}, element),
              w = tensor({}, c.filter, {c.channels / c.groups, c.features}, element),
              parts = tensor({c.parts}, c.filter, {c.channels / c.groups, c.features}, element);
  std::string window = " strides = " + list(c.strides) + " padding = " + list(c.low) + " to " + list(c.high) +
                       " dilations = " + list(c.dilations) + " groups = " + std::to_string(c.groups);
  std::string a = kind == Kind::InputGrad ? y : x, b = kind == Kind::FilterGrad ? y : w;
  std::string result = kind == Kind::Forward ? y : kind == Kind::InputGrad ? x : c.parts > 1 ? parts : w;
  std::string name = kind == Kind::Forward     ? "conv"
                     : kind == Kind::InputGrad ? "conv_input_grad"
                                               : "conv_filter_grad";
  return "func.func @k(%a: " + a + ", %b: " + b + ") -> " + result + " {\n  %r = nn." + name + " %a, %b" +
         window + " : " + a + ", " + b + " -> " + result + "\n  return %r : " + result + "\n}";
}

/// The same of operands that are stored as `narrow` (the first, the second or both) and extended to f32.
inline std::string narrowProgramOf(const Conv &c, Kind kind, const std::string &narrow, bool first = true,
                                   bool second = true) {
  std::string text = programOf(c, kind, "f32");
  size_t open = text.find("(%a: ") + 5, comma = text.find(", %b: "), close = text.find(") -> ");
  std::string a = text.substr(open, comma - open), b = text.substr(comma + 6, close - comma - 6);
  auto stored = [&](const std::string &type, bool isNarrow) {
    return isNarrow ? type.substr(0, type.size() - 4) + narrow + ">" : type;
  };
  std::string extensions;
  auto extend = [&](const std::string &name, const std::string &type, bool isNarrow) {
    if (isNarrow)
      extensions +=
          "  %" + name + " = arith.extf %" + name + "0 : " + stored(type, true) + " to " + type + "\n";
  };
  extend("a", a, first);
  extend("b", b, second);
  std::string head = "func.func @k(%a" + std::string(first ? "0" : "") + ": " + stored(a, first) + ", %b" +
                     (second ? "0" : "") + ": " + stored(b, second);
  std::string rest = text.substr(close);
  return head + rest.insert(rest.find("{\n") + 2, extensions);
}

/// The generator, with `choices` where there are any.
inline Generate generateWith(const KernelChoices *choices) {
  return [choices](mlir::ModuleOp module, mlir::func::FuncOp function,
                   llvm::ArrayRef<emit::KernelBuffer> buffers, const Target &target, Numerics numerics) {
    std::string reason;
    EXPECT_TRUE(kernels::test::isOneKernel(plan::KernelKind::conv, function, reason)) << reason;
    return generateConv(module, function, buffers, target, numerics, choices);
  };
}

} // namespace ortc::cpu::test
