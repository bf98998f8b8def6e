// The risk of a measure of the contingency table: from scores to the most violated labelling in one call.
//
// Problem  max over labellings of  D(fn, fp) - sum over the flips of step * cost,    cost = sign * score
// Input    scores of a sample; what its mistakes cost, counted in units of weight, as a `Tables`
// Output   loss and slope of the labelling that attains it, or the risk and its rise along a line
//
// Joachims (2005), Algorithm 2, without its loop over all tables: collect what may flip, sort it, find the best table
// (table_argmax.hpp), prove that what was left out does not matter (table_proof.hpp), mark the flips. An example is one
// unit, or, where examples of a class weigh unequally, several and parts of them (weighted_units.hpp).
#pragma once

#include "risk.hpp"
#include "scratch.hpp"
#include "table_proof.hpp"
#include "weighted_units.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <utility>

namespace metrimax {

// One class: its members, and what is known of their flips.
struct Side {
    std::unique_ptr<unsigned char[]> inside; // the members refer to it
    Members members;
    double step;                     // weight of one unit divided by n
    double low;                      // costs below this flip in every optimum,
    double high;                     // costs from this on in none
    const double *weights = nullptr; // of every example of the sample, in units; none where each member is one unit
    Index units = 0;

    // The class of the examples `at` of a sample, which are checked.
    static Side of(const Place *at, Index size, double sign, Index sample, double step, double low, double high) {
        check_members("TableSearch", at, size, sample);
        std::unique_ptr<unsigned char[]> inside = inside_large(at, size, sample);
        const Members members{at, size, sign, inside.get(), sample};
        return Side{std::move(inside), members, step, low, high, nullptr, size};
    }

    // The same where members weigh unequally. A unit may be made of costs on both sides of a bound: there are none.
    static Side weighted(const Place *at, Index size, double sign, Index sample, double step, const double *weights,
                         Index units) {
        constexpr double kInf = std::numeric_limits<double>::infinity();
        for (Index k = 0; k < sample; ++k)
            if (!(weights[k] >= 0 && weights[k] < kInf))
                throw std::invalid_argument("TableSearch: expected finite weights, none negative, got " +
                                            std::to_string(weights[k]));
        Side side = of(at, size, sign, sample, step, -kInf, kInf);
        side.weights = weights;
        side.units = units;
        return side;
    }

    double weight(const Flip &flip) const { return weights[members.example(flip.place)]; }

    // A window near `bound`, but positive: then every flip outside it gives up score, and sums over them fall.
    double positive(double bound) const {
        return std::min(bound > 0 ? bound : std::isfinite(high) ? 0.001 * high : high, high);
    }
};

class TableSearch : public Risk {
  public:
    TableSearch(Index sample, Side pos, Side neg, std::unique_ptr<Tables> tables)
        : n(static_cast<size_t>(sample)), sides{std::move(pos), std::move(neg)}, tables(std::move(tables)) {}

    size_t size() const override { return n; }

    double plane(const double *scores, double mu, double *slope) override {
        std::fill_n(slope, n, 0.0);
        return scratch.lend([&](Candidates &candidates) { return cut(candidates, scores, mu, slope); });
    }

    Line line(const double *scores, const double *move) override {
        return [this, scores, move](double t) {
            return scratch.lend([&](Candidates &candidates) { return risk(candidates, scores, move, t); });
        };
    }

  private:
    // Where the candidates of a class are looked for, and room for them.
    struct Window {
        template <class T> using Buffer = std::unique_ptr<T[]>; // not cleared: memory is taken where it is written

        explicit Window(const Side &side)
            : high(side.high), places_room(static_cast<size_t>(side.members.size) + 1),
              costs_room(std::max(places_room, static_cast<size_t>(side.units))) {
            renew();
        }
        void renew() {
            costs.reset(new double[costs_room]);
            places.reset(new Place[places_room]);
            std::vector<Flip>().swap(flips);
        }

        double high;   // the bound on costs to try next; it was enough at the last call
        int rest = 0;  // calls until a smaller window is looked for,
        int pause = 0; // and the length of the last such pause
        size_t places_room, costs_room;
        Buffer<double> costs; // of the units
        Buffer<Place> places;
        std::vector<Flip> flips; // where examples weigh unequally, in the order of the units
    };
    using Candidates = std::array<Window, 2>;

    // The loss of the labelling that attains the risk, and its slope (zero on entry). Without a positive risk, neither.
    // With mu > 0, of a mean of labellings with the same table that is no more than mu below the risk at these scores.
    double cut(Candidates &candidates, const double *scores, double mu, double *slope) const {
        const auto costs = [&](const Side &side) { return PointCosts{scores, side.members}; };
        Found found = find(candidates, costs);
        const Index flips[] = {found.best.i, found.best.j};
        const double weight =
            sides[0].step * static_cast<double>(flips[0]) + sides[1].step * static_cast<double>(flips[1]);
        const double h = 2 * mu / weight;
        for (int k = 0; k < 2 && found.best.value > 0; ++k) {
            const Side &side = sides[k];
            const double value = -side.members.sign * side.step;
            if (side.weights)
                mark_weighted(candidates[k], found, k, flips[k], h, costs, slope);
            else if (flips[k] > 0 && resolves(h, found.last[k])) {
                if (const double reach = std::min(found.last[k] + h, side.high); reach > found.highs[k])
                    found.look(k, side, candidates[k], reach, costs);
                spread(costs(side), side, candidates[k], found, k, flips[k], h, value, slope);
            } else if (flips[k] > 0) {
                mark(costs(side), candidates[k].places.get(), found.noted[k], flips[k], found.last[k], value, slope);
            }
        }
        give_back(candidates, found);
        return found.best.value > 0 ? tables->loss(flips[0], flips[1]) : 0.0;
    }

    // The risk at scores + t * move, and its slope in t.
    std::pair<double, double> risk(Candidates &candidates, const double *scores, const double *move, double t) const {
        const auto costs = [&](const Side &side) { return LineCosts{scores, move, side.members, t}; };
        const Found found = find(candidates, costs);
        const bool positive = found.best.value > 0;
        double rise = 0;
        for (Index k = 0; k < 2 && positive; ++k) {
            const Side &side = sides[k];
            const Index flips = k == 0 ? found.best.i : found.best.j;
            const auto weight = [&](const Flip &flip) { return side.weight(flip); };
            if (side.weights)
                for_flipped(
                    candidates[k].flips, weight, static_cast<double>(flips),
                    [&](const Flip &flip, double part) { rise -= side.step * part * costs(side).rate(flip.place); });
            else
                rise -= side.step *
                        rate_of_lowest(costs(side), candidates[k].places.get(), found.noted[k], flips, found.last[k]);
        }
        give_back(candidates, found);
        return {positive ? found.best.value : 0.0, rise};
    }

    static constexpr Index kLarge = Index{1} << 17;
    static constexpr Index kFew = 16; // so few candidates are not worth leaving out
    static constexpr int kPause = 15; // most calls between two that look for a smaller window

    struct Found {
        Best best;
        std::array<double, 2> last;  // the highest cost of what flips in either class
        std::array<double, 2> highs; // the bound on the costs of the candidates,
        std::array<double, 2> least; // and what the other units cost at least
        std::array<Queue, 2> queues; // in the windows' buffers, as are the places
        std::array<Index, 2> noted;  // of all that may flip

        // Collect and sort the candidates of a class whose costs are below `high`.
        template <class Costs> void look(Index k, const Side &side, Window &window, double high, Costs costs) {
            noted[k] = collect(costs(side), high, window.costs.get(), window.places.get());
            highs[k] = least[k] = high;
            if (side.weights) {
                order_flips(window.costs.get(), window.places.get(), noted[k], window.flips);
                const auto weight = [&](const Flip &flip) { return side.weight(flip); };
                const Filled got = unit_costs(window.flips, weight, side.units, noted[k] == side.members.size, high,
                                              window.costs.get());
                least[k] = got.beyond;
                queues[k] = {window.costs.get(), got.size, 0, 0.0, side.step};
                return;
            }
            const Collected got = without_certain(window.costs.get(), noted[k], side.low);
            sort_values(window.costs.get(), got.size);
            queues[k] = {window.costs.get(), got.size, got.first, got.first_sum, side.step};
        }
    };

    // The best table, from as few candidates as are enough; costs(side) are those of a class. The bounds that were
    // enough at the last call are tried first. If they do not prove that the table found is the best, more candidates
    // follow.
    template <class Costs> Found find(Candidates &candidates, Costs costs) const {
        while (true) {
            Found found;
            for (Index k = 0; k < 2; ++k)
                found.look(k, sides[k], candidates[k], candidates[k].high, costs);
            const Queue &pos = found.queues[0], &neg = found.queues[1];
            Sums sums[] = {{pos, sides[0].units, found.least[0]}, {neg, sides[1].units, found.least[1]}};
            found.best = tables->best(pos, neg, sums[0].known, sums[1].known);
            Proof proof(*tables, pos, neg, sums[0], sums[1], found.best.value);
            bool wanting = false;
            for (int k = 0; k < 2; ++k)
                if (double &high = candidates[k].high; high < sides[k].high && !proof.beyond(k)) {
                    wanting = true;
                    high = sides[k].positive(4 * high);
                }
            if (wanting)
                continue; // windows only widen until all is proven: each proof relies on the other window
            const Index flips[] = {found.best.i - pos.first, found.best.j - neg.first};
            for (int k = 0; k < 2; ++k) {
                const Queue &queue = found.queues[k];
                candidates[k].high = narrowed(k, candidates[k], queue, flips[k], found.least[k], sums[k], proof);
                found.last[k] = flips[k] > 0 ? queue.costs[flips[k] - 1] : sides[k].low;
            }
            return found;
        }
    }

    // A smaller window that would have been enough: half the candidates, a quarter, ... as long as they prove the
    // table. Mostly they do not; then the next calls do not try.
    double narrowed(int k, Window &window, const Queue &queue, Index flips, double least, Sums &sums,
                    Proof &proof) const {
        if (window.rest > 0) {
            --window.rest;
            return window.high;
        }
        double high = window.high;
        window.pause = std::min(2 * window.pause + 1, kPause);
        for (Index enough = queue.size / 2; enough >= 2 * std::max<Index>(flips, 0) + kFew; enough /= 2) {
            sums.know(enough, queue.step * queue.costs[enough]);
            if (!proof.beyond(k))
                break;
            high = sides[k].positive(queue.costs[enough + enough / 4]);
            window.pause = 0;
        }
        sums.know(queue.size, queue.step * least);
        window.rest = window.pause;
        return high;
    }

    // Share the flips out among the candidates of a class.
    static void spread(const PointCosts &costs, const Side &side, const Window &window, const Found &found, Index k,
                       Index flips, double h, double value, double *slope) {
        const Queue &queue = found.queues[k];
        const double last = found.last[k], low = side.low, high = found.highs[k];
        const double *end = queue.costs + queue.size, *first = std::lower_bound(queue.costs, end, last - h);
        const Index count = flips - queue.first, full = first - queue.costs;
        const Shares shares = count > 0 ? share_out(first, std::upper_bound(first, end, last + h) - first,
                                                    EqualWeight{}, static_cast<double>(count - full), last, h)
                                        : Shares{last, -std::numeric_limits<double>::infinity(), h};
        write_slope(costs, window.places.get(), found.noted[k], slope,
                    [=](const double *its, double *values, Index size) {
                        share_slopes(its, size, low, high, shares, value, values);
                    });
    }

    // The slopes of a class whose members weigh unequally, with so many units that flip: those of lowest cost, or
    // shared out among flips of about the same cost.
    template <class Costs>
    void mark_weighted(Window &window, Found &found, int k, Index units, double h, Costs costs, double *slope) const {
        const Side &side = sides[k];
        const auto weight = [&](const Flip &flip) { return side.weight(flip); };
        const auto total = static_cast<double>(units);
        const auto write = [&](const Flip &flip, double part) {
            slope[side.members.example(flip.place)] = -side.members.sign * side.step * part;
        };
        double last = -std::numeric_limits<double>::infinity();
        for_flipped(window.flips, weight, total, [&](const Flip &flip, double part) {
            last = flip.cost;
            write(flip, part);
        });
        if (units == 0 || !resolves(h, last))
            return;
        if (last + h > found.highs[k])
            found.look(k, side, window, last + h, costs);
        for_shared(window.flips, weight, total, last, h, write);
    }

    // The pages that few calls touch.
    void give_back(Candidates &candidates, const Found &found) const {
        for (Index k = 0; k < 2; ++k)
            if (found.noted[k] > sides[k].members.size / 4 && found.noted[k] > kLarge)
                candidates[k].renew();
    }

    const size_t n;
    const std::array<Side, 2> sides;
    const std::unique_ptr<Tables> tables;
    Scratch<Candidates> scratch{[this] { return Candidates{Window(sides[0]), Window(sides[1])}; }};
};

} // namespace metrimax
