// Line search on a parabola plus a convex risk of which every evaluation gives value and slope. Plain C++17, no Python.
//
//     phi(t) = lam/2 (square + 2 t cross + t^2 bend) + risk(t)
//
// Input    the parabola, the risk at t = 0 and maybe a tangent to it; what gives the risk and its rise at any t
// Output   a t at which phi is within some accuracy of its minimum over t >= 0, and the risk and objective there
//
// Two tangents to the risk bracket the minimum and bound it from below (Franc & Sonnenburg 2009 sort
// the breakpoints of the risk instead, which are not known here).
#pragma once

#include <algorithm>
#include <optional>
#include <utility>

namespace metrimax {

// The parabola: lam/2 times the squared length of a point that moves.
struct Parabola {
    double lam, square, cross, bend;

    double square_at(double t) const { return square + 2 * t * cross + t * t * bend; }
    double operator()(double t) const { return lam / 2 * square_at(t); }
    double slope(double t) const { return lam * (cross + t * bend); }
};

// A point on the line: the risk and its rise, the objective and its slope.
struct LineStep {
    double t, risk, rise, value, slope;

    double tangent(double at) const { return risk + rise * (at - t); }
};

class LineSearch {
  public:
    explicit LineSearch(Parabola parabola) : parabola(parabola) {}

    LineStep step(double t, std::pair<double, double> risk_and_rise) const {
        const auto [risk, rise] = risk_and_rise;
        return {t, risk, rise, parabola(t) + risk, parabola.slope(t) + rise};
    }

    // The least of the points tried. It is within `accuracy` of the minimum, unless 30 points were not enough or the
    // minimum is far. From `start` (t = 0) with the tangent `left` there. The search begins on [0, reach] and widens
    // that, by more every time, until the minimum is inside. risk(t) is the risk at t and its rise, `at_reach` what it
    // would be at `reach`.
    template <class Risk>
    LineStep minimise(LineStep start, LineStep left, double accuracy, double reach, std::pair<double, double> at_reach,
                      Risk risk) const {
        LineStep lowest = start, right = step(reach, at_reach);
        const auto keep = [&](const LineStep &one) { lowest = one.value < lowest.value ? one : lowest; };
        keep(right);
        double growth = 2;
        for (int tried = 0; tried < 30; ++tried) {
            if (right.slope < 0) {
                if (right.t >= kFar)
                    break;
                reach = std::min(growth * right.t, kFar);
                growth *= 2;
                left = std::exchange(right, step(reach, risk(reach)));
                keep(right);
                continue;
            }
            const auto [t, floor] = least_of_tangents(left, right);
            if (lowest.value - floor <= accuracy || !(left.t < t && t < right.t))
                break;
            const LineStep here = step(t, risk(t));
            keep(here);
            (here.slope < 0 ? left : right) = here;
        }
        return lowest;
    }

    // The same from a point with a known risk, and perhaps a known tangent; what is not known is asked for.
    template <class Risk>
    LineStep minimise(double risk_here, std::optional<std::pair<double, double>> tangent, double accuracy, double reach,
                      std::optional<std::pair<double, double>> at_reach, Risk risk) const {
        const auto [value, rise] = tangent ? *tangent : std::pair(risk_here, risk(0.0).second);
        return minimise(step(0.0, {risk_here, rise}), step(0.0, {value, rise}), accuracy, reach,
                        at_reach ? *at_reach : risk(reach), risk);
    }

  private:
    // No search goes farther: scores move by t times a move that is known to within the rounding of the scores,
    // and what is left of a move when all but rounding has cancelled must not become a step.
    static constexpr double kFar = 1000;

    // Where the parabola plus the higher of the two tangents to the risk is least, and its value there.
    std::pair<double, double> least_of_tangents(const LineStep &left, const LineStep &right) const {
        double t = least(left);
        if (right.rise > left.rise) {
            const double meet = (left.tangent(0.0) - right.tangent(0.0)) / (right.rise - left.rise);
            if (t > meet)
                t = std::max(meet, least(right));
        }
        return {t, parabola(t) + std::max(left.tangent(t), right.tangent(t))};
    }

    double least(const LineStep &one) const {
        return parabola.bend > 0 ? -(one.rise / parabola.lam + parabola.cross) / parabola.bend : one.t;
    }

    Parabola parabola;
};

} // namespace metrimax
