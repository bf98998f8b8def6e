// Passes over the costs of one class, cost = sign * score. What is done to a cost depends on where it lies, which no
// processor can predict; so the costs of a block are laid out first, and then gone through in loops without branches,
// most of which the compiler makes vector instructions of.
#pragma once

#include "loops.hpp"
#include "tables.hpp"

#include <cstdint>
#include <cstring>
#include <functional>

namespace metrimax {

constexpr Index kBlock = 256, kGroup = 8; // costs gone through, and skipped, together

// Call visit(first, size) for every block.
template <class Visit> void for_blocks(Index size, Visit visit) {
    for (Index first = 0; first < size; first += kBlock)
        visit(first, std::min(kBlock, size - first));
}

// The loops over one block, each by itself so that the compiler makes vector instructions of it.

// The sum of values, and their number, where the cost is below a level (std::less), or at it, too (std::less_equal).
struct Part {
    double sum = 0, count = 0;
};
template <class Compare, class T>
METRIMAX_CLONES Part sum_where(const T *METRIMAX_RESTRICT costs, const T *METRIMAX_RESTRICT values, Index size,
                               double level) {
    const Compare compare;
    double sum = 0, count = 0;
#pragma omp simd reduction(+ : sum, count)
    for (Index k = 0; k < size; ++k) {
        const double cost = costs[k], value = values[k];
        sum += compare(cost, level) ? value : 0.0;
        count += compare(cost, level) ? 1.0 : 0.0;
    }
    return {sum, count};
}

// Which costs are from `low` up to `high` (std::less), or to it (std::less_equal).
template <class Compare, class T>
METRIMAX_CLONES void between(const T *METRIMAX_RESTRICT costs, Index size, double low, double high,
                             unsigned char *METRIMAX_RESTRICT out) {
    const Compare compare;
    for (Index k = 0; k < size; ++k)
        out[k] = static_cast<unsigned char>((costs[k] >= low) & compare(costs[k], high));
}

// Call visit(k, inside) for all costs of a block but those in groups of which none is from `low` up to `high`: where
// few are, that is most groups.
template <class Compare, class Visit>
void for_inside(const double *costs, Index size, double low, double high, Visit visit) {
    unsigned char inside[kBlock + kGroup] = {};
    between<Compare>(costs, size, low, high, inside);
    for (Index first = 0; first < size; first += kGroup) {
        std::uint64_t any;
        std::memcpy(&any, inside + first, kGroup);
        if (any != 0)
            for (Index k = first; k < std::min(first + kGroup, size); ++k)
                visit(k, inside[k]);
    }
}

// `value` where the cost is at most at a level, else zero.
template <class T>
METRIMAX_CLONES void step_down(const T *METRIMAX_RESTRICT costs, Index size, double level, double value,
                               T *METRIMAX_RESTRICT out) {
#pragma omp simd
    for (Index k = 0; k < size; ++k)
        out[k] = costs[k] <= level ? value : 0.0;
}

// The examples of one class.
struct Members {
    const Index *at;
    Index size;
    double sign; // +1 for positives, -1 for negatives

    // out = sign * values, for a block.
    void signed_values(const double *values, Index first, Index count, double *out) const {
        for (Index k = 0; k < count; ++k)
            out[k] = sign * values[at[first + k]];
    }
};

// The costs of members at some scores.
struct PointCosts {
    const double *scores;
    Members members;

    Index size() const { return members.size; }
    void operator()(Index first, Index count, double *costs) const {
        members.signed_values(scores, first, count, costs);
    }
};

// The costs of members at one point of a line, scores + t * move, and the rates at which they change.
struct LineCosts {
    const double *scores, *move;
    Members members;
    double t;

    Index size() const { return members.size; }
    void operator()(Index first, Index count, double *costs) const {
        const Index *at = members.at + first;
        for (Index k = 0; k < count; ++k)
            costs[k] = members.sign * scores[at[k]] + t * (members.sign * move[at[k]]);
    }
    void rates(Index first, Index count, double *out) const { members.signed_values(move, first, count, out); }
};

// Collect what may flip. Costs below `low` flip for certain (returned as a count and a sum), those below `high` may
// (they are written to `out`, unsorted), the others never do.
struct Collected {
    Index size, first;
    double first_sum;
};

template <class Costs> Collected collect(const Costs &source, double low, double high, double *out) {
    Collected got{0, 0, 0.0};
    for_blocks(source.size(), [&](Index first, Index count) {
        double costs[kBlock];
        source(first, count, costs);
        const Part certain = sum_where<std::less<>>(costs, costs, count, low);
        got.first += static_cast<Index>(certain.count);
        got.first_sum += certain.sum;
        for_inside<std::less<>>(costs, count, low, high, [&](Index k, bool inside) {
            out[got.size] = costs[k];
            got.size += inside;
        });
    });
    return got;
}

// Sum of the rates of the `count` lowest costs, of which the highest is `last`. Ties at `last` go by position.
inline double rate_of_lowest(const LineCosts &source, Index count, double last) {
    double sum = 0, taken = 0;
    double costs[kBlock], rates[kBlock];
    for_blocks(source.size(), [&](Index first, Index size) {
        source(first, size, costs);
        source.rates(first, size, rates);
        const Part part = sum_where<std::less_equal<>>(costs, rates, size, last);
        sum += part.sum;
        taken += part.count;
    });
    for (Index k = source.size(), excess = static_cast<Index>(taken) - count; k-- > 0 && excess > 0;) {
        source(k, 1, costs);
        if (costs[0] == last) { // ties beyond the count: the last ones do not flip
            source.rates(k, 1, rates);
            sum -= rates[0];
            --excess;
        }
    }
    return sum;
}

// Write the slope of all members: fill(costs, values, size) says what it is, block by block.
template <class Fill> void write_slope(const PointCosts &source, double *slope, Fill fill) {
    for_blocks(source.size(), [&](Index first, Index count) {
        double costs[kBlock], values[kBlock];
        source(first, count, costs);
        fill(costs, values, count);
        for (Index k = 0; k < count; ++k)
            slope[source.members.at[first + k]] = values[k];
    });
}

// Write `value` to the slope of the `count` members with the lowest cost, and zero to that of the others; `last` is the
// highest of their costs. Ties at `last` go by position.
inline void mark(const PointCosts &source, Index count, double last, double value, double *slope) {
    double marked = 0;
    write_slope(source, slope, [&](const double *costs, double *values, Index size) {
        step_down(costs, size, last, value, values);
        marked += sum_where<std::less_equal<>>(costs, costs, size, last).count;
    });
    for (Index k = source.size(), excess = static_cast<Index>(marked) - count; k-- > 0 && excess > 0;) {
        double cost;
        source(k, 1, &cost);
        if (cost == last) { // ties beyond the count: the last ones do not flip
            slope[source.members.at[k]] = 0.0;
            --excess;
        }
    }
}

} // namespace metrimax
