// The innermost loops of the products with dense rows, in one thread. See products.hpp for the conventions.
//
// Input    rows of a dense matrix X, vectors
// Output   X w, overwritten; X'c, added; single inner products (`dot`)
#pragma once

#include "clones.hpp"
#include "index.hpp"
#include "narrow_rows.hpp"

#include <algorithm>
#include <vector>

namespace metrimax {

// out += x.
inline void add(const double *METRIMAX_RESTRICT x, double *METRIMAX_RESTRICT out, size_t size) {
    for (size_t j = 0; j < size; ++j)
        out[j] += x[j];
}

// out += t x.
METRIMAX_CLONES inline void add_scaled(double t, const double *METRIMAX_RESTRICT x, double *METRIMAX_RESTRICT out,
                                       size_t size) {
#pragma omp simd
    for (size_t j = 0; j < size; ++j)
        out[j] += t * x[j];
}

inline bool any_nonzero(const double *c, size_t L) {
    if (L == 1 || L == 2) // without a branch that could be mispredicted
        return (c[0] != 0.0) | (c[L - 1] != 0.0);
    for (size_t l = 0; l < L; ++l)
        if (c[l] != 0.0)
            return true;
    return false;
}

// How many entries are not zero, in any of one or two vectors of length n.
METRIMAX_CLONES inline size_t count_nonzero(const double *METRIMAX_RESTRICT a, const double *METRIMAX_RESTRICT b,
                                            size_t n) {
    size_t count = 0;
#pragma omp simd reduction(+ : count)
    for (size_t i = 0; i < n; ++i)
        count += static_cast<size_t>((a[i] != 0.0) | (b[i] != 0.0));
    return count;
}

// In how many of n places any of the vectors is not zero: so many rows are read for the sum of rows that they weigh.
inline size_t rows_read(const std::vector<const double *> &vectors, size_t n) {
    if (vectors.size() <= 2)
        return count_nonzero(vectors.front(), vectors.back(), n);
    size_t count = 0;
    for (size_t i = 0; i < n; ++i)
        count += std::any_of(vectors.begin(), vectors.end(), [i](const double *one) { return one[i] != 0.0; });
    return count;
}

// <x, y>, summed where it stands: for loops that are compiled for several instruction sets as a whole. See `dot`.
template <class T, class U>
METRIMAX_INLINE double inner_product(const T *METRIMAX_RESTRICT x, const U *METRIMAX_RESTRICT y, size_t size) {
    double sum = 0.0;
#pragma omp simd reduction(+ : sum)
    for (size_t j = 0; j < size; ++j)
        sum += static_cast<double>(x[j]) * static_cast<double>(y[j]);
    return sum;
}

// <x, y>, by a call. For the many short products of the program over the cuts this is faster than rows of fours.
template <class T, class U> METRIMAX_CLONES double dot(const T *x, const U *y, size_t size) {
    return inner_product(x, y, size);
}

// out[i] = <row i, w> for n dense rows of length p. Four rows at a time share the reads of w and keep the adders busy.
template <class T>
METRIMAX_CLONES void dot_wide_rows(const T *METRIMAX_RESTRICT X, size_t n, size_t p, const double *METRIMAX_RESTRICT w,
                                   double *METRIMAX_RESTRICT out) {
    size_t i = 0;
    for (; i + 4 <= n; i += 4) {
        const T *x0 = X + i * p, *x1 = x0 + p, *x2 = x1 + p, *x3 = x2 + p;
        double s0 = 0.0, s1 = 0.0, s2 = 0.0, s3 = 0.0;
#pragma omp simd reduction(+ : s0, s1, s2, s3)
        for (size_t j = 0; j < p; ++j) {
            s0 += static_cast<double>(x0[j]) * w[j];
            s1 += static_cast<double>(x1[j]) * w[j];
            s2 += static_cast<double>(x2[j]) * w[j];
            s3 += static_cast<double>(x3[j]) * w[j];
        }
        out[i] = s0;
        out[i + 1] = s1;
        out[i + 2] = s2;
        out[i + 3] = s3;
    }
    for (; i < n; ++i)
        out[i] = inner_product(X + i * p, w, p);
}

// The same, by the loop that suits the length of the rows.
template <class T> void dense_dot_rows(const T *X, size_t n, size_t p, const double *w, double *out) {
    if (!dot_narrow_rows(X, n, p, w, out))
        dot_wide_rows(X, n, p, w, out);
}

// A gather costs about as much as this many entries in a row.
constexpr size_t kGather = 8;

inline bool mostly_zero(const double *w, size_t p) {
    const auto zeros = static_cast<size_t>(std::count(w, w + p, 0.0));
    return kGather * (p - zeros) <= p;
}

// The same where w may be mostly zero: then only its other entries are read from the rows.
inline void dense_dot_rows_sparse(const double *X, size_t n, size_t p, const double *w, double *out) {
    if (!mostly_zero(w, p))
        return dense_dot_rows(X, n, p, w, out);
    std::vector<size_t> at;
    for (size_t j = 0; j < p; ++j)
        if (w[j] != 0.0)
            at.push_back(j);
    for (size_t i = 0; i < n; ++i) {
        const double *row = X + i * p;
        double sum = 0.0;
        for (const size_t j : at)
            sum += row[j] * w[j];
        out[i] = sum;
    }
}

// out0[i step] = <row i, w0>, out1[i step] = <row i, w1> for n dense rows: X is read once for both.
template <class T>
METRIMAX_CLONES void dot_wide_rows_pair(const T *METRIMAX_RESTRICT X, size_t n, size_t p,
                                        const double *METRIMAX_RESTRICT w0, const double *METRIMAX_RESTRICT w1,
                                        double *METRIMAX_RESTRICT out0, double *METRIMAX_RESTRICT out1, size_t step) {
    size_t i = 0;
    for (; i + 4 <= n; i += 4) {
        const T *x0 = X + i * p, *x1 = x0 + p, *x2 = x1 + p, *x3 = x2 + p;
        double s0 = 0.0, s1 = 0.0, s2 = 0.0, s3 = 0.0, t0 = 0.0, t1 = 0.0, t2 = 0.0, t3 = 0.0;
#pragma omp simd reduction(+ : s0, s1, s2, s3, t0, t1, t2, t3)
        for (size_t j = 0; j < p; ++j) {
            const double a = w0[j], b = w1[j];
            s0 += static_cast<double>(x0[j]) * a;
            t0 += static_cast<double>(x0[j]) * b;
            s1 += static_cast<double>(x1[j]) * a;
            t1 += static_cast<double>(x1[j]) * b;
            s2 += static_cast<double>(x2[j]) * a;
            t2 += static_cast<double>(x2[j]) * b;
            s3 += static_cast<double>(x3[j]) * a;
            t3 += static_cast<double>(x3[j]) * b;
        }
        double *o = out0 + i * step, *q = out1 + i * step;
        o[0] = s0, o[step] = s1, o[2 * step] = s2, o[3 * step] = s3;
        q[0] = t0, q[step] = t1, q[2 * step] = t2, q[3 * step] = t3;
    }
    for (; i < n; ++i) {
        const T *x = X + i * p;
        double s0 = 0.0, s1 = 0.0;
#pragma omp simd reduction(+ : s0, s1)
        for (size_t j = 0; j < p; ++j) {
            s0 += static_cast<double>(x[j]) * w0[j];
            s1 += static_cast<double>(x[j]) * w1[j];
        }
        out0[i * step] = s0;
        out1[i * step] = s1;
    }
}

// The same, by the loop that suits the length of the rows.
template <class T>
void dense_dot_rows_pair(const T *X, size_t n, size_t p, const double *w0, const double *w1, double *out0, double *out1,
                         size_t step) {
    if (!dot_narrow_rows_pair(X, n, p, w0, w1, out0, out1, step))
        dot_wide_rows_pair(X, n, p, w0, w1, out0, out1, step);
}

// out += sum over the listed rows i of c[i] times row i, for the columns begin .. end - 1 alone.
// Four rows pass at a time, which quarters the traffic on out.
template <class T>
METRIMAX_CLONES void add_wide_rows(const T *METRIMAX_RESTRICT X, size_t p, const size_t *METRIMAX_RESTRICT rows,
                                   size_t n_rows, const double *METRIMAX_RESTRICT c, size_t begin, size_t end,
                                   double *METRIMAX_RESTRICT out) {
    size_t r = 0;
    for (; r + 4 <= n_rows; r += 4) {
        const T *x0 = X + rows[r] * p, *x1 = X + rows[r + 1] * p, *x2 = X + rows[r + 2] * p, *x3 = X + rows[r + 3] * p;
        const double c0 = c[rows[r]], c1 = c[rows[r + 1]], c2 = c[rows[r + 2]], c3 = c[rows[r + 3]];
#pragma omp simd
        for (size_t j = begin; j < end; ++j)
            out[j] += (static_cast<double>(x0[j]) * c0 + static_cast<double>(x1[j]) * c1) +
                      (static_cast<double>(x2[j]) * c2 + static_cast<double>(x3[j]) * c3);
    }
    for (; r < n_rows; ++r) {
        const T *x = X + rows[r] * p;
        const double ci = c[rows[r]];
#pragma omp simd
        for (size_t j = begin; j < end; ++j)
            out[j] += static_cast<double>(x[j]) * ci;
    }
}

// The same, by the loop that suits the number of columns.
template <class T>
void dense_add_rows(const T *X, size_t p, const size_t *rows, size_t n_rows, const double *c, size_t begin, size_t end,
                    double *out) {
    if (!add_narrow_rows<1>(X + begin, p, rows, n_rows, c, nullptr, 1, end - begin, out + begin, nullptr))
        add_wide_rows(X, p, rows, n_rows, c, begin, end, out);
}

// The same in blocks of columns that stay in the nearest cache while the rows pass.
template <class T>
void dense_add_rows_by_blocks(const T *X, size_t p, const size_t *rows, size_t n_rows, const double *c, size_t begin,
                              size_t end, double *out) {
    constexpr size_t kBlock = 2048;
    for (size_t j = begin; j < end; j += kBlock)
        dense_add_rows(X, p, rows, n_rows, c, j, std::min(j + kBlock, end), out);
}

// out0 += sum over the listed rows i of c0[i step] times row i, and out1 with c1, for the columns begin .. end - 1.
template <class T>
METRIMAX_CLONES void add_wide_rows_pair(const T *METRIMAX_RESTRICT X, size_t p, const size_t *METRIMAX_RESTRICT rows,
                                        size_t n_rows, const double *METRIMAX_RESTRICT c0,
                                        const double *METRIMAX_RESTRICT c1, size_t step, size_t begin, size_t end,
                                        double *METRIMAX_RESTRICT out0, double *METRIMAX_RESTRICT out1) {
    size_t r = 0;
    for (; r + 4 <= n_rows; r += 4) {
        const T *x0 = X + rows[r] * p, *x1 = X + rows[r + 1] * p, *x2 = X + rows[r + 2] * p, *x3 = X + rows[r + 3] * p;
        const size_t i0 = rows[r] * step, i1 = rows[r + 1] * step, i2 = rows[r + 2] * step, i3 = rows[r + 3] * step;
        const double a0 = c0[i0], a1 = c0[i1], a2 = c0[i2], a3 = c0[i3];
        const double b0 = c1[i0], b1 = c1[i1], b2 = c1[i2], b3 = c1[i3];
#pragma omp simd
        for (size_t j = begin; j < end; ++j) {
            const auto v0 = static_cast<double>(x0[j]), v1 = static_cast<double>(x1[j]);
            const auto v2 = static_cast<double>(x2[j]), v3 = static_cast<double>(x3[j]);
            out0[j] += (v0 * a0 + v1 * a1) + (v2 * a2 + v3 * a3);
            out1[j] += (v0 * b0 + v1 * b1) + (v2 * b2 + v3 * b3);
        }
    }
    for (; r < n_rows; ++r) {
        const T *x = X + rows[r] * p;
        const double a = c0[rows[r] * step], b = c1[rows[r] * step];
#pragma omp simd
        for (size_t j = begin; j < end; ++j) {
            out0[j] += static_cast<double>(x[j]) * a;
            out1[j] += static_cast<double>(x[j]) * b;
        }
    }
}

// The same, by the loop that suits the number of columns.
template <class T>
void dense_add_rows_pair(const T *X, size_t p, const size_t *rows, size_t n_rows, const double *c0, const double *c1,
                         size_t step, size_t begin, size_t end, double *out0, double *out1) {
    if (!add_narrow_rows<2>(X + begin, p, rows, n_rows, c0, c1, step, end - begin, out0 + begin, out1 + begin))
        add_wide_rows_pair(X, p, rows, n_rows, c0, c1, step, begin, end, out0, out1);
}

} // namespace metrimax
