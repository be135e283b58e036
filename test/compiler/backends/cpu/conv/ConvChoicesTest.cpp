// Convolutions that are cut otherwise than the cost table has it: the same bits.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/compiler/backends/cpu/conv/ConvFixture.h"

using namespace mlir;
using namespace ortc::cpu;
using namespace ortc::emit;
using namespace ortc::cpu::test;

namespace {

/// The kernel with one choice, or (null) the table's; its choices are in `info.blocking`.
std::unique_ptr<EvaluatedKernel> make(const std::string &program, const KernelChoices &choices,
                                      Numerics numerics = Numerics::Fast) {
  return std::make_unique<EvaluatedKernel>(program, generateWith(&choices), runnableTargets().back(),
                                           numerics);
}

/// Every neighbour of the table's choice, and some of those of the last one of them, against the table's bits, which
/// are compared with the evaluator.
void check(Conv given, Kind kind, size_t atLeast) {
  Conv c = complete(std::move(given));
  std::string program = programOf(c, kind, "f32");
  auto usual = make(program, {});
  auto want = usual->evaluate();
  ASSERT_TRUE(succeeded(want)) << program;
  std::vector<char> bits = usual->run();
  usual->compare(bits, *want, 2e-3);
  std::vector<KernelChoice> choices = usual->info.blocking.neighbours;
  EXPECT_GE(choices.size(), atLeast) << usual->info.blocking.key;
  choices.push_back(usual->info.blocking.choice);
  for (size_t i = 0, near = choices.size(); i < choices.size(); ++i) {
    if (i > near && i % 3) // of those further away some
      continue;
    auto other = make(program, {{{usual->info.blocking.key, choices[i]}}, "test"});
    EXPECT_TRUE(other->info.blocking.isGiven);
    EXPECT_EQ(other->info.blocking.choice, choices[i]);
    EXPECT_TRUE(other->run() == bits) << usual->info.blocking.key << ": " << describe(choices[i]);
    if (i + 2 == near) // further away, too
      for (const KernelChoice &further : other->info.blocking.neighbours)
        if (!llvm::is_contained(choices, further))
          choices.push_back(further);
    if (testing::Test::HasFailure())
      return;
  }
}

TEST(ConvChoicesTest, DenseWindowsKeepTheirBits) {
  for (Kind kind : {Kind::Forward, Kind::InputGrad, Kind::FilterGrad})
    check({2, {14, 13}, 24, {5, 5}, 40, {}, {2, 2}}, kind, 3);
  // Reductions in blocks: sums wait in the workspace.
  check({4, {7, 7}, 128, {3, 3}, 72, {}, {1, 1}}, Kind::Forward, 4);
}

TEST(ConvChoicesSweepTest, DenseWindowsKeepTheirBits) {
  check({4, {9, 9}, 72, {3, 3}, 128, {2, 2}, {1, 1}}, Kind::InputGrad, 4);
  check({3, {9, 8}, 72, {3, 3}, 136, {2, 2}, {1, 1}}, Kind::FilterGrad, 3);
  check({2, {300}, 40, {3}, 130, {}, {1}}, Kind::Forward, 3);
  check({4, {14, 13}, 24, {5, 5}, 40, {}, {2, 2}, {}, {}, 1, 2}, Kind::FilterGrad, 3);
}

TEST(ConvChoicesTest, TransformedWindowsKeepTheirBits) {
  check({3, {15, 14}, 96, {3, 3}, 144, {}, {1, 1}}, Kind::Forward, 5);
  check({2, {16, 17}, 64, {3, 3}, 192, {}, {1, 1}}, Kind::FilterGrad, 2);
}

TEST(ConvChoicesSweepTest, TransformedWindowsKeepTheirBits) {
  check({3, {15, 14}, 160, {3, 3}, 64, {}, {1, 1}}, Kind::InputGrad, 5);
  for (Kind kind : {Kind::Forward, Kind::InputGrad, Kind::FilterGrad})
    check({2, {16, 18}, 160, {3, 3}, 144, {2, 2}, {1, 1}}, kind, 2);
  check({2, {16, 16}, 160, {4, 4}, 192, {2, 2}, {1, 1}}, Kind::InputGrad, 3);
}

TEST(ConvChoicesTest, PointsAreContractions) {
  check({2, {14, 14}, 96, {1, 1}, 130}, Kind::Forward, 5);
  check({2, {14, 14}, 300, {1, 1}, 64}, Kind::InputGrad, 5);
}

/// Parts are cut in other ways than their batch alone would be: choices are not shared.
TEST(ConvChoicesTest, PartsHaveKeysOfTheirOwn) {
  Conv whole = complete({2, {28, 28}, 6, {5, 5}, 64}), parts = complete({4, {28, 28}, 6, {5, 5}, 64});
  parts.parts = 2;
  auto key = [](const Conv &c) { return make(programOf(c, Kind::FilterGrad, "f32"), {})->info.blocking.key; };
  EXPECT_FALSE(key(whole).empty());
  EXPECT_NE(key(whole), key(parts));
}

/// What cannot be is refused, whatever it is.
TEST(ConvChoicesTest, ImpossibleChoicesAreRefused) {
  for (auto [conv, kind] : {std::pair{Conv{4, {7, 7}, 128, {3, 3}, 72, {2, 2}, {1, 1}}, Kind::Forward},
                            {Conv{3, {15, 14}, 96, {3, 3}, 144, {}, {1, 1}}, Kind::Forward},
                            {Conv{2, {16, 17}, 64, {3, 3}, 192, {}, {1, 1}}, Kind::FilterGrad},
                            {Conv{3, {9, 8}, 72, {3, 3}, 136, {2, 2}, {1, 1}}, Kind::FilterGrad}}) {
    std::string program = programOf(complete(conv), kind, "f32");
    auto usual = make(program, {});
    std::vector<KernelChoice> bad(3, usual->info.blocking.choice);
    bad[0].erase("rows");
    bad[1]["colour"] = 1;
    bad[2]["rows"] = 99, bad[2]["vectors"] = 99;
    for (const auto &[name, value] : usual->info.blocking.choice)
      for (int64_t other : {int64_t(0), int64_t(-7), value * 1000 + 1, INT64_MAX}) {
        bad.push_back(usual->info.blocking.choice);
        bad.back()[name] = other;
      }
    for (const KernelChoice &choice : bad) {
      KernelModule m;
      m.context.loadDialect<ortc::nn::NnDialect>();
      std::string message;
      ScopedDiagnosticHandler handler(&m.context, [&](Diagnostic &diagnostic) {
        message += diagnostic.str();
        return success();
      });
      auto source = parseSourceString<ModuleOp>(program, &m.context);
      KernelChoices choices{{{usual->info.blocking.key, choice}}, "the file"};
      Type f32 = m.builder.getF32Type();
      auto function = source->lookupSymbol<func::FuncOp>("k");
      SmallVector<KernelBuffer> buffers;
      for (Type type : function.getArgumentTypes())
        buffers.push_back({f32, cast<RankedTensorType>(type).getNumElements(), false, true});
      buffers.push_back(
          {f32, cast<RankedTensorType>(function.getResultTypes()[0]).getNumElements(), true, true});
      auto info =
          generateConv(*m.module, function, buffers, runnableTargets().back(), Numerics::Fast, &choices);
      EXPECT_TRUE(failed(info)) << describe(choice);
      EXPECT_EQ(message, "the file: '" + usual->info.blocking.key + "' cannot be cut as " + describe(choice));
    }
  }
}

} // namespace
