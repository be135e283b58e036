// A training by the engine over a session of Python: what ortc.Trainer is a door to.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include "bindings/python/training.h"

#include <algorithm>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings/python/errors.h"
#include "engine/session/averages.h"
#include "support/FileGuard.h"
#include "support/FormatNames.h"

namespace nb = nanobind;
using namespace nb::literals;

namespace ortc::python {

using engine::EventFields;
using engine::EventValue;

Training::Training(nb::object of, const std::string &path, nb::object tell)
    : kept(of), own(nb::cast<Session &>(of)), teller(std::move(tell)) {
  const Program &program = *own.getProgram();
  check(engine::Artifact::adopt(const_cast<ortc_program *>(program.get()), path, program.isOnDevice(),
                                artifact),
        ORTC_E_FORMAT);
  engine::Session::adopt(
      artifact, own.get(),
      [this](uint32_t binding, bool writes, const std::function<ortc_status()> &step) {
        ortc_status status = ORTC_E_STATE;
        Status called = pending.run([&] { status = own.perform(binding, writes, step); });
        return called.isOk() ? status : ORTC_E_STATE;
      },
      session);
  guardReads(); // of data in files
  options.artifact = path;
  options.data = "train";
  options.evalData = "eval";
}

/// Raises what a function of Python has raised, or what the engine says.
void Training::check(const Status &status, ortc_status otherwise) {
  if (!status.isOk())
    pending.raise();
  const ortc_status told = trainer && trainer->isDiverged() ? ORTC_E_NOT_FINITE : session.getStatus();
  session.clearStatus();
  if (!status.isOk() && told != ORTC_OK)
    raise(told, nameArguments(status.getMessage()));
  python::check(status, otherwise);
}

template <typename Function> Status Training::call(Function function) {
  Status called = pending.run([&] {
    function();
    if (getpid() != process)
      raise(ORTC_E_STATE, "the fit is another process's; a forked child makes a trainer of its own");
  });
  if (!called.isOk() && (pending.isExit() || getpid() != process))
    trainer->abandon();
  return called;
}

// ---- Options.

template <typename Value> static std::optional<Value> take(nb::handle value) {
  return value.is_none() ? std::optional<Value>() : std::optional<Value>(nb::cast<Value>(value));
}

void Training::checkIdle(bool mayTrain) const {
  if (trainer && trainer->isEvaluating())
    raise(ORTC_E_STATE, "an evaluation of this trainer goes on; evaluate, fit, save and load after it");
  if (trainer && trainer->isTraining() && !(mayTrain && fitting == std::this_thread::get_id()))
    raise(ORTC_E_STATE,
          "a fit of this trainer goes on; until its end only callbacks may evaluate and save, and stop "
          "ends it");
}

void Training::set(const nb::kwargs &given) {
  checkIdle(/*mayTrain=*/false);
  for (auto [key, value] : given) {
    const std::string name = nb::cast<std::string>(key);
    if (name == "shuffle")
      options.shuffle = nb::cast<bool>(value);
    else if (name == "stop_on_not_finite")
      options.stopOnNan = nb::cast<bool>(value);
    else if (name == "seed")
      options.seed = take<uint64_t>(value);
    else if (name == "lr")
      options.lr = take<double>(value);
    else if (name == "rate") {
      rate = nb::borrow(value);
      options.rate = nullptr;
      if (!rate.is_none())
        options.rate = [this](int64_t step, double &chosen) {
          return call([&] { chosen = nb::cast<double>(rate(step)); });
        };
    } else if (name == "lr_schedule" && engine::Plateau::isNamedBy(take<std::string>(value).value_or("")))
      python::check(engine::Plateau::parse(nb::cast<std::string>(value), options.follow.plateau.emplace()));
    else if (name == "lr_schedule" && !value.is_none()) {
      const std::string text = nb::cast<std::string>(value);
      python::check(Schedule::parse(text, options.schedule.emplace()));
      python::check(options.schedule->check(text));
    } else if (name == "best" && !value.is_none())
      python::check(engine::Goal::parse(nb::cast<std::string>(value), options.follow.goal.emplace()),
                    ORTC_E_ARGUMENT, "best ");
    else if (name == "patience")
      options.follow.patience = take<int64_t>(value).value_or(0);
    else if (name == "eval_every")
      options.evalEvery = take<int64_t>(value).value_or(0);
    else if (name == "eval_weights")
      options.evalWeights = take<std::string>(value).value_or("");
    else if (name == "save")
      options.save = take<std::string>(value).value_or("");
    else if (name == "save_best")
      options.saveBest = take<std::string>(value).value_or("");
    else if (name == "save_every")
      options.saveEvery = take<int64_t>(value).value_or(0);
    else if (name == "keep")
      options.keep = take<int64_t>(value).value_or(0);
  }
}

// ---- Data.

const engine::Entry &Training::findEntry(uint32_t role) const {
  if (const engine::Entry *entry = artifact.findEntry(role, own.getBindingIndex()))
    return *entry;
  raise(ORTC_E_NOT_FOUND, std::string("the artifact has no ") + getEntryRoleName(role) +
                              " step in binding '" + own.getBinding() + "'");
}

std::unique_ptr<engine::SliceSource> Training::Slices::make(int64_t epoch) {
  return stream ? stream->makeSlices(epoch) : engine::makeSlices(batches, batches.getSlices());
}

void Training::openSlices(const char *argument, nb::object source, const engine::Entry &entry,
                          engine::Remainder remainder, Slices &slices) {
  if (PyCallable_Check(source.ptr())) {
    slices.function = std::move(source);
    slices.stream = std::make_unique<Stream>(slices.function, own, artifact, pending);
    return;
  }
  std::unique_ptr<engine::DataSource> opened;
  if (nb::isinstance<nb::dict>(source))
    opened = makeSource(argument, nb::cast<nb::dict>(source));
  else
    check(engine::openData(nb::cast<std::string>(source), opened), ORTC_E_FORMAT);
  for (const std::string &file : opened->getFiles())
    files.push_back({argument, file});
  const bool lacks = std::any_of(entry.inputs.begin(), entry.inputs.end(),
                                 [&](const engine::InputSpec &input) { return !opened->has(input.name); });
  std::vector<std::string> ignored;
  check(engine::Batches::create(*opened, entry.inputs, remainder, slices.batches, ignored),
        lacks ? ORTC_E_NOT_FOUND : ORTC_E_SHAPE);
}

void Training::openTrain(nb::object source) {
  openSlices("train", std::move(source), findEntry(ORTC_ENTRY_TRAIN), engine::Remainder::Drop, data);
  stream = data.stream.get();
}

void Training::openEval(nb::object source) {
  openSlices("eval", std::move(source), findEntry(ORTC_ENTRY_EVAL), engine::Remainder::Repeat, evalData);
  hasEval = true;
}

// ---- Metrics.

std::vector<std::string> Training::listFigures() const {
  std::vector<std::string> names = engine::listFigures(artifact);
  if (const engine::LossInfo &first = artifact.getLosses().front(); first.hasClasses && first.name.empty())
    names.push_back("accuracy");
  return names;
}

void Training::addMetric(const std::string &name, nb::object function) {
  const engine::Entry &entry = findEntry(ORTC_ENTRY_EVAL);
  auto add = [&](const std::string &key) {
    if (std::find(wanted.begin(), wanted.end(), key) == wanted.end())
      wanted.push_back(key);
  };
  if (!function.is_none()) {
    functions.push_back(std::move(function));
    metrics.add(name, makeMetric(functions.back(), artifact, entry, pending));
    return add(name);
  }
  // What evaluations have of losses with classes anyway.
  bool isThere = false;
  for (const std::string &figure : listFigures())
    if (figure.starts_with("accuracy") && (figure == name || name == "accuracy")) {
      add(figure);
      isThere = true;
    }
  if (isThere && artifact.getLosses().size() > 1)
    return;
  check(metrics.add(name), ORTC_E_ARGUMENT);
  check(engine::checkMetrics(artifact, entry, metrics), ORTC_E_ARGUMENT);
  add(name);
}

/// What a checkpoint or an argument has named to be followed is among the numbers of evaluations.
void Training::follow() {
  const engine::Follower &follower = trainer->getFollower();
  const std::string goal = follower.getGoal().metric;
  if (follower.isActive() && hasEval && goal != "loss" && !goal.starts_with("loss.") &&
      std::find(wanted.begin(), wanted.end(), goal) == wanted.end())
    wanted.push_back(goal);
}

// ---- Training.

void Training::begin() {
  const engine::TrainingParts parts{.artifact = artifact,
                                    .session = session,
                                    .entry = &findEntry(ORTC_ENTRY_TRAIN),
                                    .data = stream ? nullptr : &data.batches,
                                    .stream = stream,
                                    .evalEntry = hasEval ? &findEntry(ORTC_ENTRY_EVAL) : nullptr,
                                    .evalSlices = [this](int64_t epoch) { return evalData.make(epoch); },
                                    .evalMetrics = metrics};
  engine::Observer &observer = *this;
  trainer = std::make_unique<engine::Trainer>(options, parts, observer, interrupted);
  engine::LoadResult loaded;
  check(trainer->resume("", loaded), ORTC_E_ARGUMENT);
  follow();
}

nb::tuple Training::load(const std::string &path) {
  checkIdle(/*mayTrain=*/false);
  engine::LoadResult loaded;
  notes.clear();
  check(trainer->resume(path, loaded), ORTC_E_FORMAT);
  follow();
  return nb::make_tuple(loaded.freshState, loaded.loaded, loaded.ignored, loaded.metadata, notes);
}

void Training::checkWeights(const std::string &kind) const {
  if (kind.empty())
    return;
  python::check(engine::checkWeightsName(kind));
  if (!engine::hasAverages(artifact, kind))
    raise(ORTC_E_NOT_FOUND, "the artifact has no such averages; compile it with " + kind + "=...");
}

void Training::plan(std::optional<int64_t> epochs, std::optional<int64_t> steps) {
  checkIdle(/*mayTrain=*/false);
  options.epochs = steps ? std::nullopt : epochs;
  options.steps = steps;
  if (hasEval)
    checkWeights(options.evalWeights);
  check(trainer->plan(), ORTC_E_ARGUMENT);
}

bool Training::train() {
  checkIdle(/*mayTrain=*/false);
  fitting = std::this_thread::get_id();
  process = getpid();
  interrupted = 0;
  const Status trained = trainer->train();
  const bool wasInterrupted = interrupted != 0;
  interrupted = 0;
  check(trained, ORTC_E_IO);
  return wasInterrupted;
}

void Training::save(const std::string &path) {
  checkIdle(/*mayTrain=*/true);
  check(trainer->saveFile(path), ORTC_E_IO);
}

nb::dict Training::evaluate(nb::object source, const std::string &weights) {
  checkIdle(/*mayTrain=*/true);
  if (!trainer->isTraining())
    process = getpid();
  const engine::Entry &entry = findEntry(ORTC_ENTRY_EVAL);
  checkWeights(weights);
  double averaged = 1;
  if (!weights.empty())
    check(engine::countAveraged(session, weights, averaged), ORTC_E_FORMAT);
  if (averaged == 0) // one that is due goes without them
    raise(ORTC_E_STATE, "nothing was averaged yet; " + weights + " begins with the training");
  Slices other;
  if (!source.is_none())
    openSlices("eval", std::move(source), entry, engine::Remainder::Repeat, other);
  Slices &slices = other.stream || other.batches.getSlices() ? other : evalData;
  const std::unique_ptr<engine::SliceSource> opened = slices.make(trainer->getEpoch());
  engine::Evaluation result;
  bool isAveraged = false;
  check(trainer->evaluateWith(entry, *opened, weights, result, isAveraged), ORTC_E_SHAPE);
  nb::dict found;
  found["loss"] = result.getLoss();
  for (const engine::LossMeasure &measure : result.losses)
    if (!measure.name.empty())
      found[measure.key("loss").c_str()] = measure.sum.mean();
  for (const std::string &name : wanted)
    found[name.c_str()] = result.find(name);
  return found;
}

std::string Training::getSchedule() const {
  return artifact.getSchedule() ? artifact.getSchedule()->format() : "";
}

// ---- What callbacks are told.

static nb::object toPython(const EventValue &value) {
  if (const auto *whole = std::get_if<int64_t>(&value))
    return nb::int_(*whole);
  if (const auto *number = std::get_if<double>(&value))
    return nb::float_(*number);
  if (const auto *text = std::get_if<std::string>(&value))
    return nb::str(text->c_str(), text->size());
  return nb::str(std::get<engine::RawJson>(value).text.c_str());
}

static void put(nb::dict &event, const EventFields &fields) {
  for (const auto &[key, value] : fields)
    event[key.c_str()] = toPython(value);
}

Status Training::tellPython(const char *method, const nb::dict &event) {
  return call([&] { teller(method, event); });
}

Status Training::tellStep(const engine::StepEvent &step) {
  nb::dict event;
  event["step"] = step.step;
  event["epoch"] = step.epoch;
  event["loss"] = step.loss;
  event["lr"] = step.lr;
  event["ms"] = step.milliseconds;
  put(event, step.numbers);
  return tellPython("on_step", event);
}

Status Training::tell(const std::string &name, const EventFields &fields) {
  nb::dict event;
  event["event"] = name;
  if (name != "eval") {
    put(event, fields);
    return tellPython("on_event", event);
  }
  EventFields shown;
  for (const auto &field : fields)
    if (!field.first.starts_with("accuracy") ||
        std::find(wanted.begin(), wanted.end(), field.first) != wanted.end())
      shown.push_back(field);
  put(event, shown);
  return tellPython("on_eval", event);
}

Status Training::endEpoch(const engine::EpochEnd &end) {
  if (!end.isWhole || !end.steps)
    return Status();
  nb::dict event;
  event["event"] = "epoch";
  event["step"] = trainer->getStep();
  event["epoch"] = end.epoch;
  event["loss"] = end.loss;
  event["seconds"] = end.seconds;
  return tellPython("on_epoch", event);
}

Status Training::poll() {
  return call([] {
    if (PyErr_CheckSignals() != 0)
      throw nb::python_error();
  });
}

int Training::visit(visitproc visit, void *argument) const {
  for (const nb::object *each : {&kept, &teller, &rate, &data.function, &evalData.function})
    if (each->is_valid())
      if (int stopped = visit(each->ptr(), argument))
        return stopped;
  for (const nb::object &each : functions)
    if (int stopped = visit(each.ptr(), argument))
      return stopped;
  return 0;
}

void Training::clear() {
  trainer.reset();
  teller.reset();
  rate.reset();
  data.function.reset();
  evalData.function.reset();
  functions.clear();
}

static int traverse(PyObject *self, visitproc visit, void *arg) {
  Py_VISIT(Py_TYPE(self));
  return nb::inst_ready(self) ? nb::inst_ptr<Training>(self)->visit(visit, arg) : 0;
}

static int clear(PyObject *self) {
  nb::inst_ptr<Training>(self)->clear();
  return 0;
}

static PyType_Slot kSlots[] = {{Py_tp_traverse, reinterpret_cast<void *>(traverse)},
                               {Py_tp_clear, reinterpret_cast<void *>(clear)},
                               {0, nullptr}};

/// The line of the metrics file of `ortc run`.
static std::string formatLine(const nb::dict &event) {
  engine::StepEvent step;
  EventFields fields;
  std::string name;
  const bool isStep = !event.contains("event");
  for (auto [key, value] : event) {
    const std::string field = nb::cast<std::string>(key);
    const bool isNumber = nb::isinstance<nb::float_>(value);
    if (field == "event")
      name = nb::cast<std::string>(value);
    else if (isStep && field == "step")
      step.step = nb::cast<int64_t>(value);
    else if (isStep && field == "epoch")
      step.epoch = nb::cast<int64_t>(value);
    else if (isStep && (field == "loss" || field == "lr" || field == "ms"))
      (field == "loss" ? step.loss : field == "lr" ? step.lr : step.milliseconds) = nb::cast<double>(value);
    else if (isNumber)
      fields.push_back({field, nb::cast<double>(value)});
    else if (nb::isinstance<nb::int_>(value))
      fields.push_back({field, nb::cast<int64_t>(value)});
    else
      fields.push_back({field, nb::cast<std::string>(nb::str(value))});
  }
  step.numbers = fields;
  return isStep ? engine::formatStep(step) : engine::formatEvent(name, fields);
}

void bindTraining(nb::module_ &module) {
  module.def("format_event", &formatLine, "event"_a);

  using T = Training;
  nb::class_<T>(module, "Training", nb::type_slots(kSlots))
      .def(nb::init<nb::object, const std::string &, nb::object>(), "session"_a, "path"_a, "tell"_a)
      .def("set", [](T &t, nb::kwargs options) { t.set(options); })
      .def("open_train", &T::openTrain, "source"_a)
      .def("open_eval", &T::openEval, "source"_a)
      .def("add_metric", &T::addMetric, "name"_a, "function"_a = nb::none())
      .def("begin", &T::begin)
      .def("load", &T::load, "path"_a)
      .def("plan", &T::plan, "epochs"_a.none(), "steps"_a.none())
      .def("train", &T::train)
      .def("stop", &T::stop)
      .def("interrupt", &T::interrupt)
      .def("save", &T::save, "path"_a)
      .def("evaluate", &T::evaluate, "source"_a.none(), "weights"_a)
      .def_prop_ro("files", &T::getFiles)
      .def_prop_ro("figures", &T::listFigures)
      .def_prop_ro("metrics", &T::getMetrics)
      .def_prop_ro("schedule", &T::getSchedule)
      .def_prop_ro("is_interrupted", &T::isInterrupted)
      .def_prop_ro("saves", &T::saves)
      .def_prop_ro("is_exhausted", [](const T &t) { return t.get().getFollower().isExhausted(); })
      .def_prop_ro("step", [](const T &t) { return t.get().getStep(); })
      .def_prop_ro("epoch", [](const T &t) { return t.get().getEpoch(); })
      .def_prop_ro("slice", [](const T &t) { return t.get().getSlice(); })
      .def_prop_ro("seed", [](const T &t) { return t.get().getSeed(); })
      .def_prop_ro("shuffle", [](const T &t) { return t.get().isShuffled(); })
      .def_prop_ro("best", [](const T &t) -> std::optional<std::pair<int64_t, double>> {
        const engine::Follower &follower = t.get().getFollower();
        if (follower.getBestStep() < 0)
          return std::nullopt;
        return std::pair(follower.getBestStep(), follower.getBest());
      });
}

} // namespace ortc::python
