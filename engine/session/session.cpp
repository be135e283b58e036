// A session of the runtime with its buffers, threads and checkpoints.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "engine/session/session.h"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <filesystem>
#include <limits>
#include <new>
#include <ortc/threads.h>
#include <set>
#include <thread>

#include "engine/data/data_source.h"
#include "engine/session/checkpoint_facts.h"
#include "engine/session/position.h"
#include "support/AtomicFile.h"
#include "support/Convert.h"
#include "support/Elements.h"
#include "support/FormatNames.h"
#include "support/MappedFile.h"
#include "support/Text.h"

namespace ortc::engine {
namespace {

/// Zeroed memory aligned as the runtime likes it.
class Buffer {
public:
  explicit Buffer(size_t bytes)
      : data(static_cast<uint8_t *>(
            ::operator new(std::max<size_t>(bytes, 1), std::align_val_t(ORTC_ALIGNMENT)))),
        bytes(bytes) {
    std::fill_n(data, bytes, uint8_t(0));
  }
  ~Buffer() { ::operator delete(data, std::align_val_t(ORTC_ALIGNMENT)); }
  Buffer(const Buffer &) = delete;
  Buffer &operator=(const Buffer &) = delete;

  uint8_t *data;
  size_t bytes;
};

} // namespace

struct Session::State {
  std::map<std::pair<uint32_t, std::string>, std::unique_ptr<Buffer>> buffers;
  std::vector<const Entry *> bound;
  uint32_t binding = 0;        ///< in use
  bool isGiven = false;        ///< of a shared session: it has its inputs from elsewhere
  std::set<std::string> known; ///< of a shared session: buffers that have what it has
};

Session::Session() = default;
Session::~Session() = default;
Session::Session(Session &&) noexcept = default;
Session &Session::operator=(Session &&) noexcept = default;

void Session::DestroyPool::operator()(ortc_pool *pool) const { ortc_pool_destroy(pool); }

Status Session::fail(const std::string &what, ortc_status status) const {
  const char *text = session ? ortc_session_message(session.get()) : "";
  return Status::failure(what + ": " + (text && text[0] ? text : ortc_status_name(status)));
}

Status Session::create(const Artifact &artifact, const SessionOptions &options, Session &session) {
  ORTC_TRY(artifact.checkBound());
  uint32_t most = artifact.getInfo().max_workers;
  if (options.threads > most)
    return Status::refusal("--threads " + std::to_string(options.threads) +
                           ": the artifact was compiled for at most " + std::to_string(most) +
                           "; compile it with --max-workers " + std::to_string(options.threads));
  session = Session();
  session.artifact = &artifact;
  uint32_t threads =
      options.threads ? options.threads : std::clamp(std::thread::hardware_concurrency(), 1u, most);
  if (artifact.isOnDevice())
    threads = 1; // waits for the device
  session.threads = threads;
  session.state = std::make_unique<State>();
  ortc_session_options settings = ORTC_INIT(ortc_session_options);
  settings.flags = ORTC_SESSION_BIND_ALL;
  if (options.stopOnNotFinite)
    settings.flags |= ORTC_SESSION_STOP_ON_NOT_FINITE;
  settings.workers = threads;
  settings.trace = options.trace;
  settings.trace_context = options.traceContext;
  if (threads > 1) {
    ortc_pool *pool = ortc_pool_create(threads);
    if (!pool)
      return Status::failure("cannot start " + formatCount(threads, "thread") + "; try --threads 1");
    session.pool.reset(pool);
    settings.parallel_for = ortc_pool_parallel_for;
    settings.pool = pool;
  }
  ortc_message message{};
  ortc_session *created = nullptr;
  ortc_status status = ortc_session_create(artifact.getProgram(), &settings, &created, &message);
  if (status != ORTC_OK)
    return Status::failure(artifact.getPath() + ": " +
                           (message.text[0] ? message.text : ortc_status_name(status)));
  session.session.reset(created);
  return Status();
}

void Session::adopt(const Artifact &artifact, ortc_session *shared, PerformStep perform, Session &session) {
  session = Session();
  session.artifact = &artifact;
  session.state = std::make_unique<State>();
  session.session = {shared, Destroy{true}};
  session.perform = std::move(perform);
}

/// Makes an entry's binding the one in use and gives all its values their buffers.
Status Session::use(const Entry &entry) {
  if (!perform && state->binding != entry.binding) {
    ortc_status status = ortc_session_use_binding(get(), entry.binding);
    if (status != ORTC_OK)
      return fail(artifact->getPath() + ": binding '" + entry.bindingName + "'", status);
    state->binding = entry.binding;
  }
  if (std::find(state->bound.begin(), state->bound.end(), &entry) != state->bound.end())
    return Status();
  auto bind = [&](const std::string &name, DataType type, const Shape &shape) {
    auto &buffer = state->buffers[{entry.binding, name}];
    size_t bytes = 0;
    if (!countBytes(shape, type, bytes))
      return Status::failure(artifact->getPath() + ": '" + name + "' has shape " + formatShape(shape) +
                             ", whose size overflows");
    if (buffer && buffer->bytes == bytes)
      return Status();
    buffer = std::make_unique<Buffer>(bytes);
    if (perform)
      return Status();
    ortc_status status = ortc_bind(get(), name.c_str(), buffer->data, bytes);
    return status == ORTC_OK ? Status()
                             : fail(artifact->getPath() + ": '" + name + "' cannot be bound", status);
  };
  for (const InputSpec &input : entry.inputs)
    ORTC_TRY(bind(input.name, input.type, input.shape));
  for (const OutputSpec &output : entry.outputs)
    ORTC_TRY(bind(output.name, output.type, output.shape));
  state->bound.push_back(&entry);
  return Status();
}

/// Copies an input of a slice, and refuses factors of samples that are none: the mean would be one over other weights.
static Status take(const Batches &batches, const Entry &entry, size_t input, int64_t slice,
                   const Order *order, uint8_t *to) {
  const InputSpec &spec = entry.inputs[input];
  ORTC_TRY(batches.gather(input, slice, order, spec.shape, to));
  int64_t count = 0;
  if (!spec.isSampleWeight || !countElements(spec.shape, count))
    return Status();
  for (int64_t i = 0; i < count; ++i)
    if (double value = loadAsDouble(spec.type, to + size_t(i) * getElementBytes(spec.type));
        !(value >= 0 && std::isfinite(value)))
      return Status::failure("'" + spec.name + "' is " + formatNumber(value) +
                             ", but factors of samples must be finite and not negative; it is from " +
                             batches.describeElement(input, slice, i, spec.shape, order));
  return Status();
}

Status Session::feed(const Entry &entry, const Batches &batches, int64_t slice, const Order *order) {
  ORTC_TRY(use(entry));
  state->isGiven = false;
  for (size_t i = 0; i < entry.inputs.size(); ++i)
    ORTC_TRY(take(batches, entry, i, slice, order,
                  state->buffers.at({entry.binding, entry.inputs[i].name})->data));
  return Status();
}

Status Session::feed(const Feed &feed) {
  const Entry &entry = *feed.entry;
  ORTC_TRY(use(entry));
  state->isGiven = false;
  for (size_t i = 0; i < entry.inputs.size(); ++i) {
    Buffer &buffer = *state->buffers.at({entry.binding, entry.inputs[i].name});
    std::copy_n(feed.inputs[i].data(), buffer.bytes, buffer.data);
  }
  return Status();
}

Status fill(const Batches &batches, int64_t slice, const Order *order, Feed &feed) {
  const std::vector<InputSpec> &inputs = feed.entry->inputs;
  feed.inputs.resize(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    size_t bytes = 0;
    if (!countBytes(inputs[i].shape, inputs[i].type, bytes))
      return Status::failure("'" + inputs[i].name + "' has shape " + formatShape(inputs[i].shape) +
                             ", whose size overflows");
    feed.inputs[i].resize(bytes);
    ORTC_TRY(take(batches, *feed.entry, i, slice, order, feed.inputs[i].data()));
  }
  return Status();
}

void Session::accept(const Entry &entry) {
  state->isGiven = true;
  state->known.clear();
}

ortc_status Session::call(const Entry &entry, double &loss) {
  switch (entry.role) {
  case ORTC_ENTRY_TRAIN:
    return ortc_train_step(get(), &loss);
  case ORTC_ENTRY_EVAL:
    return ortc_eval_step(get(), &loss);
  case ORTC_ENTRY_PREDICT:
    return ortc_predict_step(get());
  case ORTC_ENTRY_GRADIENTS:
    return ortc_gradients_step(get(), &loss);
  case ORTC_ENTRY_UPDATE:
    return ortc_update_step(get());
  case ORTC_ENTRY_ACCUMULATE:
    return ortc_accumulate_step(get(), &loss);
  default:
    return ORTC_E_ARGUMENT;
  }
}

/// To a shared session, whose binding is the entry's.
ortc_status Session::giveInputs(const Entry &entry) {
  for (const InputSpec &input : entry.inputs) {
    const Buffer &buffer = *state->buffers.at({entry.binding, input.name});
    if (ortc_status status = ortc_write(get(), input.name.c_str(), buffer.data, buffer.bytes);
        status != ORTC_OK)
      return status;
  }
  return ORTC_OK;
}

Status Session::step(const Entry &entry, double &loss, ortc_status *tell) {
  ORTC_TRY(use(entry));
  loss = std::numeric_limits<double>::quiet_NaN();
  if (!perform)
    told = call(entry, loss);
  else
    told = perform(entry.binding, !state->isGiven, [&] {
      const ortc_status given = state->isGiven ? ORTC_OK : giveInputs(entry);
      return given == ORTC_OK ? call(entry, loss) : given;
    });
  state->known.clear();
  if (tell)
    *tell = told;
  return told == ORTC_OK ? Status()
                         : fail(std::string("the ") + getEntryRoleName(entry.role) + " step failed", told);
}

Status Session::getBuffer(const Entry &entry, const std::string &name, uint8_t *&data) {
  ORTC_TRY(use(entry));
  auto found = state->buffers.find({entry.binding, name});
  if (found == state->buffers.end())
    return Status::failure(artifact->getPath() + ": there is no input or output '" + name + "'");
  data = found->second->data;
  if (!perform)
    return Status();
  const bool isInput = std::any_of(entry.inputs.begin(), entry.inputs.end(),
                                   [&](const InputSpec &input) { return input.name == name; });
  if ((isInput && !state->isGiven) || !state->known.insert(name).second)
    return Status();
  ortc_status status = ortc_read(get(), name.c_str(), data, found->second->bytes);
  return status == ORTC_OK ? Status() : fail("'" + name + "'", status);
}

TensorView Session::view(const Entry &entry, const std::string &name) {
  uint8_t *data = nullptr;
  if (!getBuffer(entry, name, data).isOk())
    return {};
  for (const InputSpec &input : entry.inputs)
    if (input.name == name)
      return {input.type, input.shape, data};
  for (const OutputSpec &output : entry.outputs)
    if (output.name == name)
      return {output.type, output.shape, data};
  return {};
}

/// One factor of an adapter, in the type of the artifact.
Status Session::loadAdapter(const DataSource &source, const std::string &name) {
  std::string key = peftName(name), where = source.getPath() + ": '" + key + "'";
  ortc_tensor_info tensor = ORTC_INIT(ortc_tensor_info);
  if (ortc_tensor_find(artifact->getProgram(), name.c_str(), &tensor) != ORTC_OK)
    return Status::failure(artifact->getPath() + ": there is no tensor '" + name +
                           "', which its manifest names");
  if (!source.has(key))
    return Status::failure(source.getPath() + ": has no '" + key + "', which the artifact trains");
  Array array;
  ORTC_TRY(source.load(key, array));
  Shape wanted(tensor.dims, tensor.dims + tensor.rank);
  if (array.shape != wanted)
    return Status::failure(where + " has shape " + formatShape(array.shape) + ", but the artifact's has " +
                           formatShape(wanted));
  Conversion conversion;
  ORTC_TRY(planConversion(array, static_cast<DataType>(tensor.dtype), where, conversion));
  std::vector<uint8_t> values(tensor.bytes);
  if (conversion.convert)
    conversion.convert(array.data, values.data(), array.bytes / getElementBytes(array.type));
  else
    values.assign(array.data, array.data + array.bytes);
  ortc_status status = ortc_write(get(), name.c_str(), values.data(), values.size());
  return status == ORTC_OK ? Status() : fail(where, status);
}

Status Session::loadPeftFolder(const std::string &folder, LoadResult &result) {
  const std::vector<Adapter> &adapters = artifact->getAdapters();
  if (adapters.empty())
    return Status::refusal(folder + ": is a folder, and " + artifact->getPath() +
                           " has no adapters to load from one; --lora of ortc train adds them");
  std::string config = folder + "/" + kPeftConfig;
  std::error_code error;
  if (std::filesystem::exists(config, error)) {
    std::shared_ptr<const MappedFile> file;
    ORTC_TRY(MappedFile::open(config, file));
    ORTC_TRY(checkPeftConfig(file->getText(), config, adapters));
  }
  std::unique_ptr<DataSource> source;
  ORTC_TRY(openSafetensors(folder + "/" + kPeftTensors, source));
  for (const Adapter &adapter : adapters)
    for (const std::string &name : {adapter.a, adapter.b}) {
      ORTC_TRY(loadAdapter(*source, name));
      ++result.loaded;
    }
  result.freshState = true;
  result.ignored = uint32_t(source->getNames().size()) - result.loaded;
  if (result.ignored)
    result.unused = folder + ": " + std::to_string(result.ignored) + " of its " +
                    std::to_string(source->getNames().size()) +
                    " tensors belong to no adapter of the artifact and are not loaded";
  return Status();
}

Status Session::load(const std::string &path, LoadResult &result, const CheckMetadata &check) {
  result = LoadResult();
  std::error_code error;
  if (std::filesystem::is_directory(path, error))
    return loadPeftFolder(path, result);
  std::unique_ptr<DataSource>
      strict; // sees keys that are there twice, too, for which the runtime has no memory
  ORTC_TRY(openSafetensors(path, strict));
  if (check)
    ORTC_TRY(check(strict->getMetadata()));
  Scalars before = readScalars(artifact->getProgram(), get());
  ortc_load_info info = ORTC_INIT(ortc_load_info);
  info.metadata_context = &result.metadata;
  info.metadata = [](void *context, const char *key, const char *value) {
    (*static_cast<Metadata *>(context))[key] = value;
  };
  told = ortc_checkpoint_load(get(), path.c_str(), &info);
  if (told != ORTC_OK)
    return Status::failure(explainRefusal(*artifact, *strict, told, fail(path, told).getMessage()));
  result.freshState = info.fresh_state != 0;
  result.loaded = info.loaded;
  result.ignored = info.ignored;
  ORTC_TRY(checkScalars(path));
  ORTC_TRY(checkScales(result.metadata, path, artifact->getAdapters()));
  for (const std::string &note : {describeChanges(path, before, readScalars(artifact->getProgram(), get())),
                                  describeUnused(artifact->getProgram(), *strict)})
    if (!note.empty())
      result.notes.push_back(note);
  return Status();
}

static bool isNumber(double value) { return value >= 0 && value <= double(FLT_MAX); }

/// What a number of a checkpoint may be, and that in words; null: anything.
struct ScalarRange {
  bool (*allows)(double);
  std::string text;
};

static ScalarRange rangeOf(const ortc_tensor_info &tensor) {
  const std::string name = tensor.name;
  bool isState = tensor.role == ORTC_ROLE_STATE && !(tensor.flags & ORTC_TENSOR_IN_MODEL) && tensor.rank == 0;
  if (isState && static_cast<DataType>(tensor.dtype) == DataType::Int64)
    return {[](double value) { return value >= 0 && value <= double(kMostSteps); },
            "from 0 to " + std::to_string(kMostSteps)};
  const std::string key = name.substr(name.rfind('.') + 1); // groups have their own, as group0.beta1
  if (isState && (key == "bias_correction1" || key == "bias_correction2")) // powers of beta1 and beta2
    return {[](double value) { return value >= 0 && value <= 1; }, "a number from 0 to 1"};
  if (isState && name == "loss_scale") // gradients are divided by it
    return {[](double value) { return value > 0 && isNumber(value); }, "a number above 0, up to 3.4e38"};
  const bool isRange = key == "min" || key == "max";    // of --qat
  if (isState && tensor.owner == ORTC_NONE && !isRange) // of an optimizer, the loss scale, --accumulate
    return {isNumber, "a number from 0 to 3.4e38"};
  if (tensor.role != ORTC_ROLE_SCALAR)
    return {nullptr, ""};
  if (key == "beta1" || key == "beta2" || key == "alpha" || key == "rho" || key == "ema_decay") // of averages
    return {[](double value) { return value >= 0 && value < 1; }, "a number of at least 0 and below 1"};
  for (const char *magnitude :
       {"lr", "weight_decay", "momentum", "epsilon", "clip_norm", "clip_value", "l1", "l2", "max_norm"})
    if (key == magnitude)
      return {isNumber, "a number from 0 to 3.4e38"};
  return {[](double value) { return isNumber(std::fabs(value)); }, "a number from -3.4e38 to 3.4e38"};
}

/// The largest magnitudes of states in bytes are magnitudes; "" where `tensor` is none, or all are.
static std::string explainMagnitudes(ortc_session *session, const ortc_tensor_info &tensor) {
  std::string_view name = tensor.name;
  if (tensor.role != ORTC_ROLE_STATE || tensor.rank != 1 || !name.ends_with("_absmax") ||
      static_cast<DataType>(tensor.dtype) != DataType::Float32)
    return "";
  std::vector<float> values(tensor.bytes / sizeof(float));
  if (ortc_read(session, tensor.name, values.data(), tensor.bytes) != ORTC_OK)
    return "";
  auto wrong = std::find_if_not(values.begin(), values.end(), [](float value) { return isNumber(value); });
  return wrong == values.end()
             ? ""
             : "element " + std::to_string(wrong - values.begin()) + " of '" + std::string(name) + "' is " +
                   formatNumber(*wrong) + ", but it must be a number from 0 to 3.4e38";
}

/// What no training leaves behind: hyper-parameters out of the ranges of --optimizer, a negative number of steps.
Status Session::checkScalars(const std::string &path) {
  for (uint32_t i = 0; i < artifact->getInfo().tensor_count; ++i) {
    ortc_tensor_info tensor = ORTC_INIT(ortc_tensor_info);
    double value = 0;
    if (ortc_tensor_get(artifact->getProgram(), i, &tensor) != ORTC_OK)
      continue;
    if (std::string wrong = explainMagnitudes(get(), tensor); !wrong.empty())
      return Status::failure(path + ": " + wrong + "; no training has saved this");
    ScalarRange range = rangeOf(tensor);
    if (!range.allows || ortc_get_scalar(get(), tensor.name, &value) != ORTC_OK || range.allows(value))
      continue;
    return Status::failure(path + ": '" + tensor.name + "' is " + formatNumber(value) + ", but it must be " +
                           range.text + "; no training has saved this");
  }
  return Status();
}

Status Session::save(const std::string &path, const Metadata &metadata) {
  std::vector<ortc_metadata> pairs;
  Metadata all = formatScales(artifact->getAdapters());
  all.insert(metadata.begin(), metadata.end());
  for (const auto &[key, value] : all)
    pairs.push_back({key.c_str(), value.c_str()});
  struct Sink {
    AtomicFile file;
    Status status;
  } sink{AtomicFile(path), Status()};
  ORTC_TRY(sink.file.open());
  auto write = [](void *context, const void *data, size_t bytes) -> int32_t {
    auto *to = static_cast<Sink *>(context);
    to->status = to->file.write(data, bytes);
    return !to->status.isOk();
  };
  ortc_status status = ortc_checkpoint_write(get(), write, &sink, pairs.data(), pairs.size());
  ORTC_TRY(sink.status);
  return status == ORTC_OK ? sink.file.commit() : fail(path, status);
}

Status Session::getScalar(const std::string &name, double &value) {
  ortc_status status = ortc_get_scalar(get(), name.c_str(), &value);
  return status == ORTC_OK ? Status() : fail(artifact->getPath() + ": scalar '" + name + "'", status);
}

Status Session::setScalar(const std::string &name, double value) {
  ortc_status status = ortc_set_scalar(get(), name.c_str(), value);
  return status == ORTC_OK ? Status() : fail(artifact->getPath() + ": scalar '" + name + "'", status);
}

} // namespace ortc::engine
