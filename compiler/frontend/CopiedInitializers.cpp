//===- CopiedInitializers.cpp - one parameter in several initializers -----===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/frontend/CopiedInitializers.h"

#include "compiler/frontend/GeneratedNames.h"
#include "compiler/frontend/InitializerOrigins.h"

#include <algorithm>
#include <cctype>
#include <optional>

namespace ortc::frontend {

namespace {

/// Whether two equal tensors are one parameter.
enum class Relation { same, different, unknown };

/// What the file says of where its initializers come from.
class Evidence {
public:
  explicit Evidence(const InitializerGraph &g) : g(g), origins(findOrigins(g.graph)) {
    for (const auto &tensor : g.graph.initializer())
      addParameter(tensor.name());
    for (const auto &node : g.graph.node())
      if (isNode(node, "Identity") && node.output_size() == 1)
        addParameter(node.output(0));
  }

  bool isMadeUp(const std::string &name) const {
    auto origin = origins.find(name);
    return isGeneratedName(name) || isViewName(name) ||
           (origin != origins.end() && !origin->second.foldedFrom.empty());
  }
  /// A buffer, or a constant of the program.
  bool isConstant(const std::string &name) const {
    auto origin = origins.find(name);
    return origin != origins.end() &&
           (origin->second.origin == Origin::buffer || origin->second.origin == Origin::constant);
  }

  /// The exporter's word: the same parameters, or others.
  Relation relateOrigins(const std::string &a, const std::string &b) const {
    std::set<std::string> ours = parametersOf(a), theirs = parametersOf(b);
    return ours.empty() || theirs.empty() ? Relation::unknown
           : ours == theirs               ? Relation::same
                                          : Relation::different;
  }

  /// By the modules that read them. `isRandom`: the elements are not equal by chance.
  Relation relateModules(const std::string &a, const std::string &b, bool isRandom) const {
    std::string ours = moduleOf(a), theirs = moduleOf(b);
    if (ours.empty() || theirs.empty())
      return Relation::unknown;
    if (ours == theirs)
      return Relation::same;
    // Fresh modules have equal weights, and a copy of a layer has all of that layer's. A tied weight alone is equal.
    return !isRandom || areCopies(ours, theirs) ? Relation::different : Relation::same;
  }

private:
  /// Remembers a parameter under its module.
  void addParameter(const std::string &name) {
    size_t dot = name.rfind('.');
    if (dot == name.npos || !isParameterName(name))
      return;
    parameters[name.substr(0, dot)].insert(name.substr(dot + 1));
    for (; dot != name.npos && dot > 0; dot = name.rfind('.', dot - 1))
      modules.insert(name.substr(0, dot));
  }

  std::set<std::string> parametersOf(const std::string &name) const {
    auto found = origins.find(name);
    if (found == origins.end() || found->second.origin != Origin::parameter)
      return {};
    if (!found->second.parameters.empty())
      return found->second.parameters;
    return found->second.foldedFrom.empty() ? std::set<std::string>{name} : std::set<std::string>();
  }

  /// "layers.0.fc" for the node "/layers.0/fc/MatMul"; "" for nodes of no module. A second call of `fc` is written "fc_1", so
  /// an ending is a part of the name only where a parameter says so.
  std::string moduleOf(const proto::NodeProto &node) const {
    const std::string &name = node.name();
    std::string module;
    if (name.empty() || name[0] != '/')
      return module;
    for (size_t at = 1, slash; (slash = name.find('/', at)) != name.npos; at = slash + 1) {
      std::string part = (module.empty() ? "" : module + ".") + name.substr(at, slash - at);
      size_t end = part.find_last_not_of("0123456789");
      if (!modules.count(part) && end != part.npos && end + 1 < part.size() && part[end] == '_')
        part.resize(end);
      module = std::move(part);
    }
    return module;
  }
  /// The module of all readers; "" where they differ.
  const std::string &moduleOf(const std::string &name) const {
    auto [known, isNew] = modulesOf.insert({name, ""});
    if (isNew)
      known->second = findModule(name);
    return known->second;
  }
  std::string findModule(const std::string &name) const {
    std::optional<std::string> module;
    auto readers = g.readers.find(name);
    if (readers == g.readers.end())
      return "";
    for (const Reader &reader : readers->second) {
      const proto::NodeProto &node = g.graph.node(reader.node);
      if (isNode(node, "Identity"))
        continue;
      std::string own = moduleOf(node);
      if (module && *module != own)
        return "";
      module = own;
    }
    return module.value_or("");
  }

  /// The initializer that a name, or an Identity of that name, stands for.
  const proto::TensorProto *resolve(const std::string &name) const {
    if (const proto::TensorProto *tensor = g.find(name))
      return tensor;
    for (const auto &node : g.graph.node())
      if (isNode(node, "Identity") && node.output(0) == name)
        return g.find(node.input(0));
    return nullptr;
  }

  /// Whether one module was made by copying the other: further parameters are equal, too, or, where there are none that could
  /// tell, their paths differ in a number only.
  bool areCopies(const std::string &a, const std::string &b) const {
    auto ours = parameters.find(a), theirs = parameters.find(b);
    if (ours != parameters.end() && theirs != parameters.end())
      for (const std::string &name : ours->second) {
        if (!theirs->second.count(name))
          continue;
        const proto::TensorProto *left = resolve(a + "." + name), *right = resolve(b + "." + name);
        TensorData x, y;
        if (!left || !right || !InitializerGraph::isFloat(*left) || !g.model.tensor(*left, x).ok() ||
            !g.model.tensor(*right, y).ok())
          continue;
        if (x.bytes != y.bytes)
          return false;
        if (left != right || looksRandom(x))
          return true;
      }
    auto plain = [](std::string text) {
      text.erase(std::remove_if(text.begin(), text.end(), [](unsigned char c) { return isdigit(c); }),
                 text.end());
      return text;
    };
    return plain(a) == plain(b);
  }

  const InitializerGraph &g;
  std::map<std::string, InitializerOrigin> origins;
  std::map<std::string, std::set<std::string>> parameters; ///< the last parts of names, by module
  std::set<std::string> modules;
  mutable std::map<std::string, std::string> modulesOf; ///< by value, as they are asked for
};

/// An initializer that may be a copy, or an original.
struct Candidate {
  std::string name;
  TensorData data;
  bool isMadeUp;
};

/// Equal initializers, the first of which is the original of those that are one parameter with it.
class CopyFinder {
public:
  explicit CopyFinder(const InitializerGraph &g) : g(g), evidence(g) {}

  FoundCopies find() {
    findMerged();
    for (std::vector<Candidate> &bucket : splitBy(listCandidates(), hashEnds))
      for (const std::vector<Candidate> &group : splitBy(std::move(bucket), hashElements))
        relate(group);
    return std::move(found);
  }

private:
  /// Identity nodes with a made-up name whose readers belong to another module than those of the initializer.
  void findMerged() {
    for (int n = 0; n < g.graph.node_size(); ++n) {
      const auto &node = g.graph.node(n);
      if (!isNode(node, "Identity") || node.input_size() != 1 || node.output_size() != 1 ||
          g.outputs.count(node.output(0)) || !isGeneratedName(node.output(0)))
        continue;
      const proto::TensorProto *source = g.find(node.input(0));
      TensorData data;
      if (!source || !InitializerGraph::isFloat(*source) || !isGeneratedName(source->name()) ||
          !g.model.tensor(*source, data).ok())
        continue;
      bool isRandom = looksRandom(data);
      if (evidence.relateModules(source->name(), node.output(0), isRandom) == Relation::different)
        found.merged.push_back(n);
    }
  }

  std::vector<Candidate> listCandidates() const {
    std::vector<Candidate> candidates;
    for (const auto &tensor : g.graph.initializer()) {
      Candidate candidate{tensor.name(), {}, evidence.isMadeUp(tensor.name())};
      if (InitializerGraph::isFloat(tensor) && g.readers.count(tensor.name()) &&
          !g.outputs.count(tensor.name()) && !evidence.isConstant(tensor.name()) &&
          g.model.tensor(tensor, candidate.data).ok() &&
          candidate.data.bytes.size() > static_cast<size_t>(dataTypeBytes(tensor.data_type())))
        candidates.push_back(std::move(candidate));
    }
    return candidates;
  }

  /// Groups of at least two with a made-up name among them.
  template <typename Hash>
  static std::vector<std::vector<Candidate>> splitBy(std::vector<Candidate> candidates, Hash hash) {
    std::map<uint64_t, std::vector<Candidate>> groups;
    for (Candidate &candidate : candidates)
      groups[hash(candidate.data)].push_back(std::move(candidate));
    std::vector<std::vector<Candidate>> result;
    for (auto &[key, group] : groups)
      if (group.size() > 1 &&
          std::any_of(group.begin(), group.end(), [](const Candidate &each) { return each.isMadeUp; }))
        result.push_back(std::move(group));
    return result;
  }

  Relation relate(const std::string &original, const std::string &copy, bool isRandom) const {
    Relation relation = evidence.relateOrigins(original, copy);
    return relation == Relation::unknown ? evidence.relateModules(original, copy, isRandom) : relation;
  }

  /// Sorts equal initializers into parameters. Those with names of their own come first: they are not each other's copies.
  void relate(const std::vector<Candidate> &group) {
    std::vector<const Candidate *> ordered;
    for (bool isMadeUp : {false, true})
      for (const Candidate &candidate : group)
        if (candidate.isMadeUp == isMadeUp)
          ordered.push_back(&candidate);
    bool isRandom = looksRandom(group.front().data);
    auto named =
        std::count_if(group.begin(), group.end(), [](const Candidate &each) { return !each.isMadeUp; });
    std::vector<const Candidate *> originals;
    for (const Candidate *each : ordered) {
      const Candidate &candidate = *each;
      std::optional<FoundCopy> same, perhaps;
      for (const Candidate *original : originals) {
        if (!candidate.isMadeUp || same)
          break;
        Relation relation = relate(original->name, candidate.name, isRandom);
        if (relation == Relation::different)
          continue;
        // Of several parameters with names of their own it may be either.
        bool isSame = relation == Relation::same || (isRandom && (named < 2 || original->isMadeUp));
        if (!isSame && perhaps)
          continue;
        std::optional<TensorView> view = findView(original->data, candidate.data);
        if (view)
          (isSame ? same : perhaps) =
              FoundCopy{candidate.name, original->name, *view,
                        evidence.relateOrigins(original->name, candidate.name) == Relation::same};
      }
      if (same)
        found.same.push_back(*same);
      else
        originals.push_back(&candidate);
      if (perhaps && !same)
        found.perhaps.push_back(*perhaps);
    }
  }

  const InitializerGraph &g;
  Evidence evidence;
  FoundCopies found;
};

} // namespace

FoundCopies findCopies(const InitializerGraph &g) { return CopyFinder(g).find(); }

} // namespace ortc::frontend
