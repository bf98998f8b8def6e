// The smoothed risk of measures that are linear in tp once the number m of predicted positives is given.
//
// Problem  R_mu = max over mixtures of labellings of  loss + <slope, scores> - prox,     0 <= prox <= mu
// Input    scores of a sample; its classes, with weights in units; u and v of  D = u[m] + v[m] tp
// Output   the value of R_mu, and loss and slope of the plane that attains it
//
// A piece is a range of m with one u and one v, the least of its range, which miss no more than a fifth of mu. Within a
// piece the prox is quadratic in the shares by which examples are called positive, centred where all shares are alike:
// every share is a ramp of the cost (ramp_sums.hpp), with one multiplier for the range of m. Between pieces it is the
// entropy (docs/smoothing.md). Pieces whose weight is below 1e-13 are ruled out many at a time, by a bound on the
// values of a range of them (Land & Doig 1960). Only costs on which one of the other pieces has a ramp are sorted; the
// search for them begins where they were at the last call.
#pragma once

#include "cell_order.hpp"
#include "count_pieces.hpp"
#include "pair_search.hpp"
#include "ramp_sums.hpp"
#include "scratch.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

namespace metrimax {

// Add values to others.
METRIMAX_CLONES inline void add(const double *METRIMAX_RESTRICT values, Index size, double *METRIMAX_RESTRICT to) {
#pragma omp simd
    for (Index k = 0; k < size; ++k)
        to[k] += values[k];
}

class CountSmoothing {
  public:
    // Weights of members are in units of which each weighs `step` of the sample; u and v are for m_low predicted
    // positives and more, in units.
    CountSmoothing(Index sample, PairClass pos, PairClass neg, double step, Index m_low, ByCount u, ByCount v,
                   Index size)
        : sample(sample), classes{pos, neg}, totals{total(pos), total(neg)}, step(step), m_low(m_low), u(u), v(v),
          counts(size) {
        if (totals[0] <= 0 || totals[1] <= 0)
            throw std::invalid_argument("CountSmoothing: expected a member or more in each class, got none");
        if (size < 1 || static_cast<double>(m_low + size - 1) > (totals[0] + totals[1]) * (1 + 1e-9))
            throw std::invalid_argument("CountSmoothing: expected u and v for one number of predicted positives or "
                                        "more, and no more than there are examples");
        for (int side = 0; side < 2; ++side) {
            Members &members = classes[side].members;
            check_members("CountSmoothing", members.at, members.size, sample);
            if (classes[side].weights == nullptr) { // weights are listed by member
                inside[side] = inside_large(members.at, members.size, sample);
                members.inside = inside[side].get();
                members.sample = sample;
            }
        }
    }

    size_t size() const { return static_cast<size_t>(sample); }

    // The value of the smoothed risk, and the loss of its plane; its slope is written.
    std::pair<double, double> smooth(const double *scores, double mu, double *slope) {
        return scratch.lend([&](State &now) { return mixture(now, scores, mu, slope); });
    }

  private:
    // One class: its costs from `low` up to `high`, ascending, and their weights, if any. The `certain` ones, below
    // `low`, are taken to flip; `rest` is the weight of those from `high` on.
    struct Window {
        double low = -kInf, high = kInf;
        std::vector<double> costs, weights; // in memory for all
        Index size = 0;
        Ramp ramp;
        double certain = 0, certain_sum = 0, rest = 0;
        double least = kInf, most = -kInf; // where there were ramps

        double certain_to() const { return certain > 0 ? low : -kInf; }
        double known_to() const { return rest > 0 ? high : kInf; }

        void see(double from, double to) {
            least = std::min(least, from);
            most = std::max(most, to);
        }
    };

    struct State {
        std::vector<CountPieces> pieces; // of the last mu, if there was one
        std::array<Window, 2> windows;
        double pad = kPad;
        double best = 0; // predicted positives of the best piece
    };

    // A piece at its optimum: its value and loss, the thresholds of its ramps in both classes.
    struct Found {
        double value, loss;
        std::array<double, 2> t;
        double h;
        bool exact; // whether all its ramps lie in the windows; if not, the value is a bound from above
    };

    static double total(const PairClass &one) {
        double sum = 0;
        for (Index k = 0; k < one.members.size; ++k)
            sum += one.weight(k);
        return sum;
    }

    std::pair<double, double> mixture(State &now, const double *scores, double mu, double *slope) const {
        const double n = totals[0] + totals[1];
        if (now.pieces.empty() || now.pieces[0].mu != mu) {
            now.pieces.clear();
            now.pieces.emplace_back(u, v, m_low, counts, totals[0], n, step, mu);
        }
        const auto [least, greatest] = range_of(scores, sample);
        const double finest = 1e-15 * std::max(-least, greatest); // a narrower ramp would be rounding
        std::vector<Found> found;
        while (true) {
            for (int side = 0; side < 2; ++side)
                look(side, scores, now.windows[side]);
            if (Search(*this, now, finest).run(found))
                break;
            now.pad = std::min(4 * now.pad, 1e3);
            for (Window &window : now.windows)
                widen(window, now.pad);
        }
        const CountPieces &pieces = now.pieces[0];
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
        std::fill_n(slope, sample, 0.0);
        for (int side = 0; side < 2; ++side) {
            write(side, scores, MeanRamp(side, found, pi), slope);
            narrow(now.windows[side], now.pad);
        }
        now.pad = std::max(kPad, 0.7 * now.pad);
        return {value, loss};
    }

    // Collect and sort a class.
    void look(int side, const double *scores, Window &window) const {
        struct Entry {
            double cost, weight;
        };
        const PairClass &one = classes[side];
        const PointCosts source{scores, one.members};
        std::vector<Entry> entries(one.weights ? static_cast<std::size_t>(one.members.size) + 1 : 0);
        window.costs.resize(static_cast<std::size_t>(one.members.size) + 1);
        window.weights.resize(entries.size());
        window.certain = window.certain_sum = 0;
        Index size = 0;
        for_blocks(one.members.extent(), [&](Index first, Index count) {
            double block[kBlock];
            source.block(first, count, block);
            if (one.weights) {
                for (Index k = 0; k < count; ++k) {
                    const double weight = one.weights[first + k], certain = block[k] < window.low ? weight : 0.0;
                    window.certain += certain;
                    window.certain_sum += certain * block[k];
                    entries[size] = {block[k], weight};
                    size += block[k] >= window.low && block[k] < window.high;
                }
                return;
            }
            const Part certain = sum_where<std::less<>>(block, block, count, window.low);
            window.certain += certain.count;
            window.certain_sum += certain.sum;
            for_inside<std::less<>>(block, count, window.low, window.high, [&](Index k, bool counts) {
                window.costs[size] = block[k];
                size += counts;
            });
        });
        window.size = size;
        double weight = window.certain;
        if (one.weights) {
            sort_by(entries.data(), size, [](const Entry &entry) { return entry.cost; });
            for (Index k = 0; k < size; ++k) {
                window.costs[k] = entries[k].cost;
                weight += window.weights[k] = entries[k].weight;
            }
        } else {
            sort_values(window.costs.data(), size);
            weight += static_cast<double>(size);
        }
        window.rest = totals[side] - weight;
        if (window.rest <= 1e-9 * totals[side])
            window.rest = 0;
        window.ramp.fill(window.costs.data(), one.weights ? window.weights.data() : nullptr, size, window.certain,
                         window.certain_sum);
    }

    // The pieces that count, by branch and bound.
    class Search {
      public:
        Search(const CountSmoothing &all, State &now, double finest)
            : all(all), now(now), pieces(now.pieces[0]), finest(finest), pos(now.windows[0].ramp),
              neg(now.windows[1].ramp), complete(holds_all(now.windows[0]) && holds_all(now.windows[1])) {}

        // Whether the windows were wide enough.
        bool run(std::vector<Found> &out) {
            out.clear();
            for (Window &window : now.windows)
                window.least = kInf, window.most = -kInf;
            const auto leaves = static_cast<Index>(pieces.leaves.size());
            const auto before = [](const CountPiece &leaf, double m) { return leaf.hi < m; };
            const auto at = std::lower_bound(pieces.leaves.begin(), pieces.leaves.end() - 1, now.best, before);
            start = at - pieces.leaves.begin();
            const Found first = solve(*at);
            best = first.exact || leaves == 1 ? first.value : -kInf;
            below = leaves > 1 ? kNegligible * pieces.temperature() : 0.0;
            if (!visit(0, 0, out))
                return false;
            const auto least = [&](const Found &one) { return one.value < best - below; };
            out.erase(std::remove_if(out.begin(), out.end(), least), out.end());
            if (out.empty()) // by rounding
                out.push_back(first);
            return true;
        }

      private:
        static constexpr double kNegligible = 32; // temperatures below the best, where a weight is below 1e-13

        static bool holds_all(const Window &window) { return window.certain == 0 && window.rest <= 0; }

        // Go through the pieces of a node, of which `first` is the first.
        bool visit(Index at, Index first, std::vector<Found> &out) {
            const CountPieces::Node &node = pieces.nodes[at];
            const Found found = solve(node.piece);
            const double most = node.size == 1 ? found.value : found.value + pieces.quadratic;
            if (most >= best - below) // to be visited again at the next call
                for (int side = 0; side < 2; ++side)
                    now.windows[side].see(found.t[side] - found.h, found.t[side]);
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

        Found solve(const CountPiece &piece) {
            const double n_pos = all.totals[0], n_neg = all.totals[1], n = n_pos + n_neg, step = all.step;
            const double h = std::max(piece.h, finest), centre = (piece.lo + piece.hi) / (2 * n);
            const double tau = h - piece.v / step;
            double b = h * centre; // of the negatives, where the multiplier is zero
            const auto called = [&](double at) {
                return n_pos - pos(tau - at, h, ends[0]).count + neg(at, h, ends[1]).count;
            };
            double m = piece.lo < piece.hi ? called(b) : -kInf, target = m;
            bool exact = true;
            if (m < piece.lo || m > piece.hi) {
                target = m < piece.lo ? piece.lo : piece.hi;
                b = guess = ramp_threshold(pos, neg, tau, h, target - n_pos, guess, ends[0], ends[1]);
                m = called(b);
                exact = complete || std::abs(m - target) <= 1e-9 * n;
                if (!exact) // what is missing lies outside the windows
                    b = m < target ? kInf : -kInf;
            }
            const Window &p = now.windows[0], &q = now.windows[1];
            const double least = std::max(q.certain_to() + h, tau - p.known_to());
            const double most = std::min(q.known_to(), tau - p.certain_to() - h);
            if (b < least || b > most) { // by duality any multiplier gives a bound, and for these all costs are known
                exact = false;
                b = b < least ? least : most;
                target = h * centre > b ? piece.hi : piece.lo;
                m = called(b);
            }
            const double a = tau - b;
            const RampSums fn = pos(a, h, ends[0]), fp = neg(b, h, ends[1]);
            const double apart = (1 - centre) * (1 - centre) * n_pos + centre * centre * n_neg;
            const double gain = fn.gain + fp.gain + h * ((1 - centre) * fn.count + centre * fp.count - apart / 2);
            Found found{0.0, piece.u + piece.v * (n_pos - fn.count), {a, b}, h, exact};
            // by duality, whatever the multiplier: what rounding did to the number of flips counts for nothing
            found.value = found.loss + step * (gain + (h * centre - b) * (target - m));
            for (int side = 0; side < 2; ++side) {
                const Window &window = now.windows[side];
                const double t = found.t[side];
                if (t > window.high && window.rest > 0) { // which would be worth t - cost at most
                    found.exact = false;
                    found.value += step * window.rest * (t - window.high);
                }
                if (t - h < window.low && window.certain > 0) { // which need not flip
                    found.exact = false;
                    found.value += step * window.certain * (h / 2 + std::max(0.0, window.low - t));
                }
            }
            return found;
        }

        const CountSmoothing &all;
        State &now;
        const CountPieces &pieces;
        const double finest;
        const Ramp &pos, &neg;
        const bool complete; // whether the windows hold all costs
        RampEnds ends[2];
        Index start = 0;
        double guess = 0, best = -kInf, below = 0;
    };

    // The mean of all ramps of a class by their weights, a piecewise linear function of the cost: 1 up to the first
    // knot, 0 from the last one on.
    class MeanRamp {
      public:
        MeanRamp(int side, const std::vector<Found> &found, const std::vector<double> &pi) {
            struct End {
                double cost, bend;
            };
            std::vector<End> ends;
            for (std::size_t k = 0; k < found.size(); ++k) {
                const double t = found[k].t[side], h = found[k].h;
                ends.push_back({t - h, -pi[k] / h});
                ends.push_back({t, pi[k] / h});
            }
            std::sort(ends.begin(), ends.end(), [](const End &x, const End &y) { return x.cost < y.cost; });
            double share = 1, rise = 0, from = ends[0].cost;
            for (const End &end : ends) {
                share += rise * (end.cost - from);
                rise += end.bend;
                from = end.cost;
                knots.push_back({from, share, rise});
            }
            low = knots.front().cost;
            high = knots.back().cost;
            begin.assign(8 * knots.size() + 2, 0);
            scale = static_cast<double>(begin.size() - 2) / (high - low);
            for (std::size_t k = 1; k < knots.size(); ++k) // a cost in a later cell than a knot is beyond it
                begin[cell(knots[k].cost) + 1] = k;
            for (std::size_t cell = 1; cell < begin.size(); ++cell)
                begin[cell] = std::max(begin[cell], begin[cell - 1]);
            knots.push_back({std::numeric_limits<double>::infinity(), 0.0, 0.0});
        }

        // At a cost from `low` up to `high`.
        double operator()(double cost) const {
            std::size_t k = begin[cell(cost)];
            k += knots[k + 1].cost <= cost; // mostly enough, and no branch
            while (knots[k + 1].cost <= cost)
                ++k;
            return std::clamp(knots[k].share + knots[k].rise * (cost - knots[k].cost), 0.0, 1.0);
        }

        double low, high;

      private:
        struct Knot {
            double cost, share, rise; // from there on
        };
        std::size_t cell(double cost) const {
            const double x = (cost - low) * scale, last = static_cast<double>(begin.size() - 2);
            return static_cast<std::size_t>(x > 0 ? std::min(x, last) : 0.0); // of a NaN, too
        }

        std::vector<Knot> knots;
        std::vector<std::size_t> begin;
        double scale;
    };

    void write(int side, const double *scores, const MeanRamp &share, double *slope) const {
        const PairClass &one = classes[side];
        const PointCosts source{scores, one.members};
        const double value = -one.members.sign * step;
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

    static constexpr double kInf = std::numeric_limits<double>::infinity();
    static constexpr double kPad = 0.05;

    const Index sample;
    std::array<std::unique_ptr<unsigned char[]>, 2> inside;
    std::array<PairClass, 2> classes;
    const std::array<double, 2> totals;
    const double step;
    const Index m_low;
    const ByCount u, v;
    const Index counts;
    Scratch<State> scratch{[] { return State(); }};
};

} // namespace metrimax
