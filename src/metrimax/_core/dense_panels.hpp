// Products of a dense matrix with several vectors: the innermost loops. See products.hpp for the conventions.
//
// Input    rows of a dense matrix X, vectors side by side
// Output   X W, overwritten; X'C, added
//
// Packed panels as in Goto & van de Geijn (2008), for matrices that are thin.
// Blocks of kRows outputs by kWide vectors are summed in registers, over kDeep terms at a time. The vectors' part in
// those terms is packed into panels of kWide columns, the last one padded with zeros, which stay in the cache.
#pragma once

#include "dense_loops.hpp"

namespace metrimax {

constexpr size_t kRows = 4, kWide = 8, kDeep = 128;

inline size_t n_panels(size_t L) { return (L + kWide - 1) / kWide; }
inline size_t packed_size(size_t L) { return n_panels(L) * kDeep * kWide; }

// Pack one row of vectors, L entries, as term k of every panel.
inline void pack_term(const double *row, size_t L, size_t k, double *packed) {
    for (size_t l = 0; l < L; ++l)
        packed[l / kWide * kDeep * kWide + k * kWide + l % kWide] = row[l];
}

// out[i, :] = row i times W (p, L), for n dense rows. `packed` is workspace of packed_size(L), zero on entry.
template <class T>
METRIMAX_CLONES void dense_dot_rows_many(const T *METRIMAX_RESTRICT X, size_t n, size_t p,
                                         const double *METRIMAX_RESTRICT W, size_t L, double *METRIMAX_RESTRICT packed,
                                         double *METRIMAX_RESTRICT out) {
    if (p == 0)
        std::fill_n(out, n * L, 0.0);
    for (size_t first = 0; first < p; first += kDeep) {
        const size_t depth = std::min(kDeep, p - first);
        for (size_t k = 0; k < depth; ++k)
            pack_term(W + (first + k) * L, L, k, packed);
        for (size_t i = 0; i < n; i += kRows) {
            const T *x[kRows]; // past the end the last row is repeated, and its sums are not used
            for (size_t r = 0; r < kRows; ++r)
                x[r] = X + std::min(i + r, n - 1) * p + first;
            const size_t rows = std::min(kRows, n - i);
            for (size_t panel = 0; panel < n_panels(L); ++panel) {
                const double *w = packed + panel * kDeep * kWide;
                const size_t width = std::min(kWide, L - panel * kWide);
                double *o = out + i * L + panel * kWide;
                double sums[kRows][kWide] = {};
                if (first > 0) // go on where the terms before these have left off
                    for (size_t r = 0; r < rows; ++r)
                        for (size_t b = 0; b < width; ++b)
                            sums[r][b] = o[r * L + b];
                for (size_t k = 0; k < depth; ++k)
                    for (size_t r = 0; r < kRows; ++r) {
                        const double value = static_cast<double>(x[r][k]);
#pragma omp simd
                        for (size_t b = 0; b < kWide; ++b)
                            sums[r][b] += value * w[k * kWide + b];
                    }
                for (size_t r = 0; r < rows; ++r)
                    for (size_t b = 0; b < width; ++b)
                        o[r * L + b] = sums[r][b];
            }
        }
    }
}

// out[j, :] += sum over the listed rows i of X[i, j] C[i, :], for the columns begin .. end - 1 alone.
// `packed` is workspace of packed_size(L), zero on entry.
template <class T>
METRIMAX_CLONES void dense_add_rows_many(const T *METRIMAX_RESTRICT X, size_t p, const size_t *METRIMAX_RESTRICT rows,
                                         size_t n_rows, const double *METRIMAX_RESTRICT C, size_t L, size_t begin,
                                         size_t end, double *METRIMAX_RESTRICT packed, double *METRIMAX_RESTRICT out) {
    const T *x[kDeep];
    for (size_t first = 0; first < n_rows; first += kDeep) {
        const size_t depth = std::min(kDeep, n_rows - first);
        for (size_t k = 0; k < depth; ++k) {
            x[k] = X + rows[first + k] * p;
            pack_term(C + rows[first + k] * L, L, k, packed);
        }
        for (size_t j = begin; j < end; j += kRows) {
            // The last block may not reach past the row: it starts early, and adds only its last columns.
            const size_t start = j + kRows <= end ? j : (p >= kRows ? std::min(j, p - kRows) : 0);
            const size_t used = std::min(kRows, p - start);
            for (size_t panel = 0; panel < n_panels(L); ++panel) {
                const double *c = packed + panel * kDeep * kWide;
                double sums[kRows][kWide] = {};
                if (used == kRows) {
                    for (size_t k = 0; k < depth; ++k)
                        for (size_t r = 0; r < kRows; ++r) {
                            const double value = static_cast<double>(x[k][start + r]);
#pragma omp simd
                            for (size_t b = 0; b < kWide; ++b)
                                sums[r][b] += value * c[k * kWide + b];
                        }
                } else { // fewer columns than kRows in the whole matrix
                    for (size_t k = 0; k < depth; ++k)
                        for (size_t r = 0; r < used; ++r)
                            for (size_t b = 0; b < kWide; ++b)
                                sums[r][b] += static_cast<double>(x[k][start + r]) * c[k * kWide + b];
                }
                const size_t width = std::min(kWide, L - panel * kWide);
                for (size_t r = j - start; r < used && start + r < end; ++r)
                    for (size_t b = 0; b < width; ++b)
                        out[(start + r) * L + panel * kWide + b] += sums[r][b];
            }
        }
    }
}

} // namespace metrimax
