// The most violated ranking for ROC area (Joachims 2005, Algorithm 3), sorting one class only.
#pragma once

#include "sorting.hpp"

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

// One class of the pairs: its examples, with cost = sign * score, and their weights (null: all 1).
struct PairClass {
    const Index *members;
    Index size;
    double sign;
    const double *weights;

    double weight(Index k) const { return weights ? weights[k] : 1.0; }
};

// R = 1/(W+ W-) * sum over pairs of w_i w_j max(0, 1 - cost_i - cost_j), at the scores s + t * move (no move: null).
// One class is sorted, with prefix sums of weight, weighted cost and weighted rate; every example of the other one
// looks up how many of them it is inside the margin with. Nothing of the other class's length is stored.
class MarginPairs {
  public:
    MarginPairs(const PairClass &sorted, const PairClass &other, const double *scores, const double *move, double t)
        : own(sorted), other(other), scores(scores), move(move), t(t) {
        std::vector<Entry> entries(static_cast<std::size_t>(own.size));
        for (Index k = 0; k < own.size; ++k)
            entries[k] = {cost(own, k), k};
        sort_by(entries.data(), own.size, [](const Entry &entry) { return entry.cost; });
        const std::size_t length = static_cast<std::size_t>(own.size) + 1;
        costs.resize(length - 1), order.resize(length - 1), W.resize(length), S.resize(length);
        if (move)
            D.resize(length);
        for (Index k = 0; k < own.size; ++k) {
            const Index at = order[k] = entries[k].at;
            const double w = own.weight(at);
            costs[k] = entries[k].cost;
            W[k + 1] = W[k] + w;
            S[k + 1] = S[k] + w * costs[k];
            if (move)
                D[k + 1] = D[k] + w * rate(own, at);
        }
    }

    // The sum of the hinges of all pairs, and how fast it changes with t.
    std::pair<double, double> risk() const {
        double value = 0, rise = 0;
        visit([&](Index k, double c, Index inside) {
            const double w = other.weight(k);
            value += w * (W[inside] * (1 - c) - S[inside]);
            rise -= w * (W[inside] * rate(other, k) + D[inside]);
        });
        return {value, rise};
    }

    // The weight of all pairs inside the margin, and for every example -sign * share times the weight of its own.
    double slopes(double share, double *slope) const {
        std::vector<double> settled(costs.size() + 1);
        double total = 0;
        visit([&](Index k, double, Index inside) {
            const double w = other.weight(k), pairs = w * W[inside];
            settled[inside] += w;
            total += pairs;
            slope[other.members[k]] = -other.sign * share * pairs;
        });
        double above = 0; // weight of those that reach beyond k
        for (Index k = own.size; k-- > 0;) {
            above += settled[k + 1];
            slope[own.members[order[k]]] = -own.sign * share * own.weight(order[k]) * above;
        }
        return total;
    }

  private:
    struct Entry {
        double cost;
        Index at;
    };

    double rate(const PairClass &of, Index k) const { return of.sign * move[of.members[k]]; }
    double cost(const PairClass &of, Index k) const {
        const double at_start = of.sign * scores[of.members[k]];
        return move ? at_start + t * rate(of, k) : at_start;
    }

    // Call f(k, cost, number of the sorted class inside) for every example of the other class inside with any.
    template <class F> void visit(F &&f) const {
        const SortedLookup lookup(costs.data(), own.size);
        const double lowest = costs[0];
        for (Index k = 0; k < other.size; ++k) {
            const double c = cost(other, k);
            if (1 - lowest - c > 0)
                f(k, c, lookup.count(1 - c, [c](double v) { return 1 - v - c > 0; }));
        }
    }

    PairClass own, other;
    const double *scores, *move;
    double t;
    std::vector<double> costs, W, S, D;
    std::vector<Index> order;
};

} // namespace metrimax
