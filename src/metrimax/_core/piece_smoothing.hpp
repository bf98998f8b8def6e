// The smoothed risk of measures whose loss is linear on pieces of the labellings (piece_tree.hpp).
//
// Problem  R_mu = max over mixtures of labellings of  loss + <slope, scores> - prox,     0 <= prox <= mu
// Input    scores of a sample; its classes, with weights in units; the pieces of the loss
// Output   the value of R_mu, and loss and slope of the plane that attains it
//
// Within a piece the prox is quadratic in the shares of flips, centred in the middle of the piece: every share is a
// ramp of the cost (ramp_sums.hpp), with a multiplier for the number that the piece limits, if it limits one. Between
// pieces it is the entropy (docs/smoothing.md). Pieces whose weight is below 1e-13 are ruled out many at a time, by a
// bound on the values of a range of them (Land & Doig 1960). The others are found with costs summed up in cells first,
// and then exactly (cell_ramp.hpp); the search begins where they were at the last call.
#pragma once

#include "cell_ramp.hpp"
#include "linear_smoothing.hpp"
#include "mean_ramp.hpp"
#include "piece_tree.hpp"
#include "scratch.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

namespace metrimax {

class PieceSmoothing {
  public:
    // Weights of members are in units, of which each weighs steps[0] or steps[1] of the sample.
    PieceSmoothing(const char *who, Index sample, PairClass pos, PairClass neg, std::array<double, 2> steps)
        : classes(who, sample, pos, neg, steps) {}

    size_t size() const { return static_cast<size_t>(classes.sample); }

  protected:
    static constexpr double kInf = std::numeric_limits<double>::infinity(), kPad = 0.5;

    // The sums over a class, and where its ramps are expected: where they were at the last call, and a bit beyond.
    struct Window {
        CellRamp ramp;
        double low = -kInf, high = kInf;
    };

    struct State {
        std::optional<PieceTree> pieces; // of the last mu, if there was one
        std::array<Window, 2> windows;
        double best = 0; // where the best piece was in the range of what they limit
    };

    // A piece at its optimum: its value and loss, the thresholds and the widths of its ramps in both classes.
    struct Found {
        Index leaf;
        double value, loss;
        std::array<double, 2> t, h;
        double off; // by how much the value may be wrong, either way: nothing, once all costs about its ends are sorted
    };

    // The value of the smoothed risk, and the loss of its plane; its slope is written. make() gives the pieces, where
    // mu is not that of the last call.
    template <class Make> std::pair<double, double> mixture(const double *scores, double mu, double *slope, Make make) {
        return scratch.lend([&](State &now) {
            if (!now.pieces || now.pieces->mu != mu)
                now.pieces.emplace(make());
            return mixture(now, scores, slope);
        });
    }

    // The same, with the pieces at hand.
    std::pair<double, double> mixture(State &now, const double *scores, double *slope) const {
        const PieceTree &pieces = *now.pieces;
        const auto [least, greatest] = range_of(scores, classes.sample);
        const double finest = 1e-15 * std::max(-least, greatest); // a narrower ramp would be rounding
        for (int side = 0; side < 2; ++side) {
            Window &window = now.windows[side];
            const auto [low, high] = costs_between(side, least, greatest);
            window.ramp.fill(costs(side, scores), classes[side].weights, low, high, window.low, window.high);
        }
        const std::vector<Found> found = Search(*this, now, scores, finest).run();
        double value = found[0].value, loss = found[0].loss;
        std::vector<double> pi(found.size(), 1.0);
        if (pieces.leaves.size() > 1) {
            const double T = pieces.temperature();
            double best = -kInf, sum = 0;
            for (const Found &one : found)
                best = std::max(best, one.value);
            for (std::size_t k = 0; k < found.size(); ++k)
                sum += pi[k] = std::exp((found[k].value - best) / T);
            value = best + T * std::log(sum) - pieces.entropy;
            loss = 0;
            for (std::size_t k = 0; k < found.size(); ++k)
                loss += (pi[k] /= sum) * found[k].loss;
        }
        std::fill_n(slope, classes.sample, 0.0);
        std::vector<MeanRamp::One> ramps(found.size());
        for (int side = 0; side < 2; ++side) {
            for (std::size_t k = 0; k < found.size(); ++k)
                ramps[k] = {found[k].t[side], found[k].h[side], pi[k]};
            Window &window = now.windows[side];
            const MeanRamp share(ramps, window.ramp);
            write(side, scores, share, window.ramp.cells(), slope);
            const double pad = kPad * (share.high - share.low);
            window.low = share.low - pad;
            window.high = share.high + pad;
        }
        return {value, loss};
    }

    const SmoothedClasses classes;
    Scratch<State> scratch{[] { return State(); }};

  private:
    PointCosts costs(int side, const double *scores) const { return {scores, classes[side].members}; }

    // The least and the greatest that a cost can be, from those of the scores.
    std::pair<double, double> costs_between(int side, double least, double greatest) const {
        return classes[side].members.sign > 0 ? std::pair(least, greatest) : std::pair(-greatest, -least);
    }

    // The pieces that count, by branch and bound.
    class Search {
      public:
        Search(const PieceSmoothing &all, State &now, const double *scores, double finest)
            : all(all), sides(all.classes.sides), now(now), scores(scores), pieces(*now.pieces), finest(finest),
              pos(now.windows[0].ramp), neg(now.windows[1].ramp) {}

        std::vector<Found> run() {
            const auto leaves = static_cast<Index>(pieces.leaves.size());
            const auto before = [](const Piece &leaf, double m) { return leaf.hi < m; };
            const auto at = std::lower_bound(pieces.leaves.begin(), pieces.leaves.end() - 1, now.best, before);
            start = at - pieces.leaves.begin();
            const Found first = solve(*at, start);
            best = first.value - first.off;
            below = leaves > 1 ? kNegligible * pieces.temperature() : 0.0;
            visit(0, 0);
            if (found.empty()) // by rounding
                found.push_back(first);
            sharpen();
            return std::move(found);
        }

      private:
        static constexpr double kNegligible = 32; // temperatures below the best, where a weight is below 1e-13

        // Go through the pieces of a node, of which `first` is the first.
        void visit(Index at, Index first) {
            const PieceTree::Node &node = pieces.nodes[at];
            const Found here = solve(node.piece, first);
            if (here.value + here.off + (node.size == 1 ? 0.0 : pieces.above) < best - below)
                return;
            if (node.size == 1) {
                best = std::max(best, here.value - here.off);
                found.push_back(here);
                return;
            }
            const Index half = node.size / 2;
            if (start < first + half) { // the side of the last best first: what is found there rules out more
                visit(at + 1, first);
                visit(node.right, first + half);
            } else {
                visit(node.right, first + half);
                visit(at + 1, first);
            }
        }

        // Leave out what does not count, and solve the others again until all costs about their thresholds are sorted.
        void sharpen() {
            while (true) {
                const Found *most = &found[0];
                for (const Found &one : found)
                    if (one.value - one.off > most->value - most->off)
                        most = &one;
                best = most->value - most->off;
                now.best = pieces.leaves[most->leaf].lo;
                const auto little = [&](const Found &one) { return one.value + one.off < best - below; };
                found.erase(std::remove_if(found.begin(), found.end(), little), found.end());
                std::array<bool, 2> sorted{true, true};
                for (const Found &one : found)
                    for (int side = 0; side < 2; ++side)
                        for (const double end : {one.t[side] - one.h[side], one.t[side]})
                            sorted[side] &= now.windows[side].ramp.sorted_at(end);
                if (sorted[0] && sorted[1])
                    return;
                for (int side = 0; side < 2; ++side)
                    if (!sorted[side])
                        now.windows[side].ramp.open(all.costs(side, scores));
                for (Found &one : found) {
                    guess = one.t[1];
                    one = solve(pieces.leaves[one.leaf], one.leaf);
                }
            }
        }

        Found solve(const Piece &piece, Index leaf) {
            const std::array<double, 2> centre = pieces.centre(piece);
            const std::array<double, 2> h{std::max(piece.h[0], finest), std::max(piece.h[1], finest)};
            const double free_a = h[0] * centre[0] - piece.v / sides.steps[0];
            const double free_b = h[1] * centre[1] - piece.w / sides.steps[1]; // where the multiplier is zero
            Found here{leaf, 0.0, 0.0, {free_a, free_b}, h, 0.0};
            const double short_of =
                pieces.limited == Limited::kNothing ? 0.0 : meet(piece, free_a + free_b, here.t, h[1]);
            const RampSums fn = pos(here.t[0], h[0]), fp = neg(here.t[1], h[1]);
            here.loss = piece.u + piece.v * (sides.totals[0] - fn.count) + piece.w * (sides.totals[1] - fp.count);
            // by duality, whatever the multiplier: what rounding did to the number of flips counts for nothing
            here.value = here.loss + sides.steps[1] * (free_b - here.t[1]) * short_of;
            for (int side = 0; side < 2; ++side) {
                const RampSums &sums = side ? fp : fn;
                const double middle = centre[side], all = sides.totals[side];
                here.value += sides.steps[side] * (sums.gain + h[side] * middle * (sums.count - middle / 2 * all));
                here.off += sides.steps[side] * now.windows[side].ramp.off(here.t[side], h[side]);
            }
            return here;
        }

        // Move the thresholds, of which `tau` is the sum where both move, to where the number that is limited is in its
        // range; returns by how much it is not.
        double meet(const Piece &piece, double tau, std::array<double, 2> &t, double h) {
            const bool both = pieces.limited == Limited::kCalled;
            const double total = both ? sides.n() : sides.totals[1];
            const auto number = [&](double b) {
                const RampSums fp = neg(b, h);
                if (!both)
                    return Rising{fp.count, fp.partial / h};
                const RampSums fn = pos(tau - b, h);
                return Rising{sides.totals[0] - fn.count + fp.count, (fn.partial + fp.partial) / h};
            };
            const double m = piece.lo < piece.hi ? number(t[1]).value : -kInf;
            if (piece.lo <= m && m <= piece.hi)
                return 0.0;
            const double target = m < piece.lo ? piece.lo : piece.hi;
            double from = neg.lowest(), to = neg.highest() + h; // outside of which nothing changes any more
            if (both) {
                from = std::min(from, tau - pos.highest() - h);
                to = std::max(to, tau - pos.lowest());
            }
            t[1] = guess = where_rising(number, target, guess, h, from, to, 1e-13 * (1 + total));
            if (both)
                t[0] = tau - t[1];
            return target - number(t[1]).value;
        }

        const PieceSmoothing &all;
        const Sides &sides;
        State &now;
        const double *scores;
        const PieceTree &pieces;
        const double finest;
        const CellRamp &pos, &neg;
        std::vector<Found> found;
        Index start = 0;
        double guess = 0, best = 0, below = 0;
    };

    void write(int side, const double *scores, const MeanRamp &share, const std::int32_t *cells, double *slope) const {
        const PairClass &one = classes[side];
        const PointCosts source = costs(side, scores);
        const double value = -one.members.sign * classes.sides.steps[side];
        for_blocks(one.members.extent(), [&](Index first, Index count) {
            double block[kBlock], values[kBlock];
            source.block(first, count, block);
            share(cells + first, block, count, value, values);
            if (one.members.inside)
                add(values, count, slope + first);
            else
                for (Index k = 0; k < count; ++k)
                    slope[one.members.example(first + k)] = one.weight(first + k) * values[k];
        });
    }
};

// D = u[m] + v[m] tp for m predicted positives, in units, from m_low on.
class CountSmoothing : public PieceSmoothing {
  public:
    CountSmoothing(Index sample, PairClass pos, PairClass neg, double step, Index m_low, ByCount u, ByCount v,
                   Index size)
        : PieceSmoothing("CountSmoothing", sample, pos, neg, {step, step}), m_low(m_low), u(u), v(v), counts(size) {
        if (size < 1 || static_cast<double>(m_low + size - 1) > classes.sides.n() * (1 + 1e-9))
            throw std::invalid_argument("CountSmoothing: expected u and v for one number of predicted positives or "
                                        "more, and no more than there are examples");
    }

    std::pair<double, double> smooth(const double *scores, double mu, double *slope) {
        return mixture(scores, mu, slope, [&] { return PieceTree::by_called(classes.sides, u, v, m_low, counts, mu); });
    }

  private:
    const Index m_low;
    const ByCount u, v;
    const Index counts;
};

// D = 1 - g[j] (1 - rise fn) for j false positives, in units.
class RowSmoothing : public PieceSmoothing {
  public:
    RowSmoothing(Index sample, PairClass pos, PairClass neg, std::array<double, 2> steps, double rise, const double *g,
                 Index size)
        : PieceSmoothing("RowSmoothing", sample, pos, neg, steps), rise(rise), g(g), counts(size) {
        if (size < 1 || static_cast<double>(size - 1) > classes.sides.totals[1] * (1 + 1e-9))
            throw std::invalid_argument("RowSmoothing: expected g for one number of false positives or more, and no "
                                        "more than there are negatives");
    }

    std::pair<double, double> smooth(const double *scores, double mu, double *slope) {
        return mixture(scores, mu, slope,
                       [&] { return PieceTree::by_false_positives(classes.sides, rise, g, counts, mu); });
    }

  private:
    const double rise, *const g;
    const Index counts;
};

// D = max c - a tp - b tn over planes: tp and tn, in units, are counted from 0, where all are wrong. Planes may be
// steep; counted from the truth, rounding would be as large as tp itself.
class PlaneSmoothing : public PieceSmoothing {
  public:
    PlaneSmoothing(Index sample, PairClass pos, PairClass neg, std::array<double, 2> steps)
        : PieceSmoothing("PlaneSmoothing", sample, pos, neg, steps) {}

    // c, a and b are of `count` planes, which lie no more than mu / 10 below the loss.
    std::pair<double, double> smooth(const double *scores, double mu, double *slope, const double *c, const double *a,
                                     const double *b, Index count) {
        return scratch.lend([&](State &now) {
            now.pieces.emplace(PieceTree::of_planes(classes.sides, c, a, b, count, mu));
            return mixture(now, scores, slope);
        });
    }
};

} // namespace metrimax
