// Cuts data into the slices that steps take.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "engine/data/batches.h"

#include <algorithm>
#include <cstring>

#include "support/Text.h"

namespace ortc::engine {

/// Items of a window, in which an epoch over shards is mixed, and the bytes of their files: what is open at a time.
static constexpr int64_t kMostMixed = 16384;
static constexpr size_t kMostMixedBytes = 64 << 20;

/// Whether a row of shape a can be read as one of shape b without anybody being surprised: one is the other
/// with neighbouring dimensions merged or dimensions of 1 put in. [8, 8] is [64] and [1, 8, 8]; [3, 32, 32]
/// is not [32, 32, 3].
static bool isRegrouped(const Shape &a, const Shape &b) {
  auto products = [](const Shape &shape) {
    std::vector<int64_t> result;
    int64_t product = 1;
    for (size_t i = 1; i < shape.size(); ++i) {
      product *= shape[i];
      if (shape[i] != 1)
        result.push_back(product);
    }
    return result;
  };
  std::vector<int64_t> ofA = products(a), ofB = products(b);
  if ((ofA.empty() ? 1 : ofA.back()) != (ofB.empty() ? 1 : ofB.back()))
    return false;
  return std::includes(ofA.begin(), ofA.end(), ofB.begin(), ofB.end()) ||
         std::includes(ofB.begin(), ofB.end(), ofA.begin(), ofA.end());
}

static std::string listNames(const std::vector<std::string> &names) {
  std::string text;
  for (size_t i = 0; i < names.size() && i < 8; ++i)
    text += (i ? ", '" : "'") + names[i] + "'";
  return names.empty() ? "none" : text + (names.size() > 8 ? ", ..." : "");
}

/// Sequences of another length; or logits [batch, tokens, classes] whose classes were taken to be the tokens, as
/// PyTorch's convention has it.
static std::string adviseLabel(const InputSpec &spec, const Shape &shape) {
  if (spec.loss == "ctc" && shape.size() == 2 && spec.shape.size() == 2)
    return "; a sample has " + std::to_string(spec.shape[1]) +
           " labels with padding: compile with --loss ctc:labels=" + std::to_string(shape[1]) +
           ", or cut or pad the array";
  if (spec.loss != "cross_entropy" && spec.loss != "nll")
    return "";
  bool isPlausible =
      spec.isLabel && !isFloat(spec.type) && shape.size() == spec.shape.size() && shape.size() >= 2;
  return isPlausible ? "; where the last axis of the output has the classes, compile with --loss " +
                           spec.loss + ":axis=" + std::to_string(shape.size())
                     : "";
}

/// Finds the array of an input. The only one that no loss reads takes the only array that none reads, whatever its
/// name.
Status Batches::match(const DataSource &source, const std::vector<InputSpec> &inputs, Field &field,
                      std::vector<std::string> &notes) {
  const std::string &path = source.getPath();
  const InputSpec &spec = field.spec;
  std::string name = spec.name;
  if (!source.has(name)) {
    const auto others =
        std::count_if(inputs.begin(), inputs.end(), [](const InputSpec &each) { return !each.isLabel; });
    std::vector<std::string> candidates;
    for (const std::string &candidate : source.getNames())
      if (candidate != "label" && std::none_of(inputs.begin(), inputs.end(), [&](const InputSpec &each) {
            return each.isLabel && each.name == candidate;
          }))
        candidates.push_back(candidate);
    if (spec.isLabel || others != 1 || candidates.size() != 1) {
      std::string hint = source.getHint();
      return Status::failure(path + ": has no array '" + spec.name + "' for the " +
                             (spec.isLabel ? "loss" : "input of that name") + "; it has " +
                             listNames(source.getNames()) + (hint.empty() ? "" : "; " + hint));
    }
    name = candidates[0];
    notes.push_back(path + ": array '" + name + "' is taken for the graph's only input '" + spec.name + "'");
  }
  field.leading = spec.shape.empty() ? 1 : spec.shape[0];
  Shape wanted = spec.shape.empty() ? Shape{1} : spec.shape;
  Column &column = field.column;
  column = {name, spec.type, wanted, 0, 0};
  int64_t total = 0;
  if (!countElements(wanted, total) || !countElements(wanted, column.rowElements, 1))
    return Status::refusal(path + ": input '" + spec.name + "' has shape " + formatShape(wanted) +
                           ", which is too large");
  field.isEmpty = total == 0;
  column.toRow = size_t(column.rowElements) * getElementBytes(spec.type);
  field.sliceBytes = column.toRow * size_t(field.leading);
  return Status();
}

/// Checks the array of a field in a file, and adds its rows to the field's.
Status Batches::describe(const DataSource &source, Field &field, std::vector<std::string> &notes) {
  const InputSpec &spec = field.spec;
  const Shape &wanted = field.column.shape;
  Array array;
  ORTC_TRY(source.describe(field.column.array, array));
  if (array.shape.empty()) // a lone number is one slice
    array.shape = {1};
  std::string where = source.getPath() + ": array '" + field.column.array + "'";
  if (field.isEmpty) {
    field.leading = 1;
    return array.shape == wanted
               ? Status()
               : Status::failure(where + " has shape " + formatShape(array.shape) + " but input '" +
                                 spec.name + "' is " + formatShape(wanted));
  }
  if (array.bytes == 0)
    return Status::failure(where + " has shape " + formatShape(array.shape) + " and holds no elements");
  if (!field.shards.empty()) { // of other files
    bool isSameRow =
        std::equal(array.shape.begin() + 1, array.shape.end(), field.shape.begin() + 1, field.shape.end());
    if (!isSameRow || (array.type != field.type && !source.isText()))
      return Status::failure(where + " has shape " + formatShape(array.shape) + " of " +
                             getTypeName(array.type) + " but that of the first shard has " +
                             formatShape(field.shape) + " of " + getTypeName(field.type) +
                             "; all shards need the same types, and shapes of samples");
    field.shards.push_back(array.shape[0]);
    return Status();
  }
  bool isSame = array.shape.size() == wanted.size() &&
                std::equal(wanted.begin() + 1, wanted.end(), array.shape.begin() + 1);
  if (!isSame) {
    if (!isRegrouped(array.shape, wanted)) {
      std::string hint = source.getShapeHint(wanted);
      return Status::failure(where + " has shape " + formatShape(array.shape) + " but input '" + spec.name +
                             "' is " + formatShape(wanted) +
                             ": all dimensions after the first must be equal" +
                             (spec.isLabel && array.shape.size() == wanted.size() + 1
                                  ? "; for one-hot or probability labels compile with --loss "
                                    "cross_entropy:probabilities=1"
                                  : "") +
                             adviseLabel(spec, array.shape) + (hint.empty() ? "" : "; " + hint));
    }
    notes.push_back(where + " of shape " + formatShape(array.shape) + " is read as slices of " +
                    formatShape(wanted));
  }
  field.shape = array.shape;
  field.type = array.type;
  field.shards.push_back(array.shape[0]);
  return Status();
}

Status Batches::refuseCounts(const Field &field, const Field &first, const char *what, int64_t ours,
                             int64_t theirs) const {
  return Status::failure(path + ": array '" + field.column.array + "' has " + formatCount(ours, what) +
                         " but '" + first.column.array + "' has " + std::to_string(theirs));
}

/// Counts slices and checks that the arrays agree.
Status Batches::count(Remainder remainder) {
  auto place = std::find_if(fields.begin(), fields.end(), [](const Field &field) { return !field.isEmpty; });
  if (place == fields.end()) { // the graph's own constants are all it takes: an epoch is one step
    slices = 1;
    return countShards();
  }
  const Field &first = *place;
  bool equal = std::all_of(fields.begin(), fields.end(), [&](const Field &field) {
    return field.isEmpty || (!field.spec.shape.empty() && field.leading == first.leading);
  });
  auto isOther = [](const Field &field) { return !field.isEmpty && field.spec.isBatch == false; };
  auto other = std::find_if(fields.begin(), fields.end(), isOther);
  if (equal && other == fields.end())
    return countSamples(first, remainder);
  if (equal)
    otherInput = other->spec.name;
  return countSlices(first, remainder);
}

/// Rows are samples.
Status Batches::countSamples(const Field &first, Remainder remainder) {
  batch = first.leading;
  isAssumed = std::any_of(fields.begin(), fields.end(),
                          [](const Field &field) { return !field.isEmpty && !field.spec.isBatch; });
  samples = first.rows();
  ORTC_TRY(countShards());
  for (const Field &field : fields)
    if (!field.isEmpty && field.rows() != samples)
      return refuseCounts(field, first, "sample", field.rows(), samples);
  slices = samples / batch;
  if (remainder == Remainder::Repeat) {
    slices = (samples + batch - 1) / batch;
  } else if (slices == 0) {
    return Status::failure(path + ": has " + formatCount(samples, "sample") + " but a batch takes " +
                           std::to_string(batch) + "; compile with a smaller batch (--shape)");
  } else {
    dropped = samples % batch;
  }
  return Status();
}

/// Rows are no samples, and only whole slices change places.
Status Batches::countSlices(const Field &first, Remainder remainder) {
  slices = first.rows() / first.leading;
  ORTC_TRY(countShards());
  for (const Field &field : fields) {
    if (field.isEmpty)
      continue;
    if (field.rows() / field.leading != slices)
      return refuseCounts(field, first, "slice", field.rows() / field.leading, slices);
    int64_t rest = field.rows() % field.leading;
    if (rest && remainder == Remainder::Repeat)
      return Status::failure(path + ": array '" + field.column.array + "' has " +
                             formatCount(field.rows(), "row") + ", which is no multiple of the " +
                             std::to_string(field.leading) + " of a slice, and no samples can be repeated: " +
                             (otherInput.empty()
                                  ? "leading dimensions differ"
                                  : "the leading dimension of '" + otherInput + "' is not the batch"));
    dropped = std::max(dropped, rest);
    if (slices == 0)
      return Status::failure(path + ": array '" + field.column.array + "' has " +
                             formatCount(field.rows(), "row") + " but a slice takes " +
                             std::to_string(field.leading));
  }
  return Status();
}

Status Batches::create(const DataSource &source, const std::vector<InputSpec> &inputs, Remainder remainder,
                       Batches &batches, std::vector<std::string> &notes, const std::string &alsoUsed) {
  batches = Batches();
  batches.path = source.getPath();
  std::vector<std::string> unused = source.getNames();
  for (const InputSpec &spec : inputs) {
    Field &field = batches.fields.emplace_back();
    field.spec = spec;
    ORTC_TRY(batches.match(source, inputs, field, notes));
    std::erase(unused, field.column.array);
  }
  std::erase(unused, "label");
  std::erase(unused, alsoUsed);
  if (!unused.empty())
    notes.push_back(source.getPath() + ": not used: " + listNames(unused));
  return batches.open(source, remainder, notes);
}

Status Batches::open(const DataSource &source, Remainder remainder, std::vector<std::string> &notes) {
  std::shared_ptr<const Shards> shards = source.getShards();
  for (size_t shard = 0; shard < (shards ? shards->size() : 1); ++shard) {
    std::unique_ptr<DataSource> opened;
    if (shards) {
      ORTC_TRY(shards->open(shard, opened));
      paths.push_back(shards->getPath(shard));
      ORTC_TRY(checkSameNames(source, paths[0], *opened));
    }
    for (Field &field : fields)
      ORTC_TRY(describe(shards ? *opened : source, field, notes));
  }
  ORTC_TRY(count(remainder));
  std::vector<Column> columns;
  for (const Field &field : fields) {
    columns.push_back(field.column);
    if (field.isEmpty)
      columns.back().array.clear();
  }
  std::vector<Piece> pieces;
  const std::vector<Piece> *first = &pieces;
  if (shards) {
    cache = std::make_shared<PieceCache>(std::move(shards), std::move(columns));
    ORTC_TRY(cache->get(0, first));
  } else {
    ORTC_TRY(loadPieces(source, columns, pieces));
  }
  size_t itemBytes = 0;
  for (size_t i = 0; i < fields.size(); ++i) {
    if (const std::string &note = (*first)[i].conversion.note; !note.empty())
      notes.push_back(note);
    itemBytes += (*first)[i].fromRow * size_t(isBatch() ? 1 : fields[i].leading);
  }
  run = source.getRun();
  window = std::clamp(int64_t(kMostMixedBytes / std::max<size_t>(itemBytes, 1)), int64_t(1), kMostMixed);
  if (!cache)
    cache = std::make_shared<PieceCache>(std::move(pieces));
  return Status();
}

/// Where the items of each file begin; the arrays of each must have equally many.
Status Batches::countShards() {
  begins = {0};
  size_t count = 1;
  for (const Field &field : fields)
    count = std::max(count, field.shards.size());
  for (size_t shard = 0; shard < count; ++shard) {
    const Field *first = nullptr;
    int64_t items = slices; // without a field that has rows
    for (const Field &field : fields) {
      if (field.isEmpty)
        continue;
      int64_t rows = field.shards[shard], unit = isBatch() ? 1 : field.leading;
      if (count > 1 && rows % unit)
        return Status::failure(paths[shard] + ": array '" + field.column.array + "' has " +
                               formatCount(rows, "row") + ", which is no multiple of the " +
                               std::to_string(unit) + " of a slice; slices do not go on in the next shard");
      if (count > 1 && first && rows / unit != items)
        return Status::failure(paths[shard] + ": array '" + field.column.array + "' has " +
                               formatCount(rows / unit, isBatch() ? "sample" : "slice") + " but '" +
                               first->column.array + "' has " + std::to_string(items));
      if (!first)
        items = rows / unit;
      first = &field;
    }
    begins.push_back(begins.back() + items);
  }
  return Status();
}

Status Batches::setShare(int64_t number, int64_t count) {
  rank = number;
  world = count;
  if (slices < world)
    return Status::failure(path + ": an epoch has " + formatCount(slices, "step") + ", fewer than the " +
                           std::to_string(world) + " processes of --world");
  if (isBatch())
    dropped = samples - slices / world * world * batch;
  return Status();
}

Order Batches::makeOrder(uint64_t seed, int64_t epoch) const {
  if (paths.empty() && run == 0)
    return Order(shuffle(seed, epoch, getItems()));
  std::vector<int64_t> parts;
  constexpr int64_t kMostParts = 65536; // of a file
  for (size_t shard = 0; shard + 1 < begins.size(); ++shard) {
    int64_t items = begins[shard + 1] - begins[shard], each = run ? std::max(run, items / kMostParts) : items;
    for (int64_t at = 0; at < items; at += each)
      parts.push_back(std::min(each, items - at));
  }
  return Order(seed, epoch, parts, window);
}

std::string Batches::describeDropped(const std::string &of) const {
  return path + ": " + formatCount(dropped, isBatch() ? "sample" : "row") +
         (isBatch() ? " of " + std::to_string(samples) : "") + " at the end of " + of +
         (dropped == 1 ? " does" : " do") + " not fill a " +
         (isBatch() ? "batch of " + std::to_string(batch) : "slice") +
         (dropped == 1 ? " and is" : " and are") + " dropped";
}

std::string Batches::describeShuffling() const {
  if (isAssumed && batch > 1)
    return path + ": the leading dimension, " + std::to_string(batch) +
           (fields.size() > 1 ? " in every input" : "") +
           ", is taken for a batch, and samples of all steps are mixed; where the rows of a step belong "
           "together, give --no-shuffle, or export the model with a symbolic batch dimension";
  if (!otherInput.empty() && slices > 1 && fields[0].leading > 1)
    return path + ": whole slices change places, and no samples: the leading dimension of '" + otherInput +
           "' is not the batch";
  return "";
}

std::string Batches::describeFilling() const {
  int64_t rest = isBatch() ? samples % batch : 0;
  if (rest == 0)
    return "";
  return path + ": the last slice has " + formatCount(rest, "sample") + " and is filled to " +
         std::to_string(batch) + " by repeating " + (rest == 1 ? "it" : "them") +
         ", which changes results where the model lets samples depend on each other";
}

int64_t Batches::getRealRows(int64_t slice) const {
  return isBatch() ? std::min(batch, samples - place(slice) * batch) : fields.empty() ? 1 : fields[0].leading;
}

int64_t Batches::getItem(int64_t slice, int64_t row, const Order *order) const {
  int64_t item = isBatch() ? place(slice) * batch + row % getRealRows(slice) : place(slice);
  return order ? (*order)[item] : item;
}

size_t Batches::findShard(int64_t item) const {
  return begins.size() == 2
             ? 0
             : size_t(std::upper_bound(begins.begin() + 1, begins.end() - 1, item) - begins.begin()) - 1;
}

/// The rows of a slice of a field, those of each file together.
std::vector<Batches::Run> Batches::listRuns(const Field &field, int64_t slice, const Order *order) const {
  std::vector<Run> runs;
  if (!isBatch()) {
    int64_t item = getItem(slice, 0, order);
    size_t shard = findShard(item);
    return {{shard, (item - begins[shard]) * field.leading, 0, field.leading}};
  }
  runs.reserve(order ? size_t(batch) : 2);
  int64_t real = getRealRows(slice);
  for (int64_t row = 0; row < batch;) {
    int64_t item = getItem(slice, row, order);
    size_t shard = findShard(item);
    int64_t rows = order ? 1 : std::min({batch - row, real - row % real, begins[shard + 1] - item});
    runs.push_back({shard, item - begins[shard], row, rows});
    row += rows;
  }
  if (begins.size() > 2)
    std::sort(runs.begin(), runs.end(), [](const Run &a, const Run &b) {
      return std::pair(a.shard, a.place) < std::pair(b.shard, b.place);
    });
  return runs;
}

bool Batches::canCut(size_t input) const {
  const Field &field = fields[input];
  return field.isEmpty || std::equal(field.spec.shape.begin() + 1, field.spec.shape.end(),
                                     field.shape.begin() + 1, field.shape.end());
}

Status Batches::gather(size_t input, int64_t slice, const Order *order, uint8_t *to) const {
  return gather(input, slice, order, fields[input].spec.shape, to);
}

Status Batches::gather(size_t input, int64_t slice, const Order *order, const Shape &shape,
                       uint8_t *to) const {
  const Field &field = fields[input];
  if (field.isEmpty)
    return Status();
  const Column &column = field.column;
  bool isCut = shape != field.spec.shape;
  size_t cutRow = getElementBytes(column.type); // bytes
  for (size_t i = 1; i < shape.size(); ++i)
    cutRow *= size_t(shape[i]);
  std::vector<Run> runs = listRuns(field, slice, order);
  for (auto begin = runs.begin(), end = begin; begin != runs.end(); begin = end) {
    end = std::find_if(begin, runs.end(), [&](const Run &run) { return run.shard != begin->shard; });
    const std::vector<Piece> *pieces = nullptr;
    ORTC_TRY(cache->get(begin->shard, pieces));
    const Piece &piece = (*pieces)[input];
    ORTC_TRY(piece.guard([&] {
      for (auto run = begin; run != end; ++run) {
        if (!isCut)
          piece.copy(column, run->row, run->rows, to + size_t(run->place) * column.toRow);
        for (int64_t i = 0; isCut && i < run->rows; ++i)
          piece.copyCut(column, run->row + i, shape, to + size_t(run->place + i) * cutRow);
      }
    }));
  }
  return Status();
}

std::string Batches::describeElement(size_t input, int64_t slice, int64_t element, const Shape &shape,
                                     const Order *order) const {
  const Field &field = fields[input];
  if (field.isEmpty)
    return "";
  int64_t rest = element, inRow = 0, stride = 1;
  for (size_t axis = shape.size(); axis-- > 1; rest /= shape[axis], stride *= field.column.shape[axis])
    inRow += rest % shape[axis] * stride;
  int64_t item = getItem(slice, isBatch() ? rest : 0, order);
  size_t shard = findShard(item);
  int64_t local = item - begins[shard], row = isBatch() ? local : local * field.leading + rest;
  std::string text = (isBatch() ? "sample " : "slice ") + std::to_string(local) + " of " +
                     (paths.empty() ? path : paths[shard]) + ", element " +
                     std::to_string(isBatch() ? inRow : rest * field.column.rowElements + inRow) +
                     " of its '" + field.column.array + "'";
  const std::vector<Piece> *pieces = nullptr;
  if (!cache->get(shard, pieces).isOk())
    return text;
  const Piece &piece = (*pieces)[input];
  if (piece.array.findLine)
    if (size_t line = piece.array.findLine(row))
      return text + ", in line " + std::to_string(line);
  if (!piece.array.file)
    return text;
  size_t offset = size_t(piece.array.data - piece.array.file->getData()) + size_t(row) * piece.fromRow +
                  size_t(inRow) * getElementBytes(piece.array.type);
  return text + ", at byte " + std::to_string(offset);
}

} // namespace ortc::engine
