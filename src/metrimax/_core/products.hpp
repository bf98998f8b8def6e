// Products with the data matrix X (n rows, p columns), dense or CSR. Plain C++17, no Python.
//
// Conventions
//   data     float or double; products are accumulated in double, and vectors are double
//   dense    C-order, row i at X + i p. F-order is the transpose of a C-order matrix: swap matvec and rmatvec
//   CSR      data, indices, indptr as in SciPy, one integer type I for both; csr_check has accepted them
//   several  W is (p, L) and C is (n, L), row-major, and so are their products
//   sizes    size_t throughout: n p and the number of non-zeros may exceed 2^31
//   threads  n_threads is a ceiling; small work stays in the calling thread. X w is the same to the last bit for every
//            number of threads; X'c need not be, for the rows may be shared out and summed in another order
#pragma once

#include "csr_loops.hpp"
#include "dense_loops.hpp"
#include "dense_panels.hpp"
#include "threads.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace metrimax {

// Whether 0 <= indices < p, all of them, without a branch: the sign of `index` or of `p - 1 - index` says if not.
template <class I> METRIMAX_CLONES bool inside(const I *indices, size_t nnz, size_t p) {
    using U = std::make_unsigned_t<I>;
    constexpr U kHighest = static_cast<U>(std::numeric_limits<I>::max());
    if (p == 0)
        return nnz == 0;
    const U last = static_cast<U>(std::min<size_t>(p - 1, kHighest));
    U signs = 0;
#pragma omp simd reduction(| : signs)
    for (size_t k = 0; k < nnz; ++k)
        signs |= static_cast<U>(indices[k]) | (last - static_cast<U>(indices[k]));
    return signs <= kHighest;
}

// Verify, once and for all, that a CSR matrix cannot be read or written out of its bounds.
// In: indptr[n + 1], indices[nnz], the number of columns p. Throws std::invalid_argument saying what is wrong.
template <class I> void csr_check(const I *indptr, size_t n, const I *indices, size_t nnz, size_t p) {
    if (indptr[0] != 0)
        throw std::invalid_argument("bad CSR matrix: indptr must start at 0, got " + std::to_string(indptr[0]));
    for (size_t i = 0; i < n; ++i)
        if (indptr[i + 1] < indptr[i])
            throw std::invalid_argument("bad CSR matrix: indptr must not decrease, but it does after row " +
                                        std::to_string(i));
    if (static_cast<size_t>(indptr[n]) != nnz)
        throw std::invalid_argument("bad CSR matrix: indptr must end at the number of non-zeros " +
                                    std::to_string(nnz) + ", got " + std::to_string(indptr[n]));
    if (inside(indices, nnz, p))
        return;
    for (size_t k = 0; k < nnz; ++k)
        if (indices[k] < 0 || static_cast<size_t>(indices[k]) >= p)
            throw std::invalid_argument("bad CSR matrix: column index " + std::to_string(indices[k]) +
                                        " is outside 0 .. " + std::to_string(p) + " - 1");
}

// The transpose, by blocks that fit the nearest cache. In: A (n, m), row-major. Out: out (m, n).
inline void transpose(const double *A, size_t n, size_t m, double *out) {
    constexpr size_t kBlock = 32;
    for (size_t j0 = 0; j0 < m; j0 += kBlock)
        for (size_t i0 = 0; i0 < n; i0 += kBlock)
            for (size_t j = j0; j < std::min(j0 + kBlock, m); ++j)
                for (size_t i = i0; i < std::min(i0 + kBlock, n); ++i)
                    out[j * n + i] = A[i * m + j];
}

// Add the parts' private results, each of `size`, to out.
inline void reduce_parts(const std::vector<std::vector<double>> &partial, double *out, size_t size) {
    parallel_for(threads_for(static_cast<int>(partial.size()), size * partial.size()), size,
                 [&](size_t begin, size_t end, size_t) {
                     for (const std::vector<double> &part : partial)
                         add(part.data() + begin, out + begin, end - begin);
                 });
}

// Call rows(begin, end, target) for every part, where each adds to the same `size` outputs: the first part's target is
// out itself, the others have accumulators of their own. `borders` are the parts' rows; out is zero on entry.
template <class F> void accumulate_parts(const std::vector<size_t> &borders, double *out, size_t size, F &&rows) {
    const size_t parts = borders.size() - 1;
    std::vector<std::vector<double>> partial(parts - 1);
    run_parts(parts, [&](size_t part) {
        double *target = out;
        if (part > 0) {
            partial[part - 1].assign(size, 0.0); // by its own thread, so that the pages are near it
            target = partial[part - 1].data();
        }
        rows(borders[part], borders[part + 1], target);
    });
    reduce_parts(partial, out, size);
}

// Threads for a product whose parts each own `size` accumulators: these have to be cleared and summed, so a part
// must do several times that work for the thread to pay.
inline size_t accumulating_threads(int n_threads, size_t work, size_t size) {
    return std::max<size_t>(1, std::min(threads_for(n_threads, work), work / (4 * std::max<size_t>(size, 1))));
}

// X w for dense X. In: X (n, p), w (p). Out: out (n), overwritten.
template <class T> void dense_matvec(const T *X, size_t n, size_t p, const double *w, double *out, int n_threads) {
    // Whole groups of four rows to each thread: then every row is summed in the same order whatever their number.
    parallel_for(threads_for(n_threads, n * p), (n + 3) / 4, [&](size_t begin, size_t end, size_t) {
        const size_t first = 4 * begin, last = std::min(4 * end, n);
        dense_dot_rows(X + first * p, last - first, p, w, out + first);
    });
}

// X w for two vectors: panels are for many, two are summed along the rows. In: X (n, p), w0, w1 (p). Out: out0, out1,
// overwritten at every step-th of their entries.
template <class T>
void dense_matvec_pair(const T *X, size_t n, size_t p, const double *w0, const double *w1, double *out0, double *out1,
                       size_t step, int n_threads) {
    parallel_for(threads_for(n_threads, 2 * n * p), (n + 3) / 4, [&](size_t begin, size_t end, size_t) {
        const size_t first = 4 * begin, last = std::min(4 * end, n);
        dense_dot_rows_pair(X + first * p, last - first, p, w0, w1, out0 + step * first, out1 + step * first, step);
    });
}

// X W for dense X and L vectors side by side. In: X (n, p), W (p, L). Out: out (n, L), overwritten.
template <class T>
void dense_matmat(const T *X, size_t n, size_t p, const double *W, size_t L, double *out, int n_threads) {
    if (L == 2) {
        std::vector<double> w(2 * p);
        transpose(W, p, 2, w.data());
        return dense_matvec_pair(X, n, p, w.data(), w.data() + p, out, out + 1, 2, n_threads);
    }
    parallel_for(threads_for(n_threads, n * p * L), n, [&](size_t begin, size_t end, size_t) {
        std::vector<double> packed(packed_size(L));
        dense_dot_rows_many(X + begin * p, end - begin, p, W, L, packed.data(), out + begin * L);
    });
}

// List those of `size` rows from `first` on that are active, and return their number. Often it is all or none, and
// these are listed without waiting for the count of those before.
template <class Active>
METRIMAX_CLONES size_t list_active(const Active &active, size_t first, size_t size, size_t *METRIMAX_RESTRICT rows) {
    size_t total = 0, count = 0;
    for (size_t i = first; i < first + size; ++i)
        total += active(i);
    if (total == 0)
        return 0;
    if (total == size) {
        for (size_t b = 0; b < size; ++b)
            rows[b] = first + b;
        return size;
    }
    for (size_t i = first; i < first + size; ++i) {
        rows[count] = i; // stays if the row counts: no branch that could be mispredicted
        count += active(i);
    }
    return count;
}

// The rows of begin .. end - 1 that are active, a few at a time: f(rows, how many).
template <class Active, class F> void for_active_rows(const Active &active, size_t begin, size_t end, F &&f) {
    constexpr size_t kAtOnce = 1024, kTogether = 32;
    size_t rows[kAtOnce], count = 0;
    for (size_t first = begin; first < end; first += kTogether) {
        count += list_active(active, first, std::min(kTogether, end - first), rows + count);
        if (count + kTogether > kAtOnce)
            f(rows, std::exchange(count, 0));
    }
    if (count > 0)
        f(rows, count);
}

// Borders of the rows such that each part has about the same number of active ones, of `total`.
template <class Active> std::vector<size_t> split_active(const Active &active, size_t n, size_t total, size_t parts) {
    std::vector<size_t> borders(parts + 1, n);
    borders[0] = 0;
    size_t seen = 0;
    for (size_t i = 0, part = 1; i < n && part < parts; ++i) {
        seen += active(i);
        while (part < parts && seen >= total / parts * part)
            borders[part++] = i + 1;
    }
    return borders;
}

// Share X'C among threads. Wide matrices split the columns, so that the parts share nothing; narrow ones split the
// rows, each part with accumulators of its own. Calls add(rows, how many, first column, end column, out) for the rows
// i with active(i), those that have a coefficient.
template <class Active, class F>
void share_transposed(const Active &active, size_t n, size_t p, size_t L, double *out, int n_threads, F &&add) {
    constexpr size_t kWideEnough = 1024;
    if (threads_for(n_threads, n * p * L) == 1)
        return for_active_rows(active, 0, n,
                               [&](const size_t *rows, size_t count) { add(rows, count, size_t{0}, p, out); });
    size_t total = 0;
    for (size_t i = 0; i < n; ++i)
        total += active(i);
    const size_t work = total * p * L, threads = threads_for(n_threads, work);
    if (p >= kWideEnough * threads) {
        parallel_for(threads, p, [&](size_t begin, size_t end, size_t) {
            for_active_rows(active, 0, n, [&](const size_t *rows, size_t count) { add(rows, count, begin, end, out); });
        });
        return;
    }
    const size_t parts = accumulating_threads(n_threads, work, p * L);
    accumulate_parts(split_active(active, n, total, parts), out, p * L, [&](size_t begin, size_t end, double *target) {
        for_active_rows(active, begin, end,
                        [&](const size_t *rows, size_t count) { add(rows, count, size_t{0}, p, target); });
    });
}

// X'c for dense X. Rows where c is zero are not read. In: X (n, p), c (n). Out: out (p), zero on entry.
template <class T> void dense_rmatvec(const T *X, size_t n, size_t p, const double *c, double *out, int n_threads) {
    share_transposed([c](size_t i) { return c[i] != 0.0; }, n, p, 1, out, n_threads,
                     [&](const size_t *rows, size_t count, size_t begin, size_t end, double *target) {
                         dense_add_rows_by_blocks(X, p, rows, count, c, begin, end, target);
                     });
}

// X'c for two vectors, at every step-th entry of c0 and c1. Out: out (2, p), zero on entry.
template <class T>
void dense_rmatvec_pair(const T *X, size_t n, size_t p, const double *c0, const double *c1, size_t step, double *out,
                        int n_threads) {
    const auto active = [=](size_t i) { return (c0[i * step] != 0.0) | (c1[i * step] != 0.0); }; // without a branch
    share_transposed(active, n, p, 2, out, n_threads,
                     [&](const size_t *rows, size_t count, size_t begin, size_t end, double *target) {
                         constexpr size_t kBlock = 1024;
                         for (size_t j = begin; j < end; j += kBlock)
                             dense_add_rows_pair(X, p, rows, count, c0, c1, step, j, std::min(j + kBlock, end), target,
                                                 target + p);
                     });
}

// X'C for dense X and L vectors side by side. Rows where C is zero throughout are not read.
// In: X (n, p), C (n, L). Out: out (p, L), zero on entry.
template <class T>
void dense_rmatmat(const T *X, size_t n, size_t p, const double *C, size_t L, double *out, int n_threads) {
    if (L == 2) {
        std::vector<double> sums(2 * p, 0.0);
        dense_rmatvec_pair(X, n, p, C, C + 1, 2, sums.data(), n_threads);
        return transpose(sums.data(), 2, p, out);
    }
    share_transposed([=](size_t i) { return any_nonzero(C + i * L, L); }, n, p, L, out, n_threads,
                     [&](const size_t *rows, size_t count, size_t begin, size_t end, double *target) {
                         std::vector<double> packed(packed_size(L));
                         dense_add_rows_many(X, p, rows, count, C, L, begin, end, packed.data(), target);
                     });
}

// X w for CSR X. In: the matrix, w (p). Out: out (n), overwritten.
template <class T, class I>
void csr_matvec(const T *data, const I *indices, const I *indptr, size_t n, const double *w, double *out,
                int n_threads) {
    const size_t parts = threads_for(n_threads, static_cast<size_t>(indptr[n]));
    const std::vector<size_t> borders = split_rows(indptr, n, parts);
    run_parts(parts,
              [&](size_t part) { csr_dot_rows(data, indices, indptr, borders[part], borders[part + 1], w, out); });
}

// X W for CSR X and L vectors side by side. In: the matrix, W (p, L). Out: out (n, L), overwritten.
template <class T, class I>
void csr_matmat(const T *data, const I *indices, const I *indptr, size_t n, const double *W, size_t L, double *out,
                int n_threads) {
    const size_t parts = threads_for(n_threads, static_cast<size_t>(indptr[n]) * L);
    const std::vector<size_t> borders = split_rows(indptr, n, parts);
    run_parts(parts, [&](size_t part) {
        if (L == 2)
            csr_dot_rows_pair(data, indices, indptr, borders[part], borders[part + 1], W, out);
        else
            csr_dot_rows_many(data, indices, indptr, borders[part], borders[part + 1], W, L, out);
    });
}

// X'C for CSR X; L = 1 is the product with one vector. Rows whose coefficients are all zero are not read.
// In: the matrix, C (n, L), the number of columns p. Out: out (p, L), zero on entry.
template <class T, class I>
void csr_rmatmat(const T *data, const I *indices, const I *indptr, size_t n, size_t p, const double *C, size_t L,
                 double *out, int n_threads) {
    const size_t ahead = rows_ahead(n, static_cast<size_t>(indptr[n]));
    auto add_rows = [&](size_t begin, size_t end, double *target) {
        if (L == 1)
            for_active_rows([=](size_t i) { return C[i] != 0.0; }, begin, end,
                            [&](const size_t *rows, size_t count) {
                                csr_add_rows(data, indices, indptr, rows, count, ahead, C, target);
                            });
        else if (L == 2)
            for_active_rows([=](size_t i) { return any_nonzero(C + 2 * i, 2); }, begin, end,
                            [&](const size_t *rows, size_t count) {
                                csr_add_rows_pair(data, indices, indptr, rows, count, ahead, C, target);
                            });
        else
            csr_add_rows_many(data, indices, indptr, begin, end, C, L, target);
    };
    size_t parts = accumulating_threads(n_threads, static_cast<size_t>(indptr[n]) * L, p * L);
    if (parts == 1)
        return add_rows(0, n, out);
    // Only the rows that are read count: late in a run most slopes are zero.
    size_t work = 0;
    for (size_t i = 0; i < n; ++i)
        if (any_nonzero(C + i * L, L))
            work += static_cast<size_t>(indptr[i + 1] - indptr[i]) + 1;
    parts = accumulating_threads(n_threads, work * L, p * L);
    std::vector<size_t> borders(parts + 1, n);
    borders[0] = 0;
    size_t done = 0;
    for (size_t i = 0, part = 1; i < n && part < parts; ++i) {
        if (any_nonzero(C + i * L, L))
            done += static_cast<size_t>(indptr[i + 1] - indptr[i]) + 1;
        while (part < parts && done >= work / parts * part)
            borders[part++] = i + 1;
    }
    accumulate_parts(borders, out, p * L, add_rows);
}

} // namespace metrimax
