// Cuts data into the slices that steps take.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "host/batches.h"

#include <algorithm>
#include <cstring>

#include "host/data/mapped_file.h"
#include "host/text.h"
#include "support/Shuffle.h"

namespace ortc::host {

/// When a step reads this many bytes of neighbouring rows from a file, their pages are let go.
static constexpr size_t kForgotten = 256 << 10;
/// At most so much comes back in front of a page that is read: Linux maps 64 KiB, or a whole piece of its cache.
static constexpr size_t kMappedAround = 2 << 20;

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

/// Logits [batch, tokens, classes] whose classes were taken to be the tokens, as PyTorch's convention has it.
static std::string adviseAxis(const InputSpec &spec, const Shape &shape) {
  bool isPlausible =
      spec.isLabel && !isFloat(spec.type) && shape.size() == spec.shape.size() && shape.size() >= 2;
  return isPlausible ? "; where the last axis of the output has the classes, compile with --loss "
                       "cross_entropy:axis=" +
                           std::to_string(shape.size())
                     : "";
}

/// Finds and loads the array of an input. `others`: graph inputs beside the label; the only one takes the
/// only array beside the label, whatever its name.
Status Batches::match(const DataSource &source, Field &field, size_t others,
                      std::vector<std::string> &notes) {
  const std::string &path = source.getPath();
  const InputSpec &spec = field.spec;
  std::string name = spec.name;
  if (!source.has(name)) {
    std::vector<std::string> candidates;
    for (const std::string &candidate : source.getNames())
      if (candidate != "label")
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
  Array &array = field.array;
  ORTC_TRY(source.describe(name, array));
  if (array.shape.empty()) // a lone number is one slice
    array.shape = {1};
  std::string where = path + ": array '" + name + "'";
  field.leading = spec.shape.empty() ? 1 : spec.shape[0];
  Shape wanted = spec.shape.empty() ? Shape{1} : spec.shape;
  bool isSame = array.shape.size() == wanted.size() &&
                std::equal(wanted.begin() + 1, wanted.end(), array.shape.begin() + 1);
  int64_t rowElements = 0, total = 0;
  if (!countElements(wanted, total) || !countElements(wanted, rowElements, 1))
    return Status::refusal(path + ": input '" + spec.name + "' has shape " + formatShape(wanted) +
                           ", which is too large");
  field.isEmpty = total == 0;
  if (field.isEmpty) {
    field.leading = 1;
    return array.shape == wanted
               ? Status()
               : Status::failure(where + " has shape " + formatShape(array.shape) + " but input '" +
                                 spec.name + "' is " + formatShape(wanted));
  }
  if (array.bytes == 0)
    return Status::failure(where + " has shape " + formatShape(array.shape) + " and holds no elements");
  if (!isSame) {
    if (!isRegrouped(array.shape, wanted))
      return Status::failure(where + " has shape " + formatShape(array.shape) + " but input '" + spec.name +
                             "' is " + formatShape(wanted) +
                             ": all dimensions after the first must be equal" +
                             (spec.isLabel && array.shape.size() == wanted.size() + 1
                                  ? "; for one-hot or probability labels compile with --loss "
                                    "cross_entropy:probabilities=1"
                                  : "") +
                             adviseAxis(spec, array.shape));
    notes.push_back(where + " of shape " + formatShape(array.shape) + " is read as slices of " +
                    formatShape(wanted));
  }
  Shape shape = array.shape;
  ORTC_TRY(source.load(name, array));
  array.shape = shape;
  ORTC_TRY(planConversion(array, spec.type, where, field.conversion));
  if (!field.conversion.note.empty())
    notes.push_back(field.conversion.note);
  field.rowElements = rowElements;
  field.fromRow = size_t(rowElements) * getElementBytes(array.type);
  field.toRow = size_t(rowElements) * getElementBytes(spec.type);
  field.sliceBytes = field.toRow * size_t(field.leading);
  return Status();
}

/// Counts slices and checks that the arrays agree.
Status Batches::count(const std::string &path, Remainder remainder) {
  auto place = std::find_if(fields.begin(), fields.end(), [](const Field &field) { return !field.isEmpty; });
  if (place == fields.end()) { // the graph's own constants are all it takes: an epoch is one step
    slices = 1;
    return Status();
  }
  const Field &first = *place;
  bool equal = std::all_of(fields.begin(), fields.end(), [&](const Field &field) {
    return field.isEmpty || (!field.spec.shape.empty() && field.leading == first.leading);
  });
  auto isOther = [](const Field &field) { return !field.isEmpty && field.spec.isBatch == false; };
  auto other = std::find_if(fields.begin(), fields.end(), isOther);
  if (equal && other != fields.end())
    otherInput = other->spec.name;
  auto disagree = [&](const Field &field, const char *what, int64_t ours, int64_t theirs) {
    return Status::failure(path + ": array '" + field.array.name + "' has " + formatCount(ours, what) +
                           " but '" + first.array.name + "' has " + std::to_string(theirs));
  };
  if (equal && other == fields.end()) {
    batch = first.leading;
    isAssumed = std::any_of(fields.begin(), fields.end(),
                            [](const Field &field) { return !field.isEmpty && !field.spec.isBatch; });
    samples = first.rows();
    for (const Field &field : fields)
      if (!field.isEmpty && field.rows() != samples)
        return disagree(field, "sample", field.rows(), samples);
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
  slices = first.rows() / first.leading;
  for (const Field &field : fields) {
    if (field.isEmpty)
      continue;
    if (field.rows() / field.leading != slices)
      return disagree(field, "slice", field.rows() / field.leading, slices);
    int64_t rest = field.rows() % field.leading;
    if (rest && remainder == Remainder::Repeat)
      return Status::failure(path + ": array '" + field.array.name + "' has " +
                             formatCount(field.rows(), "row") + ", which is no multiple of the " +
                             std::to_string(field.leading) + " of a slice, and no samples can be repeated: " +
                             (otherInput.empty()
                                  ? "leading dimensions differ"
                                  : "the leading dimension of '" + otherInput + "' is not the batch"));
    dropped = std::max(dropped, rest);
    if (slices == 0)
      return Status::failure(path + ": array '" + field.array.name + "' has " +
                             formatCount(field.rows(), "row") + " but a slice takes " +
                             std::to_string(field.leading));
  }
  return Status();
}

Status Batches::create(const DataSource &source, const std::vector<InputSpec> &inputs, Remainder remainder,
                       Batches &batches, std::vector<std::string> &notes, const std::string &alsoUsed) {
  batches = Batches();
  batches.path = source.getPath();
  size_t others = size_t(
      std::count_if(inputs.begin(), inputs.end(), [](const InputSpec &spec) { return !spec.isLabel; }));
  std::vector<std::string> unused = source.getNames();
  for (const InputSpec &spec : inputs) {
    Field &field = batches.fields.emplace_back();
    field.spec = spec;
    ORTC_TRY(batches.match(source, field, others, notes));
    std::erase(unused, field.array.name);
  }
  std::erase(unused, "label");
  std::erase(unused, alsoUsed);
  if (!unused.empty())
    notes.push_back(source.getPath() + ": not used: " + listNames(unused));
  return batches.count(source.getPath(), remainder);
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
  return isBatch() ? std::min(batch, samples - slice * batch) : fields.empty() ? 1 : fields[0].leading;
}

/// Copies rows that follow each other.
void Batches::Field::copy(int64_t row, int64_t rows, uint8_t *to) const {
  // Reading on costs a page fault for every 64 KiB: little beside copying as much, but a lot beside a small row.
  bool forgets = array.file && size_t(rows) * fromRow >= kForgotten;
  int64_t most = forgets ? std::max(int64_t(kForgotten / fromRow), int64_t(1)) : rows;
  for (int64_t piece; rows; row += piece, to += size_t(piece) * toRow, rows -= piece) {
    piece = std::min(rows, most);
    const uint8_t *from = array.data + size_t(row) * fromRow;
    if (conversion.convert)
      conversion.convert(from, to, size_t(piece * rowElements));
    else
      std::memcpy(to, from, size_t(piece) * toRow);
    // The kernel maps pages around the one that is read, so those of the piece before came back.
    size_t before = std::min(size_t(from - array.data), kMappedAround);
    if (forgets)
      forgetPages(from - before, before + size_t(piece) * fromRow);
  }
}

/// Owns nothing: it may be left in the middle (MappedFile::read).
void Batches::copySlice(const Field &field, int64_t slice, const std::vector<int64_t> *order,
                        uint8_t *to) const {
  if (!isBatch())
    return field.copy((order ? (*order)[size_t(slice)] : slice) * field.leading, field.leading, to);
  int64_t real = getRealRows(slice);
  for (int64_t row = 0; row < batch;) {
    uint8_t *target = to + size_t(row) * field.toRow;
    int64_t run = order ? 1 : std::min(batch - row, real - row % real);
    field.copy(getItem(slice, row, order), run, target);
    row += run;
  }
}

int64_t Batches::getItem(int64_t slice, int64_t row, const std::vector<int64_t> *order) const {
  int64_t item = slice * batch + row % getRealRows(slice);
  return order ? (*order)[size_t(item)] : item;
}

bool Batches::canCut(size_t input) const {
  const Field &field = fields[input];
  return field.isEmpty || std::equal(field.spec.shape.begin() + 1, field.spec.shape.end(),
                                     field.array.shape.begin() + 1, field.array.shape.end());
}

void Batches::Field::copyCut(const uint8_t *from, const Shape &shape, size_t axis, uint8_t *&to) const {
  size_t rest = 1, cut = 1;
  for (size_t i = axis; i < shape.size(); ++i)
    rest *= size_t(spec.shape[i]), cut *= size_t(shape[i]);
  if (cut == rest || axis + 1 == shape.size()) { // they follow each other
    if (conversion.convert)
      conversion.convert(from, to, cut);
    else
      std::memcpy(to, from, cut * getElementBytes(spec.type));
    to += cut * getElementBytes(spec.type);
    return;
  }
  size_t step = rest / size_t(spec.shape[axis]) * getElementBytes(array.type);
  for (int64_t i = 0; i < shape[axis]; ++i)
    copyCut(from + size_t(i) * step, shape, axis + 1, to);
}

/// Runs `copy`, which owns nothing: it is left in the middle where the file is cut meanwhile.
template <typename Copy> Status Batches::guard(const Field &field, const Copy &copy) {
  if (field.array.file)
    return field.array.file->read(copy);
  copy();
  return Status();
}

Status Batches::gather(size_t input, int64_t slice, const std::vector<int64_t> *order, uint8_t *to) const {
  const Field &field = fields[input];
  if (field.isEmpty)
    return Status();
  return guard(field, [&] { copySlice(field, slice, order, to); });
}

Status Batches::gather(size_t input, int64_t slice, const std::vector<int64_t> *order, const Shape &shape,
                       uint8_t *to) const {
  const Field &field = fields[input];
  if (shape == field.spec.shape)
    return gather(input, slice, order, to);
  return guard(field, [&] {
    uint8_t *target = to;
    for (int64_t row = 0; row < batch; ++row)
      field.copyCut(field.array.data + size_t(getItem(slice, row, order)) * field.fromRow, shape, 1, target);
  });
}

std::vector<int64_t> shuffle(uint64_t seed, int64_t epoch, int64_t items) {
  std::vector<int64_t> order(static_cast<size_t>(items));
  ortc::shuffle(seed, epoch, items, order.data());
  return order;
}

} // namespace ortc::host
