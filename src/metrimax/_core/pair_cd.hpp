// Pair descent on the dual of a sum of hinges with a free bias. Plain C++17, no Python.
//
// Problem   min over w, b of  1/2 |w|^2 + sum_i upper_i max(0, margin_i - sign_i (<w, x_i> + b))
// Dual      max over a of     sum_i margin_i a_i - 1/2 |sum_i a_i sign_i x_i|^2,
//           0 <= a_i <= upper_i,  sum_i sign_i a_i = 0
// Input     the rows x_i, or a kernel matrix; sign, margin and upper; feasible multipliers a and their w
// Output    a and w, moved until no pair is violated by more than an accuracy
//
// With lead_i = sign_i margin_i - <w, x_i> the dual rises along (sign_i a_i up, sign_j a_j down) where lead_i > lead_j.
// One step maximises exactly along such a pair (Platt 1999), and keeps the sum. A multiplier may go up where
// sign_i a_i is below its largest value, and down where it is above its least; the optimum is where no lead of the
// first kind exceeds one of the second by more than the accuracy (Keerthi et al. 2001). A sweep pairs the largest leads
// with the smallest, so that every example that is part of a violation has its turn.
#pragma once

#include "dual_cd.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace metrimax {

struct PairDescent {
    size_t visits = 0;      // of rows; divided by n, the passes over the data
    bool reached = false;   // whether the largest violation among the working examples is within the accuracy
    double violation = 0.0; // the largest, at the last check
};

// By how much sign_i a_i may go up, or down.
inline double room(const HingeSum &sum, const double *alpha, size_t i, bool up) {
    return (sum.sign[i] > 0.0) == up ? sum.upper[i] - alpha[i] : alpha[i];
}

// One exact step along a pair with a positive difference of leads; in and out: alpha and w.
template <class Rows>
void pair_step(const Rows &rows, const HingeSum &sum, size_t i, size_t j, double difference, double *alpha, double *w,
               double *scratch) {
    const double curvature = sum.squares[i] + sum.squares[j] - 2.0 * rows.inner(i, j, scratch);
    const double flat = 1e-14 * (sum.squares[i] + sum.squares[j]);
    const double most = std::min(room(sum, alpha, i, true), room(sum, alpha, j, false));
    const double t = curvature > flat ? std::min(difference / curvature, most) : most;
    if (!(t > 0.0))
        return;
    const auto move = [&](size_t k, bool up) { // onto the bound, where there is no more room
        const bool rises = (sum.sign[k] > 0.0) == up;
        const double left = room(sum, alpha, k, up) - t;
        alpha[k] = rises ? (left > 0.0 ? std::min(alpha[k] + t, sum.upper[k]) : sum.upper[k])
                         : (left > 0.0 ? std::max(alpha[k] - t, 0.0) : 0.0);
    };
    move(i, true);
    move(j, false);
    rows.add(i, t, w);
    rows.add(j, -t, w);
}

// Sweeps over the working examples, until their largest violation is within `accuracy` or `most` rows were visited. In
// and out: alpha (feasible) and w = sum_i alpha_i sign_i x_i. `scratch` has room for a row, of zeros.
template <class Rows>
METRIMAX_CLONES PairDescent pair_cd(const Rows &rows, const HingeSum &sum, const std::int64_t *working, size_t count,
                                    double *alpha, double *w, double *scratch, double accuracy, size_t most) {
    using Lead = std::pair<double, std::int64_t>;
    std::vector<Lead> up, down;
    PairDescent descent;
    const auto lead = [&](size_t i) { return sum.sign[i] * sum.margin[i] - rows.dot(i, w); };
    while (true) {
        up.clear();
        down.clear();
        double top = -std::numeric_limits<double>::infinity(), bottom = -top;
        for (size_t s = 0; s < count; ++s) {
            const size_t i = static_cast<size_t>(working[s]);
            const double mine = lead(i);
            if (room(sum, alpha, i, true) > 0.0) {
                up.emplace_back(mine, working[s]);
                top = std::max(top, mine);
            }
            if (room(sum, alpha, i, false) > 0.0) {
                down.emplace_back(mine, working[s]);
                bottom = std::min(bottom, mine);
            }
        }
        descent.visits += count;
        descent.violation = up.empty() || down.empty() ? 0.0 : std::max(0.0, top - bottom);
        descent.reached = descent.violation <= accuracy;
        if (descent.reached || descent.visits >= most)
            return descent;
        up.erase(std::remove_if(up.begin(), up.end(), [&](const Lead &one) { return one.first <= bottom; }), up.end());
        down.erase(std::remove_if(down.begin(), down.end(), [&](const Lead &one) { return one.first >= top; }),
                   down.end());
        std::sort(up.begin(), up.end(), [](const Lead &a, const Lead &b) { return a.first > b.first; });
        std::sort(down.begin(), down.end());
        size_t a = 0, b = 0; // the shorter list starts again at its end, or where its leads are too small
        for (size_t s = 0; s < std::max(up.size(), down.size()); ++s, ++a, ++b) {
            const bool longer = up.size() >= down.size();
            if (a >= up.size() || (!longer && up[a].first <= down[b].first))
                a = 0;
            if (b >= down.size() || (longer && up[a].first <= down[b].first))
                b = 0;
            const size_t i = static_cast<size_t>(up[a].second), j = static_cast<size_t>(down[b].second);
            if (i == j)
                continue;
            const double difference = lead(i) - lead(j);
            descent.visits += 2;
            if (difference > 0.0)
                pair_step(rows, sum, i, j, difference, alpha, w, scratch);
        }
    }
}

} // namespace metrimax
