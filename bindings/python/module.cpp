// The module ortc._runtime: sessions of the runtime for Python.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include "bindings/python/containers.h"
#include "bindings/python/errors.h"
#include "bindings/python/frame.h"
#include "bindings/python/session.h"
#include "bindings/python/training.h"
#include "bindings/python/types.h"
#include "bindings/python/update.h"
#include "engine/checkpoints/kept_checkpoints.h"
#include "support/EditDistance.h"
#include "support/FormatNames.h"
#include "support/OutputPaths.h"
#include "support/Text.h"

namespace nb = nanobind;
using namespace nb::literals;
using namespace ortc::python;

namespace {

nb::tuple listDims(size_t rank, const int64_t *dims) {
  nb::list list;
  for (size_t i = 0; i < rank; ++i)
    list.append(dims[i]);
  return nb::tuple(list);
}

/// (name, role, dtype, shape, bytes, owner or None)
nb::list listTensors(const Program &program) {
  nb::list list;
  for (uint32_t i = 0; i < program.getInfo().tensor_count; ++i) {
    ortc_tensor_info tensor = program.getTensor(i);
    nb::object owner =
        tensor.owner == ORTC_NONE ? nb::none() : nb::cast(program.getTensor(tensor.owner).name);
    list.append(nb::make_tuple(tensor.name, ortc::getTensorRoleName(tensor.role), nameType(tensor.dtype),
                               listDims(tensor.rank, tensor.dims), tensor.bytes, owner));
  }
  return list;
}

/// Binding -> role of a step -> ((inputs), (outputs)), each (name, dtype, shape).
nb::dict listSteps(const Program &program) {
  nb::dict all;
  for (const Binding &binding : program.getBindings()) {
    nb::dict roles;
    auto listValues = [&](const std::vector<uint32_t> &values) {
      nb::list list;
      for (uint32_t value : values) {
        const Spec &spec = binding.values[value];
        list.append(nb::make_tuple(spec.name, nameType(spec.type), listDims(spec.rank, spec.dims)));
      }
      return nb::tuple(list);
    };
    for (uint32_t role = 0; role < ORTC_ENTRY_ROLES; ++role)
      if (const Entry &entry = binding.entries[role]; entry.exists)
        roles[ortc::getEntryRoleName(role)] =
            nb::make_tuple(listValues(entry.inputs), listValues(entry.outputs));
    all[binding.name.c_str()] = roles;
  }
  return all;
}

nb::tuple describe(const Loaded &loaded) {
  return nb::make_tuple(loaded.hasFreshState, loaded.loaded, loaded.ignored, nb::cast(loaded.metadata));
}

/// `functions`: addresses of those of OpenMP, in the order of its members.
void makePool(Pool *place, uint32_t workers,
              std::optional<std::tuple<uintptr_t, uintptr_t, uintptr_t>> functions) {
  std::optional<OpenMP> openMP;
  if (functions) {
    auto [parallel, threads, thread] = *functions;
    openMP = OpenMP{reinterpret_cast<decltype(OpenMP::GOMP_parallel)>(parallel),
                    reinterpret_cast<decltype(OpenMP::omp_get_num_threads)>(threads),
                    reinterpret_cast<decltype(OpenMP::omp_get_thread_num)>(thread)};
  }
  new (place) Pool(workers, openMP);
}

using NamesAndPaths = std::vector<std::pair<std::string, std::string>>;

std::vector<ortc::NamedFile> nameFiles(const NamesAndPaths &files) {
  std::vector<ortc::NamedFile> named;
  for (const auto &[name, path] : files)
    named.push_back({name, path});
  return named;
}

void bindFunctions(nb::module_ &module) {
  module.def("host", [] { return nb::make_tuple(ortc_host_architecture(), ortc_host_features()); });
  module.def("check_device", [](const std::string &name) { Device device(name); }, "name"_a);
  module.def(
      "check_kept_names",
      [](const std::string &path, const NamesAndPaths &files) {
        ortc::python::check(ortc::engine::checkKeptNames(path, nameFiles(files)));
      },
      "path"_a, "files"_a);
  module.def(
      "check_output",
      [](const std::string &name, const std::string &path, const NamesAndPaths &inputs) {
        std::string place;
        ortc::python::check(ortc::resolveOutput(path, place));
        ortc::python::check(ortc::checkOutputs(nameFiles(inputs), {{name, path}}));
      },
      "name"_a, "path"_a, "inputs"_a);
  module.def(
      "check_folder",
      [](const std::string &path) { ortc::python::check(ortc::checkFolderOf(path), ORTC_E_ARGUMENT); },
      "path"_a);
  module.def(
      "join_words", [](const std::vector<std::string> &words) { return ortc::joinWords(words); }, "words"_a);
  module.def(
      "suggest",
      [](const std::string &text, const std::vector<std::string> &words) {
        return ortc::suggestWord(text, words);
      },
      "text"_a, "words"_a);
  module.def("take_snapshot", takeSnapshot, "containers"_a);
  module.def("is_unchanged", isUnchanged, "containers"_a, "snapshot"_a);
  module.def("have_items", haveItems, "items"_a, "absent"_a);
}

void bindProgram(nb::module_ &module) {
  nb::class_<Program>(module, "Program")
      .def(nb::init<const std::string &, const std::string &>(), "path"_a, "device"_a = "cpu")
      .def_prop_ro("target", [](const Program &p) { return p.getInfo().target_name; })
      .def_prop_ro("max_workers", [](const Program &p) { return p.getInfo().max_workers; })
      .def_prop_ro("persistent_bytes", [](const Program &p) { return p.getInfo().persistent_bytes; })
      .def_prop_ro("digest", [](const Program &p) { return nb::bytes(p.getInfo().digest, 32); })
      .def_prop_ro("model", [](const Program &p) { return nb::bytes(p.getInfo().model, 32); })
      .def("tensors", listTensors)
      .def("steps", listSteps)
      .def("section", &Program::readSection, "kind"_a);
}

/// Frames, and the threads that they share.
void bindFrame(nb::module_ &module) {
  nb::class_<Pool>(module, "Pool")
      .def("__init__", &makePool, "workers"_a, "openmp"_a = nb::none())
      .def_prop_ro("workers", &Pool::getWorkers);
  nb::class_<Frame>(module, "Frame")
      .def(nb::init<std::shared_ptr<Program>, std::shared_ptr<Pool>>(), "program"_a, "pool"_a)
      .def("names", &Frame::list, "kind"_a)
      .def_prop_ro("gradient_bytes", &Frame::getGradientBytes)
      .def_prop_ro("gradient_offsets", &Frame::getGradientOffsets)
      .def("forward", &Frame::forward, "inputs"_a, "bound"_a, "outputs"_a, "seed"_a)
      .def("backward", &Frame::backward, "cotangents"_a, "gradients"_a, "input_gradients"_a, "kept"_a,
           "bound"_a, "reread"_a);
}

void bindUpdate(nb::module_ &module) {
  module.def("advance", &advance, "counters"_a);
  nb::class_<Update> update(module, "Update");
  nb::class_<Update::Batch>(update, "Batch");
  update.def(nb::init<std::shared_ptr<Program>>(), "program"_a)
      .def_prop_ro("vectors", &Update::listVectors)
      .def_prop_ro("scalars", &Update::listScalars)
      .def_prop_ro("advanced", &Update::listAdvanced)
      .def_prop_ro("pieces", &Update::listPieces)
      .def("prepare", &Update::prepare, "tensors"_a)
      .def("step", &Update::step, "pool"_a, "batch"_a, "scalars"_a);
}

void bindSession(nb::module_ &module) {
  nb::class_<Session> session(module, "Session");
  session
      .def(nb::init<std::shared_ptr<Program>, uint32_t, bool>(), "program"_a, "threads"_a = 0,
           "stop_on_not_finite"_a = false)
      .def_prop_ro("threads", &Session::getThreads)
      .def_prop_ro("handle", [](const Session &s) { return reinterpret_cast<uintptr_t>(s.get()); })
      .def_prop_ro("binding", &Session::getBinding)
      .def("use_binding", &Session::useBinding, "name"_a)
      .def("reset", &Session::reset)
      .def("bind", [](Session &s, nb::kwargs arrays) { s.bind(arrays); })
      .def("bind_address", &Session::bindAddress, "name"_a, "address"_a)
      .def("step", [](Session &s) { return s.run(ORTC_ENTRY_TRAIN); })
      .def("update_step", [](Session &s) { s.run(ORTC_ENTRY_UPDATE); })
      .def("predict", [](Session &s, nb::args args, nb::kwargs named) { return s.predict(args, named); })
      .def("read", &Session::read, "name"_a)
      .def("write", &Session::write, "name"_a, "values"_a)
      .def("read_gradient", &Session::readGradient, "parameter"_a)
      .def("write_gradient", &Session::writeGradient, "parameter"_a, "values"_a)
      .def("get_scalar", &Session::getScalar, "name"_a)
      .def("set_scalar", &Session::setScalar, "name"_a, "value"_a)
      .def("locate", &Session::locate, "name"_a)
      .def("view", &Session::view, "name"_a)
      .def("tensor", &Session::exportTensor, "name"_a)
      .def("_save", &Session::save, "path"_a, "metadata"_a)
      .def(
          "_load", [](Session &s, const std::string &path) { return describe(s.load(path)); }, "path"_a)
      .def("_write_checkpoint", &Session::writeCheckpoint, "metadata"_a)
      .def(
          "_read_checkpoint",
          [](Session &s, const nb::bytes &file) { return describe(s.readCheckpoint(file)); }, "file"_a);
  for (auto [name, role] :
       {std::pair("train_step", ORTC_ENTRY_TRAIN), std::pair("eval_step", ORTC_ENTRY_EVAL),
        std::pair("gradients_step", ORTC_ENTRY_GRADIENTS),
        std::pair("accumulate_step", ORTC_ENTRY_ACCUMULATE)})
    session.def(name, [role = role](Session &s, nb::args args, nb::kwargs named) {
      return s.run(role, args, named);
    });
}

} // namespace

NB_MODULE(_runtime, module) {
  nb::set_leak_warnings(false); // modules of Python keep threads and programs to the end of the process
  module.attr("ABI_VERSION") = ortc_abi_version();
  bindFunctions(module);
  bindProgram(module);
  bindFrame(module);
  bindUpdate(module);
  bindSession(module);
  bindTraining(module);
}
