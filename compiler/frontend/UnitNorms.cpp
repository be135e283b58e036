// Norms written with a scale that nobody learns.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/frontend/UnitNorms.h"

#include "compiler/frontend/GeneratedNames.h"
#include "compiler/frontend/GraphEdits.h"
#include "compiler/frontend/InitializerGraph.h"
#include "compiler/frontend/InitializerOrigins.h"
#include "support/Lists.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <string_view>
#include <tuple>

namespace ortc::frontend {

namespace {

/// Where a constant of ones or zeros enters a norm: the reader of the initializer, the norm itself or a view before it.
struct Slot {
  int node, input;
  std::string initializer;
  /// the norm has no weights: it stands between Reshapes, or the exporter says so
  bool learnsNothing = false;

  bool operator<(const Slot &other) const {
    return std::tie(node, input) < std::tie(other.node, other.input);
  }
};

/// The graph with who gives and who reads every value.
class NormFinder {
public:
  explicit NormFinder(const InitializerGraph &g) : g(g) {
    for (int n = 0; n < g.graph.node_size(); ++n) {
      for (const std::string &output : g.graph.node(n).output())
        producers[output] = n;
      for (const std::string &input : g.graph.node(n).input())
        users[input].push_back(n);
    }
    for (int n = 0; n < g.graph.node_size(); ++n) // nodes are in order
      firstViews.push_back(isView(g.graph.node(n)) ? firstView(g.graph.node(n).input(0)).value_or(n) : -1);
  }

  /// The slots of all norms whose scale is all ones and whose bias is all zeros: of instance norms, and of
  /// others that the exporter says take no parameters.
  std::vector<Slot> find() const {
    static const char *const kNorms[] = {"InstanceNormalization", "GroupNormalization", "LayerNormalization",
                                         "BatchNormalization"};
    std::vector<TracedOperation> operations = findOperations(g.graph);
    std::vector<Slot> slots;
    std::set<std::string> bare; // operations
    for (int n = 0; n < g.graph.node_size(); ++n) {
      const proto::NodeProto &norm = g.graph.node(n);
      const TracedOperation &operation = operations[static_cast<size_t>(n)];
      bool isInstanceNorm = g.isNode(norm, kNorms[0]),
           isBare = !operation.text.empty() && operation.parameters.empty();
      if (norm.input_size() < 3 || !(isInstanceNorm || isBare) ||
          std::none_of(std::begin(kNorms), std::end(kNorms),
                       [&](const char *type) { return g.isNode(norm, type); }))
        continue;
      Slot scale = follow(n, 1), bias = follow(n, 2);
      // A norm of which only one is a constant has learned that one, too.
      if (!isFilled(scale, "ones") || !isFilled(bias, "zeros"))
        continue;
      if (isBare)
        bare.insert(operation.text);
      scale.learnsNothing = bias.learnsNothing = isBare || (isInstanceNorm && standsBetweenReshapes(norm));
      for (const Slot &slot : {scale, bias})
        if (!slot.initializer.empty())
          slots.push_back(slot);
    }
    // A group norm without weights has them all the same, behind its norm.
    for (int n = 0; n < g.graph.node_size(); ++n) {
      const proto::NodeProto &node = g.graph.node(n);
      bool scales = g.isNode(node, "Mul");
      if (!bare.count(operations[static_cast<size_t>(n)].text) || !(scales || g.isNode(node, "Add")))
        continue;
      for (int i = 0; i < node.input_size(); ++i)
        if (Slot slot{n, i, node.input(i), true};
            g.find(slot.initializer) && isFilled(slot, scales ? "ones" : "zeros"))
          slots.push_back(slot);
    }
    return slots;
  }

private:
  const proto::NodeProto *producerOf(const std::string &value) const {
    auto found = producers.find(value);
    return found == producers.end() ? nullptr : &g.graph.node(found->second);
  }

  bool standsBetweenReshapes(const proto::NodeProto &norm) const {
    const proto::NodeProto *before = producerOf(norm.input(0));
    if (norm.output_size() == 0)
      return false;
    auto after = users.find(norm.output(0));
    return before && g.isNode(*before, "Reshape") && after != users.end() &&
           !g.outputs.count(norm.output(0)) && !g.readInside.count(norm.output(0)) &&
           std::all_of(after->second.begin(), after->second.end(), [&](int user) {
             return g.isNode(g.graph.node(user), "Reshape") && g.graph.node(user).input(0) == norm.output(0);
           });
  }

  bool isView(const proto::NodeProto &node) const {
    static const char *const kViews[] = {"Identity",  "Cast",    "CastLike", "Expand",
                                         "Unsqueeze", "Squeeze", "Reshape"};
    return node.input_size() != 0 && std::any_of(std::begin(kViews), std::end(kViews),
                                                 [&](const char *type) { return g.isNode(node, type); });
  }
  /// The first of the views, one behind the other, that give a value.
  std::optional<int> firstView(const std::string &value) const {
    auto found = producers.find(value);
    if (found == producers.end() || found->second >= static_cast<int>(firstViews.size()) ||
        firstViews[static_cast<size_t>(found->second)] < 0)
      return std::nullopt;
    return firstViews[static_cast<size_t>(found->second)];
  }

  /// From an operand of a norm back to the initializer; without one where something else gives it.
  Slot follow(int node, int input) const {
    Slot slot{node, input, "", false};
    if (std::optional<int> view = firstView(g.graph.node(node).input(input))) {
      slot.node = *view;
      slot.input = 0;
    }
    const std::string &value = g.graph.node(slot.node).input(slot.input);
    if (g.find(value))
      slot.initializer = value;
    return slot;
  }

  /// Whether an operand of a norm is all ones or all zeros: `slot` is where its initializer is read, or the
  /// last that could be followed back.
  bool isFilled(const Slot &slot, std::string_view elements) const {
    const std::string &value = g.graph.node(slot.node).input(slot.input);
    if (const proto::TensorProto *tensor = g.find(value))
      return InitializerGraph::isFloat(*tensor) && g.describeElements(*tensor) == elements;
    const proto::NodeProto *made = producerOf(value);
    if (!made)
      return false;
    bool isFill = g.isNode(*made, "ConstantOfShape");
    if (!isFill && !g.isNode(*made, "Constant"))
      return false;
    float wanted = elements == "ones" ? 1 : 0;
    for (const auto &attribute : made->attribute()) {
      if (attribute.name() == "value")
        return g.describeElements(attribute.t()) == elements;
      if (attribute.name() == "value_float")
        return attribute.f() == wanted;
      if (attribute.name() == "value_floats")
        return std::all_of(attribute.floats().begin(), attribute.floats().end(),
                           [&](float each) { return each == wanted; });
    }
    return isFill && wanted == 0; // what it is filled with where nothing is said
  }

  const InitializerGraph &g;
  std::map<std::string, int> producers;
  std::map<std::string, std::vector<int>> users;
  std::vector<int> firstViews; ///< by node; -1 for those that are no views
};

/// What is to be done to a slot.
struct Change {
  Slot slot;
  bool copies; ///< others read the initializer for what it is
};

} // namespace

static std::vector<Change> planChanges(const InitializerGraph &g) {
  std::vector<Slot> slots = NormFinder(g).find();
  std::map<std::string, std::set<Slot>> byInitializer;
  for (const Slot &slot : slots)
    byInitializer[slot.initializer].insert(slot);
  std::map<std::string, InitializerOrigin> origins = findOrigins(g.graph);
  std::vector<Change> changes;
  for (const auto &[name, group] : byInitializer) {
    auto origin = origins.find(name);
    if (origin != origins.end() && origin->second.origin == Origin::constant)
      continue; // known already
    bool isParameter = origin != origins.end() && origin->second.origin == Origin::parameter;
    bool isMadeUp = isGeneratedName(name) && !isParameter;
    // Learned: its own name, and read by norms alone. Where others read it, too, the exporter has merged the
    // ones of a group norm with a parameter that is equal: the weight behind it, or that of another norm.
    auto isKnown = [](const Slot &slot) { return slot.learnsNothing; };
    auto marked =
        isMadeUp ? group.size() : static_cast<size_t>(std::count_if(group.begin(), group.end(), isKnown));
    bool isShared = g.readers.at(name).size() > marked || g.outputs.count(name) || g.readInside.count(name);
    for (const Slot &slot : group)
      if (isMadeUp || (slot.learnsNothing && isShared))
        changes.push_back({slot, isShared});
  }
  return changes;
}

static void markConstant(proto::TensorProto &tensor) {
  auto *entry = tensor.add_metadata_props();
  entry->set_key("pkg.torch.export.graph_signature.InputSpec.kind");
  entry->set_value("CONSTANT_TENSOR");
}

static void apply(proto::GraphProto &graph, const InitializerGraph &g, const std::vector<Change> &changes) {
  NewNames names(graph);
  std::map<std::string, std::string>
      constants; // what is marked, by the initializer that it is or was copied from
  for (const Change &change : changes) {
    const std::string &name = change.slot.initializer;
    auto [known, isNew] = constants.insert({name, name});
    if (isNew && change.copies) {
      known->second = names.make(nameOf(g.graph.node(change.slot.node)) + "." + name);
      auto &copy = *graph.add_initializer();
      copy = *g.find(name);
      copy.set_name(known->second);
      copy.clear_metadata_props();
      markConstant(copy);
    } else if (isNew) {
      markConstant(*graph.mutable_initializer(g.initializers.at(name)));
    }
    graph.mutable_node(change.slot.node)->set_input(change.slot.input, known->second);
  }
}

Status markUnitNorms(std::shared_ptr<const Model> &model, std::vector<std::string> &notes) {
  InitializerGraph g(*model);
  std::vector<Change> changes = planChanges(g);
  if (changes.empty())
    return {};
  std::set<std::string> names;
  for (const Change &change : changes)
    names.insert(change.slot.initializer);
  std::shared_ptr<const Model> edited;
  ORTC_TRY(model->edit([&](proto::ModelProto &proto) { apply(*proto.mutable_graph(), g, changes); }, edited));
  notes.push_back("the ones and zeros of group or instance norms without weights of their own are constants "
                  "and not trained: " +
                  quoteSome({names.begin(), names.end()}, 4));
  model = std::move(edited);
  return {};
}

} // namespace ortc::frontend
