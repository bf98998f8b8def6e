// The data matrix X (n rows, p columns) by the arrays that hold it, and its products. Plain C++17, no Python.
//
// Input    X, dense or CSR, of float or double; vectors of double
// Output   X v and X'v, for one vector or several
//
// X is checked once, where it is made. The products read it unchecked.
#pragma once

#include "memory.hpp"
#include "vector_products.hpp"

#include <atomic>
#include <limits>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>
#include <variant>

namespace metrimax {

// In C-order; or in Fortran order, as the transpose of a matrix in C-order, whose kernels serve with roles swapped.
template <class T> struct DenseMatrix {
    const T *X;
    size_t n, p;
    bool fortran;

    void products(bool pull, const Ins &in, const Outs &out, int n_threads) const {
        dense_products(X, rows(), columns(), pull != fortran, in, out, n_threads);
    }
    // The same with L vectors side by side; to products that add up, `out` is zero on entry.
    void products(bool pull, const double *V, size_t L, double *out, int n_threads) const {
        (pull != fortran ? dense_rmatmat<T> : dense_matmat<T>)(X, rows(), columns(), V, L, out, n_threads);
    }
    bool adds(bool pull) const { return pull != fortran; }

  private:
    size_t rows() const { return fortran ? p : n; }
    size_t columns() const { return fortran ? n : p; }
};

// A copy of a CSR matrix by columns, for callers that pull back many vectors again and again: to sum up a column from
// several vectors side by side takes half as long as to add every row to all columns.
template <class T, class I> class ByColumns {
  public:
    // Whether to use it: from the third time on, because making it takes as long as a few products.
    bool wanted(size_t n) { return n <= static_cast<size_t>(std::numeric_limits<I>::max()) && asked++ >= 2; }

    // The transpose of X, made at the first call.
    void products(const T *data, const I *indices, const I *indptr, size_t n, size_t p, const Ins &in, const Outs &out,
                  int n_threads) {
        std::call_once(made, [&] { make(data, indices, indptr, n, p); });
        csr_products(values.get(), rows.get(), starts.get(), p, n, false, in, out, n_threads);
    }

  private:
    std::atomic<size_t> asked{0};
    std::once_flag made;
    Fresh<T> values;
    Fresh<I> rows, starts;

    void make(const T *data, const I *indices, const I *indptr, size_t n, size_t p) {
        const auto nnz = static_cast<size_t>(indptr[n]);
        values = empty<T>(nnz), rows = empty<I>(nnz), starts = empty<I>(p + 1);
        std::fill_n(starts.get(), p + 1, I{0});
        for (size_t k = 0; k < nnz; ++k)
            ++starts[static_cast<size_t>(indices[k]) + 1];
        for (size_t j = 0; j < p; ++j)
            starts[j + 1] += starts[j];
        std::vector<I> next(starts.get(), starts.get() + p);
        for (size_t i = 0; i < n; ++i)
            for (I k = indptr[i]; k < indptr[i + 1]; ++k) {
                const auto at = static_cast<size_t>(next[static_cast<size_t>(indices[k])]++);
                values[at] = data[k];
                rows[at] = static_cast<I>(i);
            }
    }
};

template <class T, class I> struct CSRMatrix {
    const T *data;
    const I *indices, *indptr;
    size_t n, p;
    std::shared_ptr<ByColumns<T, I>> by_columns = std::make_shared<ByColumns<T, I>>();

    // In: the arrays and their lengths. Throws std::invalid_argument where they do not fit each other. The
    // indices of a matrix that was checked before may be trusted: to read them all takes as long as a product.
    CSRMatrix(const T *data, size_t n_data, const I *indices, size_t n_indices, const I *indptr, size_t n_indptr,
              size_t p, bool trusted)
        : data(data), indices(indices), indptr(indptr), n(n_indptr - 1), p(p) {
        if (n_indptr == 0)
            throw std::invalid_argument("bad CSR matrix: indptr must have at least one entry, got none");
        if (n_data != n_indices)
            throw std::invalid_argument("bad CSR matrix: expected as many values as indices, got " +
                                        std::to_string(n_data) + " and " + std::to_string(n_indices));
        if (!trusted)
            csr_check(indptr, n, indices, n_indices, p);
        else if (indptr[0] != 0 || static_cast<size_t>(indptr[n]) != n_data)
            throw std::invalid_argument("bad CSR matrix: expected indptr from 0 to " + std::to_string(n_data) +
                                        ", got " + std::to_string(indptr[0]) + " to " + std::to_string(indptr[n]));
    }

    void products(bool pull, const Ins &in, const Outs &out, int n_threads) const {
        if (pull && in.size() >= kMany && !few_rows(in, n) && by_columns->wanted(n))
            by_columns->products(data, indices, indptr, n, p, in, out, n_threads);
        else
            csr_products(data, indices, indptr, n, p, pull, in, out, n_threads);
    }
    void products(bool pull, const double *V, size_t L, double *out, int n_threads) const {
        if (pull)
            csr_rmatmat(data, indices, indptr, n, p, V, L, out, n_threads);
        else
            csr_matmat(data, indices, indptr, n, V, L, out, n_threads);
    }
    bool adds(bool pull) const { return pull; }
};

using Matrix =
    std::variant<DenseMatrix<float>, DenseMatrix<double>, CSRMatrix<float, std::int32_t>,
                 CSRMatrix<double, std::int32_t>, CSRMatrix<float, std::int64_t>, CSRMatrix<double, std::int64_t>>;

} // namespace metrimax
