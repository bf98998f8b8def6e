// The most violated ranking for ROC area (Joachims 2005, Algorithm 3), sorting one class only.
#pragma once

#include "tables.hpp"

#include <cstdint>

namespace metrimax {

// Where does x stand among sorted values? Cells of equal width over their range narrow the search down to a few of
// them, so that most look-ups cost O(1), and O(log n) if the values crowd into one cell.
class SortedLookup {
  public:
    SortedLookup(const double *sorted, Index size) : sorted(sorted), size(size), cells(2 * size) {
        const double width = sorted[size - 1] - sorted[0];
        scale = width > 0 ? static_cast<double>(cells) / width : 0;
        if (!std::isfinite(scale))
            scale = 0;
        begin.assign(cells + 2, 0);
        for (Index k = 0; k < size; ++k)
            ++begin[cell(sorted[k]) + 1];
        for (Index c = 0; c <= cells; ++c)
            begin[c + 1] += begin[c];
    }

    // The number of values v at the beginning for which below(v), a condition that holds up to some value and for
    // none after it, is true; x is about where it turns.
    template <class Below> Index count(double x, Below below) const {
        const Index c = cell(x);
        const double *first = sorted + begin[c], *last = sorted + begin[c + 1];
        Index k = std::partition_point(first, last, below) - sorted;
        while (k > 0 && !below(sorted[k - 1])) // x and the condition may round apart
            --k;
        while (k < size && below(sorted[k]))
            ++k;
        return k;
    }

  private:
    Index cell(double x) const {
        const double c = (x - sorted[0]) * scale;
        return c > 0 ? (c < static_cast<double>(cells) ? static_cast<Index>(c) : cells) : 0;
    }

    const double *sorted;
    Index size, cells;
    double scale;
    std::vector<Index> begin;
};

// R = 1/(n+ n-) * sum over pairs of max(0, 1 - (s_i - s_j)): which pairs are inside the margin?
// Input: a class sorted by ascending cost and the other one in any order, as costs (score of positives, minus
// the score of negatives: 1 - cost_i - cost_j > 0 is inside), with optional weights (null: all 1).
// Output: for every example the weight of the other class's that are inside with it, and the weight of all such pairs.
// O(n), for the examples of the unsorted class settle a difference array over the sorted one.
inline double margin_pairs(const double *sorted, const double *sorted_weight, Index n_sorted, const double *other,
                           const double *other_weight, Index n_other, double *sorted_count, double *other_count) {
    if (n_sorted == 0 || n_other == 0) {
        std::fill(sorted_count, sorted_count + n_sorted, 0.0);
        std::fill(other_count, other_count + n_other, 0.0);
        return 0;
    }
    std::vector<double> reached(sorted_weight ? n_sorted + 1 : 0), settled(n_sorted + 1);
    if (sorted_weight)
        for (Index k = 0; k < n_sorted; ++k)
            reached[k + 1] = reached[k] + sorted_weight[k];
    const SortedLookup lookup(sorted, n_sorted);
    double total = 0;
    for (Index j = 0; j < n_other; ++j) {
        const double cost = other[j], weight = other_weight ? other_weight[j] : 1.0;
        const Index inside = lookup.count(1 - cost, [cost](double v) { return 1 - v - cost > 0; });
        settled[inside] += weight;
        other_count[j] = sorted_weight ? reached[inside] : static_cast<double>(inside);
        total += weight * other_count[j];
    }
    double above = 0; // weight of those that reach beyond k
    for (Index k = n_sorted; k-- > 0;)
        sorted_count[k] = above += settled[k + 1];
    return total;
}

} // namespace metrimax
