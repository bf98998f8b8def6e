// Sorting many numbers of about the same size: a distribution sort (Isaac & Singleton 1956).
//
// Input    values, and a key of each
// Output   the same values, in ascending order of their keys
#pragma once

#include "table_argmax.hpp"

#include <cstdint>
#include <limits>
#include <vector>

namespace metrimax {

// Put values in ascending order, none of which is far from its place.
template <class T, class Before> void insert_in_order(T *values, Index size, Before before) {
    for (Index k = 1; k < size; ++k) {
        const T value = values[k];
        Index place = k;
        for (; place > 0 && before(value, values[place - 1]); --place)
            values[place] = values[place - 1];
        values[place] = value;
    }
}

// Sort values ascending by key: into cells of equal width between the least and the greatest key, about one value each,
// then each to its place. Keys that crowd into few cells, or that are not finite, cost no more than std::sort.
template <class T, class Key> void sort_by(T *values, Index size, Key key) {
    constexpr Index kFew = 24, kMost = Index{1} << 16, kKept = Index{1} << 15;
    constexpr std::uint32_t kCrowd = 16;
    auto before = [&](const T &a, const T &b) { return key(a) < key(b); };
    if (size < kFew)
        return insert_in_order(values, size, before);
    double least = key(values[0]), greatest = least;
    for (Index k = 1; k < size; ++k) {
        const double here = key(values[k]);
        least = here < least ? here : least;
        greatest = greatest < here ? here : greatest;
    }
    const double width = greatest - least;
    if (!(width > 0))
        return; // all alike
    const Index cells = std::min(2 * size, kMost);
    const double scale = (static_cast<double>(cells) - 0.5) / width;
    if (!std::isfinite(width) || !std::isfinite(scale) || size > std::numeric_limits<std::int32_t>::max())
        return std::sort(values, values + size, before);
    auto cell = [&](const T &value) {
        const double c = (key(value) - least) * scale;
        return static_cast<Index>(c > 0 ? c : 0.0); // of a NaN, too
    };
    static thread_local std::vector<std::uint32_t> ends; // kept: fresh pages every time cost as much as the sort
    static thread_local std::vector<T> copy;
    ends.assign(static_cast<std::size_t>(cells) + 1, 0);
    for (Index k = 0; k < size; ++k)
        ++ends[cell(values[k]) + 1];
    std::uint32_t most = 0;
    for (Index c = 0; c < cells; ++c) {
        most = std::max(most, ends[c + 1]);
        ends[c + 1] += ends[c];
    }
    copy.assign(values, values + size);
    for (Index k = 0; k < size; ++k)
        values[ends[cell(copy[k])]++] = copy[k];
    if (most > kCrowd) {
        std::uint32_t begin = 0;
        for (Index c = 0; c < cells; begin = ends[c++])
            if (ends[c] - begin > kCrowd)
                std::sort(values + begin, values + ends[c], before);
    }
    insert_in_order(values, size, before);
    if (size > kKept)
        std::vector<T>().swap(copy);
}

inline void sort_values(double *values, Index size) {
    sort_by(values, size, [](double value) { return value; });
}

} // namespace metrimax
