// The most violated ranking for ROC area (Joachims 2005, Algorithm 3), sorting one class only.
#pragma once

#include "prefetch.hpp"
#include "scan.hpp"
#include "select.hpp"
#include "sorting.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace metrimax {

// The cells of numbers x, from 0 to last: what is no number is in the last.
METRIMAX_CLONES inline void cells_of(const double *METRIMAX_RESTRICT x, Index size, double least, double scale,
                                     double last, std::int32_t *METRIMAX_RESTRICT out) {
#pragma omp simd
    for (Index k = 0; k < size; ++k) {
        const double c = (x[k] - least) * scale, high = c < last ? c : last;
        out[k] = static_cast<std::int32_t>(high > 0 ? high : 0.0);
    }
}

// The least and the greatest of numbers, but for what is no number.
METRIMAX_CLONES inline std::pair<double, double> range_of(const double *METRIMAX_RESTRICT x, Index size) {
    double least = std::numeric_limits<double>::infinity(), greatest = -least;
#pragma omp simd reduction(min : least) reduction(max : greatest)
    for (Index k = 0; k < size; ++k) {
        least = x[k] < least ? x[k] : least;
        greatest = x[k] > greatest ? x[k] : greatest;
    }
    return {least, greatest};
}

// How many of sorted numbers are less than each x, looking at Few of them from where x's cell begins. Out: whether
// there are any x of which all Few are less, so that there may be more.
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

// 1 - cost, but no less than the least.
METRIMAX_CLONES inline void reach_from(const double *METRIMAX_RESTRICT costs, Index size, double least,
                                       double *METRIMAX_RESTRICT out) {
#pragma omp simd
    for (Index k = 0; k < size; ++k) {
        const double reach = 1 - costs[k];
        out[k] = reach > least ? reach : least;
    }
}

// Numbers in ascending order, and where any x stands among them. Both go by cells of equal width over their range, of
// about one number or less each: those of lower cells are below x, those of higher ones above it, since a cell never
// falls as x rises. So sorting is a matter of distributing them, and most look-ups cost O(1) and no branch; where they
// crowd into few cells it is O(n log n) and O(log n).
class CellOrder {
  public:
    // Sort some numbers. What is no number comes last, as infinity.
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
        for (Index k = 0; k < size; ++k) // after which the cells begin where they are said to
            entries[begin[cell[k] + 1]++] = {numbers[k] == numbers[k] ? numbers[k] : kInf, static_cast<Place>(k)};
        const auto before = [](const Entry &one, const Entry &other) { return one.number < other.number; };
        for (Index c = 0; c <= count && most > kCrowd; ++c)
            if (begin[c + 1] - begin[c] > kCrowd)
                std::sort(entries.data() + begin[c], entries.data() + begin[c + 1], before);
        insert_in_order(entries.data(), size, before);
        sorted.assign(numbers.size() + kFew, kInf); // so many more to be looked at, which are below nothing
        for (Index k = 0; k < size; ++k)
            sorted[k] = entries[k].number;
    }

    // The k-th number, and which one of those given it is.
    double operator[](Index k) const { return sorted[k]; }
    Index place(Index k) const { return entries[k].place; }

    // The cells of some x.
    void cells(const double *x, Index size, std::int32_t *out) const { cells_of(x, size, least, scale, last, out); }

    // Two look-ups in memory, one after the other: said beforehand, those of several x overlap.
    void expect(Index cell) const { prefetch(&begin[cell]); }
    void expect_numbers(Index cell) const { prefetch(&sorted[begin[cell]]); }

    // How many are less than each x, which are in the cells said.
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

// One class of the pairs: its examples, with cost = sign * score, and their weights by place (null: all 1).
struct PairClass {
    Members members;
    const double *weights;

    double weight(Index place) const { return weights ? weights[place] : 1.0; }
};

// R = 1/(W+ W-) * sum over pairs of w_i w_j max(0, 1 - cost_i - cost_j), at the scores s + t * move (no move: null).
// One class is sorted; every example of the other one looks up how many of them it is inside the margin with, and what
// these sum up to. Nothing of the other class's length is stored.
class MarginPairs {
  private:
    // The sums over those of the sorted class before one.
    struct Node {
        double weight = 0, costs = 0, rates = 0;
    };

  public:
    // Memory that is kept from one call to the next: to be given fresh pages every time costs as much as the search.
    struct Room {
        CellOrder order;
        std::vector<Node> nodes;
        std::vector<double> costs, rates; // of the sorted class
    };

    MarginPairs(const PairClass &sorted, const PairClass &other, const double *scores, const double *move, double t,
                Room &room)
        : own(sorted), other(other), scores(scores), move(move), t(t), order(room.order), nodes(room.nodes) {
        const Index size = own.members.size;
        room.costs.resize(static_cast<std::size_t>(size));
        room.rates.assign(static_cast<std::size_t>(size), 0.0);
        for (Index k = 0; k < size; ++k) {
            room.costs[k] = move ? line(own)(k) : point(own)(k);
            if (move)
                room.rates[k] = line(own).rate(k);
        }
        order.sort(room.costs);
        nodes.resize(static_cast<std::size_t>(size) + 1);
        Node sums;
        for (Index k = 0; k < size; ++k) {
            nodes[k] = sums;
            const double w = own.weight(order.place(k));
            sums = {sums.weight + w, sums.costs + w * order[k], sums.rates + w * room.rates[order.place(k)]};
        }
        nodes[size] = sums;
    }

    // The sum of the hinges of all pairs, and how fast it changes with t.
    std::pair<double, double> risk() const {
        double value = 0, rise = 0;
        const LineCosts costs = line(other);
        visit(costs, [&](const Index *places, const double *reach, const std::int32_t *inside, Index size) {
            double sum = 0, rate = 0;
            for (Index k = 0; k < size; ++k) {
                const double w = other.weight(places[k]);
                const Node &before = nodes[inside[k]];
                sum += w * (before.weight * reach[k] - before.costs);
                rate += w * (before.weight * costs.rate(places[k]) + before.rates);
            }
            value += sum;
            rise -= rate;
        });
        return {value, rise};
    }

    // The weight of all pairs inside the margin, and for every example -sign * share times the weight of its own.
    double slopes(double share, double *slope) const {
        std::vector<double> settled(nodes.size());
        double total = 0;
        visit(point(other), [&](const Index *places, const double *, const std::int32_t *inside, Index size) {
            for (Index k = 0; k < size; ++k) {
                const double w = other.weight(places[k]), pairs = w * nodes[inside[k]].weight;
                settled[inside[k]] += w;
                total += pairs;
                slope[other.members.example(places[k])] = -other.members.sign * share * pairs;
            }
        });
        double above = 0; // weight of those that reach beyond k
        for (Index k = own.members.size; k-- > 0;) {
            const Index at = order.place(k);
            above += settled[k + 1];
            slope[own.members.example(at)] = -own.members.sign * share * own.weight(at) * above;
        }
        return total;
    }

  private:
    static constexpr Index kNear = Index{1} << 13; // so many nodes are in the cache anyway

    PointCosts point(const PairClass &of) const { return {scores, of.members}; }
    LineCosts line(const PairClass &of) const { return {scores, move, of.members, t}; }

    // Call f(places, 1 - costs, numbers of the sorted class below these, size) for the examples of the other class that
    // any of them is below, a block at a time. Where these are many it is called for all: the others, with none of them
    // below, add nothing to any sum.
    template <class Costs, class F> void visit(const Costs &costs, F &&f) const {
        constexpr double kAll = -std::numeric_limits<double>::infinity();
        const double most = 1 - order[0];
        const bool far = own.members.size > kNear, dense = std::isfinite(most);
        for_blocks(other.members.extent(), [&](Index first, Index count) {
            double block[kBlock], reach[kBlock + 1];
            Index places[kBlock + 1], size = 0;
            std::int32_t cells[kBlock], inside[kBlock];
            costs.block(first, count, block);
            if (dense && 2 * count_where<std::less<>>(block, count, most) > count) {
                reach_from(block, count, order[0], reach);
                for (; size < count; ++size)
                    places[size] = first + size;
            } else {
                for_inside<std::less<>>(block, count, kAll, most, [&](Index k, bool counts) {
                    reach[size] = 1 - block[k];
                    places[size] = first + k;
                    size += counts;
                });
            }
            order.cells(reach, size, cells);
            if (far) {
                for (Index k = 0; k < size; ++k)
                    order.expect(cells[k]);
                for (Index k = 0; k < size; ++k)
                    order.expect_numbers(cells[k]);
            }
            order.below(reach, cells, size, inside);
            f(places, reach, inside, size);
        });
    }

    PairClass own, other;
    const double *scores, *move;
    double t;
    CellOrder &order;
    std::vector<Node> &nodes;
};

} // namespace metrimax
