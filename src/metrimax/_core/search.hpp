// From scores to the most violated labelling in one call: collect what may flip, sort it, find the best table, mark the
// flips. For samples whose every example is one unit; see tables.hpp for the search among the tables.
#pragma once

#include "enough.hpp"
#include "scan.hpp"
#include "shares.hpp"
#include "sorting.hpp"
#include "tables.hpp"

#include <array>
#include <memory>

namespace metrimax {

template <class T> using Buffer = std::unique_ptr<T[]>; // not cleared: memory is taken only where it is written

struct CountTables : Tables {
    Index n_pos, m_low, m_high;
    ByCount u, v;
    bool bent; // u and v

    CountTables(Index n_pos, Index m_low, Index m_high, ByCount u, ByCount v, double top, bool rising)
        : Tables(top, rising), n_pos(n_pos), m_low(m_low), m_high(m_high), u(u), v(v),
          bent(metrimax::bent(u, m_high - m_low + 1) && metrimax::bent(v, m_high - m_low + 1)) {}
    Best best(const Queue &pos, const Queue &neg, const std::vector<double> &P,
              const std::vector<double> &N) const override {
        const CountScan scan(pos, neg, P, N, n_pos, m_low, m_high, u, v);
        return bent ? scan.best_bent() : scan.best();
    }
    double loss(Index fn, Index fp) const override {
        const Index tp = n_pos - fn, m = tp + fp;
        return u[m - m_low] + v[m - m_low] * static_cast<double>(tp);
    }
};

template <class Link> struct LinkTables : Tables {
    const double *A, *B;

    LinkTables(const double *A, const double *B, double top, bool rising) : Tables(top, rising), A(A), B(B) {}
    Best best(const Queue &pos, const Queue &neg, const std::vector<double> &P,
              const std::vector<double> &N) const override {
        return MongeArgmax<Link>(pos, neg, P, N, A, B)();
    }
    double loss(Index fn, Index fp) const override { return Link{}(A[fn], B[fp]); }
};

// One class: its members, what is known of their flips, and room for the candidates.
struct Side {
    Buffer<unsigned char> inside; // what the members refer to
    Members members;
    double step;          // weight of one example divided by n
    double low;           // costs below this flip in every optimum,
    double high;          // costs from this on in none
    double window = high; // the bound on costs to look at next, which was enough the last time
    int rest = 0;         // calls until a smaller window is looked for,
    int pause = 0;        // and how many there were the last time
    Buffer<double> costs = fresh<double>();
    Buffer<Place> places = fresh<Place>();

    // The class of the examples `at` of a sample.
    static Side of(const Place *at, Index size, double sign, Index sample, double step, double low, double high) {
        Buffer<unsigned char> inside = inside_large(at, size, sample);
        const Members members{at, size, sign, inside.get(), sample};
        return Side{std::move(inside), members, step, low, high};
    }

    // A window near `bound`, but positive: then every flip outside of it gives up score, and sums over them fall.
    double positive(double bound) const {
        return std::min(bound > 0 ? bound : std::isfinite(high) ? 0.001 * high : high, high);
    }

    template <class T> Buffer<T> fresh() const { return Buffer<T>(new T[static_cast<std::size_t>(members.size) + 1]); }
};

class TableSearch {
  public:
    TableSearch(Side pos, Side neg, std::unique_ptr<Tables> tables)
        : sides{std::move(pos), std::move(neg)}, tables(std::move(tables)) {}

    // The loss of the labelling that attains the risk, and its slope (zero on entry). Without a positive risk, neither.
    // With mu > 0, of a mean of labellings with the same table that is no more than mu below the risk at these scores.
    double cut(const double *scores, double mu, double *slope) {
        const auto costs = [&](const Side &side) { return PointCosts{scores, side.members}; };
        Found found = find(costs);
        const Index flips[] = {found.best.i, found.best.j};
        const double weight =
            sides[0].step * static_cast<double>(flips[0]) + sides[1].step * static_cast<double>(flips[1]);
        const double h = 2 * mu / weight;
        for (int k = 0; k < 2 && found.best.value > 0; ++k) {
            Side &side = sides[k];
            const double value = -side.members.sign * side.step;
            if (flips[k] > 0 && resolves(h, found.last[k])) {
                if (const double reach = std::min(found.last[k] + h, side.high); reach > found.highs[k])
                    found.look(k, side, reach, costs);
                spread(costs(side), side, found, k, flips[k], h, value, slope);
            } else if (flips[k] > 0) {
                mark(costs(side), side.places.get(), found.noted[k], flips[k], found.last[k], value, slope);
            }
        }
        give_back(found);
        return found.best.value > 0 ? tables->loss(flips[0], flips[1]) : 0.0;
    }

    // The risk at scores + t * move, and its slope in t.
    std::pair<double, double> risk(const double *scores, const double *move, double t) {
        const auto costs = [&](const Side &side) { return LineCosts{scores, move, side.members, t}; };
        const Found found = find(costs);
        const bool positive = found.best.value > 0;
        double rise = 0;
        for (Index k = 0; k < 2 && positive; ++k) {
            const Side &side = sides[k];
            const Index flips = k == 0 ? found.best.i : found.best.j;
            rise -= side.step * rate_of_lowest(costs(side), side.places.get(), found.noted[k], flips, found.last[k]);
        }
        give_back(found);
        return {positive ? found.best.value : 0.0, rise};
    }

  private:
    static constexpr Index kLarge = Index{1} << 17;
    static constexpr Index kFew = 16; // candidates that are not worth doing without
    static constexpr int kPause = 15; // most calls between two that look for a smaller window

    struct Found {
        Best best;
        std::array<double, 2> last;  // the highest cost of what flips in either class
        std::array<double, 2> highs; // the bound on the costs of the candidates
        std::array<Queue, 2> queues; // in the sides' buffers, as are the places
        std::array<Index, 2> noted;  // of all that may flip

        // Collect and sort the candidates of a class whose costs are below `high`.
        template <class Costs> void look(Index k, Side &side, double high, Costs costs) {
            noted[k] = collect(costs(side), high, side.costs.get(), side.places.get());
            const Collected got = without_certain(side.costs.get(), noted[k], side.low);
            sort_values(side.costs.get(), got.size);
            highs[k] = high;
            queues[k] = {side.costs.get(), got.size, got.first, got.first_sum, side.step};
        }
    };

    // The best table, from as few candidates as will do; costs(side) are those of a class. The bounds that were enough
    // the last time are tried first. If that does not prove the table found to be the best, more are looked at.
    template <class Costs> Found find(Costs costs) {
        while (true) {
            Found found;
            for (Index k = 0; k < 2; ++k)
                found.look(k, sides[k], sides[k].window, costs);
            const Queue &pos = found.queues[0], &neg = found.queues[1];
            Sums sums[] = {{pos, sides[0].members.size, found.highs[0]}, {neg, sides[1].members.size, found.highs[1]}};
            found.best = tables->best(pos, neg, sums[0].known, sums[1].known);
            Proof proof(*tables, pos, neg, sums[0], sums[1], found.best.value);
            bool wanting = false;
            for (int k = 0; k < 2; ++k)
                if (Side &side = sides[k]; side.window < side.high && !proof.beyond(k)) {
                    wanting = true;
                    side.window = side.positive(4 * side.window);
                }
            if (wanting)
                continue; // windows only widen until all is proven: each counts on the other
            const Index flips[] = {found.best.i - pos.first, found.best.j - neg.first};
            for (int k = 0; k < 2; ++k) {
                const Queue &queue = found.queues[k];
                sides[k].window = narrowed(k, queue, flips[k], found.highs[k], sums[k], proof);
                found.last[k] = flips[k] > 0 ? queue.costs[flips[k] - 1] : sides[k].low;
            }
            return found;
        }
    }

    // A window that would have been enough: of half the candidates, a quarter, ... as long as they prove it. Mostly
    // they do not; then the next calls do not try.
    double narrowed(int k, const Queue &queue, Index flips, double high, Sums &sums, Proof &proof) {
        Side &side = sides[k];
        if (side.rest > 0) {
            --side.rest;
            return side.window;
        }
        double window = side.window;
        side.pause = std::min(2 * side.pause + 1, kPause);
        for (Index enough = queue.size / 2; enough >= 2 * std::max<Index>(flips, 0) + kFew; enough /= 2) {
            sums.know(enough, queue.step * queue.costs[enough]);
            if (!proof.beyond(k))
                break;
            window = side.positive(queue.costs[enough + enough / 4]);
            side.pause = 0;
        }
        sums.know(queue.size, queue.step * high);
        side.rest = side.pause;
        return window;
    }

    // Share the flips out among the candidates of a class.
    static void spread(const PointCosts &costs, const Side &side, const Found &found, Index k, Index flips, double h,
                       double value, double *slope) {
        const Queue &queue = found.queues[k];
        const double last = found.last[k], low = side.low, high = found.highs[k];
        const double *end = queue.costs + queue.size, *first = std::lower_bound(queue.costs, end, last - h);
        const Index count = flips - queue.first, full = first - queue.costs;
        const Shares shares =
            count > 0 ? share_out(first, std::upper_bound(first, end, last + h) - first, count - full, last, h)
                      : Shares{last, -std::numeric_limits<double>::infinity(), h};
        write_slope(costs, side.places.get(), found.noted[k], slope,
                    [=](const double *its, double *values, Index size) {
                        share_slopes(its, size, low, high, shares, value, values);
                    });
    }

    // The pages that few calls touch.
    void give_back(const Found &found) {
        for (Index k = 0; k < 2; ++k)
            if (Side &side = sides[k]; found.noted[k] > side.members.size / 4 && found.noted[k] > kLarge) {
                side.costs = side.fresh<double>();
                side.places = side.fresh<Place>();
            }
    }

    std::array<Side, 2> sides;
    std::unique_ptr<Tables> tables;
};

} // namespace metrimax
