// The mean of several ramps, a piecewise linear function of the cost: 1 up to the first knot, 0 from the last one on.
//
// Input    thresholds, widths and weights of ramps
// Output   the mean share at any cost
#pragma once

#include "index.hpp"

#include <algorithm>
#include <limits>
#include <vector>

namespace metrimax {

class MeanRamp {
  public:
    // Each ramp falls from 1 to 0 over the width h up to t.
    struct One {
        double t, h, weight;
    };

    explicit MeanRamp(const std::vector<One> &ramps) {
        struct End {
            double cost, bend;
        };
        std::vector<End> ends;
        for (const One &ramp : ramps) {
            ends.push_back({ramp.t - ramp.h, -ramp.weight / ramp.h});
            ends.push_back({ramp.t, ramp.weight / ramp.h});
        }
        std::sort(ends.begin(), ends.end(), [](const End &x, const End &y) { return x.cost < y.cost; });
        double share = 1, rise = 0, from = ends[0].cost;
        for (const End &end : ends) {
            share += rise * (end.cost - from);
            rise += end.bend;
            from = end.cost;
            knots.push_back({from, share, rise});
        }
        low = knots.front().cost;
        high = knots.back().cost;
        begin.assign(8 * knots.size() + 2, 0);
        scale = static_cast<double>(begin.size() - 2) / (high - low);
        for (std::size_t k = 1; k < knots.size(); ++k) // a cost in a later cell than a knot is beyond it
            begin[cell(knots[k].cost) + 1] = k;
        for (std::size_t cell = 1; cell < begin.size(); ++cell)
            begin[cell] = std::max(begin[cell], begin[cell - 1]);
        knots.push_back({std::numeric_limits<double>::infinity(), 0.0, 0.0});
    }

    // At a cost from `low` up to `high`.
    double operator()(double cost) const {
        std::size_t k = begin[cell(cost)];
        k += knots[k + 1].cost <= cost; // mostly enough, and no branch
        while (knots[k + 1].cost <= cost)
            ++k;
        return std::clamp(knots[k].share + knots[k].rise * (cost - knots[k].cost), 0.0, 1.0);
    }

    double low, high;

  private:
    struct Knot {
        double cost, share, rise; // from there on
    };
    std::size_t cell(double cost) const {
        const double x = (cost - low) * scale, last = static_cast<double>(begin.size() - 2);
        return static_cast<std::size_t>(x > 0 ? std::min(x, last) : 0.0); // of a NaN, too
    }

    std::vector<Knot> knots;
    std::vector<std::size_t> begin;
    double scale;
};

} // namespace metrimax
