// Products of pairs of bf16 in plain arithmetic, for machines without the instruction.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include "compiler/backends/cpu/isa/Architecture.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

namespace ortc::cpu::test {

/// Another architecture with the instruction: each pair is two fused multiply-adds, the upper half first.
class PairArithmetic final : public Architecture {
public:
  explicit PairArithmetic(const Architecture &other) : other(other) {}

  ortc_architecture format() const override { return other.format(); }
  llvm::StringRef name() const override { return other.name(); }
  std::optional<uint64_t> hostFeatures() const override { return other.hostFeatures(); }
  uint16_t elfMachine() const override { return other.elfMachine(); }
  uint8_t codeFiller() const override { return other.codeFiller(); }
  Relocated relocate(const Relocation &relocation, uint8_t *bytes) const override {
    return other.relocate(relocation, bytes);
  }
  std::optional<uint64_t> findAlignedFrame(const llvm::MachineFrameInfo &info, uint64_t stackAlign,
                                           uint64_t returnAddress) const override {
    return other.findAlignedFrame(info, stackAlign, returnAddress);
  }
  mlir::Value emitDenormalMode(mlir::OpBuilder &builder, mlir::Location loc, bool areZero) const override {
    return other.emitDenormalMode(builder, loc, areZero);
  }
  void emitRestoreMode(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value saved) const override {
    other.emitRestoreMode(builder, loc, saved);
  }

  mlir::Value emitPairProduct(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value sums,
                              mlir::Value left, mlir::Value right) const override {
    using namespace mlir;
    auto constant = [&](int32_t value) -> Value {
      auto type = cast<ShapedType>(left.getType());
      return arith::ConstantOp::create(builder, loc,
                                       DenseElementsAttr::get(type, builder.getI32IntegerAttr(value)));
    };
    auto half = [&](Value words, bool isUpper) -> Value {
      Value bits =
          isUpper
              ? Value(arith::AndIOp::create(builder, loc, words, constant(static_cast<int32_t>(0xffff0000))))
              : Value(arith::ShLIOp::create(builder, loc, words, constant(16)));
      return arith::BitcastOp::create(builder, loc, sums.getType(), bits);
    };
    for (bool isUpper : {true, false})
      sums = math::FmaOp::create(builder, loc, half(left, isUpper), half(right, isUpper), sums);
    return sums;
  }

private:
  const Architecture &other;
};

} // namespace ortc::cpu::test
