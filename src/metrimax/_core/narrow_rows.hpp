// The innermost loops of the products with dense rows of a few entries, in one thread. See products.hpp for the
// conventions.
//
// Input    rows of a dense matrix X, of 256 entries or fewer, one vector or two
// Output   X w, overwritten; X'c, added
//
// In such rows the multiplications take the least time. The compiler's own loops handle entries that do not fill a
// vector one by one, add up the lanes for every row, and read and write the sums of X'c every few rows. Here
//   X w   sums four rows side by side and adds up the lanes of the four together;
//   X'c   keeps the sums of all columns in registers while the rows pass.
// The last entries of a row are read together with those before them: the memory behind the row may not be ours, and
// may hold NaN. Vectors have four lanes, so each row is summed in the same order everywhere, whatever rows are around
// it.
//
// This needs vector types, which GCC and Clang have, and registers that hold four lanes: AVX2, for which the machine is
// asked at run time. Elsewhere, and for wider rows, the functions here return false and the loops of dense_loops.hpp
// are used.
#pragma once

#include "clones.hpp"
#include "index.hpp"

#include <algorithm>
#include <cstring>

#if defined(__x86_64__) && defined(__GNUC__) && defined(__has_builtin)
#if __has_builtin(__builtin_shufflevector) // GCC from 12 on
#define METRIMAX_FOURS
#endif
#endif

namespace metrimax {

// out[i] = <row i, w> for n rows of P entries: so few that the rows themselves can be the lanes.
template <size_t P, class T>
METRIMAX_CLONES void dot_rows_of(const T *METRIMAX_RESTRICT X, size_t n, const double *METRIMAX_RESTRICT w,
                                 double *METRIMAX_RESTRICT out) {
#pragma omp simd
    for (size_t i = 0; i < n; ++i) {
        double sum = static_cast<double>(X[i * P]) * w[0];
        for (size_t j = 1; j < P; ++j)
            sum += static_cast<double>(X[i * P + j]) * w[j];
        out[i] = sum;
    }
}

// The same for two vectors.
template <size_t P, class T>
METRIMAX_CLONES void dot_rows_of_pair(const T *METRIMAX_RESTRICT X, size_t n, const double *METRIMAX_RESTRICT w0,
                                      const double *METRIMAX_RESTRICT w1, double *METRIMAX_RESTRICT out0,
                                      double *METRIMAX_RESTRICT out1) {
#pragma omp simd
    for (size_t i = 0; i < n; ++i) {
        double s = static_cast<double>(X[i * P]) * w0[0], t = static_cast<double>(X[i * P]) * w1[0];
        for (size_t j = 1; j < P; ++j) {
            s += static_cast<double>(X[i * P + j]) * w0[j];
            t += static_cast<double>(X[i * P + j]) * w1[j];
        }
        out0[i] = s;
        out1[i] = t;
    }
}

#ifdef METRIMAX_FOURS

#define METRIMAX_AVX2 __attribute__((target("avx2")))
#define METRIMAX_AVX2_INLINE METRIMAX_AVX2 __attribute__((always_inline)) inline

// The longest rows for which this is faster than the loops of dense_loops.hpp: for X w, and for X'c with V vectors.
constexpr size_t kNarrowDot = 256;
template <size_t V> constexpr size_t kNarrowAdd = V == 1 ? 64 : 60;

using Four = double __attribute__((vector_size(32)));
using FourBits = long long __attribute__((vector_size(32)));

inline bool has_fours() { return __builtin_cpu_supports("avx2"); }

// Written out, because GCC 12 turns the conversion of a vector of floats into two of halves.
template <class T> METRIMAX_AVX2_INLINE Four four(const T *x) {
    return Four{static_cast<double>(x[0]), static_cast<double>(x[1]), static_cast<double>(x[2]),
                static_cast<double>(x[3])};
}

// The first P < 4 of them, and zeros.
template <size_t P, class T> METRIMAX_AVX2_INLINE Four some_of_four(const T *x) {
    return Four{static_cast<double>(x[0]), P > 1 ? static_cast<double>(x[1]) : 0.0,
                P > 2 ? static_cast<double>(x[2]) : 0.0, 0.0};
}

// The lanes whose bits are set, and zero in the others.
METRIMAX_AVX2_INLINE Four masked(Four v, FourBits bits) { return (Four)((FourBits)v & bits); }

// The sums of the lanes of four vectors, (0 + 1) + (2 + 3) each.
METRIMAX_AVX2_INLINE Four lane_sums(const Four (&s)[4]) {
    const Four a = __builtin_shufflevector(s[0], s[1], 0, 4, 2, 6) + __builtin_shufflevector(s[0], s[1], 1, 5, 3, 7);
    const Four b = __builtin_shufflevector(s[2], s[3], 0, 4, 2, 6) + __builtin_shufflevector(s[2], s[3], 1, 5, 3, 7);
    return __builtin_shufflevector(a, b, 0, 1, 4, 5) + __builtin_shufflevector(a, b, 2, 3, 6, 7);
}

// out0[i step] = <row i, w0>, and out1 with w1 if V = 2, for n rows of p >= 4 entries.
template <size_t V, class T>
METRIMAX_AVX2 void dot_fours(const T *METRIMAX_RESTRICT X, size_t n, size_t p, const double *METRIMAX_RESTRICT w0,
                             const double *METRIMAX_RESTRICT w1, double *METRIMAX_RESTRICT out0,
                             double *METRIMAX_RESTRICT out1, size_t step) {
    constexpr long long kBits[8] = {0, 0, 0, 0, -1, -1, -1, -1};
    const double *w[2] = {w0, w1};
    double *out[2] = {out0, out1};
    const size_t left = p % 4, whole = p - left;
    FourBits bits; // set in the last `left` lanes
    std::memcpy(&bits, kBits + left, sizeof(bits));
    Four last[V];
    for (size_t v = 0; v < V; ++v)
        last[v] = masked(four(w[v] + p - 4), bits);
    for (size_t i = 0; i < n; i += 4) {
        const T *x[4]; // past the end the last row is repeated, and its sums are not used
        for (size_t r = 0; r < 4; ++r)
            x[r] = X + std::min(i + r, n - 1) * p;
        Four sums[V][4] = {};
        for (size_t j = 0; j < whole; j += 4)
#pragma GCC unroll 4
            for (size_t r = 0; r < 4; ++r)
#pragma GCC unroll 2
                for (size_t v = 0; v < V; ++v)
                    sums[v][r] += four(x[r] + j) * four(w[v] + j);
        if (left > 0)
#pragma GCC unroll 4
            for (size_t r = 0; r < 4; ++r)
#pragma GCC unroll 2
                for (size_t v = 0; v < V; ++v)
                    sums[v][r] += masked(four(x[r] + p - 4), bits) * last[v];
#pragma GCC unroll 2
        for (size_t v = 0; v < V; ++v) {
            const Four total = lane_sums(sums[v]);
            if (step == 1 && i + 4 <= n)
                std::memcpy(out[v] + i, &total, sizeof(total));
            else
                for (size_t r = 0; r < std::min<size_t>(4, n - i); ++r)
                    out[v][(i + r) * step] = total[r];
        }
    }
}

// The k-th of K fours that make up `width` entries: the last one ends where they do. Or P < 4 entries alone.
template <size_t K, size_t P, class T> METRIMAX_AVX2_INLINE Four part(const T *x, size_t k, size_t width) {
    if constexpr (P > 0)
        return some_of_four<P>(x);
    else
        return four(k + 1 < K ? x + 4 * k : x + width - 4);
}

// Add R rows, times their coefficients, to V sums of K fours.
template <size_t R, size_t K, size_t P, size_t V, class T>
METRIMAX_AVX2_INLINE void add_some(const T *X, size_t p, const size_t *rows, const double *const (&c)[2], size_t step,
                                   size_t width, Four (&sums)[V][K]) {
    for (size_t k = 0; k < K; ++k)
        for (size_t v = 0; v < V; ++v) {
            Four sum = part<K, P>(X + rows[0] * p, k, width) * c[v][rows[0] * step];
            for (size_t r = 1; r < R; ++r)
                sum += part<K, P>(X + rows[r] * p, k, width) * c[v][rows[r] * step];
            sums[v][k] += sum;
        }
}

// out0 += sum over the listed rows i of c0[i step] times the first `width` entries of row i, and out1 with c1 if V = 2.
// The width is K fours, as by part(), or P. Where fours overlap, their sums are the same.
template <size_t K, size_t P, size_t V, class T>
METRIMAX_AVX2 void add_fours(const T *METRIMAX_RESTRICT X, size_t p, const size_t *METRIMAX_RESTRICT rows,
                             size_t n_rows, const double *METRIMAX_RESTRICT c0, const double *METRIMAX_RESTRICT c1,
                             size_t step, size_t width, double *METRIMAX_RESTRICT out0,
                             double *METRIMAX_RESTRICT out1) {
    const double *c[2] = {c0, c1};
    double *out[2] = {out0, out1};
    Four sums[V][K];
    for (size_t v = 0; v < V; ++v)
        for (size_t k = 0; k < K; ++k)
            sums[v][k] = part<K, P>(out[v], k, width);
    // One row at a time; two where there are so few sums that they would wait for themselves, and four where there are
    // so many that they are not in registers after all.
    constexpr size_t R = K < 3 ? 2 : V * K > 16 ? 4 : 1;
    size_t r = 0;
    for (; r + R <= n_rows; r += R)
        add_some<R, K, P>(X, p, rows + r, c, step, width, sums);
    for (; r < n_rows; ++r)
        add_some<1, K, P>(X, p, rows + r, c, step, width, sums);
    for (size_t v = 0; v < V; ++v)
        for (size_t k = 0; k < K; ++k)
            std::memcpy(out[v] + (P > 0 || k + 1 < K ? 4 * k : width - 4), &sums[v][k],
                        (P > 0 ? P : 4) * sizeof(double));
}

// The same for any width of four or more: K is found by counting.
template <size_t V, size_t K, class T>
void add_fours_of(const T *X, size_t p, const size_t *rows, size_t n_rows, const double *c0, const double *c1,
                  size_t step, size_t width, double *out0, double *out1) {
    if constexpr (4 * K < kNarrowAdd<V>)
        if (width > 4 * K)
            return add_fours_of<V, K + 1>(X, p, rows, n_rows, c0, c1, step, width, out0, out1);
    add_fours<K, 0, V>(X, p, rows, n_rows, c0, c1, step, width, out0, out1);
}

// X'c for V vectors and the first `width` columns, as dense_add_rows and dense_add_rows_pair compute it. Returns
// whether it was done.
template <size_t V, class T>
bool add_narrow_rows(const T *X, size_t p, const size_t *rows, size_t n_rows, const double *c0, const double *c1,
                     size_t step, size_t width, double *out0, double *out1) {
    if (width == 0 || width > kNarrowAdd<V> || !has_fours())
        return false;
    if (width == 1)
        add_fours<1, 1, V>(X, p, rows, n_rows, c0, c1, step, width, out0, out1);
    else if (width == 2)
        add_fours<1, 2, V>(X, p, rows, n_rows, c0, c1, step, width, out0, out1);
    else if (width == 3)
        add_fours<1, 3, V>(X, p, rows, n_rows, c0, c1, step, width, out0, out1);
    else
        add_fours_of<V, 1>(X, p, rows, n_rows, c0, c1, step, width, out0, out1);
    return true;
}

#else

template <size_t V, class... Any> bool add_narrow_rows(const Any &...) { return false; }

#endif

// X w for n rows of p entries, as dense_dot_rows computes it. Returns whether it was done.
template <class T> bool dot_narrow_rows(const T *X, size_t n, size_t p, const double *w, double *out) {
    switch (p) {
    case 1:
        return dot_rows_of<1>(X, n, w, out), true;
    case 2:
        return dot_rows_of<2>(X, n, w, out), true;
    case 3:
        return dot_rows_of<3>(X, n, w, out), true;
    case 4:
        return dot_rows_of<4>(X, n, w, out), true;
    }
#ifdef METRIMAX_FOURS
    if (4 < p && p <= kNarrowDot && has_fours())
        return dot_fours<1>(X, n, p, w, nullptr, out, nullptr, 1), true;
#endif
    return false;
}

// The same for two vectors, as dense_dot_rows_pair computes it.
template <class T>
bool dot_narrow_rows_pair(const T *X, size_t n, size_t p, const double *w0, const double *w1, double *out0,
                          double *out1, size_t step) {
    if (step == 1)
        switch (p) {
        case 1:
            return dot_rows_of_pair<1>(X, n, w0, w1, out0, out1), true;
        case 2:
            return dot_rows_of_pair<2>(X, n, w0, w1, out0, out1), true;
        case 3:
            return dot_rows_of_pair<3>(X, n, w0, w1, out0, out1), true;
        case 4:
            return dot_rows_of_pair<4>(X, n, w0, w1, out0, out1), true;
        }
#ifdef METRIMAX_FOURS
    if (4 <= p && p <= kNarrowDot && has_fours())
        return dot_fours<2>(X, n, p, w0, w1, out0, out1, step), true;
#endif
    return false;
}

} // namespace metrimax
