// Sorting many numbers of about the same size.
#pragma once

#include "tables.hpp"

#include <memory>

namespace metrimax {

// Sort values ascending by key: into cells of equal width between the least and the greatest key, a few values each,
// then within the cells. Keys that crowd into few cells, or that are not finite, cost no more than std::sort.
template <class T, class Key> void sort_by(T *values, Index size, Key key) {
    constexpr Index kFew = 32, kMost = Index{1} << 16;
    auto before = [&](const T &a, const T &b) { return key(a) < key(b); };
    if (size < kFew)
        return std::sort(values, values + size, before);
    const auto [least, greatest] = std::minmax_element(values, values + size, before);
    const double origin = key(*least), width = key(*greatest) - origin;
    if (!(width > 0))
        return; // all alike
    const Index cells = std::min(size / 4, kMost);
    const double scale = (static_cast<double>(cells) - 0.5) / width;
    if (!std::isfinite(width) || !std::isfinite(scale))
        return std::sort(values, values + size, before);
    auto cell = [&](const T &value) { return static_cast<Index>((key(value) - origin) * scale); };
    std::vector<Index> ends(cells + 1);
    for (Index k = 0; k < size; ++k)
        ++ends[cell(values[k]) + 1];
    for (Index c = 0; c < cells; ++c)
        ends[c + 1] += ends[c];
    const std::unique_ptr<T[]> copy(new T[static_cast<std::size_t>(size)]);
    std::copy(values, values + size, copy.get());
    for (Index k = 0; k < size; ++k)
        values[ends[cell(copy[k])]++] = copy[k];
    for (Index c = 0, begin = 0; c < cells; begin = ends[c++])
        std::sort(values + begin, values + ends[c], before);
}

inline void sort_values(double *values, Index size) {
    sort_by(values, size, [](double value) { return value; });
}

} // namespace metrimax
