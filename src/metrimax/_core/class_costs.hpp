// Passes over the costs of one class, cost = sign * score: what flips is collected, summed and marked.
//
// Input    scores, or scores and a move; the members of a class
// Output   the costs below a bound and whose they are; slopes
//
// What happens to a cost depends on its value, which no processor can predict. So the costs of a block are written out
// first; then loops without branches go through them, most of which the compiler vectorises.
#pragma once

#include "clones.hpp"
#include "index.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <stdexcept>
#include <string>

namespace metrimax {

constexpr Index kBlock = 256, kGroup = 8; // costs that are visited together, and skipped together

// Call visit(first, size) for every block.
template <class Visit> void for_blocks(Index size, Visit visit) {
    for (Index first = 0; first < size; first += kBlock)
        visit(first, std::min(kBlock, size - first));
}

// The loops over one block, each in a function of its own so that the compiler vectorises it.

// The sum of the values whose cost is below a level (std::less), or at most at it (std::less_equal); and their number.
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

// The costs of a block of the sample, those of other classes being infinite; at scores, or at scores + t * move.
METRIMAX_CLONES inline void costs_inside(const unsigned char *METRIMAX_RESTRICT inside,
                                         const double *METRIMAX_RESTRICT scores, Index size, double sign,
                                         double *METRIMAX_RESTRICT out) {
#pragma omp simd
    for (Index k = 0; k < size; ++k)
        out[k] = inside[k] ? sign * scores[k] : std::numeric_limits<double>::infinity();
}
METRIMAX_CLONES inline void costs_inside(const unsigned char *METRIMAX_RESTRICT inside,
                                         const double *METRIMAX_RESTRICT scores, const double *METRIMAX_RESTRICT move,
                                         double t, Index size, double sign, double *METRIMAX_RESTRICT out) {
#pragma omp simd
    for (Index k = 0; k < size; ++k)
        out[k] = inside[k] ? sign * scores[k] + t * (sign * move[k]) : std::numeric_limits<double>::infinity();
}

// The examples of one class. A small class is read example by example. For a large one the whole sample is read, in
// which the other examples have infinite costs: that needs no indices.
struct Members {
    const Place *at;
    Index size;
    double sign;                           // +1 for positives, -1 for negatives
    const unsigned char *inside = nullptr; // for a large class: whether each example of the sample belongs to it
    Index sample = 0;                      // the size of the sample

    // How many places there are, and which example is there.
    Index extent() const { return inside ? sample : size; }
    Index example(Index place) const { return inside ? place : at[place]; }
};

// Throw std::invalid_argument unless all members are examples of the sample. Later look-ups need no check.
inline void check_members(const char *who, const Place *at, Index size, Index sample) {
    if (sample < 0 || sample >= static_cast<Index>(std::numeric_limits<Place>::max()))
        throw std::invalid_argument(std::string(who) + ": expected a sample of 0 to 2^32 - 2 examples, got " +
                                    std::to_string(sample));
    for (Index k = 0; k < size; ++k)
        if (static_cast<Index>(at[k]) >= sample)
            throw std::invalid_argument(std::string(who) + ": expected members below " + std::to_string(sample) +
                                        ", the size of the sample, got " + std::to_string(at[k]));
}

// What `inside` refers to: nothing for a small class.
inline std::unique_ptr<unsigned char[]> inside_large(const Place *at, Index size, Index sample) {
    if (3 * size <= 2 * sample)
        return nullptr;
    std::unique_ptr<unsigned char[]> inside(new unsigned char[static_cast<std::size_t>(sample)]());
    for (Index k = 0; k < size; ++k)
        inside[at[k]] = 1;
    return inside;
}

// The costs of members at some scores.
struct PointCosts {
    const double *scores;
    Members members;

    double operator()(Index place) const { return members.sign * scores[members.example(place)]; }
    void block(Index first, Index count, double *out) const {
        if (members.inside)
            return costs_inside(members.inside + first, scores + first, count, members.sign, out);
        for (Index k = 0; k < count; ++k)
            out[k] = (*this)(first + k);
    }
};

// The costs of members at one point of a line, scores + t * move, and the rates at which they change.
struct LineCosts {
    const double *scores, *move;
    Members members;
    double t;

    double operator()(Index place) const {
        const Index i = members.example(place);
        return members.sign * scores[i] + t * (members.sign * move[i]);
    }
    double rate(Index place) const { return members.sign * move[members.example(place)]; }
    void block(Index first, Index count, double *out) const {
        if (members.inside)
            return costs_inside(members.inside + first, scores + first, move + first, t, count, members.sign, out);
        for (Index k = 0; k < count; ++k)
            out[k] = (*this)(first + k);
    }
};

// Collect the costs below `high`, and their places, in order. For a large class, for which the whole sample is read,
// both arrays have room for one more than there are members: an entry is written before it is known whether it stays.
// Returns their number.
template <class Costs> Index collect(const Costs &source, double high, double *costs, Place *places) {
    constexpr double kAll = -std::numeric_limits<double>::infinity();
    Index size = 0;
    for_blocks(source.members.extent(), [&](Index first, Index count) {
        double block[kBlock];
        source.block(first, count, block);
        for_inside<std::less<>>(block, count, kAll, high, [&](Index k, bool inside) {
            costs[size] = block[k];
            places[size] = static_cast<Place>(first + k);
            size += inside;
        });
    });
    return size;
}

// Of collected costs, those below `low`, which flip for certain, become a count and a sum; the others stay.
struct Collected {
    Index size, first;
    double first_sum;
};
inline Collected without_certain(double *costs, Index size, double low) {
    const Part certain = sum_where<std::less<>>(costs, costs, size, low);
    if (certain.count == 0)
        return {size, 0, 0.0};
    Index left = 0;
    for (Index k = 0; k < size; ++k) {
        const double cost = costs[k];
        costs[left] = cost;
        left += !(cost < low);
    }
    return {left, size - left, certain.sum};
}

// Visit the ties at `last` beyond the count, `excess` of them: they go by position, so that the last ones do not flip.
template <class Costs, class Visit>
void for_excess(const Costs &source, const Place *places, Index size, Index excess, double last, Visit visit) {
    for (Index k = size; k-- > 0 && excess > 0;)
        if (source(places[k]) == last) {
            visit(places[k]);
            --excess;
        }
}

// Sum of the rates of the `count` lowest costs, of which the highest is `last`, all of them at the places given. Ties
// at `last` go by position.
inline double rate_of_lowest(const LineCosts &source, const Place *places, Index size, Index count, double last) {
    double sum = 0, taken = 0;
    for_blocks(size, [&](Index first, Index here) {
        double costs[kBlock], rates[kBlock];
        for (Index k = 0; k < here; ++k) {
            costs[k] = source(places[first + k]);
            rates[k] = source.rate(places[first + k]);
        }
        const Part part = sum_where<std::less_equal<>>(costs, rates, here, last);
        sum += part.sum;
        taken += part.count;
    });
    for_excess(source, places, size, static_cast<Index>(taken) - count, last,
               [&](Place place) { sum -= source.rate(place); });
    return sum;
}

// Write the slopes at the places given: fill(costs, values, size) computes them, block by block.
template <class Fill>
void write_slope(const PointCosts &source, const Place *places, Index size, double *slope, Fill fill) {
    for_blocks(size, [&](Index first, Index count) {
        double costs[kBlock], values[kBlock];
        for (Index k = 0; k < count; ++k)
            costs[k] = source(places[first + k]);
        fill(costs, values, count);
        for (Index k = 0; k < count; ++k)
            slope[source.members.example(places[first + k])] = values[k];
    });
}

// Write `value` to the slope of the `count` members with the lowest cost, all of them at the places given, and zero to
// that of the others there; `last` is the highest of their costs. Ties at `last` go by position.
inline void mark(const PointCosts &source, const Place *places, Index size, Index count, double last, double value,
                 double *slope) {
    double marked = 0;
    write_slope(source, places, size, slope, [&](const double *costs, double *values, Index here) {
        step_down(costs, here, last, value, values);
        marked += sum_where<std::less_equal<>>(costs, costs, here, last).count;
    });
    for_excess(source, places, size, static_cast<Index>(marked) - count, last,
               [&](Place place) { slope[source.members.example(place)] = 0.0; });
}

} // namespace metrimax
