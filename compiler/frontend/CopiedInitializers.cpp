// One parameter in several initializers.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "compiler/frontend/CopiedInitializers.h"

#include "compiler/frontend/GeneratedNames.h"
#include "compiler/frontend/InitializerOrigins.h"

#include <algorithm>
#include <cctype>
#include <optional>
#include <string_view>
#include <utility>

namespace ortc::frontend {

namespace {

/// Whether two equal tensors are one parameter.
enum class Relation { same, different, unknown };

/// What the file says of where an initializer, or an Identity of one, belongs: numbers, 0 where it says nothing.
struct Place {
  int module = 0;     ///< of all readers
  int parameters = 0; ///< the set of parameters that it is, or was folded from
};

/// What the file says of where its initializers come from.
class Evidence {
public:
  explicit Evidence(const InitializerGraph &g) : g(g), origins(findOrigins(g.graph)) {
    for (const auto &tensor : g.graph.initializer())
      addParameter(tensor.name());
    for (const auto &node : g.graph.node())
      if (g.isIdentity(node)) {
        addParameter(node.output(0));
        sources[node.output(0)] = node.input(0);
      }
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

  Place find(const std::string &name) { return {findModule(name), numberOf(parametersOf(name))}; }

  /// `isRandom`: the elements are not equal by chance.
  Relation relate(const Place &a, const Place &b, bool isRandom) {
    if (a.parameters && b.parameters) // the exporter's word
      return a.parameters == b.parameters ? Relation::same : Relation::different;
    if (!a.module || !b.module)
      return Relation::unknown;
    if (a.module == b.module)
      return Relation::same;
    // Fresh modules have equal weights, and a copy of a layer has all of that layer's. A tied weight alone is equal.
    return !isRandom || areCopies(a.module, b.module) ? Relation::different : Relation::same;
  }

  bool isRandom(const proto::TensorProto &tensor, const TensorData &data) {
    auto [known, isNew] = randomness.insert({&tensor, false});
    if (isNew)
      known->second = looksRandom(data);
    return known->second;
  }

private:
  /// Remembers a parameter under its module, and the modules around that one. The parts of names are a tree,
  /// which takes no more memory than the names.
  void addParameter(const std::string &name) {
    size_t dot = name.rfind('.');
    if (dot == name.npos || !isParameterName(name))
      return;
    std::string_view module = std::string_view(name).substr(0, dot);
    parameters[module].insert(std::string_view(name).substr(dot + 1));
    int at = 0;
    forEachPart(module, [&](std::string_view part) {
      at = parts.insert({{at, part}, static_cast<int>(parts.size()) + 1}).first->second;
      return true;
    });
  }

  template <typename Visit> static void forEachPart(std::string_view text, Visit visit) {
    for (size_t dot; (dot = text.find('.')) != text.npos; text.remove_prefix(dot + 1))
      if (!visit(text.substr(0, dot)))
        return;
    visit(text);
  }
  /// From a module, or -1, on to the one of that path inside it; -1 where no parameter has such a name.
  int follow(int at, std::string_view path) const {
    forEachPart(path, [&](std::string_view part) {
      auto found = parts.find({at, part});
      at = found == parts.end() ? -1 : found->second;
      return at >= 0;
    });
    return at;
  }

  std::set<std::string> parametersOf(const std::string &name) const {
    auto found = origins.find(name);
    if (found == origins.end() || found->second.origin != Origin::parameter)
      return {};
    if (!found->second.parameters.empty())
      return found->second.parameters;
    return found->second.foldedFrom.empty() ? std::set<std::string>{name} : std::set<std::string>();
  }
  int numberOf(std::set<std::string> names) {
    return names.empty()
               ? 0
               : numbers.insert({std::move(names), static_cast<int>(numbers.size()) + 1}).first->second;
  }

  /// "layers.0.fc" for the node "/layers.0/fc/MatMul"; "" for nodes of no module. A second call of `fc` is
  /// written "fc_1", so an ending is a part of the name only where a parameter says so.
  std::string nameModule(const proto::NodeProto &node) const {
    const std::string &name = node.name();
    std::string module;
    if (name.empty() || name[0] != '/')
      return module;
    int at = 0;
    for (size_t begin = 1, slash; (slash = name.find('/', begin)) != name.npos; begin = slash + 1) {
      std::string_view path = std::string_view(name).substr(begin, slash - begin);
      int next = follow(at, path);
      size_t end = path.find_last_not_of("0123456789");
      if (next < 0 && end != path.npos && end + 1 < path.size() && path[end] == '_') {
        path = path.substr(0, end);
        next = follow(at, path);
      }
      if (!module.empty())
        module += '.';
      module += path;
      at = module.empty() ? 0 : next;
    }
    return module;
  }
  int findModule(const proto::NodeProto &node) {
    auto [known, isNew] = modulesOf.insert({&node, 0});
    if (!isNew)
      return known->second;
    std::string name = nameModule(node);
    if (name.empty())
      return 0;
    auto [number, isFirst] =
        moduleNumbers.insert({std::move(name), static_cast<int>(moduleNames.size()) + 1});
    if (isFirst)
      moduleNames.push_back(number->first);
    return known->second = number->second;
  }
  /// The module of all readers; 0 where they differ.
  int findModule(const std::string &name) {
    std::optional<int> module;
    auto readers = g.readers.find(name);
    if (readers == g.readers.end())
      return 0;
    for (const Reader &reader : readers->second) {
      const proto::NodeProto &node = g.graph.node(reader.node);
      if (g.isNode(node, "Identity"))
        continue;
      int own = findModule(node);
      if (module && *module != own)
        return 0;
      module = own;
    }
    return module.value_or(0);
  }

  /// The initializer that a name, or an Identity of that name, stands for.
  const proto::TensorProto *resolve(const std::string &name) const {
    auto source = sources.find(name);
    return g.find(source == sources.end() ? name : source->second);
  }

  /// Whether one module was made by copying the other: further parameters are equal, too, or, where there are
  /// none that could tell, their paths differ in a number only.
  bool areCopies(int a, int b) {
    auto [known, isNew] = copies.insert({std::minmax(a, b), false});
    if (isNew)
      known->second =
          compareModules(moduleNames[static_cast<size_t>(a) - 1], moduleNames[static_cast<size_t>(b) - 1]);
    return known->second;
  }
  bool compareModules(const std::string &a, const std::string &b) {
    static const std::set<std::string_view> kNone;
    auto listOf = [&](const std::string &module) -> const std::set<std::string_view> & {
      auto found = parameters.find(module);
      return found == parameters.end() ? kNone : found->second;
    };
    const std::set<std::string_view> *few = &listOf(a), *many = &listOf(b);
    if (few->size() > many->size())
      std::swap(few, many);
    for (std::string_view name : *few) {
      if (!many->count(name))
        continue;
      std::string ending = "." + std::string(name);
      const proto::TensorProto *left = resolve(a + ending), *right = resolve(b + ending);
      TensorData x, y;
      if (!left || !right || !InitializerGraph::isFloat(*left) || !g.model.tensor(*left, x).isOk() ||
          !g.model.tensor(*right, y).isOk())
        continue;
      if (left != right)
        return x.bytes == y.bytes;
      if (isRandom(*left, x))
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
  std::map<std::string, std::string> sources;                        ///< of Identity nodes, by output
  std::map<std::string_view, std::set<std::string_view>> parameters; ///< the last parts of names, by module
  std::map<std::pair<int, std::string_view>, int> parts;             ///< the tree of modules; 0 is around all
  // By what they are asked for, as they are.
  std::map<std::set<std::string>, int> numbers; ///< of sets of parameters, from 1
  std::map<std::string, int> moduleNumbers;     ///< from 1
  std::vector<std::string> moduleNames;
  std::map<const proto::NodeProto *, int> modulesOf;
  std::map<const proto::TensorProto *, bool> randomness;
  std::map<std::pair<int, int>, bool> copies;
};

/// Originals of other modules than a copy's that it is compared with, and of each other kind.
constexpr size_t kMostOriginals = 32;

/// An initializer that may be a copy, or an original.
struct Candidate {
  std::string name;
  TensorData data;
  bool isMadeUp;
  Place place{};
};

/// Equal initializers, the first of which is the original of those that are one parameter with it.
class CopyFinder {
public:
  explicit CopyFinder(const InitializerGraph &g) : g(g), evidence(g) {}

  FoundCopies find() {
    for (std::vector<Candidate> &bucket : splitBy(listCandidates(), hashEnds))
      for (std::vector<Candidate> &group : splitBy(std::move(bucket), hashElements))
        relate(std::move(group));
    return std::move(found);
  }

  /// Identity nodes with a made-up name whose readers belong to another module than those of the initializer.
  std::vector<int> findMerged() {
    std::vector<int> merged;
    for (int n = 0; n < g.graph.node_size(); ++n) {
      const auto &node = g.graph.node(n);
      if (!g.isIdentity(node) || g.outputs.count(node.output(0)) || !isGeneratedName(node.output(0)))
        continue;
      const proto::TensorProto *source = g.find(node.input(0));
      TensorData data;
      if (!source || !InitializerGraph::isFloat(*source) || !isGeneratedName(source->name()) ||
          !g.model.tensor(*source, data).isOk())
        continue;
      // By their modules alone.
      Place ours = evidence.find(source->name()), theirs = evidence.find(node.output(0));
      ours.parameters = theirs.parameters = 0;
      if (evidence.relate(ours, theirs, evidence.isRandom(*source, data)) == Relation::different)
        merged.push_back(n);
    }
    return merged;
  }

private:
  std::vector<Candidate> listCandidates() const {
    std::vector<Candidate> candidates;
    for (const auto &tensor : g.graph.initializer()) {
      Candidate candidate{tensor.name(), {}, evidence.isMadeUp(tensor.name())};
      if (InitializerGraph::isFloat(tensor) && g.readers.count(tensor.name()) &&
          !g.outputs.count(tensor.name()) && !evidence.isConstant(tensor.name()) &&
          g.model.tensor(tensor, candidate.data).isOk() &&
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

  /// Sorts equal initializers into parameters. Those with names of their own come first: they are not each
  /// other's copies. A copy is compared with the originals that it may be the same as: of its parameters, of
  /// its module, of no module. With others, of which the elements must tell, it is compared up to a limit, so
  /// that the time is linear.
  void relate(std::vector<Candidate> group) {
    std::vector<const Candidate *> ordered;
    size_t elements = 0;
    for (Candidate &candidate : group) {
      candidate.place = evidence.find(candidate.name);
      elements += countElements(candidate);
    }
    for (bool isMadeUp : {false, true})
      for (const Candidate &candidate : group)
        if (candidate.isMadeUp == isMadeUp)
          ordered.push_back(&candidate);
    bool isRandom = looksRandom(group.front().data);
    auto named =
        std::count_if(group.begin(), group.end(), [](const Candidate &each) { return !each.isMadeUp; });
    std::vector<const Candidate *> originals;
    std::map<int, std::vector<size_t>> byModule, byParameters; // the first of each
    size_t comparisons = comparisonsFor(elements);
    for (const Candidate *each : ordered) {
      const Candidate &candidate = *each;
      std::set<size_t> chosen;
      if (candidate.isMadeUp) {
        for (const std::vector<size_t> *list :
             {&byModule[candidate.place.module], &byModule[0], &byParameters[candidate.place.parameters]})
          chosen.insert(list->begin(), list->end());
        if (isRandom || !candidate.place.module)
          for (size_t i = 0; i < std::min(originals.size(), kMostOriginals); ++i)
            chosen.insert(i);
      }
      std::optional<FoundCopy> same, perhaps;
      for (size_t at : chosen) {
        const Candidate *original = originals[at];
        Relation relation = evidence.relate(original->place, candidate.place, isRandom);
        if (relation == Relation::different)
          continue;
        // Of several parameters with names of their own it may be either.
        bool isSame = relation == Relation::same || (isRandom && (named < 2 || original->isMadeUp));
        if (!isSame && perhaps)
          continue;
        if (std::optional<TensorView> view = findView(*original, candidate, comparisons))
          (isSame ? same : perhaps) = FoundCopy{candidate.name, original->name, *view,
                                                candidate.place.parameters &&
                                                    original->place.parameters == candidate.place.parameters};
        if (same)
          break;
      }
      if (same) {
        found.same.push_back(*same);
        continue;
      }
      for (std::vector<size_t> *list :
           {&byModule[candidate.place.module], &byParameters[candidate.place.parameters]})
        if (list->size() < kMostOriginals)
          list->push_back(originals.size());
      originals.push_back(&candidate);
      if (perhaps)
        found.perhaps.push_back(*perhaps);
    }
  }

  static size_t countElements(const Candidate &candidate) {
    return candidate.data.bytes.size() / static_cast<size_t>(dataTypeBytes(candidate.data.type));
  }

  /// One pair takes no more of the comparisons of a group than it would get alone.
  static std::optional<TensorView> findView(const Candidate &original, const Candidate &copy,
                                            size_t &comparisons) {
    size_t own = std::min(comparisons, comparisonsFor(countElements(original)));
    comparisons -= own;
    std::optional<TensorView> view = frontend::findView(original.data, copy.data, own);
    comparisons += own; // what is left
    return view;
  }

  const InitializerGraph &g;
  Evidence evidence;
  FoundCopies found;
};

} // namespace

FoundCopies findCopies(const InitializerGraph &g) { return CopyFinder(g).find(); }
std::vector<int> findMergedCopies(const InitializerGraph &g) { return CopyFinder(g).findMerged(); }

} // namespace ortc::frontend
