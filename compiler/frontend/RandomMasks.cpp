// Dropout that a graph writes as its formula.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Every value gets a form: a number, a drawn uniform number, or a x + b with one pair of numbers where the draw is
// below a threshold and another elsewhere. Elementwise operators compute with forms; for what is none, x is the value
// itself. Then each draw is followed to what uses it: all of that has to end in dropout, and keep where the others do.
#include "compiler/frontend/RandomMasks.h"

#include "compiler/frontend/GraphEdits.h"
#include "compiler/frontend/Model.h"
#include "compiler/frontend/OwnOperators.h"

#include <algorithm>
#include <cmath>

namespace ortc::frontend {

namespace {

/// a x + b.
struct Linear {
  double a = 0, b = 0;

  bool isNumber() const { return a == 0; }
};

struct Form {
  int draw = -1;        ///< the node; -1: none
  double threshold = 0; ///< `below` is where the drawn number of [0, 1) is below it
  int base = -1;        ///< the value x; -1: none
  Linear below, above;
  bool isUniform = false; ///< below.b + (above.b - below.b) times the drawn number
  bool isInteger = false;
  const proto::NodeProto *cast = nullptr; ///< a cast behind x, or what detaches it

  static Form number(double value, bool isInteger) {
    return {.below = {0, value}, .above = {0, value}, .isInteger = isInteger};
  }
  static Form of(int value) { return {.base = value, .below = {1, 0}, .above = {1, 0}}; }
  bool isNumber() const { return draw < 0 && base < 0; }
  bool isMask() const { return draw >= 0 && base < 0 && !isUniform; }
  bool isMasked() const { return draw >= 0 && base >= 0; }
};

using Operands = std::vector<Linear>;
using Function = std::optional<Linear> (*)(const Operands &);

/// The use of a value that depends on a draw.
enum class Fate {
  other,    ///< something is made of it that is no dropout
  scaled,   ///< it is dropout
  goesOn,   ///< all that is made of it ends in dropout with a scale
  unscaled, ///< it is dropout without a scale, or all that is made of it ends in dropout, some without
};

class Finder {
public:
  Finder(const ValueGraph &graph, const ReadNumber &read) : g(graph), read(read) {}
  RandomMasks find();

private:
  bool is(const ValueGraph::Node &node, std::string_view type) const { return g.isNode(node, type); }
  template <size_t N> bool isOneOf(const ValueGraph::Node &node, const char *const (&types)[N]) const {
    return std::any_of(std::begin(types), std::end(types), [&](const char *type) { return is(node, type); });
  }
  const Form *formOf(const ValueGraph::Node &node, size_t input) const {
    return input < node.inputs.size() && node.inputs[input] >= 0
               ? &forms[static_cast<size_t>(node.inputs[input])]
               : nullptr;
  }
  std::optional<Form> readConstant(const ValueGraph::Node &node) const;
  std::optional<Form> draw(int number) const;
  std::optional<Form> pass(const ValueGraph::Node &node) const;
  std::optional<Form> castForm(const ValueGraph::Node &node, const Form &from) const;
  std::optional<Form> moveUniform(const ValueGraph::Node &node) const;
  std::optional<Form> combine(const ValueGraph::Node &node) const;
  std::optional<Form> combine(const ValueGraph::Node &node, Function function, bool takesMaskedAsBase) const;
  std::optional<Form> evaluate(int number) const;
  void noteScale(int number);

  std::optional<int> findScaledSignal(const Form &form) const;
  /// Live readers that take more than the shape.
  std::vector<ValueGraph::Use> listUses(int value) const;
  int resultOf(const ValueGraph::Use &use, int draw) const;
  void judge(int value);
  bool collect(int value, std::vector<RandomMask> &masks) const;
  bool isSlope(int value) const;

  const ValueGraph &g;
  const ReadNumber &read;
  std::vector<Form> forms; ///< of the values
  /// Values that are dropout with its scale, and what they are of. To readers they are values like others.
  std::unordered_map<int, std::pair<Form, int>> dropouts;
  /// Values that are another one times a number: which, and the number.
  std::unordered_map<int, std::pair<int, double>> scales;
  std::vector<bool> live;
  std::vector<Fate> fates; ///< of the values
};

} // namespace

static bool isFloat(int64_t type) {
  using proto::TensorProto;
  return type == TensorProto::FLOAT || type == TensorProto::DOUBLE || type == TensorProto::FLOAT16 ||
         type == TensorProto::BFLOAT16;
}

/// Whether a cast to the type cuts off what is behind the point.
static bool isWhole(int64_t type) { return type != 0 && !isFloat(type) && type != proto::TensorProto::BOOL; }

static const char *const kDraws[] = {"RandomUniform", "RandomUniformLike", "Bernoulli",
                                     "RandomNormal",  "RandomNormalLike",  "Multinomial"};

//===----------------------------------------------------------------------===//
// Operators
//===----------------------------------------------------------------------===//

static std::optional<Linear> numbersOnly(const Operands &x, double (*function)(double, double)) {
  if (!std::all_of(x.begin(), x.end(), [](const Linear &each) { return each.isNumber(); }))
    return std::nullopt;
  return Linear{0, function(x[0].b, x.size() > 1 ? x[1].b : 0)};
}

/// The operators that compute with forms, and how.
static Function findFunction(std::string_view type, size_t operands) {
  struct Row {
    const char *type;
    size_t operands;
    Function function;
  };
#define ORTC_NUMBERS(name, count, expression)                                                                \
  {                                                                                                          \
    name, count, [](const Operands &all) {                                                                   \
      return numbersOnly(all, [](double x, [[maybe_unused]] double y) { return double(expression); });       \
    }                                                                                                        \
  }
  static const Row kRows[] = {
      {"Add", 2, [](const Operands &x) { return std::optional(Linear{x[0].a + x[1].a, x[0].b + x[1].b}); }},
      {"Sub", 2, [](const Operands &x) { return std::optional(Linear{x[0].a - x[1].a, x[0].b - x[1].b}); }},
      {"Neg", 1, [](const Operands &x) { return std::optional(Linear{-x[0].a, -x[0].b}); }},
      {"Mul", 2,
       [](const Operands &x) -> std::optional<Linear> {
         if (!x[0].isNumber() && !x[1].isNumber())
           return std::nullopt;
         return Linear{x[0].a * x[1].b + x[1].a * x[0].b, x[0].b * x[1].b};
       }},
      {"Div", 2,
       [](const Operands &x) -> std::optional<Linear> {
         if (!x[1].isNumber() || x[1].b == 0)
           return std::nullopt;
         return Linear{x[0].a / x[1].b, x[0].b / x[1].b};
       }},
      {"Where", 3,
       [](const Operands &x) -> std::optional<Linear> {
         if (!x[0].isNumber())
           return std::nullopt;
         return x[0].b != 0 ? x[1] : x[2];
       }},
      ORTC_NUMBERS("Not", 1, x == 0),
      ORTC_NUMBERS("And", 2, x != 0 && y != 0),
      ORTC_NUMBERS("Or", 2, x != 0 || y != 0),
      ORTC_NUMBERS("Xor", 2, (x != 0) != (y != 0)),
      ORTC_NUMBERS("Equal", 2, x == y),
      ORTC_NUMBERS("Less", 2, x < y),
      ORTC_NUMBERS("LessOrEqual", 2, x <= y),
      ORTC_NUMBERS("Greater", 2, x > y),
      ORTC_NUMBERS("GreaterOrEqual", 2, x >= y),
      ORTC_NUMBERS("Min", 2, std::min(x, y)),
      ORTC_NUMBERS("Max", 2, std::max(x, y)),
      ORTC_NUMBERS("Pow", 2, std::pow(x, y)),
      ORTC_NUMBERS("Floor", 1, std::floor(x)),
      ORTC_NUMBERS("Ceil", 1, std::ceil(x)),
      ORTC_NUMBERS("Round", 1, std::nearbyint(x)),
      ORTC_NUMBERS("Abs", 1, std::abs(x)),
      ORTC_NUMBERS("Sign", 1, (x > 0) - (x < 0)),
      ORTC_NUMBERS("Relu", 1, std::max(x, 0.0)),
      ORTC_NUMBERS("Sqrt", 1, std::sqrt(x)),
      ORTC_NUMBERS("Exp", 1, std::exp(x)),
      ORTC_NUMBERS("Log", 1, std::log(x)),
      ORTC_NUMBERS("Reciprocal", 1, 1 / x),
  };
#undef ORTC_NUMBERS
  for (const Row &row : kRows)
    if (type == row.type && operands == row.operands)
      return row.function;
  return nullptr;
}

/// A constant of the file, or of a graph in it.
std::optional<Form> Finder::readConstant(const ValueGraph::Node &node) const {
  bool isFill = is(node, "ConstantOfShape");
  if (!isFill && !is(node, "Constant"))
    return std::nullopt;
  for (const auto &attribute : node.proto->attribute()) {
    if (!attribute.ref_attr_name().empty())
      return std::nullopt;
    if (attribute.name() == "value" && attribute.has_t()) {
      std::optional<double> value = read(attribute.t());
      return value ? std::optional(Form::number(*value, !isFloat(attribute.t().data_type()))) : std::nullopt;
    }
    if (attribute.name() == "value_float")
      return Form::number(attribute.f(), false);
    if (attribute.name() == "value_int")
      return Form::number(static_cast<double>(attribute.i()), true);
    if (attribute.name() == "value_floats" && attribute.floats_size() == 1)
      return Form::number(attribute.floats(0), false);
    if (attribute.name() == "value_ints" && attribute.ints_size() == 1)
      return Form::number(static_cast<double>(attribute.ints(0)), true);
  }
  return isFill ? std::optional(Form::number(0, false)) : std::nullopt;
}

/// The draw of a node, where that is one uniform number, or a mask of one known probability.
std::optional<Form> Finder::draw(int number) const {
  const ValueGraph::Node &node = g.getNode(number);
  if (is(node, "Bernoulli")) {
    const Form *probability = formOf(node, 0);
    if (!probability || !probability->isNumber())
      return std::nullopt;
    double p = probability->below.b;
    if (!(p >= 0 && p <= 1))
      return std::nullopt;
    return Form{.draw = number, .threshold = p, .below = {0, 1}, .above = {0, 0}};
  }
  if (!is(node, "RandomUniform") && !is(node, "RandomUniformLike"))
    return std::nullopt;
  double bounds[2] = {0, 1};
  for (const auto &attribute : node.proto->attribute()) {
    bool isHigh = attribute.name() == "high";
    if (!isHigh && attribute.name() != "low")
      continue;
    if (!attribute.ref_attr_name().empty())
      return std::nullopt;
    bounds[isHigh] = attribute.f();
  }
  return Form{.draw = number, .below = {0, bounds[0]}, .above = {0, bounds[1]}, .isUniform = true};
}

/// The type that a Cast names; 0 where nothing tells.
static int64_t typeOf(const proto::NodeProto &cast) { return intOf(cast, "to", 0); }

std::optional<Form> Finder::castForm(const ValueGraph::Node &node, const Form &from) const {
  Form to = from;
  // Nothing tells the type of CastLike: a mask becomes what it multiplies, floating-point.
  int64_t type = is(node, "CastLike") ? int64_t(proto::TensorProto::FLOAT) : typeOf(*node.proto);
  to.isInteger = !isFloat(type);
  if (type == 0 || (to.isInteger && (to.base >= 0 || to.isUniform)))
    return std::nullopt;
  if (to.base >= 0 && to.cast && isOwn(*to.cast, kDetach))
    return std::nullopt;
  if (to.base >= 0)
    to.cast = node.proto;
  for (Linear *each : {&to.below, &to.above})
    if (to.isInteger)
      each->b = type == proto::TensorProto::BOOL ? double(each->b != 0) : std::trunc(each->b);
  return to;
}

/// The form of a node that gives its first operand in another shape, or as another type.
std::optional<Form> Finder::pass(const ValueGraph::Node &node) const {
  static const char *const kCasts[] = {"Cast", "CastLike"};
  static const char *const kViews[] = {"Expand",  "Reshape",   "Unsqueeze", "Squeeze",
                                       "Flatten", "Transpose", "Slice"};
  const Form *from = formOf(node, 0);
  if (!from || node.outputs.size() != 1)
    return std::nullopt;
  if (is(node, "Identity"))
    return *from;
  if (isOwn(*node.proto, kDetach)) {
    Form detached = *from;
    if (from->base >= 0) // x is detached, too, where no mask is drawn
      detached.cast = node.proto;
    return from->base >= 0 && from->cast ? std::nullopt : std::optional(detached);
  }
  if (isOneOf(node, kCasts))
    return castForm(node, *from);
  // A masked value has the places of x no more.
  return isOneOf(node, kViews) && from->base < 0 ? std::optional(*from) : std::nullopt;
}

/// Operators with a uniform number: it stays one, or becomes a mask.
std::optional<Form> Finder::moveUniform(const ValueGraph::Node &node) const {
  const Form *x = formOf(node, 0), *y = formOf(node, 1);
  if (!x || (node.inputs.size() > 1 && !y) || node.inputs.size() > 2)
    return std::nullopt;
  const Form &uniform = x->isUniform ? *x : *y;
  double low = uniform.below.b, high = uniform.above.b;
  auto cut = [&](double at, double below, double above) -> std::optional<Form> {
    if (low == high)
      return std::nullopt;
    double threshold = std::clamp((at - low) / (high - low), 0.0, 1.0);
    if (low > high) // the drawn number is below it where the uniform number is above
      std::swap(below, above);
    return Form{.draw = uniform.draw, .threshold = threshold, .below = {0, below}, .above = {0, above}};
  };
  if (!y) {
    Form moved = uniform;
    if (is(node, "Neg")) {
      std::swap(low, high);
      moved.below.b = -uniform.below.b;
      moved.above.b = -uniform.above.b;
      return moved;
    }
    // A range that spans no more than one whole number has two results.
    double least = std::min(low, high), most = std::max(low, high);
    bool isFloor = is(node, "Floor") || (is(node, "Cast") && least >= 0 && isWhole(typeOf(*node.proto)));
    double shift = isFloor ? 0 : is(node, "Round") ? 0.5 : 1, first = std::floor(least + shift);
    if ((!isFloor && !is(node, "Round") && !is(node, "Ceil")) || most > first + 2 - shift)
      return std::nullopt;
    return cut(first + 1 - shift, first, first + 1);
  }
  if (!x->isNumber() && !y->isNumber())
    return std::nullopt;
  double number = x->isUniform ? y->below.b : x->below.b;
  bool isLess = is(node, "Less") || is(node, "LessOrEqual"),
       isGreater = is(node, "Greater") || is(node, "GreaterOrEqual");
  if (isLess || isGreater)
    return cut(number, isLess == x->isUniform, isLess != x->isUniform);
  static const char *const kMoves[] = {"Add", "Sub", "Mul", "Div"};
  Function function = isOneOf(node, kMoves) ? findFunction(node.proto->op_type(), 2) : nullptr;
  if (!function || (is(node, "Div") && y->isUniform))
    return std::nullopt;
  auto below = function({x->below, y->below}), above = function({x->above, y->above});
  if (!below || !above)
    return std::nullopt;
  Form moved = uniform;
  moved.below = *below;
  moved.above = *above;
  return moved;
}

std::optional<Form> Finder::combine(const ValueGraph::Node &node, Function function,
                                    bool takesMaskedAsBase) const {
  Form result;
  Operands below, above;
  std::set<int> draws;
  std::vector<Form> operands;
  bool isInteger = true;
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    const Form *each = formOf(node, i);
    if (!each || each->isUniform)
      return std::nullopt;
    operands.push_back(takesMaskedAsBase && each->isMasked() ? Form::of(node.inputs[i]) : *each);
  }
  for (const Form &each : operands) {
    isInteger &= each.isInteger;
    if (each.draw >= 0) {
      if (result.draw >= 0 && (result.draw != each.draw || result.threshold != each.threshold))
        return std::nullopt;
      result.draw = each.draw;
      result.threshold = each.threshold;
    }
    below.push_back(each.below);
    above.push_back(each.above);
  }
  auto atBelow = function(below), atAbove = function(above);
  if (!atBelow || !atAbove)
    return std::nullopt;
  result.below = *atBelow;
  result.above = *atAbove;
  result.isInteger = isInteger;
  if (isInteger && is(node, "Div"))
    for (Linear *each : {&result.below, &result.above})
      each->b = std::trunc(each->b);
  // x is that of the operands that are left in the result.
  for (size_t i = 0; i < operands.size(); ++i) {
    const Form &each = operands[i];
    bool isUsed = each.base >= 0;
    if (is(node, "Where") && i > 0)
      isUsed &= (operands[0].below.b != 0) == (i == 1) || (operands[0].above.b != 0) == (i == 1);
    if (!isUsed)
      continue;
    if (result.base >= 0 && (result.base != each.base || result.cast != each.cast))
      return std::nullopt;
    result.base = each.base;
    result.cast = each.cast;
  }
  if (result.below.isNumber() && result.above.isNumber())
    result.base = -1;
  return result;
}

std::optional<Form> Finder::combine(const ValueGraph::Node &node) const {
  Function function = node.outputs.size() == 1 && canonicalDomain(node.proto->domain()).empty()
                          ? findFunction(node.proto->op_type(), node.inputs.size())
                          : nullptr;
  if (!function || !g.isNode(node, node.proto->op_type()))
    return std::nullopt;
  std::optional<Form> result = combine(node, function, /*takesMaskedAsBase=*/false);
  // A value with a mask is what the next mask multiplies.
  return result ? result : combine(node, function, /*takesMaskedAsBase=*/true);
}

std::optional<Form> Finder::evaluate(int number) const {
  const ValueGraph::Node &node = g.getNode(number);
  if (isOneOf(node, kDraws))
    return draw(number);
  if (auto constant = readConstant(node))
    return constant;
  if (auto passed = pass(node))
    return passed;
  bool hasUniform = false;
  for (size_t i = 0; i < node.inputs.size(); ++i)
    hasUniform |= formOf(node, i) && formOf(node, i)->isUniform;
  return hasUniform ? moveUniform(node) : combine(node);
}

/// Remembers which value a value is, times a number.
void Finder::noteScale(int number) {
  const ValueGraph::Node &node = g.getNode(number);
  bool isMul = is(node, "Mul"), isDiv = is(node, "Div");
  if ((!isMul && !isDiv) || node.inputs.size() != 2)
    return;
  for (size_t i : {0u, 1u}) {
    const Form *factor = formOf(node, 1 - i);
    if (factor && factor->isNumber() && node.inputs[i] >= 0 && (isMul || (i == 0 && factor->below.b != 0)))
      scales[node.outputs[0]] = {node.inputs[i], isMul ? factor->below.b : 1 / factor->below.b};
  }
}

//===----------------------------------------------------------------------===//
// Masks
//===----------------------------------------------------------------------===//

/// Whether it keeps x below the threshold; nullopt where it keeps x everywhere.
static std::optional<bool> keepsBelow(const Form &form) {
  if (form.below.isNumber() == form.above.isNumber())
    return std::nullopt;
  return form.above.isNumber();
}

/// Whether the mask leaves the mean of `factor` times its x, or the distribution.
static bool leavesMean(const Form &form, double factor) {
  std::optional<bool> isBelow = form.isMasked() ? keepsBelow(form) : std::nullopt;
  if (!isBelow)
    return false;
  const Linear &kept = *isBelow ? form.below : form.above, &dropped = *isBelow ? form.above : form.below;
  double q = *isBelow ? form.threshold : 1 - form.threshold;
  // Rounding of a probability to float16 or bfloat16 is below it, and a missing scale is far above.
  double tolerance = std::min(0.01, (1 - q) / 8) + 1e-6;
  if (kept.b == 0 && dropped.b == 0)
    return std::abs(kept.a * factor * q - 1) <= tolerance;
  double mean = q * kept.b + (1 - q) * dropped.b,
         variance = q * (kept.a * kept.a + kept.b * kept.b) + (1 - q) * dropped.b * dropped.b;
  return factor == 1 && std::abs(mean) <= tolerance && std::abs(variance - 1) <= tolerance;
}

/// The value whose mean, or whose distribution, the mask leaves. The scale may stand in front of it, but not be that of
/// another mask.
std::optional<int> Finder::findScaledSignal(const Form &form) const {
  double factor = 1;
  for (int value = form.base;;) {
    if (leavesMean(form, factor))
      return value;
    auto scale = scales.find(value);
    if (scale == scales.end() || form.cast || dropouts.count(value))
      return std::nullopt;
    value = scale->second.first;
    factor *= scale->second.second;
  }
}

std::vector<ValueGraph::Use> Finder::listUses(int value) const {
  static const char *const kOfShapes[] = {"Shape", "Size", "RandomUniformLike", "RandomNormalLike",
                                          "EyeLike"};
  std::vector<ValueGraph::Use> uses = g.getValue(value).uses;
  std::erase_if(uses, [&](const ValueGraph::Use &use) {
    if (use.node < 0)
      return false;
    const ValueGraph::Node &node = g.getNode(use.node);
    return !live[static_cast<size_t>(use.node)] || isOneOf(node, kOfShapes) ||
           (is(node, "CastLike") && use.input == 1);
  });
  return uses;
}

/// The value that the reader gives, if its form is known as what the draw has made of it; else -1.
int Finder::resultOf(const ValueGraph::Use &use, int draw) const {
  if (use.node < 0 || g.getNode(use.node).outputs.size() != 1)
    return -1;
  int result = g.getNode(use.node).outputs[0];
  auto dropout = dropouts.find(result);
  bool isOfDraw = result >= 0 && (dropout == dropouts.end() ? forms[static_cast<size_t>(result)].draw == draw
                                                            : dropout->second.first.draw == draw);
  return isOfDraw ? result : -1;
}

/// Fates of what is made of the value are known.
void Finder::judge(int value) {
  const Form &form = forms[static_cast<size_t>(value)];
  Fate &fate = fates[static_cast<size_t>(value)];
  if (dropouts.count(value)) {
    fate = Fate::scaled;
    return;
  }
  std::vector<ValueGraph::Use> uses = listUses(value);
  fate = form.isMasked() && uses.empty() ? Fate::other : Fate::goesOn;
  for (const ValueGraph::Use &use : uses) {
    int result = resultOf(use, form.draw);
    Fate next = result < 0 ? Fate::other : fates[static_cast<size_t>(result)];
    if (next == Fate::other || (next == Fate::unscaled && fate != Fate::other))
      fate = next;
  }
  if (!form.isMasked() || fate == Fate::goesOn)
    return;
  // Without a scale behind it, the first place is the one.
  std::optional<bool> isBelow = keepsBelow(form);
  fate = Fate::other;
  if (!isBelow)
    return;
  const Linear &kept = *isBelow ? form.below : form.above, &dropped = *isBelow ? form.above : form.below;
  if (kept.a == 1 && kept.b == 0 && dropped.b == 0)
    fate = Fate::unscaled;
}

/// The places where what is made of the draw's `value` is dropout; false where one keeps what another drops.
bool Finder::collect(int value, std::vector<RandomMask> &masks) const {
  std::set<int> seen = {value};
  std::set<bool> keeps;
  std::vector<int> todo = {value};
  while (!todo.empty()) {
    int next = todo.back();
    todo.pop_back();
    Fate fate = fates[static_cast<size_t>(next)];
    bool isScaled = fate == Fate::scaled;
    const Form &form = isScaled ? dropouts.at(next).first : forms[static_cast<size_t>(next)];
    if (form.isMasked() && fate != Fate::goesOn) {
      masks.push_back(
          {g.getValue(next).node, isScaled ? dropouts.at(next).second : form.base, form.cast, isScaled});
      keeps.insert(*keepsBelow(form));
      continue;
    }
    for (const ValueGraph::Use &use : listUses(next))
      if (int result = resultOf(use, form.draw); result >= 0 && seen.insert(result).second)
        todo.push_back(result);
  }
  return keeps.size() <= 1;
}

/// Whether the value is a slope of PRelu and nothing else.
bool Finder::isSlope(int value) const {
  std::vector<ValueGraph::Use> uses = listUses(value);
  return !uses.empty() && std::all_of(uses.begin(), uses.end(), [&](const ValueGraph::Use &use) {
    return use.node >= 0 && use.input == 1 && is(g.getNode(use.node), "PRelu");
  });
}

RandomMasks Finder::find() {
  live = g.findLive();
  forms.resize(static_cast<size_t>(g.countValues()));
  fates.resize(forms.size());
  for (int value = 0; value < g.countValues(); ++value) {
    forms[static_cast<size_t>(value)] = Form::of(value);
    const proto::TensorProto *initializer = g.getValue(value).initializer;
    if (std::optional<double> number = initializer ? read(*initializer) : std::nullopt)
      forms[static_cast<size_t>(value)] = Form::number(*number, !isFloat(initializer->data_type()));
  }
  int count = static_cast<int>(g.getNodes().size());
  for (int n = 0; n < count; ++n) {
    const ValueGraph::Node &node = g.getNode(n);
    if (node.outputs.empty() || node.outputs[0] < 0)
      continue;
    std::optional<Form> form = evaluate(n);
    if (std::optional<int> signal = form && form->isMasked() ? findScaledSignal(*form) : std::nullopt)
      dropouts[node.outputs[0]] = {*form, *signal};
    else if (form && (form->draw >= 0 || form->isNumber()))
      forms[static_cast<size_t>(node.outputs[0])] = *form;
    noteScale(n);
  }
  RandomMasks result;
  for (int n = count; n-- > 0;)
    if (const ValueGraph::Node &node = g.getNode(n);
        !node.outputs.empty() && node.outputs[0] >= 0 &&
        (forms[static_cast<size_t>(node.outputs[0])].draw >= 0 || dropouts.count(node.outputs[0])))
      judge(node.outputs[0]);
  for (int n = 0; n < count; ++n) {
    const ValueGraph::Node &node = g.getNode(n);
    if (!live[static_cast<size_t>(n)] || !isOneOf(node, kDraws) || node.outputs.empty() ||
        node.outputs[0] < 0)
      continue;
    const Form &form = forms[static_cast<size_t>(node.outputs[0])];
    std::vector<RandomMask> masks;
    if (form.draw == n && fates[static_cast<size_t>(node.outputs[0])] != Fate::other &&
        collect(node.outputs[0], masks))
      result.masks.insert(result.masks.end(), masks.begin(), masks.end());
    else if (form.isUniform && isSlope(node.outputs[0]))
      result.slopes.push_back({n, (form.below.b + form.above.b) / 2});
    else
      result.others.push_back(n);
  }
  return result;
}

RandomMasks findRandomMasks(const ValueGraph &graph, const ReadNumber &read) {
  return Finder(graph, read).find();
}

/// Whether one of the nodes, or of those in their graphs, has an operator that draws.
static bool drawsNumbers(const NodeList &nodes) {
  return std::any_of(nodes.begin(), nodes.end(), [](const proto::NodeProto &node) {
    bool isDraw = std::any_of(std::begin(kDraws), std::end(kDraws),
                              [&](const char *type) { return node.op_type() == type; });
    return isDraw || std::any_of(node.attribute().begin(), node.attribute().end(), [](const auto &attribute) {
             return drawsNumbers(attribute.g().node()) ||
                    std::any_of(attribute.graphs().begin(), attribute.graphs().end(),
                                [](const auto &body) { return drawsNumbers(body.node()); });
           });
  });
}

bool drawsNumbers(const proto::ModelProto &model) {
  return drawsNumbers(model.graph().node()) ||
         std::any_of(model.functions().begin(), model.functions().end(),
                     [](const auto &function) { return drawsNumbers(function.node()); });
}

} // namespace ortc::frontend
