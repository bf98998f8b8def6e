// Flips in part: the mean of several labellings with one table, in the place of one of them.
//
// Input    the costs of the candidates, how many flip, the width h of a ramp
// Output   the share of every candidate; the slopes they amount to
//
// Where the most violated labelling flips the `count` examples of lowest cost, examples whose costs are near the last
// of these would do nearly as well. A ramp of width h shares the flips out,
//     share(c) = clip((level - c) / h, 0, 1),     with the level at which the shares add up to `count`,
// which is the maximiser of sum of share * -c - h/2 share^2 with that sum (Zhang, Saha & Vishwanathan 2011). Shares in
// [0, 1] that add up to a whole number are a mean of labellings with that number of flips, so the plane they belong to
// is a mean of cuts; against the best of these, h/2 * count is lost at most.
#pragma once

#include "dense_loops.hpp"
#include "table_argmax.hpp"

namespace metrimax {

// Whether a ramp of this width can be told from a step at this cost.
inline bool resolves(double h, double cost) { return h > 1e-9 * std::abs(cost) && std::isfinite(h + cost); }

// How the flips are shared out. The level is relative to `last`, one of the costs: near large costs the differences are
// exact, and the levels themselves would round.
struct Shares {
    double last, level, h;

    double operator()(double cost) const {
        const double from = cost - last, part = (level - from) / h, some = part > 0.0 ? part : 0.0;
        return from + h <= level ? 1.0 : some < 1.0 ? some : 1.0; // in full as reached() has it: the quotient rounds
    }
};

// What a flip in full counts: 1, or a weight of its own.
struct EqualWeight {
    double operator()(Index) const { return 1.0; }
};
struct EachWeight {
    const double *weights;
    double operator()(Index k) const { return weights[k]; }
};

// The shares at a level: how many costs flip in full, how many at least in part, and the sum of the costs in
// between, less `last` each. All by weight.
struct Reached {
    double full, some, sum;
};
template <class Weight> METRIMAX_CLONES Reached reached(const double *costs, Index size, Weight weight, Shares at) {
    double full = 0, some = 0, sum = 0;
#pragma omp simd reduction(+ : full, some, sum)
    for (Index k = 0; k < size; ++k) {
        const double from = costs[k] - at.last, own = weight(k);
        const double whole = from + at.h <= at.level ? own : 0.0, any = from <= at.level ? own : 0.0;
        full += whole;
        some += any;
        sum += (any - whole) * from;
    }
    return {full, some, sum};
}

// Shares that add up to what is `wanted`, for costs in any order. With `last` and what is below it there would be that
// much or more, without it less; all from last - h to last + h are among the costs. The ramp resolves the costs. By
// Newton's method: between two ends of ramps the sum of the shares is linear.
template <class Weight>
Shares share_out(const double *costs, Index size, Weight weight, double wanted, double last, double h) {
    double low = -h, high = 2 * h;
    Shares at{last, h / 2, h};
    Reached before{-1, -1, 0};
    for (int steps = 0;; ++steps) {
        const Reached now = reached(costs, size, weight, at);
        const double inside = now.some - now.full;
        const double sum = now.full + (inside * at.level - now.sum) / h;
        if (sum == wanted || (now.full == before.full && now.some == before.some))
            return at; // where the linear piece, from which this step came, has the sum wanted
        (sum < wanted ? low : high) = at.level;
        const double next = at.level + (wanted - sum) * h / inside;
        if (low < next && next < high && steps < 20) {
            before = now;
            at.level = next;
        } else {
            before = {-1, -1, 0};
            at.level = low + (high - low) / 2;
            if (!(low < at.level && at.level < high))
                return at;
        }
    }
}

// The slopes of a block, where a flip in full has the slope `value`: costs below `low` flip in full, costs from `high`
// on not at all, the others by their share.
template <class T>
METRIMAX_CLONES void share_slopes(const T *METRIMAX_RESTRICT costs, Index size, double low, double high, Shares share,
                                  double value, T *METRIMAX_RESTRICT out) {
#pragma omp simd
    for (Index k = 0; k < size; ++k) {
        const double cost = costs[k], inside = cost < high ? value * share(cost) : 0.0;
        out[k] = cost < low ? value : inside;
    }
}

} // namespace metrimax
