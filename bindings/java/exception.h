// Texts and exceptions of Java, for both libraries of dev.ortc.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
#pragma once

#include <jni.h>
#include <stddef.h>

namespace ortc::java {

/// A new byte[] with UTF-8: JNI's strings have an encoding of their own. Null where Java throws.
inline jbyteArray toBytes(JNIEnv *env, const char *text, size_t length) {
  jbyteArray bytes = env->NewByteArray((jsize)length);
  if (bytes)
    env->SetByteArrayRegion(bytes, 0, (jsize)length, (const jbyte *)text);
  return bytes;
}

/// Throws an OrtcException. `status`: enum ortc_status, not ORTC_OK.
inline void raise(JNIEnv *env, jint status, const char *text, size_t length) {
  jclass type = env->FindClass("dev/ortc/OrtcException");
  jmethodID constructor = type ? env->GetMethodID(type, "<init>", "(I[B)V") : nullptr;
  jbyteArray bytes = constructor ? toBytes(env, text, length) : nullptr;
  jobject exception = bytes ? env->NewObject(type, constructor, status, bytes) : nullptr;
  if (exception)
    env->Throw((jthrowable)exception);
}

} // namespace ortc::java
