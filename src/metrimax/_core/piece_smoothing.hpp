// The smoothed risk of measures whose loss is linear on pieces of the labellings (piece_tree.hpp).
//
// Problem  R_mu = max over mixtures of labellings of  loss + <slope, scores> - prox,     0 <= prox <= mu
// Input    scores of a sample; its classes, with weights in units; the pieces of the loss
// Output   the value of R_mu, and loss and slope of the plane that attains it
//
// Within a piece the prox is quadratic in the shares of flips, centred in the middle of the piece: every share is a
// ramp of the cost (ramp_sums.hpp), with a multiplier for the number that the piece limits, if it limits one. Between
// pieces it is the entropy (docs/smoothing.md). Pieces whose weight is below 1e-13 are ruled out many at a time, by a
// bound on the values of a range of them (Land & Doig 1960). Costs on which none of the other pieces has a ramp are
// only counted; the search for the others begins where they were at the last call.
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
    static constexpr double kInf = std::numeric_limits<double>::infinity(), kPad = 0.05;

    // One class: its costs from `low` up to `high`, and their weights, if any. The `certain` ones, below `low`, are
    // taken to flip; `rest` is the weight of those from `high` on.
    struct Window {
        double low = -kInf, high = kInf;
        std::vector<double> costs, weights; // in memory for all
        CellRamp ramp;
        double certain = 0, rest = 0;
        double least = kInf, most = -kInf; // where there were ramps

        double certain_to() const { return certain > 0 ? low : -kInf; }
        double known_to() const { return rest > 0 ? high : kInf; }

        void see(double from, double to) {
            least = std::min(least, from);
            most = std::max(most, to);
        }
    };

    struct State {
        std::optional<PieceTree> pieces; // of the last mu, if there was one
        std::array<Window, 2> windows;
        double pad = kPad;
        double best = 0; // where the best piece was in the range of what they limit
    };

    // A piece at its optimum: its value and loss, the thresholds and the widths of its ramps in both classes.
    struct Found {
        Index leaf;
        double value, loss;
        std::array<double, 2> t, h;
        bool exact; // whether all its ramps lie in the windows; if not, the value is a bound from above
    };

    // The value of the smoothed risk, and the loss of its plane; its slope is written. make() gives the pieces, where
    // mu is not that of the last call.
    template <class Make>
    std::pair<double, double> mixture(const double *scores, double mu, double *slope, Make make) {
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
        std::vector<Found> found;
        while (true) {
            for (int side = 0; side < 2; ++side)
                look(side, scores, std::max(pieces.least_h[side], finest), now.windows[side]);
            if (Search(*this, now, finest).run(found))
                break;
            now.pad = std::min(4 * now.pad, 1e3);
            for (Window &window : now.windows)
                widen(window, now.pad);
        }
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
            write(side, scores, MeanRamp(ramps), slope);
            narrow(now.windows[side], now.pad);
        }
        now.pad = std::max(kPad, 0.7 * now.pad);
        return {value, loss};
    }

    const SmoothedClasses classes;
    Scratch<State> scratch{[] { return State(); }};

  private:
    // Collect a class.
    void look(int side, const double *scores, double least_h, Window &window) const {
        const PairClass &one = classes[side];
        const PointCosts source{scores, one.members};
        window.costs.resize(static_cast<std::size_t>(one.members.size) + 1);
        window.weights.resize(one.weights ? window.costs.size() : 0);
        double certain_sum = 0, weight = 0;
        window.certain = 0;
        Index size = 0;
        for_blocks(one.members.extent(), [&](Index first, Index count) {
            double block[kBlock];
            source.block(first, count, block);
            if (one.weights) {
                for (Index k = 0; k < count; ++k) {
                    const double own = one.weights[first + k];
                    const double certain = block[k] < window.low ? own : 0.0;
                    const bool inside = block[k] >= window.low && block[k] < window.high;
                    window.certain += certain;
                    certain_sum += certain * block[k];
                    window.costs[size] = block[k];
                    window.weights[size] = own;
                    weight += inside ? own : 0.0;
                    size += inside;
                }
                return;
            }
            const Part certain = sum_where<std::less<>>(block, block, count, window.low);
            window.certain += certain.count;
            certain_sum += certain.sum;
            for_inside<std::less<>>(block, count, window.low, window.high, [&](Index k, bool counts) {
                window.costs[size] = block[k];
                size += counts;
            });
        });
        if (!one.weights)
            weight = static_cast<double>(size);
        const double all = classes.sides.totals[side];
        window.rest = all - window.certain - weight;
        if (window.rest <= 1e-9 * all)
            window.rest = 0;
        window.ramp.fill(window.costs.data(), one.weights ? window.weights.data() : nullptr, size, window.certain,
                         certain_sum, least_h);
    }

    // The pieces that count, by branch and bound.
    class Search {
      public:
        Search(const PieceSmoothing &all, State &now, double finest)
            : sides(all.classes.sides), now(now), pieces(*now.pieces), finest(finest), pos(now.windows[0].ramp),
              neg(now.windows[1].ramp), complete(holds_all(now.windows[0]) && holds_all(now.windows[1])) {}

        // Whether the windows were wide enough.
        bool run(std::vector<Found> &out) {
            out.clear();
            for (Window &window : now.windows)
                window.least = kInf, window.most = -kInf;
            const auto leaves = static_cast<Index>(pieces.leaves.size());
            const auto before = [](const Piece &leaf, double m) { return leaf.hi < m; };
            const auto at = std::lower_bound(pieces.leaves.begin(), pieces.leaves.end() - 1, now.best, before);
            start = at - pieces.leaves.begin();
            const Found first = solve(*at, start);
            best = first.exact || leaves == 1 ? first.value : -kInf;
            below = leaves > 1 ? kNegligible * pieces.temperature() : 0.0;
            if (!visit(0, 0, out))
                return false;
            if (out.empty()) // by rounding
                out.push_back(first);
            return sharpen(out);
        }

      private:
        static constexpr double kNegligible = 32; // temperatures below the best, where a weight is below 1e-13

        static bool holds_all(const Window &window) { return window.certain == 0 && window.rest <= 0; }

        // Go through the pieces of a node, of which `first` is the first.
        bool visit(Index at, Index first, std::vector<Found> &out) {
            const PieceTree::Node &node = pieces.nodes[at];
            const Found found = solve(node.piece, first);
            const double most = node.size == 1 ? found.value : found.value + pieces.above;
            if (most >= best - below) // to be visited again at the next call
                for (int side = 0; side < 2; ++side)
                    now.windows[side].see(found.t[side] - found.h[side], found.t[side]);
            if (node.size == 1) {
                if (found.value < best - below)
                    return true;
                if (!found.exact)
                    return false;
                if (found.value > best) {
                    best = found.value;
                    now.best = node.piece.lo;
                }
                out.push_back(found);
                return true;
            }
            if (most < best - below)
                return true;
            const Index half = node.size / 2;
            if (start < first + half) // the side of the last best first: what is found there rules out more
                return visit(at + 1, first, out) && visit(node.right, first + half, out);
            return visit(node.right, first + half, out) && visit(at + 1, first, out);
        }

        // Leave out what does not count, and solve the others again until all costs about their thresholds are sorted.
        bool sharpen(std::vector<Found> &out) {
            while (true) {
                for (const Found &one : out)
                    best = std::max(best, one.value);
                const auto little = [&](const Found &one) { return one.value < best - below; };
                if (!std::all_of(out.begin(), out.end(), little))
                    out.erase(std::remove_if(out.begin(), out.end(), little), out.end());
                bool sorted = true;
                for (const Found &one : out)
                    for (int side = 0; side < 2; ++side)
                        for (const double end : {one.t[side] - one.h[side], one.t[side]})
                            sorted &= now.windows[side].ramp.sorted_at(end);
                if (sorted)
                    return true;
                best = -kInf;
                for (Window &window : now.windows)
                    window.ramp.open();
                for (Found &one : out) {
                    guess = one.t[1];
                    one = solve(pieces.leaves[one.leaf], one.leaf);
                    if (!one.exact)
                        return false;
                }
            }
        }

        Found solve(const Piece &piece, Index leaf) {
            const std::array<double, 2> centre = pieces.centre(piece);
            const std::array<double, 2> h{std::max(piece.h[0], finest), std::max(piece.h[1], finest)};
            const double free_a = h[0] * centre[0] - piece.v / sides.steps[0];
            const double free_b = h[1] * centre[1] - piece.w / sides.steps[1]; // where the multiplier is zero
            Found found{leaf, 0.0, 0.0, {free_a, free_b}, h, true};
            const double multiple = pieces.limited == Limited::kNothing ? 0.0 : meet(piece, free_a + free_b, found);
            const RampSums fn = pos(found.t[0], h[0]), fp = neg(found.t[1], h[1]);
            found.loss = piece.u + piece.v * (sides.totals[0] - fn.count) + piece.w * (sides.totals[1] - fp.count);
            // by duality, whatever the multiplier: what rounding did to the number of flips counts for nothing
            found.value = found.loss + sides.steps[1] * (free_b - found.t[1]) * multiple;
            for (int side = 0; side < 2; ++side) {
                const RampSums &sums = side ? fp : fn;
                const double t = found.t[side], middle = centre[side];
                double gain = sums.gain + h[side] * middle * (sums.count - middle / 2 * sides.totals[side]);
                const Window &window = now.windows[side];
                if (t > window.high && window.rest > 0) { // which would be worth t - cost at most
                    found.exact = false;
                    gain += window.rest * (t - window.high);
                }
                if (t - h[side] < window.low && window.certain > 0) { // which need not flip
                    found.exact = false;
                    gain += window.certain * (h[side] / 2 + std::max(0.0, window.low - t));
                }
                found.value += sides.steps[side] * gain;
            }
            return found;
        }

        // Move the thresholds, of which `tau` is the sum where both move, to where the number that is limited is in its
        // range; returns by how much it is not.
        double meet(const Piece &piece, double tau, Found &found) {
            const bool both = pieces.limited == Limited::kCalled;
            const double free = found.t[1], h = found.h[1], all = both ? sides.n() : sides.totals[1];
            const auto number = [&](double b) {
                const RampSums fp = neg(b, h);
                if (!both)
                    return Rising{fp.count, fp.partial / h};
                const RampSums fn = pos(tau - b, h);
                return Rising{sides.totals[0] - fn.count + fp.count, (fn.partial + fp.partial) / h};
            };
            const Window &p = now.windows[0], &q = now.windows[1];
            double b = free, m = piece.lo < piece.hi ? number(b).value : -kInf, target = m;
            if (m < piece.lo || m > piece.hi) {
                target = m < piece.lo ? piece.lo : piece.hi;
                double from = neg.lowest(), to = neg.highest() + h; // outside of which nothing changes any more
                if (both) {
                    from = std::min(from, tau - pos.highest() - h);
                    to = std::max(to, tau - pos.lowest());
                }
                b = guess = where_rising(number, target, guess, h, from, to, 1e-13 * (1 + all));
                m = number(b).value;
                found.exact = complete || std::abs(m - target) <= 1e-9 * all;
                if (!found.exact) // what is missing lies outside the windows
                    b = m < target ? kInf : -kInf;
            }
            double least = q.certain_to() + h, most = q.known_to();
            if (both) {
                least = std::max(least, tau - p.known_to());
                most = std::min(most, tau - p.certain_to() - h);
            }
            if (b < least || b > most) { // by duality any multiplier gives a bound, and for these all costs are known
                found.exact = false;
                b = b < least ? least : most;
                target = free > b ? piece.hi : piece.lo;
                m = number(b).value;
            }
            found.t[1] = b;
            if (both)
                found.t[0] = tau - b;
            return target - m;
        }

        const Sides &sides;
        State &now;
        const PieceTree &pieces;
        const double finest;
        const CellRamp &pos, &neg;
        const bool complete; // whether the windows hold all costs
        Index start = 0;
        double guess = 0, best = -kInf, below = 0;
    };

    void write(int side, const double *scores, const MeanRamp &share, double *slope) const {
        const PairClass &one = classes[side];
        const PointCosts source{scores, one.members};
        const double value = -one.members.sign * classes.sides.steps[side];
        for_blocks(one.members.extent(), [&](Index first, Index count) {
            double block[kBlock], full[kBlock];
            source.block(first, count, block);
            step_down(block, count, share.low, value, full);
            if (one.members.inside)
                add(full, count, slope + first);
            else
                for (Index k = 0; k < count; ++k)
                    slope[one.members.example(first + k)] = one.weight(first + k) * full[k];
            for_inside<std::less<>>(block, count, share.low, share.high, [&](Index k, bool counts) {
                if (counts)
                    slope[one.members.example(first + k)] = value * one.weight(first + k) * share(block[k]);
            });
        });
    }

    // Where the ramps were, and a bit more.
    static void narrow(Window &window, double pad) {
        const double width = window.most - window.least;
        window.low = window.least - pad * width;
        window.high = window.most + pad * width;
    }
    static void widen(Window &window, double pad) {
        const double width = pad < 100 ? pad * (window.high - window.low) : kInf;
        window.low = width < kInf ? window.low - width : -kInf;
        window.high = width < kInf ? window.high + width : kInf;
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
        return mixture(scores, mu, slope,
                       [&] { return PieceTree::by_called(classes.sides, u, v, m_low, counts, mu); });
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
        return mixture(scores, mu, slope, [&] {
            return PieceTree::by_false_positives(classes.sides, rise, g, counts, mu);
        });
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
