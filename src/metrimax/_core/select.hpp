// Selecting one of many numbers by its rank, in passes without a branch per number.
#pragma once

#include "scan.hpp"

#include <utility>

namespace metrimax {

METRIMAX_CLONES inline Index count_below(const double *values, Index size, double level) {
    double count = 0;
#pragma omp simd reduction(+ : count)
    for (Index k = 0; k < size; ++k)
        count += values[k] < level ? 1.0 : 0.0;
    return static_cast<Index>(count);
}

METRIMAX_CLONES inline Index count_up_to(const double *values, Index size, double level) {
    double count = 0;
#pragma omp simd reduction(+ : count)
    for (Index k = 0; k < size; ++k)
        count += values[k] <= level ? 1.0 : 0.0;
    return static_cast<Index>(count);
}

// Put the values for which `first` holds before the others; the number of them is known to be what is returned.
template <class First> Index put_first(double *values, Index size, First first) {
    Index end = 0;
    for (Index k = 0; k < size; ++k) {
        const double value = values[k];
        values[k] = values[end];
        values[end] = value;
        end += first(value);
    }
    return end;
}

// The value that would be at `rank` if the values, none of them NaN, were in ascending order. They are put in another
// order. As std::nth_element, but for what is below a pivot being counted by vector instructions, and moved without
// branches that no processor can predict.
inline double select(double *values, Index size, Index rank) {
    constexpr Index kFew = 8, kTried = 5;
    for (int rounds = 0; size > kFew && rounds < 32; ++rounds) {
        double tried[kTried];
        for (Index k = 0; k < kTried; ++k)
            tried[k] = values[(2 * k + 1) * size / (2 * kTried)];
        std::sort(tried, tried + kTried);
        const double pivot = tried[rank * kTried / size];
        const Index below = count_below(values, size, pivot);
        if (rank < below) {
            size = put_first(values, size, [=](double value) { return value < pivot; });
            continue;
        }
        const Index up_to = count_up_to(values, size, pivot);
        if (rank < up_to)
            return pivot;
        put_first(values, size, [=](double value) { return value <= pivot; });
        values += up_to;
        size -= up_to;
        rank -= up_to;
    }
    std::nth_element(values, values + rank, values + size);
    return values[rank];
}

} // namespace metrimax
