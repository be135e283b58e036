//===- SharedInitializers.cpp - parameters that an exporter merged or copied =//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/frontend/SharedInitializers.h"

#include "compiler/frontend/CopiedInitializers.h"
#include "compiler/frontend/GeneratedNames.h"
#include "compiler/frontend/InitializerGraph.h"
#include "compiler/frontend/InitializerOrigins.h"
#include "compiler/frontend/UnitNorms.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

namespace ortc::frontend {

/// Identity nodes that stand for a parameter which the exporter found equal to another one.
static std::vector<int> findMergedParameters(const InitializerGraph &g) {
  std::vector<int> nodes;
  for (int n = 0; n < g.graph.node_size(); ++n) {
    const auto &node = g.graph.node(n);
    if (node.op_type() != "Identity" || !canonicalDomain(node.domain()).empty() || node.input_size() != 1 ||
        node.output_size() != 1 || g.outputs.count(node.output(0)) || g.initializers.count(node.output(0)))
      continue;
    const proto::TensorProto *source = g.find(node.input(0));
    if (source && InitializerGraph::isFloat(*source) && isParameterName(node.output(0)))
      nodes.push_back(n);
  }
  return nodes;
}

/// How `copy` is a view of `original`; nothing where it is none.
static std::optional<TensorView> compare(const Model &model, const proto::TensorProto &original,
                                         const proto::TensorProto &copy) {
  TensorData from, to;
  if (original.data_type() != copy.data_type() || !model.tensor(original, from).ok() ||
      !model.tensor(copy, to).ok())
    return std::nullopt;
  return findView(from, to);
}

/// Whether a node takes the input as the scale or bias of a normalisation.
static bool isNormWeight(const proto::NodeProto &node, int input) {
  static const char *const kNorms[] = {"BatchNormalization",    "LayerNormalization",
                                       "InstanceNormalization", "GroupNormalization",
                                       "RMSNormalization",      "SimplifiedLayerNormalization"};
  return input >= 1 && input <= 2 && std::any_of(std::begin(kNorms), std::end(kNorms), [&](const char *norm) {
           return node.op_type() == norm;
         });
}

/// Whether a tool that stores equal tensors once may have made the name up: not a parameter's own.
static bool isMergedName(const std::string &name) {
  size_t at = name.find_last_of("./");
  std::string last = at == name.npos ? name : name.substr(at + 1);
  return isGeneratedName(name) || last.rfind("ones", 0) == 0 || last.rfind("zeros", 0) == 0;
}

static void warnOfSharedNorms(const InitializerGraph &g, SharingReport &report) {
  std::map<std::string, InitializerOrigin> origins = findOrigins(g.graph);
  for (const auto &[name, readers] : g.readers) {
    auto origin = origins.find(name);
    if (!g.find(name) || !isMergedName(name) ||
        (origin != origins.end() && origin->second.origin != Origin::unknown))
      continue;
    std::vector<std::string> norms;
    for (const Reader &reader : readers)
      if (isNormWeight(g.graph.node(reader.node), reader.input))
        norms.push_back("'" + nameOf(g.graph.node(reader.node)) + "'");
    if (norms.size() < 2 || !InitializerGraph::isFloat(*g.find(name)))
      continue;
    std::string elements = g.describeElements(*g.find(name));
    if (elements != "ones" && elements != "zeros")
      continue;
    std::string list = norms[0] + " and " + norms[1] +
                       (norms.size() > 2 ? " and " + std::to_string(norms.size() - 2) + " more" : "");
    report.warnings.push_back(
        "'" + name + "' (all " + elements + ") is read by " + std::to_string(norms.size()) +
        " normalisations, " + list +
        ": exporters merge fresh weights that are equal, and these are trained as one; --untie " + name +
        " gives each its own");
  }
}

static void noteCopiesOfEmbeddings(const InitializerGraph &g, SharingReport &report) {
  for (const auto &[name, readers] : g.readers) {
    if (!g.find(name))
      continue;
    const proto::TensorProto &table = *g.find(name);
    bool isEmbedding = table.dims_size() == 2 && InitializerGraph::isFloat(table) &&
                       std::any_of(readers.begin(), readers.end(), [&](const Reader &reader) {
                         return reader.input == 0 && g.graph.node(reader.node).op_type() == "Gather";
                       });
    if (!isEmbedding || table.dims(0) * table.dims(1) < 2 || !g.describeElements(table).empty())
      continue;
    for (const auto &[other, index] : g.initializers) {
      if (other == name || !g.readers.count(other))
        continue;
      std::optional<TensorView> copy = compare(g.model, table, g.graph.initializer(index));
      if (copy)
        report.notes.push_back(
            "'" + other + "' is a " + (copy->isTransposed() ? "transposed " : "") + "copy of '" + name +
            "', an embedding; they are trained apart. If the model ties them: --tie " + other + "=" + name);
    }
  }
}

/// One input of a node that reads an initializer in place of a parameter, or buffer, of that name; a bias of so many zeros that
/// the node has lost.
struct Replacement {
  int node, input;
  std::string name;
  int64_t zeros = 0;
  bool isFolded = false; ///< it reads what was folded from a parameter
};

/// How many elements the bias of a convolution or Gemm has that has lost it: exporters drop biases of zeros. Else 0.
static int64_t countLostBias(const InitializerGraph &g, const proto::NodeProto &node) {
  const std::string &op = node.op_type();
  if ((op != "Conv" && op != "ConvTranspose" && op != "Gemm") || node.input_size() != 2)
    return 0;
  const proto::TensorProto *weight = g.find(node.input(1));
  if (!weight || weight->dims_size() < 2 || !InitializerGraph::isFloat(*weight))
    return 0;
  int64_t group = 1, transB = 0;
  for (const auto &attribute : node.attribute()) {
    group = attribute.name() == "group" ? attribute.i() : group;
    transB = attribute.name() == "transB" ? attribute.i() : transB;
  }
  return op == "Conv"            ? weight->dims(0)
         : op == "ConvTranspose" ? weight->dims(1) * group
                                 : weight->dims(transB ? 0 : 1);
}

/// Where the operation of the exported program took parameters that the file has lost, and the nodes read as many others in their
/// place: exporters merge equal ones.
static std::vector<Replacement> findReplaced(const InitializerGraph &g) {
  std::vector<std::string> names = findLostParameters(g.graph, /*buffers=*/true);
  std::set<std::string> lost(names.begin(), names.end());
  if (lost.empty())
    return {};
  std::map<std::string, InitializerOrigin> origins = findOrigins(g.graph);
  std::vector<TracedOperation> operations = findOperations(g.graph);
  std::map<std::string, std::vector<int>> nodes; // by operation
  for (int n = 0; n < g.graph.node_size(); ++n)
    nodes[operations[n].text].push_back(n);
  std::vector<Replacement> result;
  for (const auto &[text, members] : nodes) {
    const std::vector<std::string> &taken = operations[members.front()].parameters;
    std::vector<std::string> missing;
    for (const std::string &name : taken)
      if (lost.count(name))
        missing.push_back(name);
    std::vector<Replacement> found;
    for (int n : members)
      for (int i = 0; i < g.graph.node(n).input_size(); ++i) {
        auto origin = origins.find(g.graph.node(n).input(i));
        if (origin == origins.end())
          continue;
        auto takes = [&](const std::string &name) {
          return std::find(taken.begin(), taken.end(), name) != taken.end();
        };
        const std::set<std::string> &folded = origin->second.parameters;
        bool isOther = origin->second.foldedFrom.empty() ? (origin->second.origin == Origin::parameter ||
                                                            origin->second.origin == Origin::buffer) &&
                                                               !takes(origin->first)
                                                         : folded.size() == 1 && !takes(*folded.begin());
        if (isOther)
          found.push_back({n, i, "", 0, !origin->second.foldedFrom.empty()});
      }
    if (found.size() + 1 == missing.size() && taken.size() == 2 && missing.back() == taken[1] &&
        members.size() == 1)
      if (int64_t count = countLostBias(g, g.graph.node(members[0]))) {
        result.push_back({members[0], 2, missing.back(), count});
        missing.pop_back();
      }
    if (found.size() > missing.size()) // a result of other operations, folded
      found.erase(
          std::remove_if(found.begin(), found.end(), [](const Replacement &each) { return each.isFolded; }),
          found.end());
    if (found.size() != missing.size())
      continue;
    for (size_t i = 0; i < found.size(); ++i)
      found[i].name = missing[i];
    result.insert(result.end(), found.begin(), found.end());
  }
  // A name stands for one initializer, or for none.
  std::map<std::string, std::set<std::string>> sources;
  for (const Replacement &each : result)
    sources[each.name].insert(each.zeros ? std::to_string(each.zeros) + " zeros"
                                         : g.graph.node(each.node).input(each.input));
  result.erase(std::remove_if(result.begin(), result.end(),
                              [&](const Replacement &each) { return sources[each.name].size() > 1; }),
               result.end());
  return result;
}

static void restoreReplaced(proto::GraphProto &graph, const InitializerGraph &g,
                            const std::vector<Replacement> &replaced, SharingReport &report) {
  std::set<std::string> added, dropped, taken = listNames(graph);
  std::map<std::string, std::string> folded; // the initializers of parameters that were folded
  std::string list, listOfDropped;
  auto append = [](std::string &text, const std::set<std::string> &names, const std::string &name) {
    if (names.size() <= 3)
      text += (names.size() > 1 ? ", '" : "'") + name + "'";
  };
  for (const Replacement &each : replaced) {
    if (each.zeros) {
      auto *node = graph.mutable_node(each.node);
      if (dropped.insert(each.name).second) {
        proto::TensorProto bias;
        bias.set_name(each.name);
        bias.set_data_type(g.find(node->input(1))->data_type());
        bias.add_dims(each.zeros);
        bias.set_raw_data(
            std::string(static_cast<size_t>(each.zeros) * dataTypeBytes(bias.data_type()), '\0'));
        *graph.add_initializer() = std::move(bias);
        append(listOfDropped, dropped, each.name);
      }
      node->add_input(each.name);
      continue;
    }
    std::string &input = *graph.mutable_node(each.node)->mutable_input(each.input);
    if (each.isFolded) { // it has the file's layout, and so not the parameter's name
      auto [known, isNew] = folded.insert({each.name, ""});
      if (isNew) {
        known->second = makeUnique(nameOf(g.graph.node(each.node)) + "." + input, taken);
        taken.insert(known->second);
        proto::TensorProto copy = *g.find(input);
        copy.set_name(known->second);
        auto *entry = copy.add_metadata_props();
        entry->set_key("pkg.onnxscript.optimizer.folded_from");
        entry->set_value("['" + each.name + "']");
        *graph.add_initializer() = std::move(copy);
        added.insert(each.name);
        append(list, added, each.name);
      }
      input = known->second;
      continue;
    }
    if (added.insert(each.name).second) {
      proto::TensorProto copy = *g.find(input);
      copy.set_name(each.name);
      *graph.add_initializer() = std::move(copy);
      for (const auto &value : g.graph.value_info()) // with its origin
        if (value.name() == input) {
          *graph.add_value_info() = value;
          graph.mutable_value_info(graph.value_info_size() - 1)->set_name(each.name);
          break;
        }
      append(list, added, each.name);
    }
    input = each.name;
  }
  if (!dropped.empty())
    report.notes.push_back(std::to_string(dropped.size()) +
                           (dropped.size() == 1 ? " bias of zeros that" : " biases of zeros that") +
                           " the exporter had dropped " + (dropped.size() == 1 ? "is" : "are") +
                           " there again: " + listOfDropped + (dropped.size() > 3 ? ", ..." : ""));
  if (!added.empty())
    report.notes.push_back(
        std::to_string(added.size()) + (added.size() == 1 ? " parameter that" : " parameters that") +
        " the exporter had merged with equal ones " + (added.size() == 1 ? "is its own" : "are their own") +
        " again: " + list + (added.size() > 3 ? ", ..." : ""));
}

static void reportLostParameters(const InitializerGraph &g, SharingReport &report) {
  std::vector<std::string> lost = findLostParameters(g.graph);
  std::set<std::string> taken;
  for (const TracedOperation &operation : findOperations(g.graph))
    taken.insert(operation.parameters.begin(), operation.parameters.end());
  // Tied parameters have one name in operations; those of a batch normalisation are gone with it.
  auto isTaken = [&](const std::string &name) { return taken.count(name) != 0; };
  std::vector<std::string> used;
  std::copy_if(lost.begin(), lost.end(), std::back_inserter(used), isTaken);
  lost.erase(std::remove_if(lost.begin(), lost.end(), isTaken), lost.end());
  std::string list, listOfUsed;
  for (size_t i = 0; i < used.size() && i < 4; ++i)
    listOfUsed += (i ? ", '" : "'") + used[i] + "'";
  if (!used.empty())
    report.warnings.push_back(
        "parameters that the exporter has dropped, or merged with equal ones: " + listOfUsed +
        (used.size() > 4 ? " and " + std::to_string(used.size() - 4) + " more" : "") +
        "; export without folding (PyTorch: optimize=False)");
  for (size_t i = 0; i < lost.size() && i < 4; ++i)
    list += (i ? ", '" : "'") + lost[i] + "'";
  if (!lost.empty())
    report.notes.push_back(
        std::to_string(lost.size()) +
        (lost.size() == 1 ? " parameter of the exported program is"
                          : " parameters of the exported program are") +
        " not in the file (tied, merged with equal ones, folded into others, or of no use): " + list +
        (lost.size() > 4 ? ", ..." : ""));
}

/// Whether a folded value has the elements of its parameters, moved at most: by the name of the operation that gave it. Values
/// inside an operation ("val_3") are the transposed weights of matrix products and the merged gates of recurrent layers.
static bool isMoved(const std::string &name, size_t parameters) {
  // What was merged, and has its own again, is called NODE.NAME.
  std::string last = name.substr(name.rfind('.') + 1),
              base = last.substr(0, last.find_last_not_of("0123456789") + 1);
  if (base == "val_" || base == "cat" || base == "cat_" || base == "stack" || base == "stack_")
    return true;
  return parameters == 1 && isViewName(last);
}

/// What was computed from parameters is trained in their place, and apart from them where they are still read.
static void warnOfComputed(const InitializerGraph &g, SharingReport &report) {
  std::vector<std::string> computed;
  for (const auto &[name, origin] : findOrigins(g.graph)) {
    const proto::TensorProto *tensor = g.find(name);
    if (!tensor || !InitializerGraph::isFloat(*tensor) || !g.readers.count(name) || origin.parameters.empty())
      continue;
    bool isRead =
        std::any_of(origin.parameters.begin(), origin.parameters.end(),
                    [&](const std::string &source) { return g.find(source) && g.readers.count(source); });
    if (isRead || !isMoved(name, origin.parameters.size()))
      computed.push_back("'" + name + "' (from '" + *origin.parameters.begin() + "'" +
                         (origin.parameters.size() > 1 ? " and others)" : ")"));
  }
  if (computed.empty())
    return;
  std::string list;
  for (size_t i = 0; i < computed.size() && i < 4; ++i)
    list += (i ? ", " : "") + computed[i];
  report.warnings.push_back(
      "trained in place of the parameters that the exporter computed it from, which is another training: " +
      list + (computed.size() > 4 ? " and " + std::to_string(computed.size() - 4) + " more" : "") +
      "; export without folding (PyTorch: optimize=False)");
}

template <typename List> static void removeNamed(List &list, const std::string &name) {
  for (int i = list.size(); i-- > 0;)
    if (list.Get(i).name() == name)
      list.DeleteSubrange(i, 1);
}

static void restoreMerged(proto::GraphProto &graph, const InitializerGraph &g, const std::vector<int> &nodes,
                          SharingReport &report) {
  std::string list;
  for (size_t i = 0; i < nodes.size(); ++i) {
    const auto &node = g.graph.node(nodes[i]);
    proto::TensorProto copy = *g.find(node.input(0));
    copy.set_name(node.output(0));
    *graph.add_initializer() = std::move(copy);
    if (i < 3)
      list += (i ? ", '" : "'") + node.output(0) + "'";
  }
  for (size_t i = nodes.size(); i-- > 0;)
    graph.mutable_node()->DeleteSubrange(nodes[i], 1);
  const auto &first = g.graph.node(nodes[0]);
  report.notes.push_back(
      std::to_string(nodes.size()) + (nodes.size() == 1 ? " parameter that" : " parameters that") +
      " the exporter had merged with an equal one " + (nodes.size() == 1 ? "is its own" : "are their own") +
      " again: " + list + (nodes.size() > 3 ? ", ..." : "") + "; if the model ties them: --tie " +
      first.output(0) + "=" + first.input(0));
}

static Status untie(proto::GraphProto &graph, const std::string &name) {
  std::vector<std::pair<proto::NodeProto *, int>> readers;
  for (auto &node : *graph.mutable_node())
    for (int i = 0; i < node.input_size(); ++i)
      if (node.input(i) == name)
        readers.push_back({&node, i});
  const proto::TensorProto *source = nullptr;
  for (const auto &tensor : graph.initializer())
    if (tensor.name() == name)
      source = &tensor;
  if (!source)
    return Status::error("--untie " + name + ": the model has no initializer of that name");
  if (readers.size() < 2)
    return Status::error(
        "--untie " + name + ": it has " +
        (readers.empty() ? "no reader" : "one reader only, '" + nameOf(*readers[0].first) + "'"));
  std::set<std::string> taken = listNames(graph);
  proto::TensorProto copy = *source;
  for (size_t i = 1; i < readers.size(); ++i) {
    copy.set_name(makeUnique(nameOf(*readers[i].first) + "." + name, taken));
    taken.insert(copy.name());
    readers[i].first->set_input(readers[i].second, copy.name());
    *graph.add_initializer() = copy;
  }
  return {};
}

/// Reads of a name become reads of another one, in branches and loop bodies, too, where they see it.
static void rename(proto::GraphProto &graph, const std::string &from, const std::string &to) {
  for (auto &node : *graph.mutable_node()) {
    for (std::string &input : *node.mutable_input())
      if (input == from)
        input = to;
    for (auto &attribute : *node.mutable_attribute()) {
      if (attribute.has_g() && !listNames(attribute.g()).count(from))
        rename(*attribute.mutable_g(), from, to);
      for (auto &body : *attribute.mutable_graphs())
        if (!listNames(body).count(from))
          rename(body, from, to);
    }
  }
  for (auto &output : *graph.mutable_output()) // of a branch
    if (output.name() == from)
      output.set_name(to);
}

/// The copy becomes a view of the original: its readers read that one, or what nodes at the front make of it.
static void replaceByView(proto::GraphProto &graph, const std::string &copy, const std::string &original,
                          const std::vector<int64_t> &from, const std::vector<int64_t> &to,
                          const TensorView &view) {
  removeNamed(*graph.mutable_initializer(), copy);
  removeNamed(*graph.mutable_input(), copy); // opset 7 and 8 list initializers there
  removeNamed(*graph.mutable_value_info(), copy);
  std::vector<int64_t> shape = from;
  if (!view.isTransposed() && from == to)
    return rename(graph, copy, original);
  std::set<std::string> taken = listNames(graph);
  std::string value = original;
  int before = graph.node_size();
  auto add = [&](const char *type, bool isLast) {
    auto *node = graph.add_node();
    node->set_op_type(type);
    node->set_name(makeUnique("tie." + copy, taken));
    taken.insert(node->name());
    node->add_input(value);
    value = isLast ? copy : makeUnique(node->name() + ".value", taken);
    taken.insert(value);
    node->add_output(value);
    return node;
  };
  auto reshape = [&](const std::vector<int64_t> &dims, bool isLast) {
    auto *node = add("Reshape", isLast);
    auto *tensor = graph.add_initializer();
    tensor->set_name(makeUnique(node->name() + ".shape", taken));
    taken.insert(tensor->name());
    tensor->set_data_type(proto::TensorProto::INT64);
    tensor->add_dims(static_cast<int64_t>(dims.size()));
    tensor->set_raw_data(
        std::string(reinterpret_cast<const char *>(dims.data()), dims.size() * sizeof(int64_t)));
    node->add_input(tensor->name());
    shape = dims;
  };
  if (view.isTransposed()) {
    if (shape != view.shape)
      reshape(view.shape, false);
    std::vector<int64_t> turned;
    for (int64_t axis : view.permutation)
      turned.push_back(view.shape[static_cast<size_t>(axis)]);
    auto *permutation = add("Transpose", turned == to)->add_attribute();
    permutation->set_name("perm");
    permutation->set_type(proto::AttributeProto::INTS);
    for (int64_t axis : view.permutation)
      permutation->add_ints(axis);
    shape = turned;
  }
  if (shape != to)
    reshape(to, true);
  auto *nodes = graph.mutable_node();
  std::rotate(nodes->pointer_begin(), nodes->pointer_begin() + before, nodes->pointer_end());
}

static std::vector<int64_t> dimsOf(const proto::TensorProto &tensor) {
  return {tensor.dims().begin(), tensor.dims().end()};
}

static Status tie(const Model &model, proto::GraphProto &graph, const std::string &copy,
                  const std::string &original) {
  const proto::TensorProto *from = nullptr, *to = nullptr;
  for (const auto &tensor : graph.initializer()) {
    from = tensor.name() == original ? &tensor : from;
    to = tensor.name() == copy ? &tensor : to;
  }
  std::string flag = "--tie " + copy + "=" + original + ": ";
  if (!from || !to)
    return Status::error(flag + "the model has no initializer '" + (to ? original : copy) + "'");
  std::optional<TensorView> view = copy == original ? std::nullopt : compare(model, *from, *to);
  if (!view)
    return Status::error(flag + "the first is neither equal to the second nor its transpose");
  replaceByView(graph, copy, original, dimsOf(*from), dimsOf(*to), *view);
  return {};
}

static bool isTied(const SharingOptions &options, const std::string &copy) {
  return std::any_of(options.ties.begin(), options.ties.end(),
                     [&](const auto &pair) { return pair.first == copy || pair.second == copy; });
}

static bool isUntied(const SharingOptions &options, const FoundCopy &found) {
  auto isNamed = [&](const std::string &name) {
    return std::find(options.untie.begin(), options.untie.end(), name) != options.untie.end();
  };
  return isNamed(found.copy) || isNamed(found.original);
}

/// "'val_7' (transposed 'val_3')".
static std::string describeCopy(const FoundCopy &found) {
  return "'" + found.copy + "' (" + (found.view.isTransposed() ? "transposed " : "") + "'" + found.original +
         "')";
}

static std::string joinCopies(const std::vector<const FoundCopy *> &copies) {
  std::string list;
  for (size_t i = 0; i < copies.size() && i < 3; ++i)
    list += (i ? ", " : "") + describeCopy(*copies[i]);
  return list + (copies.size() > 3 ? " and " + std::to_string(copies.size() - 3) + " more" : "");
}

static void reportCopies(const FoundCopies &copies, const SharingOptions &options, SharingReport &report) {
  std::vector<const FoundCopy *> tied, perhaps;
  for (const FoundCopy &found : copies.same) {
    if (isTied(options, found.copy) || isUntied(options, found))
      continue;
    if (found.isFolded && !isGeneratedName(found.original))
      report.notes.push_back("'" + found.copy + "', which the exporter folded from '" + found.original +
                             "', is tied to it again");
    else
      tied.push_back(&found);
  }
  for (const FoundCopy &found : copies.perhaps)
    if (!isTied(options, found.copy) && !isUntied(options, found))
      perhaps.push_back(&found);
  if (!tied.empty())
    report.notes.push_back(std::to_string(tied.size()) +
                           (tied.size() == 1 ? " initializer with a name" : " initializers with names") +
                           " that the exporter made up " +
                           (tied.size() == 1 ? "equals another one and is" : "equal others and are") +
                           " one parameter with it: " + joinCopies(tied) + "; --untie " + tied[0]->copy +
                           " trains it apart");
  if (!perhaps.empty())
    report.warnings.push_back("equal, perhaps by chance, and trained apart: " + joinCopies(perhaps) +
                              "; if the model has one parameter there: --tie " + perhaps[0]->copy + "=" +
                              perhaps[0]->original);
}

/// Gives nodes that read merged parameters their own.
static Status restore(std::shared_ptr<const Model> &model, const SharingOptions &options,
                      SharingReport &report) {
  InitializerGraph graph(*model);
  std::vector<int> merged = findMergedParameters(graph), apart = findCopies(graph).merged;
  std::vector<Replacement> replaced = findReplaced(graph);
  if (merged.empty() && replaced.empty() && apart.empty())
    return {};
  merged.insert(merged.end(), apart.begin(), apart.end());
  std::sort(merged.begin(), merged.end());
  std::shared_ptr<const Model> edited;
  SharingReport restored;
  ORTC_RETURN_IF_ERROR(model->edit(
      [&](proto::ModelProto &proto) {
        if (!replaced.empty())
          restoreReplaced(*proto.mutable_graph(), graph, replaced, report);
        if (!merged.empty())
          restoreMerged(*proto.mutable_graph(), graph, merged, restored);
      },
      edited));
  if (options.ties.empty()) // else the user knows
    report.notes.insert(report.notes.begin(), restored.notes.begin(), restored.notes.end());
  model = std::move(edited);
  return {};
}

/// Makes one parameter of what is one, and several of what the user says.
static Status tieAndUntie(std::shared_ptr<const Model> &model, const SharingOptions &options,
                          SharingReport &report) {
  InitializerGraph graph(*model);
  FoundCopies copies = findCopies(graph);
  reportCopies(copies, options, report);
  if (copies.same.empty() && options.untie.empty() && options.ties.empty())
    return {};
  Status outcome;
  std::shared_ptr<const Model> edited;
  ORTC_RETURN_IF_ERROR(model->edit(
      [&](proto::ModelProto &proto) {
        for (const auto &[copy, original] : options.ties)
          if (outcome.ok())
            outcome = tie(*model, *proto.mutable_graph(), copy, original);
        std::set<std::string> apart; // what --untie has kept from being tied
        for (const FoundCopy &found : copies.same)
          if (isUntied(options, found))
            apart.insert({found.copy, found.original});
          else if (!isTied(options, found.copy))
            replaceByView(*proto.mutable_graph(), found.copy, found.original,
                          dimsOf(*graph.find(found.original)), dimsOf(*graph.find(found.copy)), found.view);
        for (const std::string &name : options.untie)
          if (outcome.ok() && !(apart.count(name) && graph.readers.at(name).size() < 2))
            outcome = untie(*proto.mutable_graph(), name);
      },
      edited));
  ORTC_RETURN_IF_ERROR(outcome);
  model = std::move(edited);
  return {};
}

Status resolveSharedInitializers(std::shared_ptr<const Model> &model, const SharingOptions &options,
                                 SharingReport &report) {
  ORTC_RETURN_IF_ERROR(markUnitNorms(model, report.notes));
  ORTC_RETURN_IF_ERROR(restore(model, options, report));
  ORTC_RETURN_IF_ERROR(tieAndUntie(model, options, report));
  InitializerGraph graph(*model);
  warnOfSharedNorms(graph, report);
  noteCopiesOfEmbeddings(graph, report);
  warnOfComputed(graph, report);
  reportLostParameters(graph, report);
  return {};
}

} // namespace ortc::frontend
