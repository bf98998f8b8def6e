// Records that several binding files take: arrays together with what belongs to them, checked where they are made.
#pragma once

#include "bindings.hpp"
#include "table_argmax.hpp"

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

} // namespace metrimax
