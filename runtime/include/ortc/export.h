/* How functions of the interface are visible outside of their library.
 * SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
 *
 * Libraries are compiled with ORTC_BUILDING_DLL where they become one of Windows; what uses them needs nothing. */
#pragma once

#if defined(_WIN32)
#if defined(ORTC_BUILDING_DLL)
#define ORTC_EXPORT __declspec(dllexport)
#else
#define ORTC_EXPORT
#endif
#elif defined(__GNUC__)
#define ORTC_EXPORT __attribute__((visibility("default")))
#else
#define ORTC_EXPORT
#endif
