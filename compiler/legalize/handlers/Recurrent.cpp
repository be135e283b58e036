// RNN, GRU and LSTM.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// What the input contributes to the gates is one product over all steps, in front of the loop; only the
// state's product is inside. Each direction is a loop of its own. Beyond its length a sequence keeps its
// state and gives 0.
#include "compiler/legalize/Formulas.h"
#include "compiler/legalize/Node.h"
#include "dialects/nn/ScanBuilder.h"
#include "support/Plural.h"

using namespace mlir;

namespace ortc::legalize::handlers {
namespace {

/// The functions that a recurrent layer may name, with the defaults of their operators.
struct ActivationKind {
  StringRef name;
  bool takesAlpha, takesBeta;
  double alpha, beta;
  Value (*apply)(TensorBuilder &, Value, double, double);
};

const ActivationKind kActivations[] = {
    {"sigmoid", false, false, 0, 0, [](TensorBuilder &b, Value x, double, double) { return sigmoid(b, x); }},
    {"tanh", false, false, 0, 0, [](TensorBuilder &b, Value x, double, double) { return b.tanh(x); }},
    {"relu", false, false, 0, 0, [](TensorBuilder &b, Value x, double, double) { return relu(b, x); }},
    {"softplus", false, false, 0, 0,
     [](TensorBuilder &b, Value x, double, double) { return softplus(b, x); }},
    {"softsign", false, false, 0, 0,
     [](TensorBuilder &b, Value x, double, double) { return softsign(b, x); }},
    {"leakyrelu", true, false, 0.01, 0,
     [](TensorBuilder &b, Value x, double alpha, double) { return leakyRelu(b, x, alpha); }},
    {"elu", true, false, 1, 0,
     [](TensorBuilder &b, Value x, double alpha, double) { return elu(b, x, alpha); }},
    {"thresholdedrelu", true, false, 1, 0,
     [](TensorBuilder &b, Value x, double alpha, double) { return thresholdedRelu(b, x, alpha); }},
    {"hardsigmoid", true, true, 0.2, 0.5,
     [](TensorBuilder &b, Value x, double alpha, double beta) { return hardSigmoid(b, x, alpha, beta); }},
    {"affine", true, true, 1, 0,
     [](TensorBuilder &b, Value x, double alpha, double beta) {
       return b.addScalar(b.mulScalar(x, alpha), beta);
     }},
    {"scaledtanh", true, true, 1, 1,
     [](TensorBuilder &b, Value x, double alpha, double beta) {
       return b.mulScalar(b.tanh(b.mulScalar(x, beta)), alpha);
     }},
};

struct Activation {
  const ActivationKind *kind;
  double alpha, beta;
};

/// One direction of a layer: its weights, what it starts from, and its functions.
struct Direction {
  bool reverse;
  Value input;      ///< the input's part of the gates, biases in: [steps, batch, gates * hidden]
  Value recurrence; ///< [gates * hidden, hidden]
  Value
      candidateBias; ///< GRU with linear_before_reset: the recurrent bias of the candidate, [hidden]; else null
  Value peepholes;   ///< LSTM: [3 * hidden] or null
  Value hidden, cell; ///< initial states [batch, hidden]; cell null unless LSTM
  ArrayRef<Activation> activations;
};

/// What one direction gives: all hidden states (0 beyond the lengths), the last hidden state and the last cell state.
struct Result {
  Value all, hidden, cell;
};

class Layer {
public:
  using Step = Result (Layer::*)(const Direction &direction, Value input, Value hidden, Value cell,
                                 Value recurrence, Value bias, Value peepholes);
  /// One operator.
  struct Kind {
    int64_t gates;      ///< with the candidate
    size_t activations; ///< of one direction
    bool hasReset, hasCell;
    /// The next states, by the equations of the standard; `input` is the input's part of the gates.
    Step step;
  };
  static const Kind kRnn, kGru, kLstm;

  Layer(Node &n, const Kind &kind) : n(n), b(n.b), kind(kind) {}

  LogicalResult run();

private:
  LogicalResult readShapes();
  LogicalResult readActivations(int64_t directions);
  Direction readDirection(int64_t index, bool reverse);
  Result runDirection(const Direction &direction);
  Result stepRnn(const Direction &direction, Value input, Value hidden, Value cell, Value recurrence,
                 Value bias, Value peepholes);
  Result stepGru(const Direction &direction, Value input, Value hidden, Value cell, Value recurrence,
                 Value bias, Value peepholes);
  Result stepLstm(const Direction &direction, Value input, Value hidden, Value cell, Value recurrence,
                  Value bias, Value peepholes);
  /// Operand i for one direction, without the dimension of directions; null when absent.
  Value part(unsigned i, int64_t direction);
  Value activate(const Direction &direction, unsigned which, Value x);
  Value gate(Value gates, int64_t index) { return b.sliceAxis(gates, 1, index * hiddenSize, hiddenSize); }
  Value product(Value hidden, Value recurrence) { return b.dot(hidden, recurrence, {}, {}, {1}, {1}); }
  Value row(Value vector) { return b.broadcastTo(vector, {batch, hiddenSize}); }

  Node &n;
  TensorBuilder &b;
  const Kind &kind;
  int64_t steps = 0, batch = 0, inputSize = 0, hiddenSize = 0;
  double clipAt = 0; ///< 0: none
  bool batchFirst = false, linearBeforeReset = false, inputForget = false;
  SmallVector<Activation> activations;
  Value inputs; ///< the input as [steps, batch, input]
  Value valid;  ///< [steps, batch] of booleans: inside the sequence; null when all are
};

LogicalResult Layer::readShapes() {
  if (!n.isFloat(0))
    return n.refuse("an input that is not floating-point");
  if (failed(n.sameElements({0, 1, 2, 3, 5, 6, 7})))
    return failure();
  batchFirst = n.getInt("layout", 0) != 0;
  linearBeforeReset = kind.hasReset && n.getInt("linear_before_reset", 0) != 0;
  inputForget = n.getInt("input_forget", 0) != 0;
  clipAt = n.getFloat("clip", 0);
  if (n.rank(0) != 3 || n.rank(1) != 3 || n.rank(2) != 3)
    return n.refuse("input, weights and recurrence weights must have 3 dimensions");
  inputs = batchFirst ? b.transpose(n[0], {1, 0, 2}) : n[0];
  Ints shape = TensorBuilder::shapeOf(inputs);
  steps = shape[0], batch = shape[1], inputSize = shape[2];
  hiddenSize = n.shape(2)[2];
  int64_t directions = n.shape(1)[0];
  StringRef direction = n.getString("direction", "forward");
  if (direction != "forward" && direction != "reverse" && direction != "bidirectional")
    return n.refuse("direction '" + direction + "'");
  if (directions != (direction == "bidirectional" ? 2 : 1))
    return n.refuse("weights for " + Twine(directions) + " directions, but direction is '" + direction + "'");
  if (n.hasAttribute("hidden_size") && n.getInt("hidden_size", 0) != hiddenSize)
    return n.refuse("hidden_size is " + Twine(n.getInt("hidden_size", 0)) + ", the recurrence weights have " +
                    Twine(hiddenSize));
  if (steps < 1 || batch < 1 || hiddenSize < 1)
    return n.refuse("an empty input or state");
  auto wrong = [&](unsigned i, StringRef what, Shape wanted) {
    bool isWrong = n.has(i) && n.shape(i) != Ints(wanted);
    if (isWrong)
      (void)n.refuse(what + " has shape " + shapeText(n.shape(i)) + ", not " + shapeText(wanted) +
                     (i == 6 && n.rank(i) == 3 && n.shape(i).back() != wanted.back()
                          ? ", as that of an LSTM with projections (PyTorch's proj_size), which "
                            "ONNX does not have; use the layer without"
                          : ""));
    return isWrong;
  };
  Shape state = batchFirst ? Shape{batch, directions, hiddenSize} : Shape{directions, batch, hiddenSize};
  bool isWrong =
      wrong(1, "W", {directions, kind.gates * hiddenSize, inputSize}) ||
      wrong(2, "R", {directions, kind.gates * hiddenSize, hiddenSize}) ||
      wrong(3, "B", {directions, 2 * kind.gates * hiddenSize}) || wrong(4, "sequence_lens", {batch}) ||
      wrong(5, "initial_h", state) ||
      (kind.hasCell && (wrong(6, "initial_c", state) || wrong(7, "P", {directions, 3 * hiddenSize})));
  return failure(isWrong);
}

LogicalResult Layer::readActivations(int64_t directions) {
  SmallVector<StringRef> names;
  if (auto list = dyn_cast_or_null<ArrayAttr>(n.op.getOnnxAttr("activations")))
    for (Attribute name : list)
      names.push_back(cast<StringAttr>(name).getValue());
  const StringRef defaults[3][3] = {{"tanh"}, {"sigmoid", "tanh"}, {"sigmoid", "tanh", "tanh"}};
  size_t each = kind.activations;
  if (names.empty())
    for (int64_t i = 0; i < directions; ++i)
      names.append(defaults[each - 1], defaults[each - 1] + each);
  if (names.size() != each * directions)
    return n.refuse(formatCount(names.size(), "activation") + ", not " + Twine(each * directions));
  ArrayRef<float> alphas = n.op.getFloats("activation_alpha"), betas = n.op.getFloats("activation_beta");
  for (StringRef name : names) {
    const auto *found =
        llvm::find_if(kActivations, [&](const ActivationKind &k) { return name.equals_insensitive(k.name); });
    if (found == std::end(kActivations))
      return n.refuse("activation '" + name + "'");
    Activation activation{found, found->alpha, found->beta};
    auto take = [](ArrayRef<float> &list, bool takes, double &value) {
      if (!takes || list.empty())
        return;
      value = list.front();
      list = list.drop_front();
    };
    take(alphas, found->takesAlpha, activation.alpha);
    take(betas, found->takesBeta, activation.beta);
    activations.push_back(activation);
  }
  return success();
}

Value Layer::part(unsigned i, int64_t direction) {
  if (!n.has(i))
    return {};
  bool isState = i == 5 || i == 6;
  int64_t axis = isState && batchFirst ? 1 : 0;
  Value slice = b.sliceAxis(n[i], axis, direction, 1);
  Shape shape(TensorBuilder::shapeOf(slice));
  shape.erase(shape.begin() + axis);
  return b.reshape(slice, shape);
}

Direction Layer::readDirection(int64_t index, bool reverse) {
  Direction direction;
  direction.reverse = reverse;
  direction.recurrence = part(2, index);
  Value input = b.dot(inputs, part(1, index), {}, {}, {2}, {1});
  if (Value bias = part(3, index)) {
    int64_t width = kind.gates * hiddenSize;
    Value ofInput = b.sliceAxis(bias, 0, 0, width), ofState = b.sliceAxis(bias, 0, width, width);
    if (linearBeforeReset) { // the candidate's own comes in behind the reset gate
      direction.candidateBias = b.sliceAxis(ofState, 0, 2 * hiddenSize, hiddenSize);
      ofState = b.padZeros(b.sliceAxis(ofState, 0, 0, 2 * hiddenSize), {0}, {hiddenSize});
    }
    input = b.add(input, b.broadcastTo(b.add(ofInput, ofState), TensorBuilder::shapeOf(input)));
  }
  direction.input = input;
  auto state = [&](unsigned i) {
    Value given = part(i, index);
    return given ? given : b.constant(RankedTensorType::get({batch, hiddenSize}, n.element(0)), 0);
  };
  direction.hidden = state(5);
  if (kind.hasCell) {
    direction.cell = state(6);
    direction.peepholes = part(7, index);
  }
  direction.activations = ArrayRef(activations).slice(index * kind.activations, kind.activations);
  return direction;
}

Value Layer::activate(const Direction &direction, unsigned which, Value x) {
  if (clipAt > 0)
    x = clip(b, x, b.constantLike(x, -clipAt), b.constantLike(x, clipAt));
  const Activation &activation = direction.activations[which];
  return activation.kind->apply(b, x, activation.alpha, activation.beta);
}

Result Layer::stepRnn(const Direction &direction, Value input, Value hidden, Value, Value recurrence, Value,
                      Value) {
  return {{}, activate(direction, 0, b.add(input, product(hidden, recurrence))), {}};
}

/// The gates are z, r and h.
Result Layer::stepGru(const Direction &direction, Value input, Value hidden, Value, Value recurrence,
                      Value bias, Value) {
  auto rows = [&](int64_t first, int64_t count) {
    return b.sliceAxis(recurrence, 0, first * hiddenSize, count * hiddenSize);
  };
  Value fromState = product(hidden, linearBeforeReset ? recurrence : rows(0, 2));
  Value update = activate(direction, 0, b.add(gate(input, 0), gate(fromState, 0)));
  Value reset = activate(direction, 0, b.add(gate(input, 1), gate(fromState, 1)));
  Value candidate;
  if (linearBeforeReset) {
    candidate = gate(fromState, 2);
    if (bias)
      candidate = b.add(candidate, row(bias));
    candidate = b.mul(reset, candidate);
  } else {
    candidate = product(b.mul(reset, hidden), rows(2, 1));
  }
  candidate = activate(direction, 1, b.add(gate(input, 2), candidate));
  Value one = b.constantLike(update, 1);
  return {{}, b.add(b.mul(b.sub(one, update), candidate), b.mul(update, hidden)), {}};
}

/// The gates are i, o, f and c.
Result Layer::stepLstm(const Direction &direction, Value input, Value hidden, Value cell, Value recurrence,
                       Value, Value peepholes) {
  Value all = b.add(input, product(hidden, recurrence));
  auto peep = [&](Value x, int64_t index, Value state) {
    return peepholes ? b.add(x, b.mul(row(b.sliceAxis(peepholes, 0, index * hiddenSize, hiddenSize)), state))
                     : x;
  };
  Value in = activate(direction, 0, peep(gate(all, 0), 0, cell));
  Value forget =
      inputForget ? b.sub(b.constantLike(in, 1), in) : activate(direction, 0, peep(gate(all, 2), 2, cell));
  Value candidate = activate(direction, 1, gate(all, 3));
  Value next = b.add(b.mul(forget, cell), b.mul(in, candidate));
  Value out = activate(direction, 0, peep(gate(all, 1), 1, next));
  // clip bounds what enters the gates' functions, not the state on its way out.
  const Activation &last = direction.activations[2];
  return {{}, b.mul(out, last.kind->apply(b, next, last.alpha, last.beta)), next};
}

const Layer::Kind Layer::kRnn{1, 1, false, false, &Layer::stepRnn};
const Layer::Kind Layer::kGru{3, 2, true, false, &Layer::stepGru};
const Layer::Kind Layer::kLstm{4, 3, false, true, &Layer::stepLstm};

Result Layer::runDirection(const Direction &direction) {
  SmallVector<Value> inits{direction.hidden}, over{direction.input}, with{direction.recurrence};
  if (direction.cell)
    inits.push_back(direction.cell);
  if (valid)
    over.push_back(valid);
  for (Value each : {direction.candidateBias, direction.peepholes})
    if (each)
      with.push_back(each);
  auto results =
      nn::buildScan(b, steps, direction.reverse, inits, over, with, [&](const nn::ScanArguments &now) {
        Value hidden = now.carried[0], cell = direction.cell ? now.carried[1] : Value();
        Value bias = direction.candidateBias ? now.invariants[1] : Value();
        Value peepholes = direction.peepholes ? now.invariants.back() : Value();
        Result next =
            (this->*kind.step)(direction, now.slices[0], hidden, cell, now.invariants[0], bias, peepholes);
        Value item = next.hidden;
        if (valid) {
          Value keep = b.broadcast(now.slices[1], {batch, hiddenSize}, {0});
          item = b.select(keep, next.hidden, b.zerosLike(next.hidden));
          next.hidden = b.select(keep, next.hidden, hidden);
          if (cell)
            next.cell = b.select(keep, next.cell, cell);
        }
        return cell ? SmallVector<Value>{next.hidden, next.cell, item}
                    : SmallVector<Value>{next.hidden, item};
      });
  return {results.back(), results[0], direction.cell ? Value(results[1]) : Value()};
}

LogicalResult Layer::run() {
  if (failed(readShapes()))
    return failure();
  StringRef name = n.getString("direction", "forward");
  int64_t directions = name == "bidirectional" ? 2 : 1;
  if (failed(readActivations(directions)))
    return failure();
  if (n.has(4)) {
    // A longer length than the input has means all of it, as in the standard's reference.
    Value lengths = b.cast(n[4], b.getI64Type());
    Value position = b.iota(RankedTensorType::get({steps, batch}, b.getI64Type()), 0);
    valid = b.compare(arith::CmpIPredicate::slt, position, b.broadcastTo(lengths, {steps, batch}));
  }
  SmallVector<Value> all, hidden, cell;
  for (int64_t i = 0; i < directions; ++i) {
    Result result = runDirection(readDirection(i, name == "reverse" || i == 1));
    auto state = [&](Value value) {
      return b.reshape(value, batchFirst ? Shape{batch, 1, hiddenSize} : Shape{1, batch, hiddenSize});
    };
    all.push_back(b.reshape(result.all, {steps, 1, batch, hiddenSize}));
    hidden.push_back(state(result.hidden));
    if (result.cell)
      cell.push_back(state(result.cell));
  }
  Value sequence = directions == 2 ? b.concat(all, 1) : all[0];
  auto states = [&](ArrayRef<Value> values) {
    return directions == 2 ? b.concat(values, batchFirst ? 1 : 0) : values[0];
  };
  SmallVector<Value> results{batchFirst ? b.transpose(sequence, {2, 0, 1, 3}) : sequence, states(hidden)};
  if (!cell.empty())
    results.push_back(states(cell));
  results.resize(std::min<size_t>(results.size(), n.op.getNumResults()));
  return n.yield(results);
}

} // namespace

LogicalResult rnn(Node &n) { return Layer(n, Layer::kRnn).run(); }
LogicalResult gru(Node &n) { return Layer(n, Layer::kGru).run(); }
LogicalResult lstm(Node &n) { return Layer(n, Layer::kLstm).run(); }

} // namespace ortc::legalize::handlers
