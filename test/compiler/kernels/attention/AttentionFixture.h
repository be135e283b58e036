// Attention as text, analysed.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <gtest/gtest.h>

#include "compiler/kernels/attention/AttentionForm.h"
#include "dialects/plan/PlanDialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Parser/Parser.h"

namespace ortc::kernels::test {

/// Of two heads. Queries are %q, keys %k, values %v and what changes the gradients %g, of the types !q, !k, !v and !g;
/// scores are of type !s, numbers of a query of type !r.
struct Sizes {
  int64_t rows = 70, keys = 90, depth = 16, columns = 24;
};

class AttentionFixture : public testing::Test {
protected:
  AttentionFixture() {
    context.loadDialect<mlir::arith::ArithDialect, mlir::func::FuncDialect, mlir::math::MathDialect,
                        nn::NnDialect, plan::PlanDialect>();
  }

  static std::string tensor(std::vector<int64_t> sizes, const std::string &element) {
    std::string text = "tensor<";
    for (int64_t size : sizes)
      text += std::to_string(size) + "x";
    return text + element + ">";
  }
  static std::string typesOf(const Sizes &s) {
    return "!q = " + tensor({2, s.rows, s.depth}, "f32") + "\n!k = " + tensor({2, s.keys, s.depth}, "f32") +
           "\n!v = " + tensor({2, s.keys, s.columns}, "f32") +
           "\n!g = " + tensor({2, s.rows, s.columns}, "f32") +
           "\n!s = " + tensor({2, s.rows, s.keys}, "f32") + "\n!i = " + tensor({2, s.rows, s.keys}, "i64") +
           "\n!c = " + tensor({2, s.rows, s.keys}, "i1") + "\n!r = " + tensor({2, s.rows}, "f32") + "\n";
  }

  /// Scores %s, their softmax %p along the keys and what it consists of, with code that makes %u of %s.
  static std::string softmax(const std::string &between = "", const std::string &scores = "%s") {
    return "%s = nn.dot %q, %k batch = [0] x [0] contract = [2] x [2] : !q, !k -> !s\n" + between +
           "%m = nn.reduce max " + scores +
           " axes = [2] : !s -> !r\n"
           "%mb = nn.broadcast %m dims = [0, 1] : !r -> !s\n"
           "%x = arith.subf " +
           scores +
           ", %mb : !s\n"
           "%e = math.exp %x : !s\n"
           "%l = nn.reduce sum %e axes = [2] : !s -> !r\n"
           "%one = arith.constant dense<1.0> : !r\n"
           "%n = arith.divf %one, %l : !r\n"
           "%nb = nn.broadcast %n dims = [0, 1] : !r -> !s\n"
           "%p = arith.mulf %e, %nb : !s\n";
  }
  static std::string mix(const std::string &scores = "%p", const std::string &result = "%y") {
    return result + " = nn.dot " + scores + ", %v batch = [0] x [0] contract = [2] x [1] : !s, !v -> !g\n";
  }

  /// What a kernel of this code would be; `reason` says why it is none.
  std::optional<AttentionForm> analyze(const Sizes &sizes, const std::string &code,
                                       const std::string &returned = "%y : !g",
                                       const std::string &arguments = "%q: !q, %k: !k, %v: !v") {
    std::string types = returned.substr(returned.find(':') + 1);
    modules.push_back(mlir::parseSourceString<mlir::ModuleOp>(typesOf(sizes) + "func.func @k(" + arguments +
                                                                  ") -> (" + types + ") {\n" + code +
                                                                  "return " + returned + "\n}",
                                                              &context));
    if (!modules.back()) {
      ADD_FAILURE() << "does not parse: " << code;
      return std::nullopt;
    }
    auto function = *modules.back()->getOps<mlir::func::FuncOp>().begin();
    reason.clear();
    return AttentionForm::analyze(function.getArguments(),
                                  function.getBody().front().getTerminator()->getOperands(), reason);
  }

  mlir::MLIRContext context;
  std::vector<mlir::OwningOpRef<mlir::ModuleOp>> modules; ///< which forms point into
  std::string reason;
};

} // namespace ortc::kernels::test
