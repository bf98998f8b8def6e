// The mean of several ramps, a piecewise linear function of the cost: 1 up to the first knot, 0 from the last one on.
//
// Input    thresholds, widths and weights of ramps; the cells of a class, in which few knots are (cell_ramp.hpp)
// Output   the mean share at the costs of the class
#pragma once

#include "cell_ramp.hpp"
#include "clones.hpp"
#include "index.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

namespace metrimax {

// `times` the shares, which rounding may have put outside of [0, 1]. A loop of its own, for in one that is not
// vectorised it would be two branches that no processor can predict.
METRIMAX_CLONES inline void clip_shares(Index size, double times, double *METRIMAX_RESTRICT shares) {
#pragma omp simd
    for (Index i = 0; i < size; ++i) {
        const double share = shares[i], some = share > 0 ? share : 0.0;
        shares[i] = times * (some < 1 ? some : 1.0);
    }
}

class MeanRamp {
  public:
    // Each ramp falls from 1 to 0 over the width h up to t.
    struct One {
        double t, h, weight;
    };

    MeanRamp(const std::vector<One> &ramps, const CellRamp &cells) {
        struct End {
            double cost, bend;
        };
        std::vector<End> ends;
        for (const One &ramp : ramps) {
            ends.push_back({ramp.t - ramp.h, -ramp.weight / ramp.h});
            ends.push_back({ramp.t, ramp.weight / ramp.h});
        }
        std::sort(ends.begin(), ends.end(), [](const End &x, const End &y) { return x.cost < y.cost; });
        low = ends.front().cost;
        high = ends.back().cost;
        knots.reserve(ends.size() + 2);
        knots.push_back({low, 1.0, 0.0});
        begin.assign(static_cast<std::size_t>(cells.size()) + 2, 0);
        for (const End &end : ends) {
            const Knot &last = knots.back();
            knots.push_back({end.cost, last.share + last.rise * (end.cost - last.cost), last.rise + end.bend});
            begin[cells.cell_after(end.cost)] = static_cast<std::int32_t>(knots.size()) - 1;
        }
        knots.back().share = knots.back().rise = 0;
        for (std::size_t cell = 1; cell < begin.size(); ++cell)
            begin[cell] = std::max(begin[cell], begin[cell - 1]);
        begin[cells.size()] = static_cast<std::int32_t>(knots.size()) - 1; // of what is in no cell
        knots.push_back({std::numeric_limits<double>::quiet_NaN(), 0.0, 0.0});
    }

    // `times` the shares at costs, of which the cells are given; 0 for what is infinite, in the cell of another class.
    void operator()(const std::int32_t *cells, const double *costs, Index size, double times, double *out) const {
        for (Index i = 0; i < size; ++i) {
            const Knot *knot = &knots[begin[cells[i]]];
            while (knot[1].cost <= costs[i]) // in most cells there is none
                ++knot;
            out[i] = knot->share + knot->rise * (costs[i] - knot->cost);
        }
        clip_shares(size, times, out);
    }

    double low, high;

  private:
    struct Knot {
        double cost, share, rise; // from there on
    };

    std::vector<Knot> knots;         // one before the first, and one after the last
    std::vector<std::int32_t> begin; // the last knot before each cell
};

} // namespace metrimax
