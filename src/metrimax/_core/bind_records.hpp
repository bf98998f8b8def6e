// Records that several binding files take: arrays together with what belongs to them, checked where they are made.
#pragma once

#include "bindings.hpp"
#include "pair_search.hpp"
#include "table_argmax.hpp"

#include <tuple>
#include <utility>

namespace metrimax {

inline ByCount by_count(const Strided1<double> &v) { return {v.data(), static_cast<Index>(v.stride(0))}; }

// One class of a labelling: the costs of its candidates, ascending, and what flips before them.
struct PyQueue {
    In1<double> costs;
    Index first;
    double first_sum, step;

    PyQueue(In1<double> costs, Index first, double first_sum, double step)
        : costs(costs), first(first), first_sum(first_sum), step(step) {
        require(first >= 0 && first <= kMostUnits, "Queue: expected from 0 to 2^48 units that flip before the others");
    }

    Queue view() const { return {costs.data(), size_of(costs), first, first_sum, step}; }

    static constexpr Index kMostUnits = Index{1} << 48; // of which sums cannot overflow
};

// The coefficients u and v of a loss that is linear in tp, by the number of predicted positives from m_low on.
struct PyCounts {
    Index n_pos, m_low;
    Strided1<double> u, v;

    PyCounts(Index n_pos, Index m_low, Strided1<double> u, Strided1<double> v)
        : n_pos(n_pos), m_low(m_low), u(u), v(v) {
        check_length("CountLoss: v", v.size(), u.size());
        require(n_pos >= 0 && n_pos <= PyQueue::kMostUnits && m_low >= 0 && m_low <= PyQueue::kMostUnits,
                "CountLoss: expected from 0 to 2^48 positives, and predicted positives from 0 on");
    }

    CountScan scan(const Queue &pos, const Queue &neg, const std::vector<double> &P,
                   const std::vector<double> &N) const {
        return {pos, neg, P, N, n_pos, m_low, m_low + size_of(u) - 1, by_count(u), by_count(v)};
    }
};

// One class of a sample: its members, and their weights or none.
struct PyPairClass {
    In1<Place> members;
    double sign;
    In1<double> weights;

    PyPairClass(In1<Place> members, double sign, In1<double> weights) : members(members), sign(sign), weights(weights) {
        if (weights.size() > 0)
            check_length("PairClass: weights", weights.size(), members.size());
    }

    PairClass view() const {
        return {{members.data(), size_of(members), sign}, weights.size() ? weights.data() : nullptr};
    }
};

// A smoothed risk: its value, and the loss and the slope of its plane. ask(slope) writes the slope.
template <class Search, class Ask>
std::tuple<double, double, Out1<double>> smoothed(const Search &search, In1<double> scores, double mu, Ask ask) {
    check_length("smooth: scores", scores.size(), search.size());
    check_positive("smooth: mu", mu);
    auto slope = empty<double>(search.size());
    std::pair<double, double> found;
    {
        nb::gil_scoped_release unlocked;
        found = ask(slope.get());
    }
    return {found.first, found.second, make_array(std::move(slope), search.size())};
}

// The same of a search that has one.
template <class Search> std::tuple<double, double, Out1<double>> smooth(Search &search, In1<double> scores, double mu) {
    return smoothed(search, scores, mu, [&](double *slope) { return search.smooth(scores.data(), mu, slope); });
}

} // namespace metrimax
