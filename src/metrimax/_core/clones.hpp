// Loops that are compiled for several instruction sets.
//
// On Linux x86 GCC compiles each such loop several times and the loader picks the best one the machine has, so that one
// wheel is fast everywhere. Elsewhere the macro is empty and the compiler's target decides.
#pragma once

#include <cstddef> // any header of the C library defines which one it is: __GLIBC__

#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__) && defined(__GLIBC__) &&                           \
    !defined(METRIMAX_NO_CLONES)
#if __GNUC__ >= 12 // AVX-512 with BW, DQ and VL, without which comparisons that give bytes are slow
#define METRIMAX_CLONES __attribute__((target_clones("arch=x86-64-v4", "avx2", "default")))
#else
#define METRIMAX_CLONES __attribute__((target_clones("avx512f", "avx2", "default")))
#endif
#else
#define METRIMAX_CLONES
#endif

// For functions that such a loop inlines, so that they are compiled with it.
#if defined(__GNUC__) || defined(__clang__)
#define METRIMAX_INLINE __attribute__((always_inline)) inline
#else
#define METRIMAX_INLINE inline
#endif

#if defined(__GNUC__) || defined(__clang__)
#define METRIMAX_RESTRICT __restrict__
#elif defined(_MSC_VER)
#define METRIMAX_RESTRICT __restrict
#else
#define METRIMAX_RESTRICT
#endif
