// An update of tensors of any length by one program, in place.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "bindings/python/update.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "bindings/python/errors.h"
#include "bindings/python/exchange.h"
#include "bindings/python/types.h"

namespace nb = nanobind;

namespace ortc::python {

static constexpr uint8_t kFloat = 1, kDouble = 11; ///< TensorProto.DataType
/// Below so many elements the other threads are not woken.
static constexpr int64_t kLeastForThreads = 1 << 15;

// ---- The program.

Update::Update(std::shared_ptr<Program> of) : program(std::move(of)) { readProgram(); }

Update::~Update() {
  for (Worker &worker : workers)
    ortc_session_destroy(worker.session);
}

void Update::readProgram() {
  const std::vector<Binding> &bindings = program->getBindings();
  bool isUpdate = !program->isOnDevice() && !bindings.empty();
  for (uint32_t i = 0; i < bindings.size(); ++i) {
    int64_t length = 0;
    isUpdate &= readVectors(bindings[i], length);
    pieces.push_back({length, i});
  }
  std::sort(pieces.rbegin(), pieces.rend());
  for (const Vector &vector : vectors) {
    hasBlocks |= vector.shift > 0;
    isUpdate &= int64_t(1) << vector.shift <= pieces.back().first;
  }
  if (!isUpdate || !(type == kFloat || type == kDouble))
    raise(ORTC_E_ARGUMENT,
          "the program is no update of vectors of float32 or float64 whose lengths are powers of two");
  numbers.resize(scalars.size());
}

/// False where they are none of an update.
bool Update::readVectors(const Binding &binding, int64_t &length) {
  const Entry &entry = binding.entries[ORTC_ENTRY_PREDICT];
  const bool isFirst = pieces.empty();
  size_t at = 0;
  for (uint32_t value : entry.inputs) {
    const Spec &spec = binding.values[value];
    if (spec.rank == 0) {
      if (spec.type != kDouble)
        return false;
      if (isFirst)
        scalars.push_back(spec.name);
      continue;
    }
    const int64_t size = spec.dims[0];
    if (at == 0) {
      length = size;
      type = spec.type;
    }
    int shift = 0;
    while (size > 0 && size << shift < length)
      ++shift;
    if (spec.rank != 1 || size < 1 || size << shift != length)
      return false;
    if (isFirst)
      vectors.push_back({spec.name, "", spec.type, shift, getElementBytes(spec.type)});
    if (at == vectors.size() || vectors[at++].shift != shift)
      return false;
  }
  for (uint32_t value : entry.outputs) {
    const std::string &name = binding.values[value].name;
    for (Vector &vector : vectors)
      if (vector.name + ".new" == name)
        vector.result = name;
    for (const std::string &scalar : scalars)
      if (isFirst && scalar + ".new" == name)
        advanced.push_back(scalar);
  }
  return at == vectors.size() && length > 0 && (length & (length - 1)) == 0;
}

std::vector<Update::Form> Update::listVectors() const {
  std::vector<Form> forms;
  for (const Vector &vector : vectors)
    forms.push_back({vector.name, nameType(vector.type), int64_t(1) << vector.shift});
  return forms;
}

std::vector<std::string> Update::listScalars() const { return scalars; }

std::vector<std::string> Update::listAdvanced() const { return advanced; }

std::vector<int64_t> Update::listPieces() const {
  std::vector<int64_t> lengths;
  for (auto [length, binding] : pieces)
    lengths.push_back(length);
  return lengths;
}

ortc_status Update::bindScalars(Worker &worker) {
  ortc_session *session = worker.session;
  ortc_status status = ORTC_OK;
  for (size_t piece = 0; piece < pieces.size() && status == ORTC_OK; ++piece) {
    status = ortc_session_use_binding(session, pieces[piece].second);
    for (size_t i = 0; i < scalars.size() && status == ORTC_OK; ++i)
      status = ortc_bind(session, scalars[i].c_str(), &numbers[i], sizeof(double));
    for (size_t i = 0; i < advanced.size() && status == ORTC_OK; ++i)
      status = ortc_bind(session, (advanced[i] + ".new").c_str(), &worker.advanced[i], sizeof(double));
  }
  return status;
}

/// With a session whose scalars, in every binding, are those of this object.
void Update::addWorker() {
  Worker worker;
  worker.advanced.resize(advanced.size()); // whose memory moves along
  worker.rest.resize(getPlace(vectors.size(), pieces.back().first));
  if (hasBlocks)
    worker.results.resize(getPlace(vectors.size(), pieces.front().first));
  ortc_session_options options = ORTC_INIT(ortc_session_options);
  options.flags = ORTC_SESSION_BIND_ALL;
  ortc_message message{};
  if (ortc_session_create(program->get(), &options, &worker.session, &message) != ORTC_OK)
    throw std::runtime_error(message.text); // the GIL, which raise() needs, is free
  if (bindScalars(worker) != ORTC_OK) {
    std::string text = ortc_session_message(worker.session);
    ortc_session_destroy(worker.session);
    throw std::runtime_error(text);
  }
  workers.push_back(std::move(worker));
}

// ---- Batches.

/// Why a tensor of the caller is not what a vector takes; "" where it is.
std::string Update::refuse(size_t vector, const Tensor &tensor, const Tensor &first) const {
  const Vector &wanted = vectors[vector];
  if (vector == 0) {
    const bool isGood = hasType(tensor, type) && (hasBlocks ? isRowMajor(tensor) : isDense(tensor));
    return isGood ? ""
                  : describe(tensor) + ", but must be dense" + (hasBlocks ? ", in order of rows" : "") +
                        " and " + nameType(type);
  }
  if (!hasType(tensor, wanted.type))
    return describe(tensor) + ", but must be of " + nameType(wanted.type);
  if (wanted.shift == 0)
    return isLike(tensor, first) ? "" : describe(tensor) + ", but must be " + describe(first);
  const int64_t blocks = wanted.blocksOf(countElements(first));
  return tensor.ndim == 1 && tensor.shape[0] == blocks && isRowMajor(tensor)
             ? ""
             : describe(tensor) + ", but must be [" + std::to_string(blocks) + "]";
}

std::unique_ptr<Update::Batch> Update::prepare(nb::tuple tensors) const {
  std::vector<nb::list> lists;
  for (nb::handle each : tensors)
    lists.push_back(nb::cast<nb::list>(each));
  bool isWhole = lists.size() == vectors.size();
  for (const nb::list &each : lists)
    isWhole &= each.size() == lists[0].size();
  if (!isWhole)
    raise(ORTC_E_ARGUMENT, "the update takes " + std::to_string(vectors.size()) +
                               " lists of tensors of one length, but was given " +
                               std::to_string(lists.size()));
  auto batch = std::make_unique<Batch>();
  batch->tensors = tensors;
  Exchange exchange;
  const int64_t unit = pieces.back().first;
  for (size_t at = 0; at < lists[0].size(); ++at) {
    Tensor first, other;
    Item item{std::vector<char *>(vectors.size()), 0, batch->units};
    for (size_t i = 0; i < vectors.size(); ++i) {
      Tensor &tensor = i ? other : first;
      std::string refusal = exchange.borrow(lists[i][at], tensor);
      if (refusal.empty())
        refusal = refuse(i, tensor, first);
      if (!refusal.empty())
        raise(ORTC_E_SHAPE, "'" + vectors[i].name + "' of tensor " + std::to_string(at) + ": " + refusal);
      item.places[i] = placeOf(tensor);
      if (i == 0)
        item.length = countElements(tensor);
      if (item.length && !tensor.data)
        raise(ORTC_E_SHAPE, "'" + vectors[i].name + "' of tensor " + std::to_string(at) + " has no memory");
    }
    batch->units += (item.length + unit - 1) / unit;
    batch->items.push_back(std::move(item));
  }
  return batch;
}

// ---- Pieces.

/// Where a vector is in memory for so many elements of all of them, at lines of the cache.
size_t Update::getPlace(size_t vector, int64_t elements) const {
  size_t place = 0;
  for (size_t i = 0; i < vector; ++i)
    place += (vectors[i].bytesOf(elements) + 63) / 64 * 64;
  return place;
}

/// False where the runtime refuses; the worker has its text.
bool Update::runPiece(Worker &worker, size_t piece, const std::vector<char *> &places, int64_t offset) const {
  ortc_session *session = worker.session;
  const int64_t length = pieces[piece].first;
  ortc_status status = ORTC_OK;
  if (worker.piece != piece) {
    status = ortc_session_use_binding(session, pieces[piece].second);
    worker.piece = status == ORTC_OK ? piece : SIZE_MAX;
  }
  for (size_t i = 0; i < vectors.size() && status == ORTC_OK; ++i) {
    const Vector &vector = vectors[i];
    char *place = places[i] + vector.bytesOf(offset);
    status = ortc_bind(session, vector.name.c_str(), place, vector.bytesOf(length));
    if (status == ORTC_OK && !vector.result.empty())
      status =
          ortc_bind(session, vector.result.c_str(),
                    hasBlocks ? worker.results.data() + getPlace(i, length) : place, vector.bytesOf(length));
  }
  if (status == ORTC_OK)
    status = ortc_predict_step(session);
  if (status != ORTC_OK) {
    worker.error = ortc_session_message(session);
    return false;
  }
  for (size_t i = 0; i < vectors.size() && hasBlocks; ++i)
    if (!vectors[i].result.empty())
      memcpy(places[i] + vectors[i].bytesOf(offset), worker.results.data() + getPlace(i, length),
             vectors[i].bytesOf(length));
  return true;
}

/// The elements from `from` on, fewer than the smallest piece. The last one stands for what is missing, so that it
/// changes no number of its block.
void Update::copyRest(Worker &worker, const Item &item, int64_t from, int64_t count) const {
  const int64_t unit = pieces.back().first;
  for (size_t i = 0; i < vectors.size(); ++i) {
    char *copy = worker.rest.data() + getPlace(i, unit);
    size_t bytes = vectors[i].bytesOf(count);
    memcpy(copy, item.places[i] + vectors[i].bytesOf(from), bytes);
    for (; bytes < vectors[i].bytesOf(unit); bytes += vectors[i].bytes)
      memcpy(copy + bytes, copy + bytes - vectors[i].bytes, vectors[i].bytes);
  }
}

/// The units [begin, end) of all tensors.
void Update::run(Worker &worker, const Batch &batch, int64_t begin, int64_t end) const {
  const std::vector<Item> &items = batch.items;
  const int64_t unit = pieces.back().first;
  auto item = std::upper_bound(items.begin(), items.end(), begin,
                               [](int64_t at, const Item &other) { return at < other.first; });
  for (--item; item != items.end() && item->first < end; ++item) {
    int64_t from = std::max<int64_t>(begin - item->first, 0) * unit;
    const int64_t to = std::min((end - item->first) * unit, item->length);
    for (size_t piece = 0; piece < pieces.size(); ++piece)
      for (; to - from >= pieces[piece].first; from += pieces[piece].first)
        if (!runPiece(worker, piece, item->places, from))
          return;
    if (from >= to)
      continue;
    copyRest(worker, *item, from, to - from);
    std::vector<char *> copies;
    for (size_t i = 0; i < vectors.size(); ++i)
      copies.push_back(worker.rest.data() + getPlace(i, unit));
    if (!runPiece(worker, pieces.size() - 1, copies, 0))
      return;
    for (size_t i = 0; i < vectors.size(); ++i)
      if (!vectors[i].result.empty())
        memcpy(item->places[i] + vectors[i].bytesOf(from), copies[i], vectors[i].bytesOf(to - from));
  }
}

// ---- Steps.

/// What the threads of a step share.
struct Update::Work {
  Update &update;
  const Batch &batch;
  const int64_t parts;
};

void ORTC_STEP_ABI Update::runPart(void *given, int64_t part, int64_t) {
  const Work &work = *static_cast<Work *>(given);
  const int64_t units = work.batch.units;
  work.update.run(work.update.workers[size_t(part)], work.batch, units * part / work.parts,
                  units * (part + 1) / work.parts);
}

std::vector<double> Update::step(Pool &pool, const Batch &batch, const std::vector<double> &values) {
  if (values.size() != scalars.size())
    raise(ORTC_E_ARGUMENT, "the update takes " + std::to_string(scalars.size()) + " numbers, but was given " +
                               std::to_string(values.size()));
  std::vector<double> results;
  if (batch.units == 0) {
    for (const std::string &scalar : advanced)
      results.push_back(values[size_t(std::find(scalars.begin(), scalars.end(), scalar) - scalars.begin())]);
    return results;
  }
  {
    nb::gil_scoped_release release;
    std::scoped_lock lock(mutex, pool.mutex);
    std::copy(values.begin(), values.end(), numbers.begin()); // where sessions have them
    const bool isShort = batch.units * pieces.back().first < kLeastForThreads;
    Work work{*this, batch, isShort ? 1 : int64_t(pool.getWorkers())};
    while (int64_t(workers.size()) < work.parts)
      addWorker();
    if (work.parts == 1)
      runPart(&work, 0, 0);
    else
      pool.run(work.parts, runPart, &work);
    results = workers.front().advanced; // which has done a part
  }
  for (Worker &worker : workers)
    if (!worker.error.empty())
      raise(ORTC_E_INTERNAL, std::exchange(worker.error, {}));
  return results;
}

std::vector<float> advance(nb::list counters) {
  Exchange exchange;
  std::vector<float *> places;
  for (nb::handle counter : counters) {
    Tensor tensor;
    std::string refusal = exchange.borrow(counter, tensor);
    if (refusal.empty() && (countElements(tensor) != 1 || !hasType(tensor, kFloat)))
      refusal = describe(tensor) + ", but must be float32[]";
    if (!refusal.empty())
      raise(ORTC_E_SHAPE, "a number of steps: " + refusal);
    places.push_back(reinterpret_cast<float *>(placeOf(tensor)));
  }
  std::vector<float> values;
  for (float *place : places)
    values.push_back(++*place);
  return values;
}

} // namespace ortc::python
