// The gradients of an artifact against differences of its own loss.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "engine/session/gradient_check.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <tuple>

#include "support/Printable.h"
#include "support/Random.h"
#include "support/Text.h"

namespace ortc::engine {
namespace {

/// A trained tensor with its values and its gradient.
struct Parameter {
  std::string name;
  Shape shape;
  std::vector<double> values, gradient;
};

class Checker {
public:
  Checker(Session &session, const Artifact &artifact, const Entry &entry, const GradientCheckOptions &options)
      : session(session), artifact(artifact), entry(entry), options(options) {}

  Status run(std::vector<TensorCheck> &results);

private:
  Status load();
  Status write(const Parameter &parameter, const std::vector<double> &values);
  /// The loss with `parameter` moved; not a number after a failure, which `problem` then has.
  double lossAt(const Parameter &parameter, const std::vector<double> &direction, double step);
  Status probe(const Parameter &parameter, const std::vector<double> &direction, double step,
               const std::string &where, TensorCheck &result);
  Status check(const Parameter &parameter, Random random, TensorCheck &result);

  Session &session;
  const Artifact &artifact;
  const Entry &entry;
  const GradientCheckOptions &options;
  std::vector<Parameter> parameters;
  double loss = 0;
  double smallest = 0; ///< gradients below it are as good as zero
  Status problem;
};

} // namespace

Status Checker::load() {
  ORTC_TRY(session.step(entry, loss));
  if (!std::isfinite(loss))
    return Status::failure("the loss is " + formatNumber(loss) +
                           ", and what is not finite cannot be differentiated; give data the model is made "
                           "for with --data FILE");
  double largest = 0;
  for (uint32_t i = 0; i < artifact.getInfo().tensor_count; ++i) {
    ortc_tensor_info tensor = ORTC_INIT(ortc_tensor_info);
    if (ortc_tensor_get(artifact.getProgram(), i, &tensor) != ORTC_OK || tensor.role != ORTC_ROLE_PARAMETER)
      continue;
    if (static_cast<DataType>(tensor.dtype) != DataType::Float64)
      return Status::failure("'" + std::string(tensor.name) + "' is not float64");
    Parameter &parameter = parameters.emplace_back();
    parameter.name = tensor.name;
    parameter.shape.assign(tensor.dims, tensor.dims + tensor.rank);
    size_t count = size_t(tensor.bytes / sizeof(double));
    parameter.values.resize(count);
    parameter.gradient.resize(count);
    if (ortc_read(session.get(), tensor.name, parameter.values.data(), tensor.bytes) != ORTC_OK ||
        ortc_read_gradient(session.get(), tensor.name, parameter.gradient.data(), tensor.bytes) != ORTC_OK)
      return Status::failure("'" + parameter.name + "': " + ortc_session_message(session.get()));
    double squares = 0;
    for (double value : parameter.gradient)
      squares += value * value;
    largest = std::max(largest, std::sqrt(squares / double(std::max<size_t>(count, 1))));
  }
  smallest = 1e-5 * largest;
  return Status();
}

Status Checker::write(const Parameter &parameter, const std::vector<double> &values) {
  if (ortc_write(session.get(), parameter.name.c_str(), values.data(), values.size() * sizeof(double)) !=
      ORTC_OK)
    return Status::failure("'" + parameter.name + "': " + ortc_session_message(session.get()));
  return Status();
}

double Checker::lossAt(const Parameter &parameter, const std::vector<double> &direction, double step) {
  std::vector<double> moved(parameter.values);
  for (size_t i = 0; i < moved.size(); ++i)
    moved[i] += step * direction[i];
  double result = std::nan("");
  problem = write(parameter, moved);
  if (problem.isOk())
    problem = session.step(entry, result);
  return result;
}

Status Checker::probe(const Parameter &parameter, const std::vector<double> &direction, double step,
                      const std::string &where, TensorCheck &result) {
  double gradient = 0;
  for (size_t i = 0; i < direction.size(); ++i)
    gradient += direction[i] * parameter.gradient[i];
  Status failed;
  auto f = [&](double h) {
    double value = failed.isOk() ? lossAt(parameter, direction, h) : std::nan("");
    if (failed.isOk())
      failed = problem;
    return value;
  };
  Difference difference = compareDerivative(f, loss, gradient, {options.tolerance, smallest, step});
  ORTC_TRY(failed);
  ++result.probes;
  result.kinks += difference.isKink;
  result.isGood &= difference.isGood;
  if (!difference.isKink && (difference.error > result.worst || result.where.empty())) {
    result.worst = difference.error;
    result.where = where;
    result.gradient = gradient;
    result.numeric = difference.numeric;
  }
  return Status();
}

/// "[3, 0]".
static std::string formatIndex(size_t flat, const Shape &shape) {
  std::string text;
  for (size_t i = shape.size(); i-- > 0; flat /= size_t(shape[i]))
    text = std::to_string(flat % size_t(shape[i])) + (text.empty() ? "" : ", ") + text;
  return "[" + text + "]";
}

Status Checker::check(const Parameter &parameter, Random random, TensorCheck &result) {
  size_t count = parameter.values.size();
  result.name = parameter.name;
  result.elements = int64_t(count);
  if (count == 0)
    return Status();
  double squares = 0, gradientSquares = 0;
  for (size_t i = 0; i < count; ++i) {
    squares += parameter.values[i] * parameter.values[i];
    gradientSquares += parameter.gradient[i] * parameter.gradient[i];
  }
  double norm = std::sqrt(squares), step = 1e-4 * std::max(norm, 0.1);
  std::vector<double> direction(count);
  for (int64_t k = 0; k < options.directions && count > 1; ++k) {
    // The first is random; the others lean towards the gradient, where errors in the large elements show best.
    double length = 0, lean = k && gradientSquares > 0 ? 1 / std::sqrt(gradientSquares) : 0;
    for (size_t i = 0; i < count; ++i) {
      direction[i] = random.normal() / std::sqrt(double(count)) + lean * parameter.gradient[i];
      length += direction[i] * direction[i];
    }
    for (double &value : direction)
      value /= std::sqrt(length);
    ORTC_TRY(probe(parameter, direction, step, "direction " + std::to_string(k + 1), result));
  }
  auto size = [](double value) { return std::fabs(value); };
  auto largest = std::max_element(parameter.gradient.begin(), parameter.gradient.end(),
                                  [&](double a, double b) { return size(a) < size(b); });
  for (int64_t k = 0; k < options.weights && (k == 0 || size_t(k) < count); ++k) {
    size_t index =
        k == 0 ? size_t(largest - parameter.gradient.begin()) : size_t(random.below(int64_t(count)));
    std::fill(direction.begin(), direction.end(), 0.0);
    direction[index] = 1;
    ORTC_TRY(probe(parameter, direction, 1e-4 * std::max(1.0, size(parameter.values[index])),
                   formatIndex(index, parameter.shape), result));
  }
  return write(parameter, parameter.values);
}

Status Checker::run(std::vector<TensorCheck> &results) {
  ORTC_TRY(load());
  for (size_t i = 0; i < parameters.size(); ++i)
    ORTC_TRY(
        check(parameters[i], Random(options.seed + 0x632be59bd9b4e019u * (i + 1)), results.emplace_back()));
  return Status();
}

Status checkGradients(Session &session, const Artifact &artifact, const Entry &entry,
                      const GradientCheckOptions &options, std::vector<TensorCheck> &results) {
  results.clear();
  return Checker(session, artifact, entry, options).run(results);
}

/// Stores a number as an element of `type`.
static void store(DataType type, double value, uint8_t *to) {
  auto put = [&](auto number) { std::memcpy(to, &number, sizeof(number)); };
  switch (type) {
  case DataType::Float64:
    return put(value);
  case DataType::Float32:
    return put(float(value));
  default: // integers are small and little-endian: the low bytes of any width
    auto whole = int64_t(value);
    std::memcpy(to, &whole, getElementBytes(type));
  }
}

Status fillInputs(Session &session, const Entry &entry, const std::map<std::string, InputRange> &ranges,
                  uint64_t seed) {
  for (size_t i = 0; i < entry.inputs.size(); ++i) {
    const InputSpec &input = entry.inputs[i];
    Random random(seed ^ 0xd1b54a32d192ed03u * (i + 1));
    uint8_t *data = nullptr;
    ORTC_TRY(session.getBuffer(entry, input.name, data));
    int64_t count = 0;
    (void)countElements(input.shape, count);
    bool isFloat = input.type == DataType::Float64 || input.type == DataType::Float32;
    if (input.type == DataType::Float16 || input.type == DataType::BFloat16)
      return Status::failure("input '" + input.name +
                             "' is stored in 16 bits, although everything is float64");
    auto found = ranges.find(input.name);
    InputRange range = found == ranges.end() ? InputRange() : found->second;
    for (int64_t k = 0; k < count; ++k) {
      double value = isFloat                  ? (input.isLabel ? random.uniform() : random.normal())
                     : range.low < range.high ? double(range.low + random.below(range.high - range.low))
                                              : 1;
      store(input.type, value, data + size_t(k) * getElementBytes(input.type));
    }
  }
  return Status();
}

std::string formatChecks(std::vector<TensorCheck> results, double tolerance) {
  for (TensorCheck &check : results)
    check.name = makePrintable(check.name);
  std::sort(results.begin(), results.end(), [](const TensorCheck &a, const TensorCheck &b) {
    return std::tuple(a.isGood, -a.worst, a.name) < std::tuple(b.isGood, -b.worst, b.name);
  });
  constexpr size_t kShown = 16;
  size_t wrong = size_t(
      std::count_if(results.begin(), results.end(), [](const TensorCheck &check) { return !check.isGood; }));
  size_t shown = std::min(results.size(), std::max(kShown, wrong));
  size_t width = 6;
  for (size_t i = 0; i < shown; ++i)
    width = std::max(width, results[i].name.size());
  auto pad = [](std::string text, size_t to) {
    return text.size() < to ? text + std::string(to - text.size(), ' ') : text;
  };
  std::string text =
      pad("tensor", width) + "  elements  kinks  worst error  at              gradient      difference\n";
  for (size_t i = 0; i < shown; ++i) {
    const TensorCheck &check = results[i];
    std::string line =
        pad(check.name, width) + "  " + pad(std::to_string(check.elements), 8) + "  " +
        pad(check.kinks ? std::to_string(check.kinks) : "", 5) + "  " +
        pad(check.where.empty() ? "" : formatShort(check.worst, 2), 11) + "  " + pad(check.where, 14) + "  " +
        pad(check.where.empty() ? "" : formatShort(check.gradient, 6), 12) + "  " +
        (check.where.empty() ? "" : formatShort(check.numeric, 6)) + (check.isGood ? "" : "  WRONG");
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  if (shown < results.size())
    text += "... and " + formatCount(int64_t(results.size() - shown), "tensor") + " with smaller errors\n";
  int64_t probes = 0, kinks = 0;
  double worst = 0;
  for (const TensorCheck &check : results) {
    probes += check.probes;
    kinks += check.kinks;
    worst = std::max(worst, check.worst);
  }
  return text + (wrong ? std::to_string(wrong) + " of " : "") +
         formatCount(int64_t(results.size()), "tensor") + (wrong ? " wrong" : " right") + ": " +
         formatCount(probes, "difference") + ", " + formatCount(kinks, "kink") + ", worst relative error " +
         formatShort(worst, 2) + ", tolerance " + formatShort(tolerance, 2) + "\n";
}

} // namespace ortc::engine
