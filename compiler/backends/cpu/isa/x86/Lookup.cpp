// Elements of small tables, which are in registers or close by.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// 16 at a time with AVX-512: VPERMPS of a register of 16 numbers, or VPERMT2PS, each of two of them, and selections
// between them by the higher bits. 64 at a time with AVX512-VBMI: a table of 128 or 256 numbers is four tables of their
// bytes, each two or four registers (VPERMT2B), which is a quarter of the instructions.
#include "compiler/backends/cpu/isa/x86/X86.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

#include <array>

using namespace mlir;

namespace ortc::cpu::x86 {

/// Numbers of a register, and bytes of one.
static constexpr int64_t kWords = 16, kBytes = 64, kWordBytes = 4;

namespace {

class Lookup {
public:
  Lookup(OpBuilder &builder, Location loc) : b(builder), loc(loc) {}

  /// Elements for 16 places. `table`: registers of i32.
  Value findWords(ArrayRef<Value> table, Value index) {
    if (table.size() == 1) // the table comes first
      return as(i32, call("llvm.x86.avx512.permvar.sf.512", f32, {as(f32, table.front()), index}));
    SmallVector<Value> found;
    for (size_t i = 0; i + 1 < table.size(); i += 2)
      found.push_back(
          call("llvm.x86.avx512.vpermi2var.ps.512", f32, {as(f32, table[i]), index, as(f32, table[i + 1])}));
    for (int32_t bit = 2 * kWords; found.size() > 1; bit *= 2)
      found = selectHalves(isSet(index, bit), found);
    return as(i32, found.front());
  }

  /// Elements for 64 places, as i32.
  Value findBytes(ArrayRef<Value> table, Value index) {
    // In the order in which the interleaving below takes them: of every 16 bytes four by four to one register each.
    std::array<int64_t, kBytes> order{};
    for (int64_t i = 0; i < kBytes; ++i)
      order[i] = i / kWordBytes % kWordBytes * kWords + i / kWords * kWordBytes + i % kWordBytes;
    Value places = arith::TruncIOp::create(b, loc, VectorType::get({kBytes}, b.getI8Type()), index);
    places = shuffle(places, places, order);
    std::array<Value, kWordBytes> planes;
    for (int64_t byte = 0; byte < kWordBytes; ++byte)
      planes[byte] = findPlane(table, byte, places);
    std::array<Value, 2> low{interleave(planes[0], planes[1], false),
                             interleave(planes[2], planes[3], false)},
        high{interleave(planes[0], planes[1], true), interleave(planes[2], planes[3], true)};
    std::array<Value, 4> words;
    for (bool isHigh : {false, true}) {
      words[isHigh] = interleave(asHalves(low[0]), asHalves(low[1]), isHigh);
      words[2 + isHigh] = interleave(asHalves(high[0]), asHalves(high[1]), isHigh);
    }
    return join(words);
  }

  Value slice(Value whole, int64_t at) {
    return vector::ExtractStridedSliceOp::create(b, loc, whole, at, kWords, 1);
  }
  Value join(ArrayRef<Value> parts) {
    Value whole = arith::ConstantOp::create(
        b, loc,
        b.getZeroAttr(VectorType::get({static_cast<int64_t>(parts.size()) * kWords}, b.getI32Type())));
    for (auto [i, part] : llvm::enumerate(parts))
      whole = vector::InsertStridedSliceOp::create(b, loc, as(i32, part), whole,
                                                   static_cast<int64_t>(i) * kWords, 1);
    return whole;
  }
  Value as(VectorType type, Value value) {
    return value.getType() == type ? value : LLVM::BitcastOp::create(b, loc, type, value).getResult();
  }

private:
  Value call(StringRef name, Type result, ValueRange operands) {
    return LLVM::CallIntrinsicOp::create(b, loc, result, b.getStringAttr(name), operands).getResult(0);
  }
  Value constant(Type type, int64_t value) {
    auto vector = cast<VectorType>(type);
    return arith::ConstantOp::create(
        b, loc, DenseElementsAttr::get(vector, b.getIntegerAttr(vector.getElementType(), value)));
  }
  Value isSet(Value index, int64_t bit) {
    Type type = index.getType();
    return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne,
                                 arith::AndIOp::create(b, loc, index, constant(type, bit)),
                                 constant(type, 0));
  }
  SmallVector<Value> selectHalves(Value isHigh, ArrayRef<Value> found) {
    SmallVector<Value> halves;
    for (size_t i = 0; i + 1 < found.size(); i += 2)
      halves.push_back(arith::SelectOp::create(b, loc, isHigh, found[i + 1], found[i]));
    return halves;
  }

  /// One byte of each element.
  Value findPlane(ArrayRef<Value> table, int64_t byte, Value places) {
    SmallVector<Value> bytes, found;
    for (size_t i = 0; i < table.size(); i += kBytes / kWords) {
      Value words = join(table.slice(i, kBytes / kWords));
      words = arith::ShRUIOp::create(b, loc, words, constant(words.getType(), 8 * byte));
      bytes.push_back(arith::TruncIOp::create(b, loc, places.getType(), words));
    }
    for (size_t i = 0; i + 1 < bytes.size(); i += 2)
      found.push_back(
          call("llvm.x86.avx512.vpermi2var.qi.512", places.getType(), {bytes[i], places, bytes[i + 1]}));
    if (found.size() == 1)
      return found.front();
    Value isHigh =
        arith::CmpIOp::create(b, loc, arith::CmpIPredicate::slt, places, constant(places.getType(), 0));
    return selectHalves(isHigh, found).front();
  }

  Value shuffle(Value left, Value right, ArrayRef<int64_t> order) {
    return vector::ShuffleOp::create(b, loc, left, right, order);
  }
  /// PUNPCK: of every 16 bytes the lower or upper halves, in turns.
  Value interleave(Value left, Value right, bool isHigh) {
    int64_t lanes = cast<VectorType>(left.getType()).getDimSize(0), group = lanes / (kBytes / 16);
    SmallVector<int64_t> order;
    for (int64_t i = 0; i < lanes; ++i)
      order.push_back(i % 2 * lanes + i / group * group + isHigh * group / 2 + i % group / 2);
    return shuffle(left, right, order);
  }
  Value asHalves(Value bytes) { return as(VectorType::get({kBytes / 2}, b.getI16Type()), bytes); }

  OpBuilder &b;
  Location loc;
  VectorType i32 = VectorType::get({kWords}, b.getI32Type()), f32 = VectorType::get({kWords}, b.getF32Type());
};

} // namespace

Value emitLookup(OpBuilder &builder, Location loc, ArrayRef<Value> table, Value index) {
  auto words = cast<VectorType>(index.getType());
  if (words.getRank() != 1 || !words.getElementType().isInteger(32) ||
      (words.getDimSize(0) != kWords && words.getDimSize(0) != kBytes))
    return Value();
  Lookup lookup(builder, loc);
  auto result = words.clone(cast<VectorType>(table.front().getType()).getElementType());
  SmallVector<Value> registers;
  for (Value part : table)
    registers.push_back(lookup.as(VectorType::get({kWords}, words.getElementType()), part));
  if (words.getDimSize(0) == kWords)
    return lookup.as(result, lookup.findWords(registers, index));
  if (table.size() * kWords >= 2 * kBytes)
    return lookup.as(result, lookup.findBytes(registers, index));
  SmallVector<Value> found;
  for (int64_t at = 0; at < kBytes; at += kWords)
    found.push_back(lookup.findWords(registers, lookup.slice(index, at)));
  return lookup.as(result, lookup.join(found));
}

} // namespace ortc::cpu::x86
