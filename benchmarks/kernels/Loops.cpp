// Elementwise kernels, row reductions, scatters and optimizer updates.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "benchmarks/kernels/KernelBenchmark.h"

#include "compiler/backends/cpu/loop/LoopKernel.h"
#include "compiler/kernels/KernelForm.h"
#include "dialects/nn/TensorBuilder.h"
#include "dialects/plan/PlanDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"

#include <random>

using namespace ortc::cpu;

namespace ortc::benchmarks {
namespace {

using mlir::Value;
using nn::TensorBuilder;
using Shape = llvm::SmallVector<int64_t>;
using Program = std::function<llvm::SmallVector<Value>(TensorBuilder &, mlir::ValueRange)>;

struct LoopCase {
  std::string name;
  std::vector<Shape> inputs;
  Program program;
  Shape indices = {};              ///< of one more input, of i64
  std::vector<int64_t> pairs = {}; ///< inputs and the results that lie in their place
  Limit limit = Limit::Copy;
  std::function<void(const std::vector<void *> &)> fill = {};
  std::vector<LibraryCase> libraries = {};
};

/// One kernel of a program over f32 tensors, and indices.
EmittedKernel emit(const LoopCase &loop, mlir::OpBuilder &builder, mlir::ModuleOp module,
                   const Target &target) {
  mlir::MLIRContext *context = module.getContext();
  context->loadDialect<nn::NnDialect, plan::PlanDialect, mlir::func::FuncDialect, mlir::math::MathDialect>();
  mlir::OwningOpRef<mlir::ModuleOp> source = mlir::ModuleOp::create(builder.getUnknownLoc());
  llvm::SmallVector<mlir::Type> types;
  for (const Shape &shape : loop.inputs)
    types.push_back(mlir::RankedTensorType::get(shape, builder.getF32Type()));
  if (!loop.indices.empty())
    types.push_back(mlir::RankedTensorType::get(loop.indices, builder.getI64Type()));
  mlir::OpBuilder inside(source->getBodyRegion());
  auto function = mlir::func::FuncOp::create(inside, builder.getUnknownLoc(), "kernel",
                                             builder.getFunctionType(types, {}));
  mlir::Block *body = function.addEntryBlock();
  TensorBuilder b(builder.getUnknownLoc(), context);
  b.setInsertionPointToStart(body);
  auto results = loop.program(b, body->getArguments());
  mlir::func::ReturnOp::create(b, results);
  function.setFunctionType(builder.getFunctionType(types, mlir::TypeRange(mlir::ValueRange(results))));
  if (!loop.pairs.empty())
    function->setAttr(plan::kInPlace, builder.getDenseI64ArrayAttr(loop.pairs));
  llvm::SmallVector<mlir::Operation *> ops;
  for (mlir::Operation &op : body->without_terminator())
    ops.push_back(&op);
  return {*generateLoopKernel(module, function, target, Numerics::Fast),
          kernels::workOf(kernels::formOf(ops).kind, body->getArguments(), results)};
}

void addLoop(LoopCase loop) {
  KernelCase kernel;
  kernel.name = "loop/" + loop.name;
  kernel.group = "loops";
  kernel.limit = loop.limit;
  unsigned inputs = static_cast<unsigned>(loop.inputs.size() + !loop.indices.empty());
  for (size_t i = 0; i < loop.pairs.size(); i += 2)
    kernel.inPlace.push_back(
        {inputs + static_cast<unsigned>(loop.pairs[i + 1]), static_cast<unsigned>(loop.pairs[i])});
  kernel.fill = loop.fill;
  kernel.libraries = loop.libraries;
  kernel.result = inputs;
  kernel.emit = [loop = std::move(loop)](mlir::OpBuilder &builder, mlir::ModuleOp module,
                                         const Target &target) {
    return emit(loop, builder, module, target);
  };
  addKernel(std::move(kernel));
}

Value scaled(TensorBuilder &b, Value x, Value scalar) {
  return b.mul(x, b.broadcast(scalar, TensorBuilder::shapeOf(x), {}));
}

llvm::SmallVector<Value> adamw(TensorBuilder &b, mlir::ValueRange in) {
  Value p = in[0], g = in[1], m = in[2], v = in[3], lr = in[4], beta1 = in[5], beta2 = in[6], epsilon = in[7],
        decay = in[8];
  auto minus = [&](Value x) { return b.sub(b.constantLike(x, 1), x); };
  p = scaled(b, p, minus(b.mul(lr, decay)));
  m = b.add(m, scaled(b, b.sub(g, m), minus(beta1)));
  v = b.add(scaled(b, v, beta2), b.mul(scaled(b, g, minus(beta2)), g));
  Value root = b.add(b.sqrt(v), b.broadcast(epsilon, TensorBuilder::shapeOf(v), {}));
  return {b.add(p, b.div(scaled(b, m, b.neg(lr)), root)), m, v};
}

/// mean, 1 / deviation and the normalised rows times a scale plus a shift.
llvm::SmallVector<Value> layerNorm(TensorBuilder &b, mlir::ValueRange in) {
  auto shape = llvm::to_vector(TensorBuilder::shapeOf(in[0]));
  Value mean = b.mean(in[0], {1}), centered = b.sub(in[0], b.broadcastAlong(mean, shape, {1}));
  Value variance = b.mean(b.mul(centered, centered), {1});
  Value inverse = b.div(b.constantLike(variance, 1), b.sqrt(b.addScalar(variance, 1e-5)));
  Value normal = b.mul(centered, b.broadcastAlong(inverse, shape, {1}));
  return {b.add(b.mul(normal, b.broadcast(in[1], shape, {1})), b.broadcast(in[2], shape, {1})), mean,
          inverse};
}

/// x, gradient, mean, inverse deviation, scale: the gradient of x.
llvm::SmallVector<Value> layerNormGradient(TensorBuilder &b, mlir::ValueRange in) {
  auto shape = llvm::to_vector(TensorBuilder::shapeOf(in[0]));
  auto along = [&](Value row) { return b.broadcastAlong(row, shape, {1}); };
  Value normal = b.mul(b.sub(in[0], along(in[2])), along(in[3])),
        weighted = b.mul(in[1], b.broadcast(in[4], shape, {1}));
  Value first = b.mean(weighted, {1}), second = b.mean(b.mul(weighted, normal), {1});
  Value inner = b.sub(b.sub(weighted, along(first)), b.mul(normal, along(second)));
  return {b.mul(inner, along(in[3]))};
}

/// x, gradient, mean, inverse deviation: the gradients of scale and shift.
llvm::SmallVector<Value> layerNormParameters(TensorBuilder &b, mlir::ValueRange in) {
  auto shape = llvm::to_vector(TensorBuilder::shapeOf(in[0]));
  auto along = [&](Value row) { return b.broadcastAlong(row, shape, {1}); };
  Value normal = b.mul(b.sub(in[0], along(in[2])), along(in[3]));
  return {b.sum(b.mul(in[1], normal), {0}), b.sum(in[1], {0})};
}

llvm::SmallVector<Value> softmax(TensorBuilder &b, mlir::ValueRange in) {
  auto shape = llvm::to_vector(TensorBuilder::shapeOf(in[0]));
  Value exponential =
      b.exp(b.sub(in[0], b.broadcastAlong(b.reduce(nn::ReduceKind::max, in[0], {1}), shape, {1})));
  Value sum = b.sum(exponential, {1});
  return {b.mul(exponential, b.broadcastAlong(b.div(b.constantLike(sum, 1), sum), shape, {1}))};
}

llvm::SmallVector<Value> gelu(TensorBuilder &b, mlir::ValueRange in) {
  Value x = in[0], half = b.mulScalar(x, 0.5);
  return {b.add(half, b.mul(half, b.erf(b.mulScalar(x, 0.70710678118654752))))};
}

llvm::SmallVector<Value> biasRelu(TensorBuilder &b, mlir::ValueRange in) {
  auto shape = llvm::to_vector(TensorBuilder::shapeOf(in[0]));
  Value sum = b.add(in[0], b.broadcast(in[1], shape, {static_cast<int64_t>(shape.size()) - 1})),
        zero = b.zerosLike(sum);
  return {b.select(b.compare(mlir::arith::CmpFPredicate::UGT, sum, zero), sum, zero)};
}

llvm::SmallVector<Value> columnSums(TensorBuilder &b, mlir::ValueRange in) { return {b.sum(in[0], {0})}; }

Program transposed(Shape permutation) {
  return [=](TensorBuilder &b, mlir::ValueRange in) {
    return llvm::SmallVector<Value>{b.transpose(in[0], permutation)};
  };
}

/// The second moments of random numbers are not negative.
void fillAdamw(const std::vector<void *> &arguments, int64_t elements) {
  float *v = static_cast<float *>(arguments[3]);
  for (int64_t i = 0; i < elements; ++i)
    v[i] *= v[i];
  const float scalars[] = {1e-3f, 0.9f, 0.999f, 1e-8f, 0.01f};
  for (size_t i = 0; i < std::size(scalars); ++i)
    *static_cast<float *>(arguments[4 + i]) = scalars[i];
}

/// An update in place, as in training.
void addAdamw(const std::string &name, const Shape &shape) {
  int64_t elements = 1;
  for (int64_t size : shape)
    elements *= size;
  addLoop({.name = "adamw/" + name,
           .inputs = {shape, shape, shape, shape, {}, {}, {}, {}, {}},
           .program = adamw,
           .pairs = {0, 0, 2, 1, 3, 2},
           .limit = Limit::Triad,
           .fill = [=](const std::vector<void *> &arguments) { fillAdamw(arguments, elements); }});
}

/// The gradient of an embedding, alone and with the update of its table.
void addEmbedding(int64_t rows, int64_t columns, int64_t count) {
  std::string size = std::to_string(count) + "x" + std::to_string(columns) + "_" + std::to_string(rows);
  Shape table = {rows, columns}, updates = {count, columns};
  auto scatter = [=](TensorBuilder &b, Value values, Value indices) -> Value {
    return nn::ScatterAddOp::create(b, mlir::RankedTensorType::get(table, b.getF32Type()), indices, values,
                                    0);
  };
  auto fillIndices = [=](void *argument) {
    std::minstd_rand random(1);
    for (int64_t i = 0; i < count; ++i)
      static_cast<int64_t *>(argument)[i] = random() % rows;
  };
  addLoop({.name = "scatter_add/" + size,
           .inputs = {updates},
           .program = [=](TensorBuilder &b,
                          mlir::ValueRange in) { return llvm::SmallVector<Value>{scatter(b, in[0], in[1])}; },
           .indices = {count},
           .fill = [=](const std::vector<void *> &arguments) { fillIndices(arguments[1]); }});
  addLoop({.name = "scatter_adamw/" + size,
           .inputs = {table, updates, table, table, {}, {}, {}, {}, {}},
           .program =
               [=](TensorBuilder &b, mlir::ValueRange in) {
                 llvm::SmallVector<Value> values(in);
                 values[1] = scatter(b, in[1], in.back());
                 return adamw(b, values);
               },
           .indices = {count},
           .pairs = {0, 0, 2, 1, 3, 2},
           .limit = Limit::Triad,
           .fill =
               [=](const std::vector<void *> &arguments) {
                 fillAdamw(arguments, rows * columns);
                 fillIndices(arguments[9]);
               }});
}

void addLayerNorm(int64_t rows, int64_t columns) {
  std::string size = std::to_string(rows) + "x" + std::to_string(columns);
  Shape all = {rows, columns};
  addLoop({.name = "layer_norm/" + size,
           .inputs = {all, {columns}, {columns}},
           .program = layerNorm,
           .libraries = librariesForLayerNorm(rows, columns)});
  auto fill = [=](const std::vector<void *> &arguments) {
    float *inverse = static_cast<float *>(arguments[3]);
    for (int64_t row = 0; row < rows; ++row)
      inverse[row] = 1 + inverse[row] * inverse[row];
    std::fill_n(static_cast<float *>(arguments[4]), columns, 1.0f);
  };
  addLoop({.name = "layer_norm_gradient/" + size,
           .inputs = {all, all, {rows}, {rows}, {columns}},
           .program = layerNormGradient,
           .fill = fill,
           .libraries = librariesForLayerNormGradient(rows, columns)});
  addLoop({.name = "layer_norm_parameters/" + size,
           .inputs = {all, all, {rows}, {rows}},
           .program = layerNormParameters});
}

void addSoftmax(int64_t rows, int64_t columns) {
  addLoop({.name = "softmax/" + std::to_string(rows) + "x" + std::to_string(columns),
           .inputs = {{rows, columns}},
           .program = softmax,
           .libraries = librariesForSoftmax(rows, columns)});
}

} // namespace

void registerLoops() {
  addAdamw("8M", {8 << 20});
  addAdamw("512x512", {512, 512});
  addEmbedding(30522, 256, 2048);
  addEmbedding(10000, 16, 256);
  addLayerNorm(4096, 768);
  addSoftmax(12288, 128);
  addSoftmax(128, 50257);
  addLoop({.name = "gelu/512x3072",
           .inputs = {{512, 3072}},
           .program = gelu,
           .libraries = librariesForGelu(512 * 3072)});
  addLoop({.name = "bias_relu/4096x768", .inputs = {{4096, 768}, {768}}, .program = biasRelu});
  addLoop({.name = "bias_relu/32x28x28x6", .inputs = {{32, 28, 28, 6}, {6}}, .program = biasRelu});
  addLoop({.name = "column_sums/4096x768", .inputs = {{4096, 768}}, .program = columnSums});
  addLoop({.name = "column_sums/100352x64", .inputs = {{100352, 64}}, .program = columnSums});
  addLoop({.name = "transpose/2048x2048", .inputs = {{2048, 2048}}, .program = transposed({1, 0})});
  addLoop({.name = "transpose/heads", .inputs = {{8, 128, 12, 64}}, .program = transposed({0, 2, 1, 3})});
  addLoop(
      {.name = "transpose/nchw_to_nhwc", .inputs = {{8, 64, 56, 56}}, .program = transposed({0, 2, 3, 1})});
}

} // namespace ortc::benchmarks
