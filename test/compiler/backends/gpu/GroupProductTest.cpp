// Products by groups of warps, on the emulator: every tile and layout has the bits of products by warps, and no fault
// that is put in goes unnoticed.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/backends/KernelJobs.h"
#include "compiler/backends/gpu/object/DeviceCode.h"
#include "compiler/backends/gpu/product/MatrixProduct.h"
#include "test/gpu/emulator/tests/Emulator.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"

#include <random>
#include <regex>

using namespace mlir;
using namespace ortc;
using namespace ortc::gpu;

namespace {

/// A product of rows x depth and depth x columns, each in the one layout or the other.
struct Case {
  int64_t rows, columns, depth, parts = 1;
  bool isRowAlongDepth = true, isColumnAlongDepth = true, isHalf = false;
};

/// Matrices one behind the other, without anything around the product.
class PlainAccess : public ProductAccess {
public:
  PlainAccess(const Case &c, ArrayRef<Value> buffers) : c(c), buffers(buffers) {}

  void begin(ThreadBuilder &, Value) override {}
  ElementPlace locate(ThreadBuilder &b, Side side, Value index, const DepthPosition &k) override {
    bool isRow = side == Side::row;
    Value step = b.add(k.start, k.step);
    Value at = (isRow ? c.isRowAlongDepth : c.isColumnAlongDepth)
                   ? b.add(b.mul(index, c.depth), step)
                   : b.add(b.mul(step, isRow ? c.rows : c.columns), index);
    return {buffers[isRow ? 0 : 1], at, {}};
  }
  void store(ThreadBuilder &b, Value row, Value column, Value sum) override {
    memref::StoreOp::create(b, sum, buffers[2], ValueRange{b.add(b.mul(row, c.columns), column)});
  }

private:
  const Case &c;
  ArrayRef<Value> buffers;
};

class GroupProductTest : public emulator::test::EmulatorTest {
protected:
  GroupProductTest() {
    set("SM", "90");
    set("THREADS", "1");
    backends::loadKernelDialects(context);
  }

  /// PTX of the product, and how it is launched.
  struct Code {
    std::string ptx;
    Launch launch;
  };
  Code generate(const Case &c, const MatrixTile &tile) {
    const Processor &processor = *findProcessor("sm_90a");
    Builder builder(&context);
    Type narrow = c.isHalf ? Type(builder.getF16Type()) : Type(builder.getBF16Type());
    ProductShape shape;
    shape.rows = c.rows, shape.columns = c.columns, shape.depth = c.depth;
    shape.element = builder.getF32Type();
    shape.row = {c.isRowAlongDepth, 8, narrow}, shape.column = {c.isColumnAlongDepth, 8, narrow};
    shape.parts = c.parts, shape.partUnit = kMatrixPartUnit;
    MatrixPlan plan;
    plan.core = findMatrixCore(processor);
    plan.format.number = c.isHalf ? MatrixNumber::f16 : MatrixNumber::bf16;
    plan.tile = tile, plan.parts = c.parts, plan.readsAcross = plan.core->readsAcrossDepth;

    Location loc = UnknownLoc::get(&context);
    OwningOpRef<ModuleOp> module = ModuleOp::create(loc);
    auto type = builder.getFunctionType({RankedTensorType::get({c.rows * c.depth}, narrow),
                                         RankedTensorType::get({c.depth * c.columns}, narrow)},
                                        RankedTensorType::get({c.parts * c.rows * c.columns}, shape.element));
    OwningOpRef<func::FuncOp> function = func::FuncOp::create(loc, "k", type);
    GeneratorOptions options;
    KernelBuilder kernel(*module, *function, processor, options);
    int64_t blocks = c.parts * shape.countTiles(tile.rows, tile.columns);
    kernel.launch(blocks, plan.threads(),
                  [&](ThreadBuilder &b, const KernelBuilder::Arguments &arguments) {
                    PlainAccess access(c, arguments.buffers);
                    emitMatrixTile(kernel, b, shape, plan, access,
                                   [&](Value part, Value, Value row, Value column, Value sum) {
                                     access.store(b, b.add(b.mul(part, c.rows), row), column, sum);
                                   });
                  },
                  {.resident = 1});
    Code code;
    code.launch = kernel.take().launches.front();
    std::string piece;
    EXPECT_TRUE(emitDeviceCode(*module, processor, options.numerics).moveTo(piece).isOk());
    auto image = linkDeviceCode({piece}, processor);
    EXPECT_TRUE(bool(image));
    code.ptx.assign(image->begin(), image->end() - 1);
    return code;
  }

  /// Normal numbers with few bits, which are the same in both formats.
  static std::vector<uint16_t> draw(int64_t count, bool isHalf, unsigned seed) {
    std::mt19937 random(seed);
    std::vector<uint16_t> values;
    for (int64_t i = 0; i < count; ++i) {
      uint32_t sign = random() & 1, exponent = random() % 4, fraction = random() & 127;
      values.push_back(uint16_t(isHalf ? sign << 15 | (13 + exponent) << 10 | fraction << 3
                                       : sign << 15 | (125 + exponent) << 7 | fraction));
    }
    return values;
  }

  /// The results; nothing where the emulator reports something, which is `said`.
  std::vector<uint32_t> multiply(const Case &c, const Code &code) {
    close();
    ortc_cu_pointer a = upload(draw(c.rows * c.depth, c.isHalf, 1)),
                    b = upload(draw(c.depth * c.columns, c.isHalf, 2));
    size_t results = size_t(c.parts * c.rows * c.columns);
    ortc_cu_pointer to = allocate(results * 4), status = upload(std::vector<uint32_t>(64));
    ortc_cu_kernel k = kernel(code.ptx, code.launch.symbol.c_str());
    EXPECT_EQ(driver.cuFuncSetAttribute(k, ORTC_CU_FUNC_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                        int(code.launch.sharedBytes)),
              ORTC_CU_SUCCESS);
    testing::internal::CaptureStderr();
    ortc_cu_result result = launch(k, unsigned(code.launch.blocks), unsigned(code.launch.threads),
                                   {a, b, to, status}, unsigned(code.launch.sharedBytes));
    auto bits = result ? std::vector<uint32_t>() : download<uint32_t>(to, results);
    said = testing::internal::GetCapturedStderr();
    return bits;
  }

  MLIRContext context{MLIRContext::Threading::DISABLED};
  std::string said;
};

TEST_F(GroupProductTest, EveryTileAndLayoutHasTheBitsOfWarps) {
  const Case cases[] = {{264, 264, 328},
                        {264, 264, 328, 1, false, false},
                        {136, 520, 200, 1, false, true, true},
                        {520, 136, 456, 1, true, false},
                        {136, 264, 712, 3, false, true},
                        {64, 64, 64, 1, true, true, true}};
  for (const Case &c : cases) {
    MatrixTile ofWarps;
    ofWarps.isAsync = true, ofWarps.stages = 3;
    const std::vector<uint32_t> wanted = multiply(c, generate(c, ofWarps));
    ASSERT_FALSE(wanted.empty()) << said;
    for (const MatrixTile &tile : listGroupTiles()) {
      const Code code = generate(c, tile);
      EXPECT_NE(code.ptx.find("wgmma.mma_async"), std::string::npos);
      EXPECT_TRUE(multiply(c, code) == wanted) << tile.rows << "x" << tile.columns << " of " << c.rows << "x"
                                               << c.columns << "x" << c.depth << ": " << said;
    }
  }
}

/// A fault as $ORTC_EMULATOR_MUTATE takes it, and its instruction.
struct Fault {
  std::string text, instruction;
};

/// Waits, fences, barriers, commits, copies, swizzles, descriptors, stages, products and sums, each by itself.
std::vector<Fault> listFaults(const std::string &ptx) {
  struct Kind {
    const char *opcode, *pattern;
    std::vector<const char *> changes;
  };
  const Kind kinds[] = {
      {"barrier", "barrier|bar\\.sync", {"remove"}},
      {"fence.proxy", "fence\\.proxy", {"remove"}},
      {"wgmma.fence", "wgmma\\.fence", {"remove"}},
      {"wgmma.commit_group", "wgmma\\.commit_group", {"remove"}},
      {"wgmma.wait_group", "wgmma\\.wait_group", {"remove", "1"}},
      {"wgmma.mma_async", "wgmma\\.mma_async", {"remove"}},
      {"cp.async.wait_group", "cp\\.async\\.wait_group", {"remove", "1"}},
      {"cp.async.commit_group", "cp\\.async\\.commit_group", {"remove"}},
      {"cp.async.cg", "cp\\.async\\.cg", {"16", "source:16"}},
      {"xor", "xor", {"pass"}},
      {"selp", "selp", {"pass"}},
      {"add.s64", "add\\.s64", {"pass"}},
      {"st.shared", "st\\.shared", {"8"}},
      {"ld.shared", "ld\\.shared", {"4"}},
  };
  std::vector<Fault> faults;
  for (const Kind &kind : kinds) {
    std::regex instruction("\t(?:@!?%\\w+ )?\\s*((?:" + std::string(kind.pattern) + ")[\\w.:]*)[^\n]*;");
    std::vector<std::string> lines;
    for (auto at = std::sregex_iterator(ptx.begin(), ptx.end(), instruction); at != std::sregex_iterator();
         ++at)
      lines.push_back(at->str().substr(1));
    constexpr size_t kMost = 10;
    size_t step = std::max<size_t>((lines.size() + kMost - 1) / kMost, 1);
    for (size_t i = 0; i < lines.size(); i += step)
      for (const char *change : kind.changes)
        faults.push_back(
            {"k:" + std::string(kind.opcode) + ":" + std::to_string(i + 1) + ":" + change, lines[i]});
  }
  return faults;
}

TEST_F(GroupProductTest, EveryFaultIsNoticed) {
  size_t count = 0;
  for (bool isAlongDepth : {true, false})
    for (const MatrixTile &tile : listGroupTiles()) {
      // One block. Each stage is filled again, and the last one lies where sums are stored afterwards.
      const Case c{tile.rows, tile.columns, (2 * tile.stages + 1) * tile.depth,
                   1,         isAlongDepth, isAlongDepth};
      const Code code = generate(c, tile);
      set("MUTATE", "");
      const std::vector<uint32_t> wanted = multiply(c, code);
      ASSERT_FALSE(wanted.empty()) << said;
      for (const Fault &fault : listFaults(code.ptx)) {
        set("MUTATE", fault.text);
        EXPECT_FALSE(multiply(c, code) == wanted) << tile.rows << "x" << tile.columns << " " << fault.text
                                                  << ": " << fault.instruction.substr(0, 120);
        ++count;
      }
    }
  std::printf("%zu faults\n", count);
  EXPECT_GE(count, 300u);
}

} // namespace
