// The smoothed risk of a linear loss: the Huber hinge, example by example.
//
// Problem  R_mu = max over shares beta of flips in [0, 1] of  a fn + b fp + <slope, scores> - prox,  0 <= prox <= mu
// Input    scores of a sample; its classes, with weights in units; a and b
// Output   the value of R_mu, and loss and slope of the plane that attains it
//
// The prox is quadratic around beta = 1/2, so that every share is a ramp of the example's cost. One pass, no sort.
#pragma once

#include "class_costs.hpp"
#include "pair_search.hpp"
#include "piece_tree.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>

namespace metrimax {

// Number of the flips under a ramp, and their gain.
struct Flips {
    double count = 0, gain = 0;
};

// The flips of a block, and the slopes they amount to, where a flip in full has the slope `value`. Costs that are
// infinite, of other classes, do not flip.
template <bool kWeighted>
METRIMAX_CLONES Flips flip_by_ramp(const double *METRIMAX_RESTRICT costs, const double *METRIMAX_RESTRICT weights,
                                   Index size, double t, double h, double value, double *METRIMAX_RESTRICT out) {
    double count = 0, gain = 0;
#pragma omp simd reduction(+ : count, gain)
    for (Index k = 0; k < size; ++k) {
        const double part = (t - costs[k]) / h, some = part > 0.0 ? part : 0.0, share = some < 1.0 ? some : 1.0;
        const double cost = share > 0.0 ? costs[k] : 0.0, own = kWeighted ? weights[k] * share : share;
        count += own;
        gain -= own * (cost + h / 2 * share);
        out[k] = own * value;
    }
    return {count, gain};
}

// Add values to others.
METRIMAX_CLONES inline void add(const double *METRIMAX_RESTRICT values, Index size, double *METRIMAX_RESTRICT to) {
#pragma omp simd
    for (Index k = 0; k < size; ++k)
        to[k] += values[k];
}

// The two classes of a smoothed risk: their members, checked, and their weights.
class SmoothedClasses {
  public:
    SmoothedClasses(const char *who, Index sample, PairClass pos, PairClass neg, std::array<double, 2> steps)
        : sample(sample), sides{{total(pos), total(neg)}, steps}, classes{pos, neg} {
        if (sides.totals[0] <= 0 || sides.totals[1] <= 0)
            throw std::invalid_argument(std::string(who) + ": expected a member or more in each class, got none");
        for (int side = 0; side < 2; ++side) {
            Members &members = classes[side].members;
            check_members(who, members.at, members.size, sample);
            if (classes[side].weights == nullptr) { // weights are listed by member
                inside[side] = inside_large(members.at, members.size, sample);
                members.inside = inside[side].get();
                members.sample = sample;
            }
        }
    }

    const PairClass &operator[](int side) const { return classes[side]; }

    const Index sample;
    const Sides sides;

  private:
    static double total(const PairClass &one) {
        double sum = 0;
        for (Index k = 0; k < one.members.size; ++k)
            sum += one.weight(k);
        return sum;
    }

    std::array<PairClass, 2> classes;
    std::array<std::unique_ptr<unsigned char[]>, 2> inside;
};

class LinearSmoothing {
  public:
    // Weights of members are in units, of which each weighs steps[0] or steps[1] of the sample; so are the losses a and
    // b of a flip.
    LinearSmoothing(Index sample, PairClass pos, PairClass neg, std::array<double, 2> steps, std::array<double, 2> loss)
        : classes("LinearSmoothing", sample, pos, neg, steps), loss(loss) {
        if (!(loss[0] >= 0 && loss[1] >= 0 && loss[0] + loss[1] > 0))
            throw std::invalid_argument("LinearSmoothing: expected losses a, b >= 0 of a flip, not both zero");
    }

    size_t size() const { return static_cast<size_t>(classes.sample); }

    // The value of the smoothed risk, and the loss of its plane; its slope is written.
    std::pair<double, double> smooth(const double *scores, double mu, double *slope) const {
        const std::array<double, 2> h = PieceTree::widths(classes.sides, loss, mu);
        std::fill_n(slope, classes.sample, 0.0);
        double lost = 0, gained = 0;
        for (int side = 0; side < 2; ++side) {
            const double step = classes.sides.steps[side];
            const Flips flips = flip(side, scores, loss[side] / step + h[side] / 2, h[side], slope);
            lost += loss[side] * flips.count;
            gained += step * (flips.gain + h[side] * (flips.count / 2 - classes.sides.totals[side] / 8));
        }
        return {lost + gained, lost};
    }

  private:
    Flips flip(int side, const double *scores, double t, double h, double *slope) const {
        const PairClass &one = classes[side];
        const PointCosts source{scores, one.members};
        const double value = -one.members.sign * classes.sides.steps[side];
        Flips flips;
        for_blocks(one.members.extent(), [&](Index first, Index count) {
            double costs[kBlock], values[kBlock];
            source.block(first, count, costs);
            const Flips here = one.weights ? flip_by_ramp<true>(costs, one.weights + first, count, t, h, value, values)
                                           : flip_by_ramp<false>(costs, nullptr, count, t, h, value, values);
            flips.count += here.count;
            flips.gain += here.gain;
            if (one.members.inside)
                add(values, count, slope + first);
            else
                for (Index k = 0; k < count; ++k)
                    slope[one.members.example(first + k)] = values[k];
        });
        return flips;
    }

    const SmoothedClasses classes;
    const std::array<double, 2> loss;
};

} // namespace metrimax
