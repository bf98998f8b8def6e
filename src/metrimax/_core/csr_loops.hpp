// The innermost loops of the products with CSR rows, in one thread. See products.hpp for the conventions.
//
// Input    rows of a CSR matrix X, vectors
// Output   X w, overwritten; X'c, added
#pragma once

#include "dense_loops.hpp"
#include "prefetch.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace metrimax {

// How many rows ahead of the one in use non-zeros are prefetched: the processor foresees a run of memory only up to the
// end of its page, and not at all where rows are left out. In: the rows and non-zeros of which some will be read.
constexpr size_t kAhead = 256; // non-zeros
inline size_t rows_ahead(size_t n_rows, size_t nnz) { return 1 + kAhead / (1 + nnz / std::max<size_t>(n_rows, 1)); }

// How many non-zeros that is from row i on, where no row is left out: no more than twice as many as meant.
template <class I> inline std::ptrdiff_t nonzeros_ahead(const I *indptr, size_t i, size_t rows, size_t end) {
    return std::min<std::ptrdiff_t>(indptr[std::min(i + rows, end)] - indptr[i], 2 * kAhead);
}

// Ask for what is `ahead` non-zeros after the k-th. That may be past the end, so it is numbers that are added.
template <class T, class I> inline void expect_ahead(const T *data, const I *indices, I k, std::ptrdiff_t ahead) {
    if (ahead == 0)
        return;
    const auto at = static_cast<std::uintptr_t>(k) + static_cast<std::uintptr_t>(ahead);
    prefetch(reinterpret_cast<const void *>(reinterpret_cast<std::uintptr_t>(data) + at * sizeof(T)));
    prefetch(reinterpret_cast<const void *>(reinterpret_cast<std::uintptr_t>(indices) + at * sizeof(I)));
}

// Call eight(k) for the first of every eight non-zeros from k on, and say where they end: less than eight are left.
template <class T, class I, class F>
inline I for_eights(const T *data, const I *indices, I k, I end, std::ptrdiff_t ahead, F &&eight) {
    for (const I last = end - 7; k < last; k += 8) {
        expect_ahead(data, indices, k, ahead);
        eight(k);
    }
    expect_ahead(data, indices, k, ahead);
    return k;
}

// <row, w> for the CSR row of the non-zeros k .. end - 1. Four sums run side by side: one would wait for itself.
template <class T, class I>
inline double csr_dot(const T *METRIMAX_RESTRICT data, const I *METRIMAX_RESTRICT indices, I k, I end,
                      const double *METRIMAX_RESTRICT w, std::ptrdiff_t ahead = 0) {
    double s0 = 0.0, s1 = 0.0, s2 = 0.0, s3 = 0.0;
    const auto four = [&](I first) {
        s0 += static_cast<double>(data[first]) * w[indices[first]];
        s1 += static_cast<double>(data[first + 1]) * w[indices[first + 1]];
        s2 += static_cast<double>(data[first + 2]) * w[indices[first + 2]];
        s3 += static_cast<double>(data[first + 3]) * w[indices[first + 3]];
    };
    k = for_eights(data, indices, k, end, ahead, [&](I first) {
        four(first);
        four(first + 4);
    });
    if (k < end - 3) {
        four(k);
        k += 4;
    }
    for (; k < end; ++k)
        s0 += static_cast<double>(data[k]) * w[indices[k]];
    return (s0 + s1) + (s2 + s3);
}

// out[i] = <row i, w> for the CSR rows begin .. end - 1.
template <class T, class I>
void csr_dot_rows(const T *METRIMAX_RESTRICT data, const I *METRIMAX_RESTRICT indices,
                  const I *METRIMAX_RESTRICT indptr, size_t begin, size_t end, const double *METRIMAX_RESTRICT w,
                  double *METRIMAX_RESTRICT out) {
    const size_t ahead = rows_ahead(end - begin, static_cast<size_t>(indptr[end] - indptr[begin]));
    for (size_t i = begin; i < end; ++i)
        out[i] = csr_dot(data, indices, indptr[i], indptr[i + 1], w, nonzeros_ahead(indptr, i, ahead, end));
}

// out[i, :] = row i times W (p, 2), for the CSR rows begin .. end - 1.
template <class T, class I>
void csr_dot_rows_pair(const T *METRIMAX_RESTRICT data, const I *METRIMAX_RESTRICT indices,
                       const I *METRIMAX_RESTRICT indptr, size_t begin, size_t end, const double *METRIMAX_RESTRICT W,
                       double *METRIMAX_RESTRICT out) {
    const size_t ahead = rows_ahead(end - begin, static_cast<size_t>(indptr[end] - indptr[begin]));
    for (size_t i = begin; i < end; ++i) {
        double s[2] = {}, t[2] = {};
        const auto one = [&](I k, double *sum) {
            const double x = static_cast<double>(data[k]);
            const double *w = W + 2 * static_cast<size_t>(indices[k]);
            sum[0] += x * w[0];
            sum[1] += x * w[1];
        };
        const std::ptrdiff_t further = nonzeros_ahead(indptr, i, ahead, end);
        I k = for_eights(data, indices, indptr[i], indptr[i + 1], further, [&](I first) {
            for (I b = 0; b < 8; b += 2) {
                one(first + b, s);
                one(first + b + 1, t);
            }
        });
        for (; k < indptr[i + 1]; ++k)
            one(k, s);
        out[2 * i] = s[0] + t[0];
        out[2 * i + 1] = s[1] + t[1];
    }
}

// Ask for row indices[k + kSoon] of a matrix with L columns, from the first column of interest on, if there is such a
// non-zero. Products with eight vectors wait for nothing so much as for these rows.
template <class I>
inline void expect_row(const I *indices, I k, I stop, const double *matrix, size_t L, size_t column) {
    constexpr I kSoon = 16; // non-zeros
    if (k < stop - kSoon)
        prefetch(matrix + static_cast<size_t>(indices[k + kSoon]) * L + column);
}

// out[i, :] = row i times W (p, L), for the CSR rows begin .. end - 1. Eight labels at a time are summed in registers.
template <class T, class I>
METRIMAX_CLONES void csr_dot_rows_many(const T *METRIMAX_RESTRICT data, const I *METRIMAX_RESTRICT indices,
                                       const I *METRIMAX_RESTRICT indptr, size_t begin, size_t end,
                                       const double *METRIMAX_RESTRICT W, size_t L, double *METRIMAX_RESTRICT out) {
    constexpr size_t B = 8;
    for (size_t i = begin; i < end; ++i) {
        double *o = out + i * L;
        size_t l = 0;
        for (; l + B <= L; l += B) {
            double s0[B] = {}, s1[B] = {}, s2[B] = {}, s3[B] = {}; // one sum would wait for itself
            const auto add = [&](I k, double *sums) {
                expect_row(indices, k, indptr[end], W, L, l);
                const double x = static_cast<double>(data[k]);
                const double *wj = W + static_cast<size_t>(indices[k]) * L + l;
#pragma omp simd
                for (size_t b = 0; b < B; ++b)
                    sums[b] += x * wj[b];
            };
            I k = indptr[i];
            for (const I last = indptr[i + 1] - 3; k < last; k += 4) {
                add(k, s0);
                add(k + 1, s1);
                add(k + 2, s2);
                add(k + 3, s3);
            }
            for (; k < indptr[i + 1]; ++k)
                add(k, s0);
#pragma omp simd
            for (size_t b = 0; b < B; ++b)
                o[l + b] = (s0[b] + s1[b]) + (s2[b] + s3[b]);
        }
        for (; l + 2 <= L; l += 2) {
            double even = 0.0, odd = 0.0, even1 = 0.0, odd1 = 0.0;
            I k = indptr[i];
            for (const I last = indptr[i + 1] - 1; k < last; k += 2) {
                const double *wj = W + static_cast<size_t>(indices[k]) * L + l;
                const double *wk = W + static_cast<size_t>(indices[k + 1]) * L + l;
                even += static_cast<double>(data[k]) * wj[0];
                odd += static_cast<double>(data[k]) * wj[1];
                even1 += static_cast<double>(data[k + 1]) * wk[0];
                odd1 += static_cast<double>(data[k + 1]) * wk[1];
            }
            if (k < indptr[i + 1]) {
                const double *wj = W + static_cast<size_t>(indices[k]) * L + l;
                even += static_cast<double>(data[k]) * wj[0];
                odd += static_cast<double>(data[k]) * wj[1];
            }
            o[l] = even + even1;
            o[l + 1] = odd + odd1;
        }
        if (l < L) {
            double sum = 0.0;
            for (I k = indptr[i]; k < indptr[i + 1]; ++k)
                sum += static_cast<double>(data[k]) * W[static_cast<size_t>(indices[k]) * L + l];
            o[l] = sum;
        }
    }
}

// out += c times the CSR row of the non-zeros k .. end - 1. Products are computed eight at a time and then added to
// their places one by one.
template <class T, class I>
inline void csr_add(const T *METRIMAX_RESTRICT data, const I *METRIMAX_RESTRICT indices, I k, I end, double c,
                    double *METRIMAX_RESTRICT out, std::ptrdiff_t ahead = 0) {
    k = for_eights(data, indices, k, end, ahead, [&](I first) {
        double products[8];
#pragma omp simd
        for (I b = 0; b < 8; ++b)
            products[b] = c * static_cast<double>(data[first + b]);
        for (I b = 0; b < 8; ++b)
            out[indices[first + b]] += products[b];
    });
    for (; k < end; ++k)
        out[indices[k]] += c * static_cast<double>(data[k]);
}

// out += sum over the listed CSR rows i of c[i] times row i.
template <class T, class I>
void csr_add_rows(const T *METRIMAX_RESTRICT data, const I *METRIMAX_RESTRICT indices,
                  const I *METRIMAX_RESTRICT indptr, const size_t *METRIMAX_RESTRICT rows, size_t n_rows, size_t ahead,
                  const double *METRIMAX_RESTRICT c, double *METRIMAX_RESTRICT out) {
    for (size_t r = 0; r < n_rows; ++r) {
        const size_t i = rows[r], later = rows[std::min(r + ahead, n_rows - 1)];
        csr_add(data, indices, indptr[i], indptr[i + 1], c[i], out, indptr[later] - indptr[i]);
    }
}

// out[j, :] += sum over the listed CSR rows i of X[i, j] C[i, :], for two vectors side by side.
template <class T, class I>
void csr_add_rows_pair(const T *METRIMAX_RESTRICT data, const I *METRIMAX_RESTRICT indices,
                       const I *METRIMAX_RESTRICT indptr, const size_t *METRIMAX_RESTRICT rows, size_t n_rows,
                       size_t ahead, const double *METRIMAX_RESTRICT C, double *METRIMAX_RESTRICT out) {
    for (size_t r = 0; r < n_rows; ++r) {
        const size_t i = rows[r], later = rows[std::min(r + ahead, n_rows - 1)];
        const double c[2] = {C[2 * i], C[2 * i + 1]};
        const auto one = [&](I k) {
            const double x = static_cast<double>(data[k]);
            double *o = out + 2 * static_cast<size_t>(indices[k]);
            o[0] += x * c[0];
            o[1] += x * c[1];
        };
        const std::ptrdiff_t further = indptr[later] - indptr[i];
        I k = for_eights(data, indices, indptr[i], indptr[i + 1], further, [&](I first) {
            for (I b = 0; b < 8; ++b)
                one(first + b);
        });
        for (; k < indptr[i + 1]; ++k)
            one(k);
    }
}

// out[j, :] += sum over the CSR rows i of begin .. end - 1 of X[i, j] C[i, :].
template <class T, class I>
METRIMAX_CLONES void csr_add_rows_many(const T *METRIMAX_RESTRICT data, const I *METRIMAX_RESTRICT indices,
                                       const I *METRIMAX_RESTRICT indptr, size_t begin, size_t end,
                                       const double *METRIMAX_RESTRICT C, size_t L, double *METRIMAX_RESTRICT out) {
    constexpr size_t B = 8;
    for (size_t i = begin; i < end; ++i) {
        const double *c = C + i * L;
        // The labels with a coefficient lie in first .. last - 1: often one label alone asks for this row.
        size_t first = 0, last = L;
        while (first < L && c[first] == 0.0)
            ++first;
        while (last > first && c[last - 1] == 0.0)
            --last;
        if (first == last)
            continue;
        first -= first % B; // whole vectors
        last = std::min(L, last + (B - last % B) % B);
        for (I k = indptr[i]; k < indptr[i + 1]; ++k) {
            expect_row(indices, k, indptr[end], out, L, first);
            const double x = static_cast<double>(data[k]);
            double *o = out + static_cast<size_t>(indices[k]) * L;
            size_t l = first;
            for (; l + B <= last; l += B) {
#pragma omp simd
                for (size_t b = 0; b < B; ++b)
                    o[l + b] += x * c[l + b];
            }
            for (; l < last; ++l)
                o[l] += x * c[l];
        }
    }
}

} // namespace metrimax
