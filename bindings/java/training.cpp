// Learning rates and metrics of the engine, for Schedule and Metrics of dev.ortc.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Texts come and go as bytes: JNI's strings have an encoding of their own. Java checks that handles are not 0.
#include <jni.h>

#include <new>

#include "bindings/java/exception.h"
#include "bindings/training/evaluation.h"
#include "bindings/training/rates.h"
#include "ortc/ortc.h"

using namespace ortc;
using bindings::Evaluation;
using bindings::Rates;

static jbyteArray toBytes(JNIEnv *env, const std::string &text) {
  return java::toBytes(env, text.data(), text.size());
}

static std::string toText(JNIEnv *env, jbyteArray bytes) {
  std::string text(size_t(env->GetArrayLength(bytes)), 0);
  env->GetByteArrayRegion(bytes, 0, jsize(text.size()), reinterpret_cast<jbyte *>(text.data()));
  return text;
}

static void raise(JNIEnv *env, ortc_status status, const std::string &text) {
  java::raise(env, jint(status), text.data(), text.size());
}

/// Runs what gives a Status; throws what has failed, also where memory ends. Nothing of C++ reaches Java.
template <typename Action> static void perform(JNIEnv *env, Action action) {
  try {
    if (const Status status = action(); !status.isOk())
      raise(env, status.getCode() == ExitCode::Refused ? ORTC_E_ARGUMENT : ORTC_E_FORMAT,
            status.getMessage());
  } catch (const std::bad_alloc &) {
    raise(env, ORTC_E_MEMORY, "out of memory");
  }
}

static Rates &ratesOf(jlong handle) { return *reinterpret_cast<Rates *>(handle); }
static Evaluation &evaluationOf(jlong handle) { return *reinterpret_cast<Evaluation *>(handle); }

#define SCHEDULE(type, name, ...)                                                                            \
  JNIEXPORT type JNICALL Java_dev_ortc_Schedule_##name(JNIEnv *env, jclass, __VA_ARGS__)
#define METRICS(type, name, ...)                                                                             \
  JNIEXPORT type JNICALL Java_dev_ortc_Metrics_##name(JNIEnv *env, jclass, __VA_ARGS__)

extern "C" {

SCHEDULE(jlong, create, jbyteArray text, jdouble base, jlong steps) {
  Rates *rates = nullptr;
  perform(env, [&] {
    auto made = std::make_unique<Rates>();
    ORTC_TRY(Rates::parse(toText(env, text), base, steps, *made));
    rates = made.release();
    return Status();
  });
  return reinterpret_cast<jlong>(rates);
}

SCHEDULE(void, destroy, jlong rates) { delete &ratesOf(rates); }
SCHEDULE(jdouble, rate, jlong rates, jlong step) { return ratesOf(rates).get(step); }
SCHEDULE(void, follow, jlong rates, jdouble value, jboolean isMaximum) {
  ratesOf(rates).follow(value, isMaximum != JNI_FALSE);
}

SCHEDULE(jbyteArray, state, jlong rates) {
  jbyteArray text = nullptr;
  perform(env, [&] {
    text = toBytes(env, ratesOf(rates).formatState());
    return Status();
  });
  return text;
}

SCHEDULE(void, restore, jlong rates, jbyteArray state) {
  perform(env, [&] { return ratesOf(rates).parseState(toText(env, state)); });
}

METRICS(jlong, create, jbyteArray manifest) {
  Evaluation *evaluation = nullptr;
  perform(env, [&] {
    auto made = std::make_unique<Evaluation>();
    ORTC_TRY(made->open(toText(env, manifest)));
    evaluation = made.release();
    return Status();
  });
  return reinterpret_cast<jlong>(evaluation);
}

METRICS(void, destroy, jlong evaluation) { delete &evaluationOf(evaluation); }

METRICS(void, addValue, jlong evaluation, jint binding, jboolean isInput, jbyteArray name, jint dtype,
        jlongArray dims) {
  perform(env, [&] {
    Shape shape(size_t(env->GetArrayLength(dims)));
    static_assert(sizeof(jlong) == sizeof(int64_t));
    std::vector<jlong> sizes(shape.size());
    env->GetLongArrayRegion(dims, 0, jsize(sizes.size()), sizes.data());
    shape.assign(sizes.begin(), sizes.end());
    return evaluationOf(evaluation)
        .addValue(size_t(binding), isInput != JNI_FALSE, {toText(env, name), DataType(dtype), shape});
  });
}

METRICS(void, addMetric, jlong evaluation, jbyteArray metric) {
  perform(env, [&] { return evaluationOf(evaluation).add(toText(env, metric)); });
}

METRICS(void, begin, jlong evaluation) {
  perform(env, [&] { return evaluationOf(evaluation).begin(); });
}

/// Null past the end.
METRICS(jbyteArray, tensorAt, jlong evaluation, jint index) {
  const std::vector<std::string> &tensors = evaluationOf(evaluation).getTensors();
  return size_t(index) < tensors.size() ? toBytes(env, tensors[size_t(index)]) : nullptr;
}

METRICS(jobject, place, jlong evaluation, jint binding, jint tensor) {
  jobject buffer = nullptr;
  perform(env, [&] {
    std::vector<uint8_t> *place = nullptr;
    ORTC_TRY(evaluationOf(evaluation).getPlace(size_t(binding), size_t(tensor), place));
    buffer = env->NewDirectByteBuffer(place->data(), jlong(place->size()));
    return Status();
  });
  return buffer;
}

METRICS(void, addSlice, jlong evaluation, jint binding, jboolean hasRows, jlong rows) {
  perform(env, [&] {
    return evaluationOf(evaluation)
        .addSlice(size_t(binding), hasRows != JNI_FALSE ? std::optional<int64_t>(rows) : std::nullopt);
  });
}

METRICS(jdoubleArray, compute, jlong evaluation) {
  jdoubleArray array = nullptr;
  perform(env, [&] {
    std::vector<double> values;
    for (const auto &[name, value] : evaluationOf(evaluation).compute())
      values.push_back(value);
    array = env->NewDoubleArray(jsize(values.size()));
    if (array)
      env->SetDoubleArrayRegion(array, 0, jsize(values.size()), values.data());
    return Status();
  });
  return array;
}
}
