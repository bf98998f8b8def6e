// Examples of one class that weigh unequally, as a queue of units of one weight, in which an example may flip in part.
//
// Input    the costs and places of candidates, and the weight of every example in units
// Output   the candidates in order of their costs, the costs of the units that they fill, and what flips with so many
//
// What the units give up is concave in their number, as it is for examples, and the searches for the best table need no
// more than that. Which tables there are does not depend on the scores, so cuts stay valid.
#pragma once

#include "cell_sort.hpp"
#include "class_costs.hpp"
#include "mean_labelling.hpp"

#include <vector>

namespace metrimax {

// A candidate.
struct Flip {
    double cost;
    Place place;
};

// The candidates in ascending order of their costs. Ties go by position.
inline void order_flips(const double *costs, const Place *places, Index size, std::vector<Flip> &flips) {
    flips.resize(static_cast<std::size_t>(size));
    for (Index k = 0; k < size; ++k)
        flips[k] = {costs[k], places[k]};
    sort_by(flips.data(), size, [](const Flip &flip) { return flip.cost; });
    const auto before = [](const Flip &one, const Flip &other) { return one.place < other.place; };
    for (auto begin = flips.begin(), end = begin; begin != flips.end(); begin = end) {
        for (++end; end != flips.end() && end->cost == begin->cost; ++end)
            ;
        if (end - begin > 1 && !std::is_sorted(begin, end, before)) // where many crowd
            std::sort(begin, end, before);
    }
}

// How many units candidates fill, and what every other unit costs at least.
struct Filled {
    Index size;
    double beyond;
};

// The costs of the units that candidates fill, no more than `units`; weight(flip) is in units. The others of the class
// cost `high` or more; if there are none, `all`, the last unit is full whatever rounding says.
template <class Weight>
Filled unit_costs(const std::vector<Flip> &flips, Weight weight, Index units, bool all, double high, double *out) {
    double reached = 0, part = 0; // the weight so far, and what the unit that is not full yet costs so far
    Index full = 0;
    for (std::size_t k = 0; k < flips.size() && full < units; ++k) {
        const double cost = flips[k].cost, end = reached + weight(flips[k]);
        const bool last = all && k + 1 == flips.size();
        for (double from = reached; full < units;) {
            const auto border = static_cast<double>(full + 1);
            if (!(border <= end || (last && full + 1 == units))) {
                part += (end - from) * cost;
                break;
            }
            out[full] = from == border - 1 ? cost : part + (border - from) * cost;
            part = 0;
            from = border;
            ++full;
        }
        reached = end;
    }
    const double left = static_cast<double>(full + 1) - reached; // that others fill
    return {full, part == 0 && left >= 1 ? high : std::min(high, part + left * high)};
}

// Visit(flip, weight that flips of it) for the flips of lowest cost that make up `total`, in units.
template <class Weight, class Visit>
void for_flipped(const std::vector<Flip> &flips, Weight weight, double total, Visit visit) {
    double before = 0;
    for (const Flip &flip : flips) {
        const double own = weight(flip);
        if (!(before < total))
            return;
        visit(flip, std::min(own, total - before));
        before += own;
    }
}

// Share `total` out among flips of about the same cost, by a ramp of width h (see mean_labelling.hpp), if that can be
// told from a step: visit(flip, weight that flips of it). All flips from h below the last one up to h above it must be
// there; `last` is its cost.
template <class Weight, class Visit>
void for_shared(const std::vector<Flip> &flips, Weight weight, double total, double last, double h, Visit visit) {
    const auto below = [](const Flip &flip, double cost) { return flip.cost < cost; };
    const auto first = std::lower_bound(flips.begin(), flips.end(), last - h, below);
    std::vector<double> costs, weights;
    double full = 0;
    for (auto at = flips.begin(); at != first; ++at)
        full += weight(*at);
    for (auto at = first; at != flips.end() && at->cost <= last + h; ++at) {
        costs.push_back(at->cost);
        weights.push_back(weight(*at));
    }
    const Shares shares =
        share_out(costs.data(), static_cast<Index>(costs.size()), EachWeight{weights.data()}, total - full, last, h);
    for (const Flip &flip : flips)
        if (const double part = shares(flip.cost); part > 0)
            visit(flip, part * weight(flip));
        else
            return;
}

} // namespace metrimax
