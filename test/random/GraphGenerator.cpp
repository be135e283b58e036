// Draws operators one after another; each takes values that exist and weights made for it.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "test/random/GraphGenerator.h"

#include <algorithm>
#include <functional>
#include <random>

#include "test/e2e/Models.h"

namespace ortc::test {
namespace {

using Shape = std::vector<int64_t>;

int64_t countOf(const Shape &shape) {
  int64_t count = 1;
  for (int64_t size : shape)
    count *= size;
  return count;
}

class Generator {
public:
  explicit Generator(unsigned seed) : random(seed) {
    model().set_ir_version(8);
    auto *opset = model().add_opset_import();
    opset->set_domain("");
    opset->set_version(20);
    result.model.mutable_graph()->set_name("random_" + std::to_string(seed));
  }

  RandomModel run();

private:
  struct Value {
    std::string name;
    Shape shape;
    int64_t rank() const { return static_cast<int64_t>(shape.size()); }
  };
  using Maker = bool (Generator::*)(); ///< false: it does not fit what there is

  proto::ModelProto &model() { return result.model; }
  proto::GraphProto &graph() { return *result.model.mutable_graph(); }

  /// In [0, limit). The engine's numbers are the same everywhere, those of distributions are not.
  int64_t below(int64_t limit) { return static_cast<int64_t>(random() % static_cast<uint32_t>(limit)); }
  float number() { return static_cast<float>(below(2048) - 1024) / 1024; }
  Value pick() {
    return values[values.size() - 1 - static_cast<size_t>(below(std::min<int64_t>(3, values.size())))];
  }
  Shape shapeOf(int64_t rank) {
    Shape shape;
    for (int64_t i = 0; i < rank; ++i) {
      int64_t size = 1 + below(4);
      shape.push_back(size);
    }
    return shape;
  }

  Value feed(const Shape &shape);
  Value weight(const Shape &shape);
  std::string integers(const std::vector<int64_t> &data);
  proto::NodeProto &node(const std::string &op, const std::vector<std::string> &inputs, const Shape &shape);
  void setInt(proto::NodeProto &n, const std::string &name, int64_t value);
  void setInts(proto::NodeProto &n, const std::string &name, const std::vector<int64_t> &values);
  void setString(proto::NodeProto &n, const std::string &name, const std::string &value);

  bool unary();
  bool guarded();
  bool binary();
  bool product();
  bool linear();
  bool reduce();
  bool softmax();
  bool normalize();
  bool transpose();
  bool reshape();
  bool concat();
  bool slice();
  bool pad();
  bool gather();
  bool tile();
  bool select();
  bool runningSum();
  bool largest();
  bool convolve();
  bool pool();
  bool recur();
  bool einsum();
  bool scatter();
  bool resize();

  std::mt19937 random;
  RandomModel result;
  std::vector<Value> values;
  int next = 0;
};

Generator::Value Generator::feed(const Shape &shape) {
  Value value{"x" + std::to_string(next++), shape};
  describe(graph().add_input(), value.name, proto::TensorProto::FLOAT, shape);
  RandomModel::Array array{shape, {}};
  for (int64_t i = 0; i < countOf(shape); ++i)
    array.data.push_back(number());
  result.feeds[value.name] = array;
  return value;
}

Generator::Value Generator::weight(const Shape &shape) {
  Value value{"w" + std::to_string(next++), shape};
  auto *tensor = graph().add_initializer();
  tensor->set_name(value.name);
  tensor->set_data_type(proto::TensorProto::FLOAT);
  for (int64_t size : shape)
    tensor->add_dims(size);
  for (int64_t i = 0; i < countOf(shape); ++i)
    tensor->add_float_data(number());
  return value;
}

std::string Generator::integers(const std::vector<int64_t> &data) {
  auto *tensor = graph().add_initializer();
  tensor->set_name("i" + std::to_string(next++));
  tensor->set_data_type(proto::TensorProto::INT64);
  tensor->add_dims(static_cast<int64_t>(data.size()));
  for (int64_t value : data)
    tensor->add_int64_data(value);
  return tensor->name();
}

proto::NodeProto &Generator::node(const std::string &op, const std::vector<std::string> &inputs,
                                  const Shape &shape) {
  proto::NodeProto *n = graph().add_node();
  n->set_op_type(op);
  for (const std::string &input : inputs)
    n->add_input(input);
  values.push_back({"v" + std::to_string(next++), shape});
  n->add_output(values.back().name);
  result.operators.push_back(op);
  return *n;
}

void Generator::setInt(proto::NodeProto &n, const std::string &name, int64_t value) {
  auto *attribute = n.add_attribute();
  attribute->set_name(name);
  attribute->set_type(proto::AttributeProto::INT);
  attribute->set_i(value);
}

void Generator::setInts(proto::NodeProto &n, const std::string &name, const std::vector<int64_t> &values) {
  auto *attribute = n.add_attribute();
  attribute->set_name(name);
  attribute->set_type(proto::AttributeProto::INTS);
  for (int64_t value : values)
    attribute->add_ints(value);
}

void Generator::setString(proto::NodeProto &n, const std::string &name, const std::string &value) {
  auto *attribute = n.add_attribute();
  attribute->set_name(name);
  attribute->set_type(proto::AttributeProto::STRING);
  attribute->set_s(value);
}

bool Generator::unary() {
  static const char *const kOps[] = {"Tanh", "Sigmoid", "Relu", "Softplus", "Sin",       "Cos",
                                     "Erf",  "Abs",     "Neg",  "Elu",      "Gelu",      "Softsign",
                                     "Mish", "Selu",    "Celu", "Atan",     "HardSwish", "LeakyRelu"};
  Value x = pick();
  node(kOps[below(std::size(kOps))], {x.name}, x.shape);
  return true;
}

/// Functions with a pole or a range, behind one that keeps away from it.
bool Generator::guarded() {
  Value x = pick();
  node("Sigmoid", {x.name}, x.shape); // in (0, 1)
  static const char *const kOps[] = {"Log", "Sqrt", "Reciprocal", "Exp", "Asin", "Acos", "Atanh", "Tan"};
  int64_t which = below(std::size(kOps));
  node(kOps[which], {values.back().name}, x.shape);
  return true;
}

bool Generator::binary() {
  Value a = pick();
  Shape shape = a.shape;
  for (int64_t &size : shape)
    if (below(4) == 0)
      size = 1; // broadcast
  if (!shape.empty() && below(3) == 0)
    shape.erase(shape.begin());
  static const char *const kOps[] = {"Add", "Sub", "Mul", "Max", "Min"};
  Value b = weight(shape);
  const char *op = kOps[below(std::size(kOps))];
  below(2) ? node(op, {a.name, b.name}, a.shape) : node(op, {b.name, a.name}, a.shape);
  return true;
}

/// Two values of one shape, or one value twice.
bool Generator::product() {
  Value a = pick();
  for (const Value &b : values)
    if (b.shape == a.shape && below(2)) {
      node("Mul", {a.name, b.name}, a.shape);
      return true;
    }
  node("Mul", {a.name, a.name}, a.shape);
  return true;
}

bool Generator::linear() {
  Value x = pick();
  if (x.rank() < 1)
    return false;
  int64_t features = 1 + below(4);
  Shape shape = x.shape;
  shape.back() = features;
  if (x.rank() == 2 && below(2)) {
    Value w = weight({features, x.shape[1]}), b = weight({features});
    setInt(node("Gemm", {x.name, w.name, b.name}, shape), "transB", 1);
    return true;
  }
  node("MatMul", {x.name, weight({x.shape.back(), features}).name}, shape);
  return true;
}

bool Generator::reduce() {
  Value x = pick();
  if (x.rank() < 2)
    return false;
  static const char *const kOps[] = {"ReduceSum",       "ReduceMean",      "ReduceMax", "ReduceMin",
                                     "ReduceLogSumExp", "ReduceSumSquare", "ReduceProd"};
  const char *op = kOps[below(std::size(kOps))];
  int64_t axis = below(x.rank()), keeps = below(2);
  Shape shape = x.shape;
  keeps ? void(shape[axis] = 1) : void(shape.erase(shape.begin() + axis));
  setInt(node(op, {x.name, integers({axis})}, shape), "keepdims", keeps);
  return true;
}

bool Generator::softmax() {
  Value x = pick();
  if (x.rank() < 1)
    return false;
  const char *op = below(2) ? "Softmax" : "LogSoftmax";
  int64_t axis = below(x.rank());
  setInt(node(op, {x.name}, x.shape), "axis", axis);
  return true;
}

bool Generator::normalize() {
  Value x = pick();
  if (x.rank() == 3 && x.shape[2] > 1 && below(2)) {
    Value scale = weight({x.shape[1]}), bias = weight({x.shape[1]});
    node("InstanceNormalization", {x.name, scale.name, bias.name}, x.shape);
    return true;
  }
  if (x.rank() < 1 || x.shape.back() < 3)
    return false;
  Value scale = weight({x.shape.back()}), bias = weight({x.shape.back()});
  node("LayerNormalization", {x.name, scale.name, bias.name}, x.shape);
  return true;
}

bool Generator::transpose() {
  Value x = pick();
  if (x.rank() < 2)
    return false;
  std::vector<int64_t> order;
  for (int64_t i = 0; i < x.rank(); ++i)
    order.insert(order.begin() + below(i + 1), i);
  Shape shape;
  for (int64_t from : order)
    shape.push_back(x.shape[from]);
  setInts(node("Transpose", {x.name}, shape), "perm", order);
  return true;
}

bool Generator::reshape() {
  Value x = pick();
  Shape shape;
  int64_t rest = countOf(x.shape);
  for (int64_t divisor : {2, 3, 4})
    if (rest % divisor == 0 && below(2)) {
      shape.push_back(divisor);
      rest /= divisor;
    }
  shape.push_back(rest);
  node("Reshape", {x.name, integers(shape)}, shape);
  return true;
}

bool Generator::concat() {
  Value x = pick();
  if (x.rank() < 1)
    return false;
  int64_t axis = below(x.rank());
  Shape shape = x.shape;
  shape[axis] = 1 + below(3);
  Value w = weight(shape);
  shape[axis] += x.shape[axis];
  std::vector<std::string> inputs = below(2) ? std::vector{x.name, w.name} : std::vector{w.name, x.name};
  setInt(node("Concat", inputs, shape), "axis", axis);
  return true;
}

bool Generator::slice() {
  Value x = pick();
  if (x.rank() < 1)
    return false;
  int64_t axis = below(x.rank()), size = x.shape[axis];
  if (size < 2)
    return false;
  int64_t step = below(3) - 1;
  if (step == 0)
    step = 2;
  int64_t start = step > 0 ? below(size) : size - 1;
  Shape shape = x.shape;
  shape[axis] = step > 0 ? (size - start + step - 1) / step : size;
  node("Slice",
       {x.name, integers({start}), integers({step > 0 ? size : -size - 1}), integers({axis}),
        integers({step})},
       shape);
  return true;
}

bool Generator::pad() {
  Value x = pick();
  if (x.rank() < 1 || countOf(x.shape) > 64)
    return false;
  int64_t axis = below(x.rank()), kind = below(3);
  std::vector<int64_t> pads(2 * x.rank(), 0);
  pads[axis] = below(2);
  pads[axis + x.rank()] = 1;
  if (kind == 1 && x.shape[axis] < 2)
    kind = 2;
  Shape shape = x.shape;
  shape[axis] += pads[axis] + 1;
  static const char *const kModes[] = {"constant", "reflect", "edge"};
  setString(node("Pad", {x.name, integers(pads)}, shape), "mode", kModes[kind]);
  return true;
}

bool Generator::gather() {
  Value x = pick();
  if (x.rank() < 1)
    return false;
  int64_t axis = below(x.rank()), count = 1 + below(4);
  std::vector<int64_t> indices;
  for (int64_t i = 0; i < count; ++i) {
    int64_t index = below(2 * x.shape[axis]) - x.shape[axis];
    indices.push_back(index);
  }
  Shape shape = x.shape;
  shape[axis] = count;
  setInt(node("Gather", {x.name, integers(indices)}, shape), "axis", axis);
  return true;
}

bool Generator::tile() {
  Value x = pick();
  if (x.rank() < 1 || countOf(x.shape) > 48)
    return false;
  int64_t axis = below(x.rank());
  std::vector<int64_t> repeats(x.rank(), 1);
  repeats[axis] = 2;
  Shape shape = x.shape;
  shape[axis] *= 2;
  node("Tile", {x.name, integers(repeats)}, shape);
  return true;
}

bool Generator::select() {
  Value x = pick(), w = weight(x.shape);
  proto::NodeProto *compare = graph().add_node();
  compare->set_op_type("Less");
  compare->add_input(x.name);
  compare->add_input(weight({}).name);
  compare->add_output("b" + std::to_string(next++));
  node("Where", {compare->output(0), x.name, w.name}, x.shape);
  return true;
}

bool Generator::runningSum() {
  Value x = pick();
  if (x.rank() < 1)
    return false;
  int64_t axis = below(x.rank()), exclusive = below(2), reverse = below(2);
  auto &n = node("CumSum", {x.name, integers({axis})}, x.shape);
  setInt(n, "exclusive", exclusive);
  setInt(n, "reverse", reverse);
  return true;
}

bool Generator::largest() {
  Value x = pick();
  if (x.rank() < 1)
    return false;
  int64_t axis = below(x.rank()), count = 1 + below(x.shape[axis]), from = below(2);
  Shape shape = x.shape;
  shape[axis] = count;
  auto &n = node("TopK", {x.name, integers({count})}, shape);
  n.add_output("k" + std::to_string(next++));
  setInt(n, "axis", axis);
  setInt(n, "largest", from);
  return true;
}

bool Generator::convolve() {
  Value x = pick();
  if (x.rank() < 3 || x.rank() > 4)
    return false;
  int64_t features = 1 + below(3), stride = 1 + below(2), padding = below(2), spatial = x.rank() - 2;
  Shape filter{features, x.shape[1]}, shape{x.shape[0], features};
  std::vector<int64_t> window, strides(spatial, stride), pads(2 * spatial, padding);
  for (int64_t i = 0; i < spatial; ++i) {
    window.push_back(std::min<int64_t>(x.shape[2 + i] + 2 * padding, 1 + below(3)));
    filter.push_back(window.back());
    shape.push_back((x.shape[2 + i] + 2 * padding - window.back()) / stride + 1);
  }
  Value w = weight(filter), b = weight({features});
  auto &n = node("Conv", {x.name, w.name, b.name}, shape);
  setInts(n, "kernel_shape", window);
  setInts(n, "strides", strides);
  setInts(n, "pads", pads);
  return true;
}

bool Generator::pool() {
  Value x = pick();
  if (x.rank() < 3 || x.rank() > 4)
    return false;
  const char *op = below(2) ? "MaxPool" : "AveragePool";
  std::vector<int64_t> window;
  Shape shape{x.shape[0], x.shape[1]};
  for (int64_t i = 2; i < x.rank(); ++i) {
    window.push_back(std::min<int64_t>(x.shape[i], 1 + below(3)));
    shape.push_back(x.shape[i] - window.back() + 1);
  }
  setInts(node(op, {x.name}, shape), "kernel_shape", window);
  return true;
}

bool Generator::recur() {
  Value x = pick();
  if (x.rank() != 3)
    return false;
  static const char *const kOps[] = {"RNN", "GRU", "LSTM"};
  static const int64_t kGates[] = {1, 3, 4};
  int64_t which = below(3), hidden = 1 + below(3), directions = 1 + below(2), gates = kGates[which];
  Value w = weight({directions, gates * hidden, x.shape[2]}),
        r = weight({directions, gates * hidden, hidden}), b = weight({directions, 2 * gates * hidden});
  auto &n = node(kOps[which], {x.name, w.name, r.name, b.name}, {x.shape[0], directions, x.shape[1], hidden});
  setInt(n, "hidden_size", hidden);
  setString(n, "direction", directions == 2 ? "bidirectional" : "forward");
  return true;
}

bool Generator::einsum() {
  Value x = pick();
  if (x.rank() != 2 && x.rank() != 3)
    return false;
  int64_t size = 1 + below(3);
  Value w = weight({size, x.shape.back()});
  Shape shape = x.shape;
  shape.back() = size;
  std::swap(shape.front(), shape.back());
  setString(node("Einsum", {x.name, w.name}, shape), "equation", x.rank() == 2 ? "ij,kj->ki" : "ijk,lk->lji");
  return true;
}

bool Generator::scatter() {
  Value x = pick();
  if (x.rank() < 1 || countOf(x.shape) > 64)
    return false;
  Value updates = weight(x.shape);
  // Every element moves along the first axis; several may meet.
  auto *tensor = graph().add_initializer();
  tensor->set_name("i" + std::to_string(next++));
  tensor->set_data_type(proto::TensorProto::INT64);
  for (int64_t size : x.shape)
    tensor->add_dims(size);
  for (int64_t i = 0; i < countOf(x.shape); ++i)
    tensor->add_int64_data(below(x.shape[0]));
  std::string indices = tensor->name();
  setString(node("ScatterElements", {x.name, indices, updates.name}, x.shape), "reduction",
            below(2) ? "add" : "mul");
  return true;
}

bool Generator::resize() {
  Value x = pick();
  if (x.rank() != 3 || countOf(x.shape) > 48)
    return false;
  Shape shape = x.shape;
  shape[2] = 1 + below(6);
  static const char *const kModes[] = {"linear", "nearest", "cubic"};
  const char *mode = kModes[below(3)];
  setString(node("Resize", {x.name, "", "", integers(shape)}, shape), "mode", mode);
  return true;
}

RandomModel Generator::run() {
  static const Maker kMakers[] = {
      &Generator::unary,     &Generator::unary,    &Generator::guarded,   &Generator::binary,
      &Generator::binary,    &Generator::product,  &Generator::linear,    &Generator::linear,
      &Generator::reduce,    &Generator::softmax,  &Generator::normalize, &Generator::reshape,
      &Generator::transpose, &Generator::concat,   &Generator::slice,     &Generator::pad,
      &Generator::gather,    &Generator::tile,     &Generator::select,    &Generator::runningSum,
      &Generator::largest,   &Generator::convolve, &Generator::convolve,  &Generator::pool,
      &Generator::recur,     &Generator::recur,    &Generator::einsum,    &Generator::scatter,
      &Generator::resize,
  };
  int64_t rank = 1 + below(4);
  values.push_back(feed(shapeOf(rank)));
  int64_t wanted = 3 + below(10);
  for (int64_t made = 0; made < wanted;)
    made += (this->*kMakers[below(std::size(kMakers))])();
  binary(); // there is always a weight, and the result depends on it

  auto *output = graph().add_output();
  output->set_name(values.back().name);
  output->mutable_type()->mutable_tensor_type()->set_elem_type(proto::TensorProto::FLOAT);
  RandomModel::Array label{values.back().shape, {}};
  for (int64_t i = 0; i < countOf(label.shape); ++i)
    label.data.push_back(number());
  result.feeds["label"] = label;
  return std::move(result);
}

} // namespace

RandomModel generateModel(unsigned seed) { return Generator(seed).run(); }

} // namespace ortc::test
