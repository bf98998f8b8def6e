// Sums over smoothed flips, of which the smoothed measures consist (Zhang, Saha & Vishwanathan 2011).
//
// Input    the costs of a class, ascending, and their weights; thresholds and widths of ramps
// Output   number and gain of the flips under each ramp, or the threshold that makes a number of flips
//
// With a quadratic prox term every optimal share of a flip is a ramp of its cost (y * score),
//     beta(c) = clip((t - c) / h, 0, 1),
// where the threshold t comes from the loss or from a constraint on the number of flips and h is the width of the
// smoothing in units of the scores. If the costs are sorted, the sums
//     count(t) = sum_i w_i beta(c_i),      gain(t) = sum_i w_i (-c_i beta(c_i) - h/2 beta(c_i)^2)
// follow from prefix sums of w, w c and w c^2, and the two ends of the ramp are found by galloping from where they
// were.
#pragma once

#include "table_argmax.hpp"

namespace metrimax {

// Where a ramp begins and ends among the sorted costs: costs[:full] <= t - h flip, costs[full:part] flip in part.
struct RampEnds {
    Index full = 0, part = 0;
};

struct RampSums {
    double count, gain;
    double partial; // weight of what flips in part: h times the derivative of count by t
};

class Ramp {
  public:
    // costs ascending; weights in the same order, or null for all 1.
    Ramp(const double *costs, const double *weights, Index size)
        : costs(costs), size(size), W(static_cast<std::size_t>(size) + 1), S(W.size()), Q(W.size()) {
        for (Index k = 0; k < size; ++k) {
            const double w = weights ? weights[k] : 1.0;
            W[k + 1] = W[k] + w;
            S[k + 1] = S[k] + w * costs[k];
            Q[k + 1] = Q[k] + w * costs[k] * costs[k];
        }
    }

    RampSums operator()(double t, double h, RampEnds &ends) const {
        ends.full = first_above(t - h, ends.full);
        ends.part = std::max(ends.full, first_above(t, ends.part));
        const double w = W[ends.part] - W[ends.full];
        const double s = S[ends.part] - S[ends.full], q = Q[ends.part] - Q[ends.full];
        return {W[ends.full] + (w * t - s) / h, -S[ends.full] - h / 2 * W[ends.full] + (q - w * t * t) / (2 * h), w};
    }

    double total() const { return W[size]; }
    double lowest() const { return size ? costs[0] : 0.0; }
    double highest() const { return size ? costs[size - 1] : 0.0; }

  private:
    // The number of costs <= t, searched for from a guess.
    Index first_above(double t, Index guess) const {
        return gallop(guess, 0, size, [&](Index k) { return costs[k] <= t; });
    }

    const double *costs;
    Index size;
    std::vector<double> W, S, Q;
};

// A piecewise linear function that never falls, at some place, and how fast it rises there.
struct Rising {
    double value, slope;
};

// Where such a function of b, constant outside of [least, most], is at a target, but for `accuracy`. Newton's method
// inside a bracket that starts at the guess `b` and is `width` wide at first. It ends where the function is NaN.
template <class Function>
double where_rising(Function function, double target, double b, double width, double least, double most,
                    double accuracy) {
    double slope = 0;
    auto excess = [&](double at) {
        const Rising here = function(at);
        slope = here.slope;
        return here.value - target;
    };
    b = std::clamp(b, least, most);
    double value = excess(b), low = b, high = b;
    if (!(std::abs(value) > accuracy))
        return b;
    const double towards = value < 0 ? 1.0 : -1.0;
    for (;; width *= 4) { // bracket
        const double next = slope > 0 ? std::max(width, std::abs(value) / slope) : width;
        const double from = b;
        b = std::clamp(b + towards * next, least, most);
        value = excess(b);
        if (!(std::abs(value) > accuracy) || b == from)
            return b;
        (towards > 0 ? low : high) = towards * value < 0 ? b : from;
        if (towards * value > 0) {
            (towards > 0 ? high : low) = b;
            break;
        }
    }
    for (int step = 0; step < 200; ++step) {
        const double newton = b - value / slope;
        const double last = b;
        b = slope > 0 && newton > low && newton < high ? newton : low + (high - low) / 2;
        if (b == last || !(b > low && b < high))
            return b;
        value = excess(b);
        if (!(std::abs(value) > accuracy))
            return b;
        (value < 0 ? low : high) = b;
    }
    return b;
}

// Find b with  neg.count(b) - pos.count(tau - b) = target: the multiplier of the one constraint on the number of flips.
inline double ramp_threshold(const Ramp &pos, const Ramp &neg, double tau, double h, double target, double b,
                             RampEnds &pos_ends, RampEnds &neg_ends) {
    const auto number = [&](double at) {
        const RampSums p = pos(tau - at, h, pos_ends), q = neg(at, h, neg_ends);
        return Rising{q.count - p.count, (p.partial + q.partial) / h};
    };
    const double least = std::min(neg.lowest(), tau - pos.highest() - h),
                 most = std::max(neg.highest() + h, tau - pos.lowest());
    return where_rising(number, target, b, h, least, most, 1e-13 * (1 + pos.total() + neg.total()));
}

} // namespace metrimax
