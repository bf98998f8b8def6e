// Selecting one of many numbers by its rank, in passes without a branch per number: Hoare's (1961) algorithm.
//
// Input    numbers, none of them NaN, and a rank
// Output   the number of that rank; the numbers are put in another order
#pragma once

#include "class_costs.hpp"

#include <functional>

namespace metrimax {

// How many values are below a level (std::less), or at it, too (std::less_equal).
template <class Compare> METRIMAX_CLONES Index count_where(const double *values, Index size, double level) {
    const Compare compare;
    double count = 0;
#pragma omp simd reduction(+ : count)
    for (Index k = 0; k < size; ++k)
        count += compare(values[k], level) ? 1.0 : 0.0;
    return static_cast<Index>(count);
}

// Put those values before the others.
template <class Compare> void put_first(double *values, Index size, double level) {
    const Compare compare;
    Index end = 0;
    for (Index k = 0; k < size; ++k) {
        const double value = values[k];
        values[k] = values[end];
        values[end] = value;
        end += compare(value, level);
    }
}

// The value that would be at `rank` if the values, none of them NaN, were in ascending order. They are put in another
// order. Like std::nth_element, but values below a pivot are counted by vector instructions, and moved without
// branches, which no processor could predict.
inline double select(double *values, Index size, Index rank) {
    constexpr Index kFew = 8, kTried = 5;
    for (int rounds = 0; size > kFew && rounds < 32; ++rounds) {
        double tried[kTried];
        for (Index k = 0; k < kTried; ++k)
            tried[k] = values[(2 * k + 1) * size / (2 * kTried)];
        std::sort(tried, tried + kTried);
        const double pivot = tried[rank * kTried / size];
        const Index below = count_where<std::less<>>(values, size, pivot);
        if (rank < below) {
            put_first<std::less<>>(values, size, pivot);
            size = below;
            continue;
        }
        const Index up_to = count_where<std::less_equal<>>(values, size, pivot);
        if (rank < up_to)
            return pivot;
        put_first<std::less_equal<>>(values, size, pivot);
        values += up_to;
        size -= up_to;
        rank -= up_to;
    }
    std::nth_element(values, values + rank, values + size);
    return values[rank];
}

} // namespace metrimax
