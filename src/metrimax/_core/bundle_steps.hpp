// What an iteration of the bundle method does between its products with X. Plain C++17, no Python.
//
// Problem  min over w of  lam/2 |w|^2 + R(X w), for a convex risk R of which every cut is a plane below it
// Input    the best point known, the minimiser of the model, and the scores of both; a risk that answers for any scores
// Output   the best point, moved; the next cuts
//
// An iteration minimises the model lam/2 |w|^2 + max over cuts (CutPool::minimise), goes from the best point known
// towards that minimiser, and takes the next cut a little beyond the point reached (Franc & Sonnenburg 2009, Algorithm
// 2). In the hybrid it goes along a quasi-Newton direction first, and takes a second cut where it ends.
#pragma once

#include "dense_loops.hpp"
#include "line_descent.hpp"
#include "memory.hpp"
#include "risk.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

namespace metrimax {

// Where a search begins after one that ended at t: at twice that, or half as far if no step was found. Not below a
// thousandth: after many searches without a step, a search must still reach t = 1.
inline double next_reach(double reach, double t) { return std::min(1.0, std::max(t > 0 ? 2 * t : reach / 2, 1e-3)); }

// A vector by its entries and its scores.
using Scored = std::array<double *, 2>;

class BundleSteps {
  public:
    // Vectors have so many entries, and n scores. Cuts are taken by `stride` of the way to the minimiser beyond the
    // best point; searches are accurate to so much of the gap.
    BundleSteps(double lam, size_t width, size_t n, bool images, double stride, double accuracy)
        : lam(lam), width(width), n(n), images(images), stride(stride), accuracy(accuracy) {}

    // The best point, which moves in place, its squared length and risk; a lower bound of the objective.
    Scored best{};
    double square = 0, risk = 0, bound = -std::numeric_limits<double>::infinity();

    int in_vain = 0; // quasi-Newton directions in a row that led nowhere

    double far = 1, reach = 1; // where the searches begin, along the direction and towards the minimiser

    double gap() const { return lam / 2 * square + risk - bound; }

    // Along the quasi-Newton direction.
    void along(Risk &oracle, Scored direction, const std::vector<Plane> &planes) {
        const double t = descend(oracle, direction, planes, far, std::nullopt);
        far = next_reach(far, t);
        in_vain = t > 0 ? 0 : in_vain + 1;
    }

    // Towards the minimiser of the model, which becomes the way there. As long as w = 0 is the best point it may well
    // be the solution: there the next cut is taken first, and its tangent is where the search begins. Mostly it proves
    // that there is no step.
    void towards(Risk &oracle, Scored minimiser, const std::vector<Plane> &planes) {
        const double near = std::min(stride, reach);
        std::optional<std::pair<double, double>> known;
        ahead.reset();
        if (square > 0) {
            add_scaled(-1.0, best[0], minimiser[0], width);
            add_scaled(-1.0, best[1], minimiser[1], n);
        } else {
            Fresh<double> there = empty<double>(n);
            for (size_t i = 0; i < n; ++i)
                there[i] = near * minimiser[1][i];
            ahead = empty<double>(n);
            ahead_loss = oracle.plane(there.get(), 0.0, ahead.get());
            const double rise = dot(ahead.get(), minimiser[1], n);
            known = {ahead_loss + near * rise, rise};
        }
        const double t = descend(oracle, minimiser, planes, known ? near : reach, known);
        reach = next_reach(reach, t);
        share = (t > 0 ? stride : near) * (1 - t);
        if (t > 0)
            ahead.reset();
        way = minimiser[1];
    }

    // The cut that follows from the last step towards the minimiser, whose scores are overwritten: within mu of the
    // risk where it is taken. Its loss, and its slope.
    std::pair<double, Fresh<double>> cut(Risk &oracle, double mu) {
        if (ahead)
            return {ahead_loss, std::move(ahead)};
        for (size_t i = 0; i < n; ++i)
            way[i] = best[1][i] + share * way[i];
        return plane(oracle, way, mu);
    }

    // A plane within mu of the risk at the best point.
    std::pair<double, Fresh<double>> cut_at_best(Risk &oracle, double mu) { return plane(oracle, best[1], mu); }

  private:
    double lam;
    size_t width, n;
    bool images;
    double stride, accuracy;
    double share = 0;      // of the way left, to where the next cut is taken
    double *way = nullptr; // its scores
    Fresh<double> ahead;   // the cut that was taken first
    double ahead_loss = 0;

    double descend(Risk &oracle, Scored move, const std::vector<Plane> &planes, double reach,
                   std::optional<std::pair<double, double>> at_reach) {
        const Track track{lam, best, {move[0], move[1]}, width, n, images};
        const LineStep found = track.descend(square, risk, std::nullopt, planes, accuracy * gap(), reach, at_reach,
                                             oracle.line(best[1], move[1]));
        risk = found.t > 0 ? found.risk : risk;
        return found.t;
    }

    std::pair<double, Fresh<double>> plane(Risk &oracle, const double *scores, double mu) const {
        Fresh<double> slope = empty<double>(n);
        const double loss = oracle.plane(scores, mu, slope.get());
        return {loss, std::move(slope)};
    }
};

} // namespace metrimax
