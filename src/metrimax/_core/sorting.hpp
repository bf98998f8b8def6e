// Sorting many numbers of about the same size.
#pragma once

#include "tables.hpp"

#include <cstdint>
#include <utility>

namespace metrimax {

// Sort values ascending. By digits of their place between the least and the greatest (three of eleven bits, the lowest
// first), which costs the same for every number; what shares a place is put in order at the end. Values that crowd into
// few places, or that are not finite, are left to std::sort. `scratch` has room for as many.
inline void sort_values(double *values, Index size, double *scratch) {
    constexpr int kBits = 11, kDigits = 3;
    constexpr Index kFew = 400, kCells = Index{1} << kBits;
    if (size < kFew)
        return std::sort(values, values + size);
    const auto [least, greatest] = std::minmax_element(values, values + size);
    const double origin = *least, width = *greatest - origin;
    const double scale = static_cast<double>((std::uint64_t{1} << (kBits * kDigits)) - 1) / width;
    if (!(width > 0) || !std::isfinite(width) || !std::isfinite(scale))
        return std::sort(values, values + size);
    auto place = [=](double value) { return static_cast<std::uint64_t>((value - origin) * scale); };
    auto digit = [](std::uint64_t at, int d) { return static_cast<Index>(at >> (d * kBits)) & (kCells - 1); };
    std::vector<Index> begins(kDigits * kCells);
    for (Index k = 0; k < size; ++k) {
        const std::uint64_t at = place(values[k]);
        for (int d = 0; d < kDigits; ++d)
            ++begins[d * kCells + digit(at, d)];
    }
    double *from = values, *to = scratch;
    for (int d = 0; d < kDigits; ++d, std::swap(from, to)) {
        Index *begin = begins.data() + d * kCells, sum = 0;
        for (Index cell = 0; cell < kCells; ++cell)
            sum += std::exchange(begin[cell], sum);
        for (Index k = 0; k < size; ++k)
            to[begin[digit(place(from[k]), d)]++] = from[k];
    }
    // An odd number of moves: the values lie in scratch. Insertion on the way back, with a limit to what it may cost.
    static_assert(kDigits % 2 == 1);
    Index moves = 0;
    for (Index k = 0; k < size; ++k) {
        const double value = from[k];
        Index j = k;
        for (; j > 0 && values[j - 1] > value; --j)
            values[j] = values[j - 1];
        values[j] = value;
        if ((moves += k - j) > 8 * size) {
            std::copy(from + k + 1, from + size, values + k + 1);
            return std::sort(values, values + size);
        }
    }
}

} // namespace metrimax
