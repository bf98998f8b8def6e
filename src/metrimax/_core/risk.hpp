// What the solvers ask of a sample: its risk, a convex function of the scores of the examples. Plain C++17, no Python.
//
//     R(s) = max over labellings, or rankings, y' of  loss(y') + <slope(y'), s>
//
// The y' that attains the maximum gives a plane that is nowhere above R and touches it at s: a cut (Joachims 2005).
#pragma once

#include "index.hpp"

#include <functional>
#include <utility>

namespace metrimax {

// The risk at a point of a line of scores, and how fast it rises there.
using Line = std::function<std::pair<double, double>(double)>;

// Several threads may ask one risk at once: the memory of a call is its own, or lent to it alone (see scratch.hpp).
class Risk {
  public:
    virtual ~Risk() = default;
    virtual size_t size() const = 0; // of the sample
    // A plane below the risk that is no more than mu below it at these scores: its loss, and its slope, overwritten.
    virtual double plane(const double *scores, double mu, double *slope) = 0;
    // What gives the risk at scores + t * move, and its rise in t. Both arrays, and the risk, must outlive it.
    virtual Line line(const double *scores, const double *move) = 0;
};

} // namespace metrimax
