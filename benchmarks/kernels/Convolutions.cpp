// Convolutions of training steps: forward, input gradient and filter gradient.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "benchmarks/kernels/KernelBenchmark.h"

#include "compiler/backends/cpu/conv/ConvKernel.h"
#include "compiler/kernels/KernelForm.h"
#include "dialects/nn/NnDialect.h"

#include "mlir/IR/ImplicitLocOpBuilder.h"

using namespace mlir;
using namespace ortc::cpu;

namespace ortc::benchmarks {
namespace {

const Convolution kConvolutions[] = {
    // residual networks, from the first layer on
    {"7x7s2 3->64 224", 8, 224, 3, 7, 64, 2, 3, 1},
    {"3x3 64->64 56", 8, 56, 64, 3, 64, 1, 1, 1},
    {"3x3s2 64->128 56", 8, 56, 64, 3, 128, 2, 1, 1},
    {"3x3 128->128 28", 8, 28, 128, 3, 128, 1, 1, 1},
    {"3x3 256->256 14", 8, 14, 256, 3, 256, 1, 1, 1},
    {"3x3 512->512 7", 8, 7, 512, 3, 512, 1, 1, 1},
    {"1x1 64->256 56", 8, 56, 64, 1, 256, 1, 0, 1},
    {"1x1 256->64 56", 8, 56, 256, 1, 64, 1, 0, 1},
    {"1x1 16->96 112", 8, 112, 16, 1, 96, 1, 0, 1},
    {"1x1 24->144 56", 8, 56, 24, 1, 144, 1, 0, 1},
    {"1x1 144->24 56", 8, 56, 144, 1, 24, 1, 0, 1},
    {"1x1 32->192 28", 8, 28, 32, 1, 192, 1, 0, 1},
    {"1x1 384->64 14", 8, 14, 384, 1, 64, 1, 0, 1},
    {"1x1 96->576 14", 8, 14, 96, 1, 576, 1, 0, 1},
    {"1x1 576->96 14", 8, 14, 576, 1, 96, 1, 0, 1},
    {"1x1 960->160 7", 8, 7, 960, 1, 160, 1, 0, 1},
    {"1x1 192->32 28", 8, 28, 192, 1, 32, 1, 0, 1},
    {"1x1s2 256->512 56", 8, 56, 256, 1, 512, 2, 0, 1},
    // grouped and depthwise
    {"3x3 128->128 28 g32", 8, 28, 128, 3, 128, 1, 1, 32},
    {"dw 3x3 128 56", 8, 56, 128, 3, 128, 1, 1, 128},
    {"dw 3x3s2 96 56", 8, 56, 96, 3, 96, 2, 1, 96},
    {"dw 7x7 96 28", 8, 28, 96, 7, 96, 1, 3, 96},
    {"dw 5x5s2 72 28", 8, 28, 72, 5, 72, 2, 2, 72},
    {"dw 3x3 144 56", 8, 56, 144, 3, 144, 1, 1, 144},
    {"dw 5x5 480 14", 8, 14, 480, 5, 480, 1, 2, 480},
    {"dw 3x3 960 7", 8, 7, 960, 3, 960, 1, 1, 960},
    {"dw 3x3s2 96 112", 8, 112, 96, 3, 96, 2, 1, 96},
    {"dw 3x3 32 112", 8, 112, 32, 3, 32, 1, 1, 32},
    {"dw 3x3 192 28", 8, 28, 192, 3, 192, 1, 1, 192},
    {"dw 3x3 384 14", 8, 14, 384, 3, 384, 1, 1, 384},
    // small ones
    {"3x3 1->32 28", 32, 28, 1, 3, 32, 1, 1, 1},
    {"5x5 1->6 28 b64", 64, 28, 1, 5, 6, 1, 2, 1},
    {"5x5 6->16 14 b64", 64, 14, 6, 5, 16, 1, 0, 1},
    {"3x3 3->16 32 b32", 32, 32, 3, 3, 16, 1, 1, 1},
    {"3x3 16->16 32 b32", 32, 32, 16, 3, 16, 1, 1, 1},
    {"10x4s2 1->64 49x10 b32", 32, {49, 10}, 1, {10, 4}, 64, 2, {5, 1}, 1},
    {"dw 3x3 64 25x5 b32", 32, {25, 5}, 64, 3, 64, 1, 1, 64},
    {"1x1 64->64 25x5 b32", 32, {25, 5}, 64, 1, 64, 1, 0, 1},
    // of transposed layers: their forward pass is the input gradient
    {"2x2s2 32->64 128 b4", 4, 128, 32, 2, 64, 2, 0, 1},
    {"2x2s2 128->256 32 b4", 4, 32, 128, 2, 256, 2, 0, 1},
    {"4x4s2 3->32 64 b32", 32, 64, 3, 4, 32, 2, 1, 1},
    {"4x4s2 64->128 16 b32", 32, 16, 64, 4, 128, 2, 1, 1},
    // other layers of U-Nets and autoencoders
    {"3x3 3->32 128 b4", 4, 128, 3, 3, 32, 1, 1, 1},
    {"3x3 64->32 128 b4", 4, 128, 64, 3, 32, 1, 1, 1},
    {"1x1 32->1 128 b4", 4, 128, 32, 1, 1, 1, 0, 1},
    {"3x3s2 3->32 64 b32", 32, 64, 3, 3, 32, 2, 1, 1},
    {"3x3s2 64->128 16 b32", 32, 16, 64, 3, 128, 2, 1, 1},
    // of residual networks
    {"3x3s2 128->256 28", 8, 28, 128, 3, 256, 2, 1, 1},
    {"3x3s2 256->512 14", 8, 14, 256, 3, 512, 2, 1, 1},
    {"1x1s2 64->128 56", 8, 56, 64, 1, 128, 2, 0, 1},
    {"3x3s2 3->32 224", 8, 224, 3, 3, 32, 2, 1, 1},
};

using Kind = ConvolutionKind;

EmittedKernel emit(const Convolution &c, Kind kind, OpBuilder &builder, ModuleOp module,
                   const Target &target) {
  builder.getContext()->loadDialect<nn::NnDialect>();
  Plane size = c.resultSize();
  Type f32 = builder.getF32Type();
  auto x = RankedTensorType::get({c.batch, c.size.height, c.size.width, c.channels}, f32);
  auto w = RankedTensorType::get({c.window.height, c.window.width, c.channels / c.groups, c.features}, f32);
  auto y = RankedTensorType::get({c.batch, size.height, size.width, c.features}, f32);
  Type types[3][3] = {{x, w, y}, {y, w, x}, {x, y, w}};
  auto &[first, second, result] = types[int(kind)];
  // The operation lives beside the module that gets the kernel.
  OwningOpRef<ModuleOp> holder = ModuleOp::create(builder.getUnknownLoc());
  ImplicitLocOpBuilder b(builder.getUnknownLoc(), builder.getContext());
  b.setInsertionPointToStart(holder->getBody());
  auto function = func::FuncOp::create(b, "operation", b.getFunctionType({first, second}, result));
  b.setInsertionPointToStart(function.addEntryBlock());
  Value left = function.getArgument(0), right = function.getArgument(1);
  SmallVector<int64_t> strides(2, c.stride), padding{c.padding.height, c.padding.width}, dilations(2, 1);
  uint64_t groups = c.groups;
  Value value;
  if (kind == Kind::Forward)
    value = nn::ConvOp::create(b, result, left, right, strides, padding, padding, dilations, groups);
  else if (kind == Kind::InputGrad)
    value = nn::ConvInputGradOp::create(b, result, left, right, strides, padding, padding, dilations, groups);
  else
    value =
        nn::ConvFilterGradOp::create(b, result, left, right, strides, padding, padding, dilations, groups);
  func::ReturnOp::create(b, value);
  SmallVector<KernelBuffer> buffers;
  for (Type type : {first, second, result})
    buffers.push_back({f32, cast<RankedTensorType>(type).getNumElements(), buffers.size() == 2, true});
  return {*generateConv(module, function, buffers, target, Numerics::Fast),
          kernels::workOf(plan::KernelKind::conv, function.getArguments(), value)};
}

void addConvolution(const Convolution &c, Kind kind) {
  const char *kinds[] = {"forward", "input_grad", "filter_grad"};
  KernelCase kernel;
  kernel.name = std::string("conv/") + c.name + "/" + kinds[int(kind)];
  kernel.group = c.groups > 1 ? "grouped convolutions" : "convolutions";
  kernel.emit = [c, kind](OpBuilder &builder, ModuleOp module, const Target &target) {
    return emit(c, kind, builder, module, target);
  };
  kernel.libraries = librariesFor(c, kind);
  kernel.result = 2;
  addKernel(std::move(kernel));
}

} // namespace

void registerConvolutions() {
  for (const Convolution &c : kConvolutions)
    for (Kind kind : {Kind::Forward, Kind::InputGrad, Kind::FilterGrad})
      addConvolution(c, kind);
}

} // namespace ortc::benchmarks
