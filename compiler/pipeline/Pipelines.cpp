// The passes of each phase, in order.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/pipeline/Pipelines.h"

#include "compiler/passes/attention/Passes.h"
#include "compiler/passes/fusion/Passes.h"
#include "compiler/passes/import/Passes.h"
#include "compiler/passes/memory/Passes.h"
#include "compiler/passes/precision/Passes.h"
#include "compiler/passes/simplify/Passes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

namespace ortc::pipeline {

static void addCleanup(OpPassManager &passes) {
  passes.addPass(createCanonicalizerPass());
  passes.addPass(createCSEPass());
  passes.addNestedPass<func::FuncOp>(simplify::createSinkTransposesPass());
  passes.addPass(createCanonicalizerPass());
  passes.addPass(createCSEPass());
}

void buildImport(OpPassManager &passes) { passes.addPass(import::createInlineFunctionsPass()); }

void buildSimplify(OpPassManager &passes) {
  addCleanup(passes);
  passes.addNestedPass<func::FuncOp>(simplify::createSinkGathersPass());
  passes.addPass(createCanonicalizerPass());
  passes.addPass(simplify::createFoldParameterLayoutsPass());
}

void buildAttention(OpPassManager &passes, int64_t least, int64_t rows,
                    const kernels::TrainingLimits &limits) {
  passes.addNestedPass<func::FuncOp>(attention::createTileAttentionPass(
      {least, rows, limits.iterationBytes, limits.tileBytes, limits.tileRows, limits.attentionDepth}));
}

void buildRaise(OpPassManager &passes) {
  passes.addPass(createCanonicalizerPass());
  passes.addNestedPass<func::FuncOp>(simplify::createRaiseSlicesPass());
  passes.addPass(createCSEPass());
}

void buildNarrow(OpPassManager &passes, StringRef type, bool differentiated) {
  passes.addNestedPass<func::FuncOp>(precision::createNarrowProductsPass({type.str(), differentiated}));
  passes.addPass(createCSEPass());
}

void buildEntries(OpPassManager &passes) {
  passes.addPass(simplify::createHoistAccumulationsPass());
  passes.addNestedPass<func::FuncOp>(precision::createUnpackWeightsPass());
  addCleanup(passes);
  passes.addPass(createSymbolDCEPass());
  passes.addPass(simplify::createHoistConstantsPass({/*limit=*/0}));
}

void buildRegions(OpPassManager &passes) { passes.addPass(memory::createAssignRegionsPass()); }

void buildFuse(OpPassManager &passes, const kernels::FusionLimits &limits, StringRef narrow) {
  passes.addPass(simplify::createContractConvolutionsPass());
  passes.addPass(simplify::createMultiplyByReciprocalsPass());
  passes.addPass(simplify::createFactorSumsPass());
  passes.addPass(simplify::createHoistLayoutsPass());
  passes.addPass(simplify::createGatherInLoopsPass());
  passes.addNestedPass<func::FuncOp>(precision::createCentreIntegersPass());
  passes.addNestedPass<func::FuncOp>(precision::createSinkWideningPass());
  passes.addPass(
      fusion::createExpandCompositesPass({limits.columnRows, limits.wholeColumnBytes, limits.columnGroups}));
  passes.addPass(createCanonicalizerPass());
  passes.addPass(createCSEPass());
  if (limits.fewKernels) {
    passes.addPass(fusion::createInlineLoopsPass());
    passes.addPass(createCanonicalizerPass());
  }
  passes.addPass(fusion::createFuseKernelsPass(limits, narrow));
}

void buildOutline(OpPassManager &passes, const kernels::FusionLimits &limits) {
  passes.addPass(memory::createOutlineKernelsPass());
  passes.addPass(memory::createCutBackwardPass());
  if (limits.joinedBuffers > 0) {
    if (limits.columnRows > 0 && limits.joinedBytes > 0)
      passes.addPass(memory::createJoinSumsPass({limits.joinedBuffers, limits.joinedBytes}));
    passes.addPass(
        memory::createJoinUpdatesPass({limits.joinedBuffers, limits.joinedBytes, limits.columnRows > 0}));
    passes.addPass(createSymbolDCEPass()); // kernels that stand for themselves no more
  }
}

void buildPlace(OpPassManager &passes, const PlaceOptions &options) {
  if (options.curve || options.budget != UINT64_MAX)
    passes.addPass(
        memory::createRecomputeStepsPass({options.budget, options.curve, options.ofUpdates, options.unit}));
  passes.addPass(memory::createPlaceBuffersPass());
}

using Build = void (*)(OpPassManager &);

static constexpr std::pair<StringLiteral, Build> kPipelines[] = {
    {"import", buildImport},
    {"simplify", buildSimplify},
    {"entries", [](OpPassManager &p) { buildEntries(p), buildRegions(p); }},
    {"fuse", [](OpPassManager &p) { buildFuse(p, {}); }},
    {"outline", [](OpPassManager &p) { buildOutline(p, {}); }},
    {"place", [](OpPassManager &p) { buildPlace(p, {}); }}};

/// Adds the pipeline of that name.
static LogicalResult build(OpPassManager &passes, StringRef name,
                           function_ref<LogicalResult(const Twine &)> fail) {
  std::string known;
  for (auto [each, add] : kPipelines) {
    if (each == name) {
      add(passes);
      return success();
    }
    known += (known.empty() ? "" : ", ") + each.str();
  }
  return fail("there is no pipeline '" + name + "'; pipelines are " + known);
}

void registerPipelines(DialectRegistry &) {
  registerPassPipeline(
      "ortc-pipeline", "the passes of a phase, by its name", build,
      [](function_ref<void(const detail::PassOptions &)> show) { show(detail::PassOptions()); });
}

} // namespace ortc::pipeline
