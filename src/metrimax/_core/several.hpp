// Products with several vectors that lie apart, as solvers have them, where products.hpp wants them side by side.
#pragma once

#include "products.hpp"

#include <algorithm>
#include <memory>
#include <vector>

namespace metrimax {

using Ins = std::vector<const double *>;
using Outs = std::vector<double *>;

// Vectors of one length side by side. Out: out (size, L).
inline void side_by_side(const Ins &vectors, size_t size, double *out) {
    constexpr size_t kBlock = 512; // rows whose entries stay in the cache while all vectors pass
    const size_t L = vectors.size();
    for (size_t begin = 0; begin < size; begin += kBlock)
        for (size_t l = 0; l < L; ++l)
            for (size_t i = begin; i < std::min(begin + kBlock, size); ++i)
                out[i * L + l] = vectors[l][i];
}

// The columns of A (size, L), each to a place of its own.
inline void apart(const double *A, size_t size, const Outs &columns) {
    constexpr size_t kBlock = 512;
    const size_t L = columns.size();
    for (size_t begin = 0; begin < size; begin += kBlock)
        for (size_t l = 0; l < L; ++l)
            for (size_t i = begin; i < std::min(begin + kBlock, size); ++i)
                columns[l][i] = A[i * L + l];
}

// By a product with vectors side by side: multiply(in, out), with out zero on entry where it is added to.
template <class F>
void by_columns(const Ins &in, size_t in_size, const Outs &out, size_t out_size, bool added, F &&multiply) {
    const size_t L = in.size();
    const std::unique_ptr<double[]> given(new double[in_size * L]), product(new double[out_size * L]);
    side_by_side(in, in_size, given.get());
    if (added)
        std::fill_n(product.get(), out_size * L, 0.0);
    multiply(given.get(), product.get());
    apart(product.get(), out_size, out);
}

// out[l] = X in[l] for dense X (n, p), or X' in[l].
template <class T>
void dense_products(const T *X, size_t n, size_t p, bool transposed, const Ins &in, const Outs &out, int n_threads) {
    const size_t L = in.size();
    if (transposed && L == 1) {
        std::fill_n(out[0], p, 0.0);
        dense_rmatvec(X, n, p, in[0], out[0], n_threads);
    } else if (transposed && L == 2) {
        std::vector<double> sums(2 * p, 0.0);
        dense_rmatvec_pair(X, n, p, in[0], in[1], 1, sums.data(), n_threads);
        std::copy_n(sums.data(), p, out[0]);
        std::copy_n(sums.data() + p, p, out[1]);
    } else if (transposed) {
        by_columns(in, n, out, p, true,
                   [&](const double *C, double *P) { dense_rmatmat(X, n, p, C, L, P, n_threads); });
    } else if (L == 1) {
        dense_matvec(X, n, p, in[0], out[0], n_threads);
    } else if (L == 2) {
        dense_matvec_pair(X, n, p, in[0], in[1], out[0], out[1], 1, n_threads);
    } else {
        by_columns(in, p, out, n, false,
                   [&](const double *W, double *S) { dense_matmat(X, n, p, W, L, S, n_threads); });
    }
}

// Whether all that vectors ask for, one by one, is no more than half of n rows: where that is little, what they have in
// common is not worth reading once.
inline bool few_rows(const Ins &vectors, size_t n) {
    size_t zeros = 0;
    for (const double *vector : vectors)
        zeros += static_cast<size_t>(std::count(vector, vector + n, 0.0));
    return 2 * (vectors.size() * n - zeros) <= n;
}

// out[l] = X in[l] for CSR X, or X' in[l].
template <class T, class I>
void csr_products(const T *data, const I *indices, const I *indptr, size_t n, size_t p, bool transposed, const Ins &in,
                  const Outs &out, int n_threads) {
    const size_t L = in.size();
    if (transposed && (L == 1 || few_rows(in, n))) {
        for (size_t l = 0; l < L; ++l) {
            std::fill_n(out[l], p, 0.0);
            csr_rmatmat(data, indices, indptr, n, p, in[l], 1, out[l], n_threads);
        }
    } else if (transposed) {
        by_columns(in, n, out, p, true,
                   [&](const double *C, double *P) { csr_rmatmat(data, indices, indptr, n, p, C, L, P, n_threads); });
    } else if (L == 1) {
        csr_matvec(data, indices, indptr, n, in[0], out[0], n_threads);
    } else {
        by_columns(in, p, out, n, false,
                   [&](const double *W, double *S) { csr_matmat(data, indices, indptr, n, W, L, S, n_threads); });
    }
}

METRIMAX_CLONES inline void shift(double *values, size_t size, double by) {
#pragma omp simd
    for (size_t i = 0; i < size; ++i)
        values[i] += by;
}

METRIMAX_CLONES inline double sum(const double *values, size_t size) {
    double total = 0.0;
#pragma omp simd reduction(+ : total)
    for (size_t i = 0; i < size; ++i)
        total += values[i];
    return total;
}

// What one more feature, of the value `bias` in every row, adds to scores (n) and to pulled vectors (p + 1).
inline void add_bias(double bias, size_t n, size_t p, bool pull, const Ins &in, const Outs &out) {
    for (size_t l = 0; l < in.size(); ++l)
        if (pull)
            out[l][p] = bias * sum(in[l], n);
        else
            shift(out[l], n, bias * in[l][p]);
}

} // namespace metrimax
