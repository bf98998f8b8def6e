// The most violated ranking for ROC area (Joachims 2005, Algorithm 3), sorting one class only.
#pragma once

#include "prefetch.hpp"
#include "sorting.hpp"

#include <cstdint>

namespace metrimax {

// Where does x stand among nodes sorted by cost? Cells of equal width over their range narrow the search down to a few
// of them, so that most look-ups cost O(1), and O(log n) if the costs crowd into one cell.
template <class Node> class SortedLookup {
  public:
    // `begin` is room for the cells: its memory outlives the look-ups.
    SortedLookup(const Node *sorted, Index size, std::vector<Index> &begin)
        : sorted(sorted), size(size), cells(std::max(size, std::min(8 * size, kCells))), begin(begin) {
        const double width = sorted[size - 1].cost - sorted[0].cost;
        scale = width > 0 ? static_cast<double>(cells) / width : 0;
        if (!std::isfinite(scale))
            scale = 0;
        begin.assign(static_cast<std::size_t>(cells) + 2, 0);
        for (Index k = 0; k < size; ++k)
            ++begin[cell(sorted[k].cost) + 1];
        for (Index c = 0; c <= cells; ++c)
            begin[c + 1] += begin[c];
    }

    Index cell(double x) const {
        const double c = (x - sorted[0].cost) * scale;
        return c > 0 ? (c < static_cast<double>(cells) ? static_cast<Index>(c) : cells) : 0;
    }
    // Two look-ups in memory, one after the other: said beforehand, those of several x overlap.
    void expect(Index cell) const { prefetch(&begin[cell]); }
    void expect_nodes(Index cell) const { prefetch(sorted + begin[cell]); }

    // The number of nodes at the beginning for whose cost v below(v), a condition that holds up to some value and for
    // none after it, is true; the cell is that of about where it turns.
    template <class Below> Index count(Index cell, Below below) const {
        Index k = begin[cell];
        for (Index last = begin[cell + 1]; k < last;) {
            const Index middle = k + (last - k) / 2;
            if (below(sorted[middle].cost))
                k = middle + 1;
            else
                last = middle;
        }
        while (k > 0 && !below(sorted[k - 1].cost)) // the cell and the condition may round apart
            --k;
        while (k < size && below(sorted[k].cost))
            ++k;
        return k;
    }

  private:
    static constexpr Index kCells = Index{1} << 16; // more cells than nodes as long as the cells stay in the cache

    const Node *sorted;
    Index size, cells;
    double scale;
    std::vector<Index> &begin;
};

// One class of the pairs: its examples, with cost = sign * score, and their weights (null: all 1).
struct PairClass {
    const Index *members;
    Index size;
    double sign;
    const double *weights;

    double weight(Index k) const { return weights ? weights[k] : 1.0; }
};

// R = 1/(W+ W-) * sum over pairs of w_i w_j max(0, 1 - cost_i - cost_j), at the scores s + t * move (no move: null).
// One class is sorted; every example of the other one looks up how many of them it is inside the margin with, and what
// these sum up to, which lies beside their costs: one place in memory per look-up. Nothing of the other class's length
// is stored.
class MarginPairs {
  private:
    struct Entry {
        double cost, rate;
        Index at;
    };
    // The cost of one of the sorted class, and the sums over those before it.
    struct Node {
        double cost = 0, weight = 0, costs = 0, rates = 0;
    };

  public:
    // Memory that is kept from one call to the next: to be given fresh pages every time costs as much as the search.
    struct Room {
        std::vector<Entry> entries;
        std::vector<Node> nodes;
        std::vector<Index> begin;
    };

    MarginPairs(const PairClass &sorted, const PairClass &other, const double *scores, const double *move, double t,
                Room &room)
        : own(sorted), other(other), scores(scores), move(move), t(t), entries(room.entries), nodes(room.nodes),
          begin(room.begin) {
        entries.resize(static_cast<std::size_t>(own.size));
        nodes.resize(static_cast<std::size_t>(own.size) + 1);
        for (Index k = 0; k < own.size; ++k)
            entries[k] = {cost(own, k), move ? rate(own, k) : 0.0, k};
        sort_by(entries.data(), own.size, [](const Entry &entry) { return entry.cost; });
        for (Index k = 0; k < own.size; ++k) {
            const Entry &entry = entries[k];
            const double w = own.weight(entry.at);
            Node &here = nodes[k], &next = nodes[k + 1];
            here.cost = entry.cost;
            next.weight = here.weight + w;
            next.costs = here.costs + w * entry.cost;
            next.rates = here.rates + w * entry.rate;
        }
    }

    // The sum of the hinges of all pairs, and how fast it changes with t.
    std::pair<double, double> risk() const {
        double value = 0, rise = 0;
        visit([&](Index k, double c, Index inside) {
            const double w = other.weight(k);
            const Node &before = nodes[inside];
            value += w * (before.weight * (1 - c) - before.costs);
            rise -= w * (before.weight * rate(other, k) + before.rates);
        });
        return {value, rise};
    }

    // The weight of all pairs inside the margin, and for every example -sign * share times the weight of its own.
    double slopes(double share, double *slope) const {
        std::vector<double> settled(nodes.size());
        double total = 0;
        visit([&](Index k, double, Index inside) {
            const double w = other.weight(k), pairs = w * nodes[inside].weight;
            settled[inside] += w;
            total += pairs;
            slope[other.members[k]] = -other.sign * share * pairs;
        });
        double above = 0; // weight of those that reach beyond k
        for (Index k = own.size; k-- > 0;) {
            const Index at = entries[k].at;
            above += settled[k + 1];
            slope[own.members[at]] = -own.sign * share * own.weight(at) * above;
        }
        return total;
    }

  private:
    double rate(const PairClass &of, Index k) const { return of.sign * move[of.members[k]]; }
    double cost(const PairClass &of, Index k) const {
        const double at_start = of.sign * scores[of.members[k]];
        return move ? at_start + t * rate(of, k) : at_start;
    }

    // Call f(k, cost, number of the sorted class inside) for every example of the other class inside with any.
    template <class F> void visit(F &&f) const {
        constexpr Index kBlock = 32;
        const SortedLookup<Node> lookup(nodes.data(), own.size, begin);
        const double lowest = nodes[0].cost;
        struct {
            Index at, cell;
            double cost;
        } inside[kBlock];
        for (Index first = 0; first < other.size; first += kBlock) {
            Index count = 0;
            for (Index k = first; k < std::min(first + kBlock, other.size); ++k) {
                const double c = cost(other, k);
                if (!(1 - lowest - c > 0))
                    continue;
                const Index cell = lookup.cell(1 - c);
                lookup.expect(cell);
                inside[count++] = {k, cell, c};
            }
            for (Index k = 0; k < count; ++k)
                lookup.expect_nodes(inside[k].cell);
            for (Index k = 0; k < count; ++k) {
                const double c = inside[k].cost;
                f(inside[k].at, c, lookup.count(inside[k].cell, [c](double v) { return 1 - v - c > 0; }));
            }
        }
    }

    PairClass own, other;
    const double *scores, *move;
    double t;
    std::vector<Entry> &entries;
    std::vector<Node> &nodes;
    std::vector<Index> &begin;
};

} // namespace metrimax
