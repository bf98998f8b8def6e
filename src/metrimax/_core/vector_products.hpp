// Products with several vectors that lie apart in memory, as those of solvers do; products.hpp takes them side by side.
//
// Input    X, dense or CSR, and vectors; the value of one more feature, the bias
// Output   X v or X'v for each of them, overwritten
#pragma once

#include "products.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <vector>

namespace metrimax {

using Ins = std::vector<const double *>;
using Outs = std::vector<double *>;

// Vectors of one length side by side, the rest of L being zero. Out: out (size, L).
inline void side_by_side(const Ins &vectors, size_t size, size_t L, double *METRIMAX_RESTRICT out) {
    if (L == 8 && vectors.size() == 8) { // a row at a time, which is one line of the cache: in 0.6 of the time
        std::array<const double *, 8> from;
        std::copy_n(vectors.begin(), 8, from.begin());
        for (size_t i = 0; i < size; ++i)
            for (size_t l = 0; l < 8; ++l)
                out[i * 8 + l] = from[l][i];
        return;
    }
    constexpr size_t kBlock = 512; // rows whose entries stay in the cache while all vectors pass
    for (size_t begin = 0; begin < size; begin += kBlock)
        for (size_t l = 0; l < L; ++l)
            for (size_t i = begin; i < std::min(begin + kBlock, size); ++i)
                out[i * L + l] = l < vectors.size() ? vectors[l][i] : 0.0;
}

// The first columns of A (size, L), each to a place of its own.
inline void apart(const double *A, size_t size, size_t L, const Outs &columns) {
    constexpr size_t kBlock = 512;
    for (size_t begin = 0; begin < size; begin += kBlock)
        for (size_t l = 0; l < columns.size(); ++l)
            for (size_t i = begin; i < std::min(begin + kBlock, size); ++i)
                columns[l][i] = A[i * L + l];
}

// Room for rows of eight numbers, each in one line of the cache: across two of them it would take twice as long to
// read.
class Panel {
  public:
    double *make(size_t size) {
        constexpr size_t kLine = 64;
        room.reset(new double[size + kLine / sizeof(double)]);
        const auto at = reinterpret_cast<std::uintptr_t>(room.get());
        return room.get() + (kLine - at % kLine) % kLine / sizeof(double);
    }

  private:
    std::unique_ptr<double[]> room;
};

// Vectors side by side, filled up with zeros to L of them, and their products, zero at first where products are added.
// A single vector is not copied.
struct Columns {
    size_t L, out_size;
    Outs outs;
    Panel vectors, products;
    const double *given; // (in_size, L)
    double *product;     // (out_size, L)

    Columns(const Ins &in, size_t in_size, Outs out, size_t out_size, size_t L, bool added)
        : L(L), out_size(out_size), outs(std::move(out)), given(in[0]), product(outs[0]) {
        if (L > 1) {
            double *const beside = vectors.make(in_size * L);
            side_by_side(in, in_size, L, beside);
            given = beside;
            product = products.make(out_size * L);
        }
        if (added)
            std::fill_n(product, out_size * L, 0.0);
    }
    void finish() const {
        if (L > 1)
            apart(product, out_size, L, outs);
    }
};

// out[l] = X in[l] for dense X (n, p), or X' in[l].
template <class T>
void dense_products(const T *X, size_t n, size_t p, bool transposed, const Ins &in, const Outs &out, int n_threads) {
    const size_t L = in.size();
    if (L == 0)
        return;
    if (transposed && L == 1) {
        std::fill_n(out[0], p, 0.0);
        dense_rmatvec(X, n, p, in[0], out[0], n_threads);
    } else if (transposed && L == 2) {
        std::vector<double> sums(2 * p, 0.0);
        dense_rmatvec_pair(X, n, p, in[0], in[1], 1, sums.data(), n_threads);
        std::copy_n(sums.data(), p, out[0]);
        std::copy_n(sums.data() + p, p, out[1]);
    } else if (transposed) {
        const Columns all(in, n, out, p, L, true);
        dense_rmatmat(X, n, p, all.given, L, all.product, n_threads);
        all.finish();
    } else if (L == 1) {
        dense_matvec(X, n, p, in[0], out[0], n_threads);
    } else if (L == 2) {
        dense_matvec_pair(X, n, p, in[0], in[1], out[0], out[1], 1, n_threads);
    } else {
        const Columns all(in, p, out, n, L, false);
        dense_matmat(X, n, p, all.given, L, all.product, n_threads);
        all.finish();
    }
}

// Whether vectors ask for no more than a quarter of n rows each, on average. Then they are served one by one: each
// reads its own rows only, where all together would read those of all and multiply every row by all.
inline bool few_rows(const Ins &vectors, size_t n) {
    size_t zeros = 0;
    for (const double *vector : vectors)
        zeros += static_cast<size_t>(std::count(vector, vector + n, 0.0));
    return 4 * zeros >= 3 * vectors.size() * n;
}

constexpr size_t kMany = 5; // vectors from which on eight side by side cost less than by twos

// out[l] = X in[l] for CSR X, or X' in[l]: by eights, which is what fits into a vector instruction and a line of the
// cache, or by twos. With more side by side X would be read less often, but each of its non-zeros would look for its
// weights, or its sums, farther away, and that costs more.
template <class T, class I>
void csr_products(const T *data, const I *indices, const I *indptr, size_t n, size_t p, bool transposed, const Ins &in,
                  const Outs &out, int n_threads) {
    const bool alone = transposed && in.size() > 1 && few_rows(in, n);
    for (size_t l = 0, width; l < in.size(); l += width) {
        const size_t left = in.size() - l;
        width = alone || left == 1 ? 1 : left < kMany ? 2 : std::min(left, kWide);
        const size_t L = width <= 2 ? width : kWide;
        const Columns group(Ins(in.begin() + l, in.begin() + l + width), transposed ? n : p,
                            Outs(out.begin() + l, out.begin() + l + width), transposed ? p : n, L, transposed);
        if (transposed)
            csr_rmatmat(data, indices, indptr, n, p, group.given, L, group.product, n_threads);
        else if (L == 1)
            csr_matvec(data, indices, indptr, n, group.given, group.product, n_threads);
        else
            csr_matmat(data, indices, indptr, n, group.given, L, group.product, n_threads);
        group.finish();
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
