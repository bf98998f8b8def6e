// Some rows of a CSR matrix as a matrix of their own, without the features that are zero in all of them. Plain C++17,
// no Python.
//
// Input    a CSR matrix (n, p); rows, each of them below n
// Output   the rows as a CSR matrix, and the features that it has
//
// Features are numbered as they are met, so that those of many rows lie side by side: the vectors that products go
// through are short, and what they need most is near.
#pragma once

#include "index.hpp"
#include "memory.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <vector>

namespace metrimax {

template <class T, class I> struct SomeRows {
    Fresh<T> data;
    Fresh<I> indices, indptr;
    Fresh<std::int64_t> features;
    size_t nnz = 0, n_features = 0;

    // There are as many features as rows at least, unless X has fewer: so this matrix is wide if X is. Where there are
    // more rows than features in X, all of them stay as they are.
    SomeRows(const T *from, const I *columns, const I *starts, size_t p, const std::int64_t *rows, size_t n_rows) {
        for (size_t r = 0; r < n_rows; ++r)
            nnz += static_cast<size_t>(starts[rows[r] + 1] - starts[rows[r]]);
        if (nnz > static_cast<size_t>(std::numeric_limits<I>::max()))
            throw std::invalid_argument("too many non-zeros for indices of this type: use int64");
        data = empty<T>(nnz), indices = empty<I>(nnz), indptr = empty<I>(n_rows + 1);
        features = empty<std::int64_t>(p);
        const bool all = n_rows > p;
        std::vector<I> place(all ? 0 : p, I{-1});
        indptr[0] = 0;
        for (size_t r = 0; r < n_rows; ++r) {
            const auto begin = static_cast<size_t>(starts[rows[r]]), end = static_cast<size_t>(starts[rows[r] + 1]);
            auto at = static_cast<size_t>(indptr[r]);
            std::copy(from + begin, from + end, data.get() + at);
            for (size_t k = begin; k < end; ++k, ++at)
                indices[at] = all ? columns[k] : number(place[static_cast<size_t>(columns[k])], columns[k]);
            indptr[r + 1] = static_cast<I>(at);
        }
        for (size_t j = 0; all ? j < p : n_features < n_rows; ++j)
            if (all || place[j] < 0)
                features[n_features++] = static_cast<std::int64_t>(j);
    }

  private:
    I number(I &place, I feature) {
        if (place < 0) {
            place = static_cast<I>(n_features);
            features[n_features++] = static_cast<std::int64_t>(feature);
        }
        return place;
    }
};

} // namespace metrimax
