// Products of tiles on AMX. They are inline assembly: sums stay in tile registers over the whole loop, whatever the
// register allocator would do with them.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/backends/cpu/contraction/MatrixUnit.h"
#include "compiler/backends/cpu/isa/x86/X86.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"

using namespace mlir;

namespace ortc::cpu::x86 {

using namespace emit;

/// The address of an element as a number.
static Value addressOf(OpBuilder &builder, Location loc, Value buffer, Offset at, int64_t elementBytes = 4) {
  IndexBuilder index(builder, loc);
  Value base = memref::ExtractAlignedPointerAsIndexOp::create(builder, loc, buffer);
  Value bytes = arith::MulIOp::create(builder, loc, index.value(at), index.constant(elementBytes));
  return arith::IndexCastOp::create(builder, loc, builder.getI64Type(),
                                    arith::AddIOp::create(builder, loc, base, bytes));
}

static Value assembly(OpBuilder &builder, Location loc, Type result, ValueRange operands,
                      const std::string &code, const std::string &constraints) {
  auto op = LLVM::InlineAsmOp::create(
      builder, loc, result ? TypeRange(result) : TypeRange(), operands, code, constraints,
      /*has_side_effects=*/true, /*is_align_stack=*/false, LLVM::TailCallKind::None,
      LLVM::AsmDialectAttr::get(builder.getContext(), LLVM::AsmDialect::AD_ATT),
      /*operand_attrs=*/ArrayAttr());
  return result ? op.getResult(0) : Value();
}

void emitUnitBegin(OpBuilder &builder, Location loc, Value configuration) {
  // Palette 1; all eight tiles have 16 rows of 64 bytes.
  auto type = VectorType::get({16}, builder.getI32Type());
  SmallVector<int32_t> words(16, 0);
  words[0] = 1;
  for (int64_t i = 4; i < 8; ++i)
    words[i] = 0x00400040;
  words[12] = words[13] = 0x10101010;
  Value value =
      arith::ConstantOp::create(builder, loc, DenseElementsAttr::get(type, ArrayRef<int32_t>(words)));
  Value zero = arith::ConstantIndexOp::create(builder, loc, 0);
  vector::StoreOp::create(builder, loc, value, configuration, zero);
  assembly(builder, loc, {}, addressOf(builder, loc, configuration, 0), "ldtilecfg ($0)", "r,~{memory}");
}

void emitUnitEnd(OpBuilder &builder, Location loc) {
  assembly(builder, loc, {}, {}, "tilerelease", "~{memory}");
}

namespace {

/// The text of a block product.
class ProductText {
public:
  explicit ProductText(const BlockProduct &product)
      : parts(product.parts), rowTiles(product.rowTiles), columnTiles(product.columnTiles),
        nextLines(product.nextLines), written(product.written), writtenRows(product.writtenRows) {}

  /// Operands: $0 rows, $1 columns, $2 steps, $3 rows that are fetched, then what is written (all these
  /// change), then the sums, the pitch 64, and not zero when sums begin.
  std::string write() {
    text = "testq " + first() + ", " + first() + "\n\tjne 1f\n\t";
    forSums([&](int64_t sum, int64_t place) { line("tileloadd " + at(sums(), place) + ", " + tile(sum)); });
    text += "jmp 2f\n1:\n\t";
    forSums([&](int64_t sum, int64_t) { line("tilezero " + tile(sum)); });
    text += "2:\n\t";
    // Six pairs of parts, of which neighbours have one in common; the last one is that of the only parts.
    constexpr std::pair<int, int> kPairs[] = {{2, 0}, {1, 0}, {1, 1}, {0, 1}, {0, 2}, {0, 0}};
    ArrayRef<std::pair<int, int>> used = parts == 1 ? ArrayRef(kPairs).take_back() : ArrayRef(kPairs);
    int row = -1, column = -1;
    int64_t fetched = 0, pairs = 0, count = static_cast<int64_t>(used.size());
    for (auto [rowPart, columnPart] : used) {
      if (rowPart != row)
        loadParts("$0", row = rowPart, rowTiles, kFirstRow);
      if (columnPart != column)
        loadParts("$1", column = columnPart, columnTiles, kFirstColumn);
      for (int64_t i = 0; i < rowTiles; ++i)
        for (int64_t j = 0; j < columnTiles; ++j)
          line("tdpbf16ps " + tile(kFirstColumn + j) + ", " + tile(kFirstRow + i) + ", " + tile(2 * i + j));
      for (++pairs; fetched < nextLines * pairs / count; ++fetched)
        line("prefetcht1 " + std::to_string(fetched * 64) + "($3)");
    }
    fetchWritten();
    if (nextLines)
      line("addq $$" + std::to_string(nextLines * 64) + ", $3");
    line("addq $$" + std::to_string(stepWordsOf(parts) * 4) + ", $0");
    line("addq $$" + std::to_string(stepWordsOf(parts) * 4) + ", $1");
    line("decq $2");
    line("jne 2b");
    forSums([&](int64_t sum, int64_t place) { line("tilestored " + tile(sum) + ", " + at(sums(), place)); });
    return text;
  }

private:
  static constexpr int64_t kFirstRow = 4, kFirstColumn = 6; // sums are tiles 0 to 3
  static std::string tile(int64_t number) { return "%tmm" + std::to_string(number); }
  static std::string operand(size_t number) { return "$" + std::to_string(number); }
  std::string sums() const { return operand(4 + written.size()); }
  std::string pitch() const { return operand(5 + written.size()); }
  std::string first() const { return operand(6 + written.size()); }
  std::string at(const std::string &base, int64_t bytes) const {
    return std::to_string(bytes) + "(" + base + "," + pitch() + ",1)";
  }
  void fetchWritten() {
    for (auto [number, rows] : llvm::enumerate(written))
      for (int64_t row = 0; row < writtenRows; ++row) {
        for (int64_t byte = 0; byte < columnTiles * kTileLines * rows.elementBytes; byte += 64)
          line("prefetchw " + std::to_string(byte) + "(" + operand(4 + number) + ")");
        line("addq $$" + std::to_string(rows.pitchBytes) + ", " + operand(4 + number));
      }
  }
  void line(const std::string &code) { text += code + "\n\t"; }
  template <typename Use> void forSums(Use use) {
    for (int64_t i = 0; i < rowTiles; ++i)
      for (int64_t j = 0; j < columnTiles; ++j)
        use(2 * i + j, (2 * i + j) * kTileWords * 4);
  }
  void loadParts(const char *base, int part, int64_t tiles, int64_t first) {
    for (int64_t i = 0; i < tiles; ++i)
      line("tileloadd " + at(base, (part * 2 + i) * kTileWords * 4) + ", " + tile(first + i));
  }

  int64_t parts, rowTiles, columnTiles, nextLines;
  ArrayRef<WrittenRows> written;
  int64_t writtenRows;
  std::string text;
};

} // namespace

void emitBlockProduct(OpBuilder &builder, Location loc, const BlockProduct &product) {
  Type i64 = builder.getI64Type();
  SmallVector<Value> changed{addressOf(builder, loc, product.rows, product.rowsAt),
                             addressOf(builder, loc, product.columns, product.columnsAt),
                             arith::IndexCastOp::create(builder, loc, i64, product.steps),
                             addressOf(builder, loc, product.rows, product.nextRowsAt)};
  for (const WrittenRows &rows : product.written)
    changed.push_back(addressOf(builder, loc, rows.buffer, rows.at, rows.elementBytes));
  SmallVector<Value> operands{addressOf(builder, loc, product.sums, product.sumsAt),
                              arith::ConstantOp::create(builder, loc, builder.getI64IntegerAttr(64)),
                              arith::ExtUIOp::create(builder, loc, i64, product.isFirst)};
  operands.append(changed);
  std::string outputs, tied;
  for (size_t i = 0; i < changed.size(); ++i) {
    outputs += "=&r,";
    tied += std::to_string(i) + ",";
  }
  auto type = LLVM::LLVMStructType::getLiteral(builder.getContext(), SmallVector<Type>(changed.size(), i64));
  assembly(builder, loc, type, operands, ProductText(product).write(),
           outputs + "r,r,r," + tied + "~{memory},~{flags}");
}

} // namespace ortc::cpu::x86
