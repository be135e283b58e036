// What the classes of dev.ortc call: each function is one of ortc.h or threads.h.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
// Texts come and go as bytes: JNI's strings have an encoding of their own. Java checks that buffers are direct and
// handles not 0.
#include <jni.h>
#include <string.h>

#include "bindings/java/exception.h"
#include "ortc/ortc.h"
#include "ortc/threads.h"

namespace {

jbyteArray toBytes(JNIEnv *env, const char *text) { return ortc::java::toBytes(env, text, strlen(text)); }

/// Throws what the status is; nothing for ORTC_OK.
void check(JNIEnv *env, ortc_status status, const char *text) {
  if (status)
    ortc::java::raise(env, (jint)status, text, strlen(text));
}

ortc_session *sessionOf(jlong handle) { return (ortc_session *)(uintptr_t)handle; }
ortc_program *programOf(jlong handle) { return (ortc_program *)(uintptr_t)handle; }

void check(JNIEnv *env, ortc_status status, jlong session) {
  if (status)
    check(env, status, ortc_session_message(sessionOf(session)));
}

/// Bytes of Java, which end with a terminator, for as long as it lives. Null where Java throws.
class Text {
public:
  Text(JNIEnv *env, jbyteArray bytes)
      : env(env), bytes(bytes), text(env->GetByteArrayElements(bytes, nullptr)) {}
  ~Text() {
    if (text)
      env->ReleaseByteArrayElements(bytes, text, JNI_ABORT);
  }
  operator const char *() const { return (const char *)text; }

private:
  JNIEnv *env;
  jbyteArray bytes;
  jbyte *text;
};

void *addressOf(JNIEnv *env, jobject buffer, jint position) {
  return buffer ? (char *)env->GetDirectBufferAddress(buffer) + position : nullptr;
}

/// Name and numbers of a tensor, or nullptr.
jbyteArray describe(JNIEnv *env, ortc_status status, const ortc_tensor_info &info, jlongArray out) {
  if (status)
    return nullptr;
  jlong numbers[5 + ORTC_MAX_RANK] = {(jlong)info.index, info.role, info.dtype, (jlong)info.bytes, info.rank};
  for (int i = 0; i < info.rank; i++)
    numbers[5 + i] = info.dims[i];
  env->SetLongArrayRegion(out, 0, 5 + info.rank, numbers);
  return toBytes(env, info.name);
}
static_assert(5 + ORTC_MAX_RANK <= 16, "Program.MAX_NUMBERS");

/// A step that gives a loss.
using LossStep = ortc_status (*)(ortc_session *, double *);

} // namespace

// Of class Program.
#define PROGRAM(type, name, ...)                                                                             \
  JNIEXPORT type JNICALL Java_dev_ortc_Program_##name(JNIEnv *env, jclass, __VA_ARGS__)
// Of class Session. With two of one name Java would want their signatures in it; there are none.
#define SESSION(type, name, ...)                                                                             \
  JNIEXPORT type JNICALL Java_dev_ortc_Session_##name(JNIEnv *env, jclass, __VA_ARGS__)

extern "C" {

PROGRAM(jlong, openFile, jbyteArray path) {
  ortc_program *program = nullptr;
  ortc_message message;
  if (Text text{env, path})
    check(env, ortc_program_open_file(text, nullptr, &program, &message), message.text);
  return (jlong)(uintptr_t)program;
}

PROGRAM(jlong, openMemory, jobject image, jint position, jint bytes) {
  ortc_program *program;
  ortc_message message;
  check(env,
        ortc_program_open_memory(addressOf(env, image, position), (size_t)bytes, nullptr, &program, &message),
        message.text);
  return (jlong)(uintptr_t)program;
}

PROGRAM(void, close, jlong program) { ortc_program_close(programOf(program)); }

PROGRAM(jbyteArray, target, jlong program) {
  ortc_program_info info = ORTC_INIT(ortc_program_info);
  ortc_program_get_info(programOf(program), &info);
  return toBytes(env, info.target_name);
}

PROGRAM(jbyteArray, manifest, jlong program) {
  const void *data = nullptr;
  uint64_t bytes = 0;
  if (ortc_status status = ortc_program_section(programOf(program), ORTC_SECTION_MANIFEST, &data, &bytes)) {
    check(env, status, "the manifest cannot be read");
    return nullptr;
  }
  jbyteArray text = env->NewByteArray((jsize)bytes);
  if (text)
    env->SetByteArrayRegion(text, 0, (jsize)bytes, (const jbyte *)data);
  return text;
}

PROGRAM(jint, maxWorkers, jlong program) {
  ortc_program_info info = ORTC_INIT(ortc_program_info);
  ortc_program_get_info(programOf(program), &info);
  return (jint)info.max_workers;
}

PROGRAM(jbyteArray, tensorAt, jlong program, jint index, jlongArray numbers) {
  ortc_tensor_info info = ORTC_INIT(ortc_tensor_info);
  return describe(env, ortc_tensor_get(programOf(program), (uint32_t)index, &info), info, numbers);
}

PROGRAM(jbyteArray, tensorNamed, jlong program, jbyteArray name, jlongArray numbers) {
  ortc_tensor_info info = ORTC_INIT(ortc_tensor_info);
  Text text(env, name);
  return text ? describe(env, ortc_tensor_find(programOf(program), text, &info), info, numbers) : nullptr;
}

PROGRAM(jbyteArray, entryAt, jlong program, jint entry, jlongArray out) {
  ortc_entry_info info = ORTC_INIT(ortc_entry_info);
  if (ortc_entry_get(programOf(program), (uint32_t)entry, &info))
    return nullptr;
  jlong numbers[] = {info.role, info.binding};
  env->SetLongArrayRegion(out, 0, 2, numbers);
  return toBytes(env, info.name);
}

PROGRAM(jbyteArray, entryValue, jlong program, jint entry, jint n, jlongArray numbers) {
  ortc_tensor_info info = ORTC_INIT(ortc_tensor_info);
  return describe(env, ortc_entry_value(programOf(program), (uint32_t)entry, (uint32_t)n, &info), info,
                  numbers);
}

PROGRAM(jint, bindingNamed, jlong program, jbyteArray name) {
  Text text(env, name);
  return text ? (jint)ortc_binding_find(programOf(program), text) : -1;
}

SESSION(jlong, createPool, jint threads) {
  ortc_pool *pool = ortc_pool_create((uint32_t)threads);
  check(env, pool ? ORTC_OK : ORTC_E_MEMORY, "the threads cannot be had");
  return (jlong)(uintptr_t)pool;
}

SESSION(void, destroyPool, jlong pool) { ortc_pool_destroy((ortc_pool *)(uintptr_t)pool); }

SESSION(jlong, create, jlong program, jint threads, jlong pool, jboolean stopOnNotFinite) {
  ortc_session_options options = ORTC_INIT(ortc_session_options);
  options.flags = stopOnNotFinite ? ORTC_SESSION_STOP_ON_NOT_FINITE : 0;
  options.workers = (uint32_t)threads;
  options.parallel_for = pool ? ortc_pool_parallel_for : nullptr;
  options.pool = (void *)(uintptr_t)pool;
  ortc_session *session = nullptr;
  ortc_message message;
  if (!env->ExceptionCheck())
    check(env, ortc_session_create(programOf(program), &options, &session, &message), message.text);
  return (jlong)(uintptr_t)session;
}

SESSION(void, destroy, jlong session) { ortc_session_destroy(sessionOf(session)); }

SESSION(void, useBinding, jlong session, jint binding) {
  check(env, ortc_session_use_binding(sessionOf(session), (uint32_t)binding), "no such binding");
}

SESSION(void, reset, jlong session) { check(env, ortc_session_reset(sessionOf(session)), session); }

SESSION(void, write, jlong session, jbyteArray name, jobject buffer, jint position, jint bytes) {
  if (Text text{env, name})
    check(env, ortc_write(sessionOf(session), text, addressOf(env, buffer, position), (size_t)bytes),
          session);
}

SESSION(void, read, jlong session, jbyteArray name, jobject buffer, jint position, jint bytes) {
  if (Text text{env, name})
    check(env, ortc_read(sessionOf(session), text, addressOf(env, buffer, position), (size_t)bytes), session);
}

SESSION(void, bind, jlong session, jbyteArray name, jobject buffer, jint position, jint bytes) {
  if (Text text{env, name})
    check(env, ortc_bind(sessionOf(session), text, addressOf(env, buffer, position), (size_t)bytes), session);
}

SESSION(void, readGradient, jlong session, jbyteArray name, jobject buffer, jint position, jint bytes) {
  if (Text text{env, name})
    check(env, ortc_read_gradient(sessionOf(session), text, addressOf(env, buffer, position), (size_t)bytes),
          session);
}

SESSION(void, writeGradient, jlong session, jbyteArray name, jobject buffer, jint position, jint bytes) {
  if (Text text{env, name})
    check(env, ortc_write_gradient(sessionOf(session), text, addressOf(env, buffer, position), (size_t)bytes),
          session);
}

SESSION(void, setScalar, jlong session, jbyteArray name, jdouble value) {
  if (Text text{env, name})
    check(env, ortc_set_scalar(sessionOf(session), text, value), session);
}

SESSION(jdouble, getScalar, jlong session, jbyteArray name) {
  double value = 0;
  if (Text text{env, name})
    check(env, ortc_get_scalar(sessionOf(session), text, &value), session);
  return value;
}

SESSION(jdouble, step, jlong session, jint role) {
  double loss = 0;
  ortc_session *s = sessionOf(session);
  const LossStep steps[] = {ortc_train_step,     ortc_eval_step, nullptr,
                            ortc_gradients_step, nullptr,        ortc_accumulate_step};
  check(env,
        role == ORTC_ENTRY_PREDICT  ? ortc_predict_step(s)
        : role == ORTC_ENTRY_UPDATE ? ortc_update_step(s)
                                    : steps[role](s, &loss),
        session);
  return loss;
}

SESSION(void, save, jlong session, jbyteArray path) {
  if (Text text{env, path})
    check(env, ortc_checkpoint_save(sessionOf(session), text, nullptr, 0), session);
}

SESSION(void, load, jlong session, jbyteArray path) {
  if (Text text{env, path})
    check(env, ortc_checkpoint_load(sessionOf(session), text, nullptr), session);
}

SESSION(void, loadMemory, jlong session, jobject buffer, jint position, jint bytes) {
  check(env,
        ortc_checkpoint_read(sessionOf(session), addressOf(env, buffer, position), (size_t)bytes, nullptr),
        session);
}
}
