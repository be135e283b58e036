// Kernels' work in oneDNN 2. Memory in a layout of the library's own is filled before, and read after, the timing.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "benchmarks/kernels/Dnnl.h"

#include <cmath>
#include <dnnl.hpp>
#include <unordered_map>

namespace ortc::benchmarks {
namespace {

using dnnl::memory;
using Arguments = std::vector<void *>;
constexpr auto kFloat = memory::data_type::f32;
constexpr auto kAny = memory::format_tag::any;

dnnl::engine &engine() {
  static dnnl::engine one(dnnl::engine::kind::cpu, 0);
  return one;
}
dnnl::stream &stream() {
  static dnnl::stream one(engine());
  return one;
}

void reorder(memory from, memory to) {
  dnnl::reorder(from, to).execute(stream(), from, to);
  stream().wait();
}

/// Reorders of the library need not know every layout that strides can describe: they get the dimensions in order.
memory::desc rowMajor(const memory::desc &layout) {
  memory::dims sizes = layout.dims(), strides(sizes.size(), 1);
  for (size_t d = sizes.size() - 1; d > 0; --d)
    strides[d - 1] = strides[d] * sizes[d];
  return {sizes, kFloat, strides};
}

/// body(number of the element when the dimensions are in order, its place in `layout`), which has strides.
template <typename Body> void overElements(const memory::desc &layout, Body body) {
  memory::dims sizes = layout.dims();
  const dnnl_dim_t *strides = layout.data.format_desc.blocking.strides;
  size_t count = layout.get_size() / sizeof(float);
  for (size_t number = 0; number < count; ++number) {
    size_t rest = number, place = 0;
    for (size_t d = sizes.size(); d-- > 0; rest /= size_t(sizes[d]))
      place += rest % size_t(sizes[d]) * size_t(strides[d]);
    body(number, place);
  }
}

/// One primitive with its arguments.
class DnnlRun final : public LibraryRun {
public:
  void run() override {
    primitive.execute(stream(), arguments);
    stream().wait();
  }

  std::vector<float> result() override {
    memory rows(rowMajor(layout), engine());
    reorder(arguments.at(resultArgument), rows);
    std::vector<float> values(layout.get_size() / sizeof(float));
    const auto *from = static_cast<const float *>(rows.get_data_handle());
    overElements(layout, [&](size_t number, size_t place) { values[place] = from[number]; });
    return values;
  }

  /// An input: the kernel's, reordered where the primitive wants another layout.
  void addInput(int argument, const memory::desc &have, const memory::desc &wanted, void *data) {
    if (have == wanted) {
      arguments.emplace(argument, memory(have, engine(), data));
      return;
    }
    memory rows(rowMajor(have), engine()), own(wanted, engine());
    auto *to = static_cast<float *>(rows.get_data_handle());
    overElements(have, [&](size_t number, size_t place) { to[number] = static_cast<float *>(data)[place]; });
    reorder(rows, own);
    arguments.emplace(argument, own);
  }
  memory addOwn(int argument, const memory::desc &wanted) {
    memory own(wanted, engine());
    arguments.emplace(argument, own);
    return own;
  }
  /// What the kernel keeps as `wantedLayout`.
  void addResult(int argument, const memory::desc &wantedLayout, const memory::desc &own) {
    addOwn(argument, own);
    layout = wantedLayout;
    resultArgument = argument;
  }

  dnnl::primitive primitive;

private:
  std::unordered_map<int, memory> arguments;
  memory::desc layout;
  int resultArgument = 0;
};

/// The filter [window][channels / groups][features], in the order of dimensions that the library uses.
memory::dims filterSizes(const Convolution &c) {
  memory::dims sizes = {c.features / c.groups, c.channels / c.groups, c.window.height, c.window.width};
  if (c.groups > 1)
    sizes.insert(sizes.begin(), c.groups);
  return sizes;
}
memory::dims filterStrides(const Convolution &c) {
  int64_t tap = c.channels / c.groups * c.features;
  memory::dims strides = {1, c.features, c.window.width * tap, tap};
  if (c.groups > 1)
    strides.insert(strides.begin(), c.features / c.groups);
  return strides;
}

struct ConvolutionMemory {
  memory::desc image, filter, result;
};

LibraryRunPtr prepareForward(const dnnl::convolution_forward::primitive_desc &forward,
                             const ConvolutionMemory &plain, const Arguments &arguments) {
  auto run = std::make_unique<DnnlRun>();
  run->primitive = dnnl::convolution_forward(forward);
  run->addInput(DNNL_ARG_SRC, plain.image, forward.src_desc(), arguments[0]);
  run->addInput(DNNL_ARG_WEIGHTS, plain.filter, forward.weights_desc(), arguments[1]);
  run->addResult(DNNL_ARG_DST, plain.result, forward.dst_desc());
  return run;
}

/// Arguments y, filter, x.
LibraryRunPtr prepareInputGrad(const dnnl::convolution_backward_data::primitive_desc &backward,
                               const ConvolutionMemory &plain, const Arguments &arguments) {
  auto run = std::make_unique<DnnlRun>();
  run->primitive = dnnl::convolution_backward_data(backward);
  run->addInput(DNNL_ARG_DIFF_DST, plain.result, backward.diff_dst_desc(), arguments[0]);
  run->addInput(DNNL_ARG_WEIGHTS, plain.filter, backward.weights_desc(), arguments[1]);
  run->addResult(DNNL_ARG_DIFF_SRC, plain.image, backward.diff_src_desc());
  return run;
}

/// Arguments x, y, filter.
LibraryRunPtr prepareFilterGrad(const dnnl::convolution_backward_weights::primitive_desc &backward,
                                const ConvolutionMemory &plain, const Arguments &arguments) {
  auto run = std::make_unique<DnnlRun>();
  run->primitive = dnnl::convolution_backward_weights(backward);
  run->addInput(DNNL_ARG_SRC, plain.image, backward.src_desc(), arguments[0]);
  run->addInput(DNNL_ARG_DIFF_DST, plain.result, backward.diff_dst_desc(), arguments[1]);
  run->addResult(DNNL_ARG_DIFF_WEIGHTS, plain.filter, backward.diff_weights_desc());
  return run;
}

memory::desc matrix(int64_t rows, int64_t columns) {
  return {{rows, columns}, kFloat, memory::format_tag::ab};
}

} // namespace

LibraryRunPtr prepareDnnlProduct(const Product &p, const Arguments &arguments) {
  auto desc = [&](int64_t rows, int64_t columns, bool isTransposed) {
    memory::dims sizes = {p.batch, rows, columns};
    memory::dims strides = {rows * columns, isTransposed ? 1 : columns, isTransposed ? rows : 1};
    if (p.batch == 1) {
      sizes.erase(sizes.begin());
      strides.erase(strides.begin());
    }
    return memory::desc(sizes, kFloat, strides);
  };
  memory::desc a = desc(p.m, p.k, p.transposeA), b = desc(p.k, p.n, p.transposeB), c = desc(p.m, p.n, false);
  auto run = std::make_unique<DnnlRun>();
  run->primitive = dnnl::matmul(dnnl::matmul::primitive_desc({a, b, c}, engine()));
  run->addInput(DNNL_ARG_SRC, a, a, arguments[0]);
  run->addInput(DNNL_ARG_WEIGHTS, b, b, arguments[1]);
  run->addResult(DNNL_ARG_DST, c, c);
  return run;
}

static LibraryRunPtr prepareConvolution(const Convolution &c, ConvolutionKind kind, bool channelsLast,
                                        const Arguments &arguments) {
  Plane size = c.resultSize();
  memory::dims image = {c.batch, c.channels, c.size.height, c.size.width},
               result = {c.batch, c.features, size.height, size.width}, filter = filterSizes(c);
  memory::dims strides = {c.stride, c.stride}, padding = {c.padding.height, c.padding.width};
  // The image may end before the window does.
  auto after = [&](int64_t extent, int64_t taps, int64_t before, int64_t results) {
    return (results - 1) * c.stride + taps - extent - before;
  };
  memory::dims behind = {after(c.size.height, c.window.height, c.padding.height, size.height),
                         after(c.size.width, c.window.width, c.padding.width, size.width)};
  auto nhwc = memory::format_tag::nhwc;
  ConvolutionMemory plain = {
      {image, kFloat, nhwc}, {filter, kFloat, filterStrides(c)}, {result, kFloat, nhwc}};
  auto tag = channelsLast ? nhwc : kAny;
  ConvolutionMemory wanted = {{image, kFloat, tag}, {filter, kFloat, kAny}, {result, kFloat, tag}};
  auto algorithm = dnnl::algorithm::convolution_auto;
  dnnl::convolution_forward::primitive_desc forward({dnnl::prop_kind::forward_training, algorithm,
                                                     wanted.image, wanted.filter, wanted.result, strides,
                                                     padding, behind},
                                                    engine());
  switch (kind) {
  case ConvolutionKind::Forward:
    return prepareForward(forward, plain, arguments);
  case ConvolutionKind::InputGrad:
    return prepareInputGrad(
        {{algorithm, wanted.image, wanted.filter, wanted.result, strides, padding, behind},
         engine(),
         forward},
        plain, arguments);
  case ConvolutionKind::FilterGrad:
    return prepareFilterGrad(
        {{algorithm, wanted.image, wanted.filter, wanted.result, strides, padding, behind},
         engine(),
         forward},
        plain, arguments);
  }
  return nullptr;
}

LibraryRunPtr prepareDnnlConvolution(const Convolution &c, ConvolutionKind kind, bool channelsLast,
                                     const Arguments &arguments) {
  try {
    return prepareConvolution(c, kind, channelsLast, arguments);
  } catch (const dnnl::error &) {
    return nullptr; // not in these layouts
  }
}

LibraryRunPtr prepareDnnlSoftmax(int64_t rows, int64_t columns, const Arguments &arguments) {
  memory::desc desc = matrix(rows, columns);
  auto run = std::make_unique<DnnlRun>();
  run->primitive = dnnl::softmax_forward({{dnnl::prop_kind::forward_training, desc, 1}, engine()});
  run->addInput(DNNL_ARG_SRC, desc, desc, arguments[0]);
  run->addResult(DNNL_ARG_DST, desc, desc);
  return run;
}

constexpr float kEpsilon = 1e-5f;

LibraryRunPtr prepareDnnlLayerNorm(int64_t rows, int64_t columns, const Arguments &arguments) {
  memory::desc desc = matrix(rows, columns);
  dnnl::layer_normalization_forward::primitive_desc forward(
      {dnnl::prop_kind::forward_training, desc, kEpsilon, dnnl::normalization_flags::use_scale_shift},
      engine());
  auto run = std::make_unique<DnnlRun>();
  run->primitive = dnnl::layer_normalization_forward(forward);
  run->addInput(DNNL_ARG_SRC, desc, desc, arguments[0]);
  auto *both =
      static_cast<float *>(run->addOwn(DNNL_ARG_SCALE_SHIFT, forward.weights_desc()).get_data_handle());
  for (int i : {0, 1})
    std::copy_n(static_cast<float *>(arguments[size_t(1 + i)]), columns, both + i * columns);
  run->addOwn(DNNL_ARG_MEAN, forward.mean_desc());
  run->addOwn(DNNL_ARG_VARIANCE, forward.variance_desc());
  run->addResult(DNNL_ARG_DST, desc, desc);
  return run;
}

LibraryRunPtr prepareDnnlLayerNormGradient(int64_t rows, int64_t columns, const Arguments &arguments) {
  memory::desc desc = matrix(rows, columns);
  // The gradient of x alone is there without a scale only.
  auto flags = dnnl::normalization_flags::none;
  dnnl::layer_normalization_forward::primitive_desc forward(
      {dnnl::prop_kind::forward_training, desc, kEpsilon, flags}, engine());
  dnnl::layer_normalization_backward::primitive_desc backward(
      {dnnl::prop_kind::backward_data, desc, desc, kEpsilon, flags}, engine(), forward);
  auto run = std::make_unique<DnnlRun>();
  run->primitive = dnnl::layer_normalization_backward(backward);
  run->addInput(DNNL_ARG_SRC, desc, desc, arguments[0]);
  run->addInput(DNNL_ARG_DIFF_DST, desc, desc, arguments[1]);
  run->addInput(DNNL_ARG_MEAN, backward.mean_desc(), backward.mean_desc(), arguments[2]);
  auto *variance =
      static_cast<float *>(run->addOwn(DNNL_ARG_VARIANCE, backward.variance_desc()).get_data_handle());
  for (int64_t row = 0; row < rows; ++row) {
    float inverse = static_cast<float *>(arguments[3])[row];
    variance[row] = 1 / (inverse * inverse) - kEpsilon;
  }
  run->addResult(DNNL_ARG_DIFF_SRC, desc, desc);
  return run;
}

LibraryRunPtr prepareDnnlGelu(int64_t elements, const Arguments &arguments) {
  memory::desc desc({elements}, kFloat, memory::format_tag::a);
  auto run = std::make_unique<DnnlRun>();
  run->primitive = dnnl::eltwise_forward(
      {{dnnl::prop_kind::forward_training, dnnl::algorithm::eltwise_gelu_erf, desc, 0, 0}, engine()});
  run->addInput(DNNL_ARG_SRC, desc, desc, arguments[0]);
  run->addResult(DNNL_ARG_DST, desc, desc);
  return run;
}

std::string describeDnnl() {
  const dnnl_version_t *version = dnnl_version();
  const char *name = "another instruction set";
  switch (dnnl::get_effective_cpu_isa()) {
  case dnnl::cpu_isa::sse41:
    name = "SSE4.1";
    break;
  case dnnl::cpu_isa::avx:
    name = "AVX";
    break;
  case dnnl::cpu_isa::avx2:
    name = "AVX2";
    break;
  case dnnl::cpu_isa::avx512_core:
    name = "AVX-512";
    break;
  default:
    break;
  }
  return "oneDNN " + std::to_string(version->major) + "." + std::to_string(version->minor) + "." +
         std::to_string(version->patch) + " with " + name;
}

} // namespace ortc::benchmarks
