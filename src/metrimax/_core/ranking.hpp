// The most violated ranking for ROC area (Joachims 2005, Algorithm 3), sorting one class only.
#pragma once

#include "prefetch.hpp"
#include "scan.hpp"
#include "sorting.hpp"

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

// Numbers in ascending order, and where any x stands among them. Both go by cells of equal width over their range, of
// about one number or less each: those of lower cells are below x, those of higher ones above it, since a cell never
// falls as x rises. So sorting is a matter of distributing them, and most look-ups cost O(1); where they crowd into few
// cells it is O(n log n) and O(log n).
class CellOrder {
  public:
    struct Entry {
        double cost;
        Place at;
    };

    // Sort the numbers cost(k), k < size.
    template <class Cost> void sort(Index size, Cost cost) {
        costs.resize(static_cast<std::size_t>(size));
        entries.resize(static_cast<std::size_t>(size) + 1); // one more, to be looked at but not to count
        constexpr double kInf = std::numeric_limits<double>::infinity();
        least = kInf;
        double greatest = -kInf;
        for (Index k = 0; k < size; ++k) {
            const double its = cost(k), here = costs[k] = its == its ? its : kInf; // what is no number comes last
            least = here < least ? here : least;
            greatest = greatest < here ? here : greatest;
        }
        const Index count = std::min(std::max(size, std::min(8 * size + kLeast, kMany)), kMost);
        last = static_cast<double>(count);
        const double width = greatest - least;
        scale = width > 0 && std::isfinite(last / width) ? last / width : 0.0;
        begin.assign(static_cast<std::size_t>(count) + 3, 0);
        places.resize(static_cast<std::size_t>(size));
        cells_of(costs.data(), size, least, scale, last, places.data());
        for (Index k = 0; k < size; ++k)
            ++begin[places[k] + 2];
        Place most = 0;
        for (Index c = 2; c < count + 3; ++c) {
            most = std::max(most, begin[c]);
            begin[c] += begin[c - 1];
        }
        for (Index k = 0; k < size; ++k) // after which the cells begin where they are said to
            entries[begin[places[k] + 1]++] = {costs[k], static_cast<Place>(k)};
        const auto before = [](const Entry &one, const Entry &other) { return one.cost < other.cost; };
        for (Index c = 0; c <= count && most > kCrowd; ++c)
            if (begin[c + 1] - begin[c] > kCrowd)
                std::sort(entries.data() + begin[c], entries.data() + begin[c + 1], before);
        insert_in_order(entries.data(), size, before);
    }

    const Entry &operator[](Index k) const { return entries[k]; }

    // The cells of numbers x.
    void cells(const double *x, Index size, std::int32_t *out) const { cells_of(x, size, least, scale, last, out); }

    // Two look-ups in memory, one after the other: said beforehand, those of several x overlap.
    void expect(Index cell) const { prefetch(&begin[cell]); }
    void expect_entries(Index cell) const { prefetch(&entries[begin[cell]]); }

    // How many are less than x, which is in the cell.
    Index below(double x, Index cell) const {
        Index k = begin[cell], last = begin[cell + 1];
        if (last - k <= 1) // without a branch: whether there is one, and where it stands, is a matter of chance
            return k + ((last - k) & static_cast<Index>(entries[k].cost < x));
        while (last - k > kFew) {
            const Index middle = k + (last - k) / 2;
            if (entries[middle].cost < x)
                k = middle + 1;
            else
                last = middle;
        }
        while (k < last && entries[k].cost < x)
            ++k;
        return k;
    }

  private:
    static constexpr Index kLeast = 1024,
                           kMany = Index{1} << 16; // cells: more than numbers while they are in the cache
    static constexpr Index kMost = Index{1} << 30; // that an int can number
    static constexpr Index kFew = 4;
    static constexpr Place kCrowd = 16;

    std::vector<double> costs;
    std::vector<std::int32_t> places; // their cells
    std::vector<Entry> entries;
    std::vector<Place> begin; // the first entry of every cell
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
// these sum up to, which lies beside their costs: one place in memory per look-up. Nothing of the other class's length
// is stored.
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
    };

    MarginPairs(const PairClass &sorted, const PairClass &other, const double *scores, const double *move, double t,
                Room &room)
        : own(sorted), other(other), scores(scores), move(move), t(t), order(room.order), nodes(room.nodes) {
        const Index size = own.members.size;
        nodes.resize(static_cast<std::size_t>(size) + 1);
        if (move)
            order.sort(size, line(own));
        else
            order.sort(size, point(own));
        for (Index k = 0; k < size; ++k) {
            const auto [cost, at] = order[k];
            const double w = own.weight(at), rate = move ? line(own).rate(at) : 0.0;
            nodes[k + 1] = {nodes[k].weight + w, nodes[k].costs + w * cost, nodes[k].rates + w * rate};
        }
    }

    // The sum of the hinges of all pairs, and how fast it changes with t.
    std::pair<double, double> risk() const {
        double value = 0, rise = 0;
        const LineCosts costs = line(other);
        visit(costs, [&](Index place, double reach, Index inside) {
            const double w = other.weight(place);
            const Node &before = nodes[inside];
            value += w * (before.weight * reach - before.costs);
            rise -= w * (before.weight * costs.rate(place) + before.rates);
        });
        return {value, rise};
    }

    // The weight of all pairs inside the margin, and for every example -sign * share times the weight of its own.
    double slopes(double share, double *slope) const {
        std::vector<double> settled(nodes.size());
        double total = 0;
        visit(point(other), [&](Index place, double, Index inside) {
            const double w = other.weight(place), pairs = w * nodes[inside].weight;
            settled[inside] += w;
            total += pairs;
            slope[other.members.example(place)] = -other.members.sign * share * pairs;
        });
        double above = 0; // weight of those that reach beyond k
        for (Index k = own.members.size; k-- > 0;) {
            const Index at = order[k].at;
            above += settled[k + 1];
            slope[own.members.example(at)] = -own.members.sign * share * own.weight(at) * above;
        }
        return total;
    }

  private:
    static constexpr Index kNear = Index{1} << 13; // so many nodes are in the cache anyway

    PointCosts point(const PairClass &of) const { return {scores, of.members}; }
    LineCosts line(const PairClass &of) const { return {scores, move, of.members, t}; }

    // Call f(place, 1 - cost, number of the sorted class below that) for every example of the other class that any of
    // them is below.
    template <class Costs, class F> void visit(const Costs &costs, F &&f) const {
        constexpr double kAll = -std::numeric_limits<double>::infinity();
        const double most = 1 - order[0].cost;
        const bool far = own.members.size > kNear;
        for_blocks(other.members.extent(), [&](Index first, Index count) {
            double block[kBlock], reach[kBlock + 1];
            Index places[kBlock + 1], size = 0;
            std::int32_t cells[kBlock];
            costs.block(first, count, block);
            for_inside<std::less<>>(block, count, kAll, most, [&](Index k, bool inside) {
                reach[size] = 1 - block[k];
                places[size] = first + k;
                size += inside;
            });
            order.cells(reach, size, cells);
            if (far) {
                for (Index k = 0; k < size; ++k)
                    order.expect(cells[k]);
                for (Index k = 0; k < size; ++k)
                    order.expect_entries(cells[k]);
            }
            for (Index k = 0; k < size; ++k)
                f(places[k], reach[k], order.below(reach[k], cells[k]));
        });
    }

    PairClass own, other;
    const double *scores, *move;
    double t;
    CellOrder &order;
    std::vector<Node> &nodes;
};

} // namespace metrimax
