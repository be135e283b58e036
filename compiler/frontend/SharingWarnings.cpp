// What nothing in the file decides.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/frontend/SharingWarnings.h"

#include "compiler/frontend/EqualTensors.h"
#include "compiler/frontend/GeneratedNames.h"
#include "compiler/frontend/GraphEdits.h"
#include "compiler/frontend/InitializerGraph.h"
#include "compiler/frontend/InitializerOrigins.h"
#include "support/Lists.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <set>

namespace ortc::frontend {

/// Whether a node takes the input as the scale or bias of a normalisation.
static bool isNormWeight(const InitializerGraph &g, const proto::NodeProto &node, int input) {
  static const char *const kNorms[] = {"BatchNormalization",    "LayerNormalization",
                                       "InstanceNormalization", "GroupNormalization",
                                       "RMSNormalization",      "SimplifiedLayerNormalization"};
  return input >= 1 && input <= 2 && !g.isCall(node) &&
         std::any_of(std::begin(kNorms), std::end(kNorms),
                     [&](const char *norm) { return node.op_type() == norm; });
}

/// Whether a tool that stores equal tensors once may have made the name up: not a parameter's own.
static bool isMergedName(const std::string &name) {
  size_t at = name.find_last_of("./");
  std::string last = at == name.npos ? name : name.substr(at + 1);
  return isGeneratedName(name) || last.rfind("ones", 0) == 0 || last.rfind("zeros", 0) == 0;
}

static std::string listTwo(const std::vector<std::string> &names) {
  return names.size() > 2 ? quoteSome(names, 2) : "'" + names[0] + "' and '" + names[1] + "'";
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
      if (isNormWeight(g, g.graph.node(reader.node), reader.input))
        norms.push_back(nameOf(g.graph.node(reader.node)));
    if (norms.size() < 2 || !InitializerGraph::isFloat(*g.find(name)))
      continue;
    std::string elements = g.describeElements(*g.find(name));
    if (elements != "ones" && elements != "zeros")
      continue;
    report.warnings.push_back(
        "'" + name + "' (all " + elements + ") is read by " + std::to_string(norms.size()) +
        " normalisations, " + listTwo(norms) +
        ": exporters merge fresh weights that are equal, and these are trained as one; --untie " + name +
        " gives each its own");
  }
}

/// Whether rows of a table with elements of several values are looked up.
static bool isEmbedding(const InitializerGraph &g, const std::string &name) {
  const proto::TensorProto &table = *g.find(name);
  auto readers = g.readers.find(name);
  return table.dims_size() == 2 && table.dims(0) * table.dims(1) >= 2 && InitializerGraph::isFloat(table) &&
         readers != g.readers.end() &&
         std::any_of(readers->second.begin(), readers->second.end(),
                     [&](const Reader &reader) {
                       return reader.input == 0 && g.isNode(g.graph.node(reader.node), "Gather");
                     }) &&
         g.describeElements(table).empty();
}

/// An initializer that may be a copy of an embedding, or one.
struct Candidate {
  std::string name;
  TensorData data;
};

/// Notes what is a copy of a table; a copy once, whatever else is equal to it. Compares equal hashes only.
static void noteCopies(const InitializerGraph &g, const std::vector<Candidate> &bucket,
                       SharingReport &report) {
  std::map<uint64_t, std::vector<const Candidate *>> groups;
  for (const Candidate &each : bucket)
    groups[hashElements(each.data)].push_back(&each);
  for (const auto &[hash, group] : groups) {
    size_t bytes = 0; // no fewer than elements
    for (const Candidate *each : group)
      bytes += each->data.bytes.size();
    size_t comparisons = comparisonsFor(bytes);
    std::set<const Candidate *> copies;
    for (const Candidate *table : group) {
      if (copies.size() + 1 >= group.size() || !comparisons)
        break;
      if (copies.count(table) || !isEmbedding(g, table->name))
        continue;
      for (const Candidate *other : group) {
        std::optional<TensorView> view = other == table || copies.count(other)
                                             ? std::nullopt
                                             : findView(table->data, other->data, comparisons);
        if (!view)
          continue;
        copies.insert(other);
        report.notes.push_back("'" + other->name + "' is a " + (view->isTransposed() ? "transposed " : "") +
                               "copy of '" + table->name +
                               "', an embedding; they are trained apart. If the model ties them: --tie " +
                               other->name + "=" + table->name);
      }
    }
  }
}

static void noteCopiesOfEmbeddings(const InitializerGraph &g, SharingReport &report) {
  auto first = static_cast<ptrdiff_t>(report.notes.size());
  std::map<uint64_t, std::vector<Candidate>> byEnds;
  for (const auto &[name, index] : g.initializers) {
    Candidate candidate{name, {}};
    const proto::TensorProto &tensor = g.graph.initializer(index);
    if (InitializerGraph::isFloat(tensor) && g.readers.count(name) &&
        g.model.tensor(tensor, candidate.data).isOk())
      byEnds[hashEnds(candidate.data)].push_back(std::move(candidate));
  }
  for (const auto &[hash, bucket] : byEnds)
    if (bucket.size() > 1 && std::any_of(bucket.begin(), bucket.end(),
                                         [&](const Candidate &each) { return isEmbedding(g, each.name); }))
      noteCopies(g, bucket, report);
  std::sort(report.notes.begin() + first, report.notes.end());
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
  if (!used.empty())
    report.warnings.push_back("parameters that the exporter has dropped, or merged with equal ones: " +
                              quoteSome(used, 4) + "; export without folding (PyTorch: optimize=False)");
  if (!lost.empty())
    report.notes.push_back(
        std::to_string(lost.size()) +
        (lost.size() == 1 ? " parameter of the exported program is"
                          : " parameters of the exported program are") +
        " not in the file (tied, merged with equal ones, folded into others, or of no use): " +
        quoteSome(lost, 4));
}

/// Whether a folded value has the elements of its parameters, moved at most: by the name of the operation
/// that gave it. Values inside an operation ("val_3") are the transposed weights of matrix products and the
/// merged gates of recurrent layers.
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
  report.warnings.push_back(
      "trained in place of the parameters that the exporter computed it from, which is another training: " +
      joinSome(computed, 4) + "; export without folding (PyTorch: optimize=False)");
}

void warnOfSharing(const Model &model, SharingReport &report) {
  InitializerGraph graph(model);
  warnOfSharedNorms(graph, report);
  noteCopiesOfEmbeddings(graph, report);
  warnOfComputed(graph, report);
  reportLostParameters(graph, report);
}

} // namespace ortc::frontend
