//===- SharedInitializers.cpp - parameters that an exporter merged or copied =//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/frontend/SharedInitializers.h"

#include "compiler/frontend/InitializerOrigins.h"
#include "compiler/frontend/onnx.pb.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <set>

namespace ortc::frontend {

namespace {

/// One place where a node of the graph reads an initializer.
struct Reader {
  int node, input;
};

/// The graph of a model with its initializers by name. Nodes of branches and loop bodies are not looked at.
class Graph {
public:
  explicit Graph(const Model &model) : model(model), graph(model.getProto().graph()) {
    for (int i = 0; i < graph.initializer_size(); ++i)
      initializers[graph.initializer(i).name()] = i;
    for (int n = 0; n < graph.node_size(); ++n)
      for (int i = 0; i < graph.node(n).input_size(); ++i)
        if (initializers.count(graph.node(n).input(i)))
          readers[graph.node(n).input(i)].push_back({n, i});
    for (const auto &output : graph.output())
      outputs.insert(output.name());
  }

  const proto::TensorProto *find(const std::string &name) const {
    auto found = initializers.find(name);
    return found == initializers.end() ? nullptr : &graph.initializer(found->second);
  }
  static bool isFloat(const proto::TensorProto &tensor) {
    int type = tensor.data_type();
    return type == proto::TensorProto::FLOAT || type == proto::TensorProto::DOUBLE ||
           type == proto::TensorProto::FLOAT16 || type == proto::TensorProto::BFLOAT16;
  }

  const Model &model;
  const proto::GraphProto &graph;
  std::map<std::string, int> initializers;
  std::map<std::string, std::vector<Reader>> readers;
  std::set<std::string> outputs;
};

/// How one matrix relates to another.
enum class Copy { none, equal, transposed };

} // namespace

/// Whether a name looks like a parameter's: "norm.weight", "encoder.0.bn.running_var", and not like one that an exporter
/// makes up for a result.
static bool isParameterName(const std::string &name) {
  auto has = [&](const char *part) { return name.find(part) != std::string::npos; };
  auto endsWith = [&](std::string_view part) {
    return name.size() >= part.size() && name.compare(name.size() - part.size(), part.size(), part) == 0;
  };
  if (has("/") || has(":") || has("_output_") || endsWith("_output"))
    return false;
  return has(".") || endsWith("weight") || endsWith("bias");
}

/// Identity nodes that stand for a parameter which the exporter found equal to another one.
static std::vector<int> findMergedParameters(const Graph &g) {
  std::vector<int> nodes;
  for (int n = 0; n < g.graph.node_size(); ++n) {
    const auto &node = g.graph.node(n);
    if (node.op_type() != "Identity" || !canonicalDomain(node.domain()).empty() || node.input_size() != 1 ||
        node.output_size() != 1 || g.outputs.count(node.output(0)) || g.initializers.count(node.output(0)))
      continue;
    const proto::TensorProto *source = g.find(node.input(0));
    if (source && Graph::isFloat(*source) && isParameterName(node.output(0)))
      nodes.push_back(n);
  }
  return nodes;
}

static std::string nameOf(const proto::NodeProto &node) {
  return !node.name().empty() || node.output_size() == 0 ? node.name() : node.output(0);
}

static Copy compare(const Model &model, const proto::TensorProto &a, const proto::TensorProto &b) {
  if (a.data_type() != b.data_type() || a.dims_size() != b.dims_size())
    return Copy::none;
  bool same = std::equal(a.dims().begin(), a.dims().end(), b.dims().begin());
  bool reversed = a.dims_size() == 2 && a.dims(0) == b.dims(1) && a.dims(1) == b.dims(0);
  TensorData left, right;
  if ((!same && !reversed) || !model.tensor(a, left).ok() || !model.tensor(b, right).ok())
    return Copy::none;
  if (same && left.bytes == right.bytes)
    return Copy::equal;
  if (!reversed)
    return Copy::none;
  auto width = static_cast<size_t>(dataTypeBytes(a.data_type()));
  auto rows = static_cast<size_t>(a.dims(0)), columns = static_cast<size_t>(a.dims(1));
  for (size_t i = 0; i < rows; ++i)
    for (size_t k = 0; k < columns; ++k)
      if (left.bytes.substr((i * columns + k) * width, width) !=
          right.bytes.substr((k * rows + i) * width, width))
        return Copy::none;
  return Copy::transposed;
}

/// "ones" or "zeros" where all elements are; "" otherwise, "equal" where they are something else.
static std::string describeElements(const Model &model, const proto::TensorProto &tensor) {
  TensorData data;
  if (!model.tensor(tensor, data).ok() || data.bytes.empty())
    return "";
  auto width = static_cast<size_t>(dataTypeBytes(tensor.data_type()));
  std::string_view first = data.bytes.substr(0, width);
  for (size_t at = 0; at < data.bytes.size(); at += width)
    if (data.bytes.substr(at, width) != first)
      return "";
  if (first.find_first_not_of('\0') == std::string_view::npos)
    return "zeros";
  using namespace std::string_view_literals;
  bool isOne = first == "\0\0\x80\x3f"sv || first == "\0\0\0\0\0\0\xf0\x3f"sv ||
               first == (tensor.data_type() == proto::TensorProto::FLOAT16 ? "\0\x3c"sv : "\x80\x3f"sv);
  return isOne ? "ones" : "equal";
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

static void warnOfSharedNorms(const Graph &g, SharingReport &report) {
  for (const auto &[name, readers] : g.readers) {
    std::vector<std::string> norms;
    for (const Reader &reader : readers)
      if (isNormWeight(g.graph.node(reader.node), reader.input))
        norms.push_back("'" + nameOf(g.graph.node(reader.node)) + "'");
    if (norms.size() < 2 || !Graph::isFloat(*g.find(name)))
      continue;
    std::string elements = describeElements(g.model, *g.find(name));
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

static void noteCopiesOfEmbeddings(const Graph &g, SharingReport &report) {
  for (const auto &[name, readers] : g.readers) {
    const proto::TensorProto &table = *g.find(name);
    bool isEmbedding = table.dims_size() == 2 && Graph::isFloat(table) &&
                       std::any_of(readers.begin(), readers.end(), [&](const Reader &reader) {
                         return reader.input == 0 && g.graph.node(reader.node).op_type() == "Gather";
                       });
    if (!isEmbedding || table.dims(0) * table.dims(1) < 2 || !describeElements(g.model, table).empty())
      continue;
    for (const auto &[other, index] : g.initializers) {
      if (other == name || !g.readers.count(other))
        continue;
      Copy copy = compare(g.model, g.graph.initializer(index), table);
      if (copy != Copy::none)
        report.notes.push_back(
            "'" + other + "' is a " + (copy == Copy::transposed ? "transposed " : "") + "copy of '" + name +
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
};

/// How many elements the bias of a convolution or Gemm has that has lost it: exporters drop biases of zeros. Else 0.
static int64_t countLostBias(const Graph &g, const proto::NodeProto &node) {
  const std::string &op = node.op_type();
  if ((op != "Conv" && op != "ConvTranspose" && op != "Gemm") || node.input_size() != 2)
    return 0;
  const proto::TensorProto *weight = g.find(node.input(1));
  if (!weight || weight->dims_size() < 2 || !Graph::isFloat(*weight))
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
static std::vector<Replacement> findReplaced(const Graph &g) {
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
        if (origin != origins.end() && origin->second.foldedFrom.empty() &&
            (origin->second.origin == Origin::parameter || origin->second.origin == Origin::buffer) &&
            std::find(taken.begin(), taken.end(), origin->first) == taken.end())
          found.push_back({n, i, "", 0});
      }
    if (found.empty() && missing.size() == 1 && taken.size() == 2 && missing[0] == taken[1] &&
        members.size() == 1)
      if (int64_t count = countLostBias(g, g.graph.node(members[0])))
        result.push_back({members[0], 2, missing[0], count});
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

static void restoreReplaced(proto::GraphProto &graph, const Graph &g,
                            const std::vector<Replacement> &replaced, SharingReport &report) {
  std::set<std::string> added, dropped;
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

/// Copies that the exporter says it folded from a parameter which the graph still reads, with that parameter.
static std::vector<std::pair<std::string, std::string>> findFoldedCopies(const Graph &g) {
  std::vector<std::pair<std::string, std::string>> ties;
  std::map<std::string, InitializerOrigin> origins = findOrigins(g.graph);
  for (const auto &[name, origin] : origins) {
    const proto::TensorProto *copy = g.find(name);
    if (!copy || !Graph::isFloat(*copy) || !g.readers.count(name))
      continue;
    for (const std::string &source : origin.foldedFrom) {
      auto known = origins.find(source);
      if (known != origins.end() && known->second.origin == Origin::parameter &&
          known->second.foldedFrom.empty() && g.readers.count(source) &&
          compare(g.model, *copy, *g.find(source)) != Copy::none) {
        ties.push_back({name, source});
        break;
      }
    }
  }
  return ties;
}

static void reportLostParameters(const Graph &g, SharingReport &report) {
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
  std::string base = name.substr(0, name.find_last_not_of("0123456789") + 1);
  if (base == "val_" || base == "cat" || base == "cat_" || base == "stack" || base == "stack_")
    return true;
  static const char *const kViews[] = {
      "transpose", "permute", "t",     "view",       "reshape", "unsqueeze", "squeeze", "flatten",
      "unflatten", "detach",  "clone", "contiguous", "alias",   "_to_copy",  "slice",   "select",
      "split",     "chunk",   "flip",  "getitem",    "narrow",  "movedim"};
  if (base.size() > 1 && base.size() < name.size() && base.back() == '_')
    base.pop_back();
  return parameters == 1 &&
         std::any_of(std::begin(kViews), std::end(kViews), [&](const char *view) { return base == view; });
}

/// What was computed from parameters is trained in their place, and apart from them where they are still read.
static void warnOfComputed(const Graph &g, SharingReport &report) {
  std::vector<std::string> computed;
  for (const auto &[name, origin] : findOrigins(g.graph)) {
    const proto::TensorProto *tensor = g.find(name);
    if (!tensor || !Graph::isFloat(*tensor) || !g.readers.count(name) || origin.parameters.empty())
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

/// A name that nothing in the graph has.
static std::string makeUnique(std::string name, const std::set<std::string> &taken) {
  while (taken.count(name))
    name += "_";
  return name;
}

static std::set<std::string> listNames(const proto::GraphProto &graph) {
  std::set<std::string> names;
  for (const auto &tensor : graph.initializer())
    names.insert(tensor.name());
  for (const auto &input : graph.input())
    names.insert(input.name());
  for (const auto &node : graph.node())
    names.insert(node.output().begin(), node.output().end());
  return names;
}

template <typename List> static void removeNamed(List &list, const std::string &name) {
  for (int i = list.size(); i-- > 0;)
    if (list.Get(i).name() == name)
      list.DeleteSubrange(i, 1);
}

static void restoreMerged(proto::GraphProto &graph, const Graph &g, const std::vector<int> &nodes,
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

static Status tie(const Model &model, proto::GraphProto &graph, const std::string &copy,
                  const std::string &original) {
  const proto::TensorProto *from = nullptr, *to = nullptr;
  for (const auto &tensor : graph.initializer()) {
    from = tensor.name() == copy ? &tensor : from;
    to = tensor.name() == original ? &tensor : to;
  }
  std::string flag = "--tie " + copy + "=" + original + ": ";
  if (!from || !to)
    return Status::error(flag + "the model has no initializer '" + (from ? original : copy) + "'");
  Copy relation = compare(model, *from, *to);
  if (relation == Copy::none)
    return Status::error(flag + "the first is neither equal to the second nor its transpose");
  if (relation == Copy::equal) {
    for (auto &node : *graph.mutable_node())
      for (std::string &input : *node.mutable_input())
        if (input == copy)
          input = original;
  } else {
    auto *node = graph.add_node();
    node->set_op_type("Transpose");
    node->set_name(makeUnique("tie." + copy, listNames(graph)));
    node->add_input(original);
    node->add_output(copy);
    auto *permutation = node->add_attribute();
    permutation->set_name("perm");
    permutation->set_type(proto::AttributeProto::INTS);
    permutation->add_ints(1);
    permutation->add_ints(0);
    for (int i = graph.node_size() - 1; i > 0; --i)
      graph.mutable_node()->SwapElements(i, i - 1);
  }
  removeNamed(*graph.mutable_initializer(), copy);
  removeNamed(*graph.mutable_input(), copy); // opset 7 and 8 list initializers there
  return {};
}

static bool isTied(const SharingOptions &options, const std::string &copy) {
  return std::any_of(options.ties.begin(), options.ties.end(),
                     [&](const auto &pair) { return pair.first == copy; });
}

Status resolveSharedInitializers(std::shared_ptr<const Model> &model, const SharingOptions &options,
                                 SharingReport &report) {
  {
    Graph graph(*model);
    std::vector<int> merged = findMergedParameters(graph);
    std::vector<Replacement> replaced = findReplaced(graph);
    std::vector<std::pair<std::string, std::string>> copies = findFoldedCopies(graph);
    if (!merged.empty() || !replaced.empty() || !copies.empty() || !options.untie.empty() ||
        !options.ties.empty()) {
      Status outcome;
      std::shared_ptr<const Model> edited;
      ORTC_RETURN_IF_ERROR(model->edit(
          [&](proto::ModelProto &proto) {
            SharingReport restored;
            if (!replaced.empty())
              restoreReplaced(*proto.mutable_graph(), graph, replaced, report);
            if (!merged.empty())
              restoreMerged(*proto.mutable_graph(), graph, merged, restored);
            for (const auto &[copy, original] : options.ties)
              if (outcome.ok())
                outcome = tie(*model, *proto.mutable_graph(), copy, original);
            for (const auto &[copy, original] : copies)
              if (outcome.ok() && !isTied(options, copy) &&
                  tie(*model, *proto.mutable_graph(), copy, original).ok())
                report.notes.push_back("'" + copy + "', which the exporter folded from '" + original +
                                       "', is tied to it again");
            for (const std::string &name : options.untie)
              if (outcome.ok())
                outcome = untie(*proto.mutable_graph(), name);
            if (options.ties.empty()) // else the user knows
              report.notes.insert(report.notes.begin(), restored.notes.begin(), restored.notes.end());
          },
          edited));
      ORTC_RETURN_IF_ERROR(outcome);
      model = std::move(edited);
    }
  }
  Graph graph(*model);
  warnOfSharedNorms(graph, report);
  noteCopiesOfEmbeddings(graph, report);
  warnOfComputed(graph, report);
  reportLostParameters(graph, report);
  return {};
}

} // namespace ortc::frontend
