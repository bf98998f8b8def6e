// Numbers in ascending order, and where others stand among them: a distribution sort whose cells serve for look-ups.
//
// Input    numbers, some of which may be NaN; then any x
// Output   their order; how many of them are less than x
#pragma once

#include "cell_sort.hpp"
#include "clones.hpp"
#include "index.hpp"
#include "prefetch.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace metrimax {

// The cells of numbers x, from 0 to last; a NaN is in the last.
METRIMAX_CLONES inline void cells_of(const double *METRIMAX_RESTRICT x, Index size, double least, double scale,
                                     double last, std::int32_t *METRIMAX_RESTRICT out) {
#pragma omp simd
    for (Index k = 0; k < size; ++k) {
        const double c = (x[k] - least) * scale, high = c < last ? c : last;
        out[k] = static_cast<std::int32_t>(high > 0 ? high : 0.0);
    }
}

// The least and the greatest of the numbers that are not NaN.
METRIMAX_CLONES inline std::pair<double, double> range_of(const double *METRIMAX_RESTRICT x, Index size) {
    double least = std::numeric_limits<double>::infinity(), greatest = -least;
#pragma omp simd reduction(min : least) reduction(max : greatest)
    for (Index k = 0; k < size; ++k) {
        least = x[k] < least ? x[k] : least;
        greatest = x[k] > greatest ? x[k] : greatest;
    }
    return {least, greatest};
}

// How many of the sorted numbers are less than each x, by comparing x with Few of them, from where its cell begins.
// Returns whether all Few are less for some x, so that there may be more.
template <int Few>
METRIMAX_CLONES bool few_below(const double *METRIMAX_RESTRICT x, const std::int32_t *METRIMAX_RESTRICT cells,
                               Index size, const std::int32_t *METRIMAX_RESTRICT begin,
                               const double *METRIMAX_RESTRICT sorted, std::int32_t *METRIMAX_RESTRICT out) {
    std::int32_t more = 0;
#pragma omp simd reduction(| : more)
    for (Index k = 0; k < size; ++k) {
        const std::int32_t first = begin[cells[k]];
        std::int32_t less = 0;
        for (int q = 0; q < Few; ++q)
            less += sorted[first + q] < x[k] ? 1 : 0;
        more |= less == Few ? 1 : 0;
        out[k] = first + less;
    }
    return more != 0;
}

// margin - cost, but no less than the least.
METRIMAX_CLONES inline void reach_from(const double *METRIMAX_RESTRICT costs, Index size, double margin, double least,
                                       double *METRIMAX_RESTRICT out) {
#pragma omp simd
    for (Index k = 0; k < size; ++k) {
        const double reach = margin - costs[k];
        out[k] = reach > least ? reach : least;
    }
}

// Numbers in ascending order, and where any x stands among them. Both go by cells of equal width over their range, of
// about one number or less each: those of lower cells are below x, those of higher ones above it, since a cell never
// falls as x rises. So sorting means distributing them, and most look-ups cost O(1) and no branch. Where numbers crowd
// into few cells, sorting costs O(n log n) and a look-up O(log n).
class CellOrder {
  public:
    // Sort some numbers. A NaN comes last, as infinity.
    void sort(const std::vector<double> &numbers) {
        constexpr double kInf = std::numeric_limits<double>::infinity();
        const auto size = static_cast<Index>(numbers.size());
        const auto [low, greatest] = range_of(numbers.data(), size);
        least = low;
        const Index count = std::min(std::max(size, std::min(4 * size + kLeast, kMany)), kMost);
        last = static_cast<double>(count);
        const double width = greatest - least;
        scale = width > 0 && std::isfinite(last / width) ? last / width : 0.0;
        begin.assign(static_cast<std::size_t>(count) + 3, 0);
        cell.resize(numbers.size());
        cells(numbers.data(), size, cell.data());
        for (Index k = 0; k < size; ++k)
            ++begin[cell[k] + 2];
        std::int32_t most = 0;
        for (Index c = 2; c < count + 3; ++c) {
            most = std::max(most, begin[c]);
            begin[c] += begin[c - 1];
        }
        entries.resize(numbers.size());
        for (Index k = 0; k < size; ++k) // after this the cells begin where `begin` says
            entries[begin[cell[k] + 1]++] = {numbers[k] == numbers[k] ? numbers[k] : kInf, static_cast<Place>(k)};
        const auto before = [](const Entry &one, const Entry &other) { return one.number < other.number; };
        for (Index c = 0; c <= count && most > kCrowd; ++c)
            if (begin[c + 1] - begin[c] > kCrowd)
                std::sort(entries.data() + begin[c], entries.data() + begin[c + 1], before);
        insert_in_order(entries.data(), size, before);
        sorted.assign(numbers.size() + kFew, kInf); // kFew more to compare with, which are below nothing
        for (Index k = 0; k < size; ++k)
            sorted[k] = entries[k].number;
    }

    // The k-th number, and which one of those given it is.
    double operator[](Index k) const { return sorted[k]; }
    Index place(Index k) const { return entries[k].place; }

    // The cells of some x.
    void cells(const double *x, Index size, std::int32_t *out) const { cells_of(x, size, least, scale, last, out); }

    // Two look-ups in memory, one after the other. Announced beforehand, those of several x overlap.
    void expect(Index cell) const { prefetch(&begin[cell]); }
    void expect_numbers(Index cell) const { prefetch(&sorted[begin[cell]]); }

    // How many are less than each x; `cells` are those of the x.
    void below(const double *x, const std::int32_t *cells, Index size, std::int32_t *out) const {
        const auto count = static_cast<std::int32_t>(entries.size());
        if (sorted[0] == sorted[count - 1]) { // all alike, as at w = 0
            for (Index k = 0; k < size; ++k)
                out[k] = sorted[0] < x[k] ? count : 0;
            return;
        }
        if (!few_below<kFew>(x, cells, size, begin.data(), sorted.data(), out))
            return;
        for (Index k = 0; k < size; ++k) {
            const std::int32_t first = begin[cells[k]], end = begin[cells[k] + 1];
            if (out[k] == first + kFew && out[k] < end)
                out[k] = static_cast<std::int32_t>(
                    std::lower_bound(sorted.begin() + out[k], sorted.begin() + end, x[k]) - sorted.begin());
        }
    }

  private:
    struct Entry {
        double number;
        Place place;
    };

    static constexpr Index kLeast = 1024,
                           kMany = Index{1} << 16; // cells: more than numbers while they are in the cache
    static constexpr Index kMost = Index{1} << 30; // that an int can number
    static constexpr int kFew = 4;
    static constexpr std::int32_t kCrowd = 16;

    std::vector<std::int32_t> cell; // of the numbers as they were given
    std::vector<Entry> entries;
    std::vector<double> sorted;
    std::vector<std::int32_t> begin; // the first of every cell
    double least = 0, scale = 0, last = 0;
};

} // namespace metrimax
