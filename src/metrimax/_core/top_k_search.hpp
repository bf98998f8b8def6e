// The risk of measures at k: the most violated labelling with exactly k positives.
//
// Problem  max over labellings with k positives of  u + v * tp + 1/n * sum over the flips of (called - y) score
// Input    scores of a sample without weights; its labels, k, u and v
// Output   loss and slope of the labelling that attains it, or the risk and its rise along a line
//
// The k examples of lowest cost = -(score + n v [y = +1]) are called positive (Joachims 2005). A
// selection, O(n), and mostly in one pass: a sample of the costs tells between which bounds the k-th lowest lies (Floyd
// & Rivest 1975). Examples below them are called positive by vector instructions. Those between, a few in a hundred,
// are noted and handled one by one.
#pragma once

#include "class_costs.hpp"
#include "mean_labelling.hpp"
#include "risk.hpp"
#include "scratch.hpp"
#include "select.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace metrimax {

// The loops over one block (see class_costs.hpp). Labels are 1 or 0, and so is what an example is called. The loops
// multiply by these: for sums over the examples called positive alone, a compiler might make branches.

METRIMAX_CLONES inline void as_numbers(const unsigned char *METRIMAX_RESTRICT y, Index size,
                                       double *METRIMAX_RESTRICT out) {
#pragma omp simd
    for (Index i = 0; i < size; ++i)
        out[i] = y[i];
}

inline double top_cost(double score, double bonus) {
    constexpr double kInf = std::numeric_limits<double>::infinity();
    const double cost = -(score + bonus);
    return cost < kInf ? cost : kInf; // a NaN comes last
}

// The examples called positive, and sums of (called - y) times y, the score and the move.
struct Called {
    double count = 0, hits = 0, value = 0, rise = 0;

    void operator+=(const Called &other) {
        count += other.count;
        hits += other.hits;
        value += other.value;
        rise += other.rise;
    }
};

// Call those positive whose costs, which are written to `costs`, are below a level.
template <bool kSlope>
METRIMAX_CLONES Called call_below(double level, const double *METRIMAX_RESTRICT scores,
                                  const double *METRIMAX_RESTRICT y, Index size, double bonus, double scale,
                                  double *METRIMAX_RESTRICT costs, double *METRIMAX_RESTRICT slope) {
    double count = 0, hits = 0, value = 0;
#pragma omp simd reduction(+ : count, hits, value)
    for (Index i = 0; i < size; ++i) {
        const double cost = top_cost(scores[i], bonus * y[i]);
        const double called = cost < level ? 1.0 : 0.0, change = called - y[i];
        costs[i] = cost;
        count += called;
        hits += change * y[i];
        value += change * scores[i];
        if (kSlope)
            slope[i] = change * scale;
    }
    return {count, hits, value, 0.0};
}

// The same at scores + t * move.
METRIMAX_CLONES inline Called call_below_on_line(double level, const double *METRIMAX_RESTRICT scores,
                                                 const double *METRIMAX_RESTRICT move, double t,
                                                 const double *METRIMAX_RESTRICT y, Index size, double bonus,
                                                 double *METRIMAX_RESTRICT costs) {
    double count = 0, hits = 0, value = 0, rise = 0;
#pragma omp simd reduction(+ : count, hits, value, rise)
    for (Index i = 0; i < size; ++i) {
        const double score = scores[i] + t * move[i], cost = top_cost(score, bonus * y[i]);
        const double called = cost < level ? 1.0 : 0.0, change = called - y[i];
        costs[i] = cost;
        count += called;
        hits += change * y[i];
        value += change * score;
        rise += change * move[i];
    }
    return {count, hits, value, rise};
}

// Call examples positive by their shares; returns the sum of (called - y) y.
METRIMAX_CLONES inline double call_by_shares(Shares share, const double *METRIMAX_RESTRICT scores,
                                             const double *METRIMAX_RESTRICT y, Index size, double bonus, double scale,
                                             double *METRIMAX_RESTRICT slope) {
    double hits = 0;
#pragma omp simd reduction(+ : hits)
    for (Index i = 0; i < size; ++i) {
        const double change = share(top_cost(scores[i], bonus * y[i])) - y[i];
        hits += change * y[i];
        slope[i] = change * scale;
    }
    return hits;
}

// Sums over examples called positive by their shares: of shares, of their squares, of (called - y) y, and of
// (called - y) times the score less `from`; and how many are called in part.
struct Mixed {
    double sum = 0, squares = 0, hits = 0, value = 0, parts = 0;

    void operator+=(const Mixed &other) {
        parts += other.parts;
        sum += other.sum;
        squares += other.squares;
        hits += other.hits;
        value += other.value;
    }
};
METRIMAX_CLONES inline Mixed mix_by_shares(Shares share, const double *METRIMAX_RESTRICT scores,
                                           const double *METRIMAX_RESTRICT y, Index size, double bonus, double scale,
                                           double from, double *METRIMAX_RESTRICT slope) {
    double sum = 0, squares = 0, hits = 0, value = 0, parts = 0;
#pragma omp simd reduction(+ : sum, squares, hits, value, parts)
    for (Index i = 0; i < size; ++i) {
        const double called = share(top_cost(scores[i], bonus * y[i])), change = called - y[i];
        sum += called;
        parts += called > 0.0 && called < 1.0 ? 1.0 : 0.0;
        squares += called * called;
        hits += change * y[i];
        value += change * (scores[i] - from);
        slope[i] = change * scale;
    }
    return {sum, squares, hits, value, parts};
}

// Add to the slopes of those called in part.
METRIMAX_CLONES inline void add_to_parts(Shares share, const double *METRIMAX_RESTRICT scores,
                                         const double *METRIMAX_RESTRICT y, Index size, double bonus, double each,
                                         double *METRIMAX_RESTRICT slope) {
#pragma omp simd
    for (Index i = 0; i < size; ++i) {
        const double called = share(top_cost(scores[i], bonus * y[i]));
        slope[i] += called > 0.0 && called < 1.0 ? each : 0.0;
    }
}

METRIMAX_CLONES inline void top_costs(const double *METRIMAX_RESTRICT scores, const double *METRIMAX_RESTRICT y,
                                      Index size, double bonus, double *METRIMAX_RESTRICT out) {
#pragma omp simd
    for (Index i = 0; i < size; ++i)
        out[i] = top_cost(scores[i], bonus * y[i]);
}

class TopSearch : public Risk {
  public:
    // Labels are copied: 0 for negative, anything else for positive.
    TopSearch(const unsigned char *labels, Index size, Index k, double u, double v)
        : n(size), k(checked(k, size)), y(ones(labels, size)), n_pos(std::count(y.begin(), y.end(), 1)), u(u),
          bonus(v * static_cast<double>(size)), scale(1 / static_cast<double>(size)) {
        const Index stride = std::max(kStride, (n + kSample - 1) / kSample);
        std::minstd_rand random; // since labels may come at regular distances
        for (Index first = 0; first + stride <= n; first += stride)
            sample.push_back(first + static_cast<Index>(random()) % stride);
    }

    size_t size() const override { return static_cast<size_t>(n); }

    double plane(const double *scores, double mu, double *slope) override {
        return scratch.lend([&](State &now) { return cut(now, scores, mu, slope); });
    }

    // The smoothed risk over the labellings with k positives, without R >= 0: the maximum over shares called in [0, 1]
    // that sum up to k of their plane less q/2 sum (called - k/n)^2, which is mu at every labelling. Returns the value
    // and the loss of the plane; its slope is written.
    std::pair<double, double> smooth(const double *scores, double mu, double *slope) {
        return scratch.lend([&](State &now) { return mixture(now, scores, mu, slope); });
    }

    Line line(const double *scores, const double *move) override {
        return [this, scores, move](double t) {
            return scratch.lend([&](State &now) { return risk(now, scores, move, t); });
        };
    }

  private:
    static constexpr Index kSample = 512, kStride = 8; // at most that many examples, and at most one in eight

    // What a search notes, and where it begins.
    struct State {
        State(Index n, double rank, double off)
            : near(new Index[static_cast<size_t>(n)]), costs(new double[static_cast<size_t>(n)]), rank(rank), off(off) {
        }

        std::unique_ptr<Index[]> near; // what the last pass noted, in order, and its costs, in any
        std::unique_ptr<double[]> costs;
        Index size = 0;
        double sampled[kSample]; // the costs of the sample, in any order
        double rank;             // of the last boundary among these,
        double off;              // and how far from it the next one is looked for
    };

    static Index checked(Index k, Index size) {
        if (k < 1 || k > size)
            throw std::invalid_argument("TopSearch: expected k from 1 to the number of examples, " +
                                        std::to_string(size) + ", got " + std::to_string(k));
        return k;
    }

    static std::vector<unsigned char> ones(const unsigned char *labels, Index size) {
        std::vector<unsigned char> y(static_cast<size_t>(size));
        std::transform(labels, labels + size, y.begin(), [](unsigned char label) { return label != 0; });
        return y;
    }

    // The loss of the labelling that attains the risk, and its slope; or, with mu > 0, of a mean of labellings that is
    // no more than mu below the risk at these scores. Without a positive risk, both are zero.
    double cut(State &now, const double *scores, double mu, double *slope) const {
        const Index most_flips = n_pos + k - 2 * std::max<Index>(0, k - (n - n_pos));
        const double h = 2 * mu * static_cast<double>(n) / static_cast<double>(std::max<Index>(most_flips, 1));
        const bool mean = h > 0;
        const Point at{*this, scores, mean ? nullptr : slope};
        const auto [called, last] = find(now, at);
        if (!(value(called) > 0)) {
            std::fill_n(slope, n, 0.0);
            return 0.0;
        }
        if (!mean)
            return loss(called.hits);
        if (!resolves(h, last))
            return cut(now, scores, 0.0, slope);
        const auto certain = static_cast<Index>(pass(now, at, last - h, last + h).count);
        const Shares shares =
            share_out(now.costs.get(), now.size, EqualWeight{}, static_cast<double>(k - certain), last, h);
        double hits = 0;
        for_blocks(n, [&](Index first, Index count) {
            double labels[kBlock];
            as_numbers(&y[first], count, labels);
            hits += call_by_shares(shares, scores + first, labels, count, bonus, scale, slope + first);
        });
        return loss(hits);
    }

    std::pair<double, double> mixture(State &now, const double *scores, double mu, double *slope) const {
        const double all = static_cast<double>(n), wanted = static_cast<double>(k);
        const double reach = std::max(wanted * (1 - wanted / all), 1e-6 * all), h = 2 * mu * all / reach;
        const auto [called, ends] = find(now, Point{*this, scores, slope});
        const double last = ends; // no lambda of C++17 can capture a binding
        if (!resolves(h, last))
            return {value(called) - mu, loss(called.hits)};
        const Shares shares = shared(now, scores, last, h);
        Mixed sums;
        for_blocks(n, [&](Index first, Index count) {
            double labels[kBlock];
            as_numbers(&y[first], count, labels);
            sums += mix_by_shares(shares, scores + first, labels, count, bonus, scale, -last, slope + first);
        });
        if (sums.parts > 0 && sums.sum != wanted)
            balance(scores, shares, (wanted - sums.sum) * scale / sums.parts, slope);
        const double plane = loss(sums.hits) + scale * (sums.value - last * (wanted - static_cast<double>(n_pos)));
        return {plane - h / 2 * scale * (sums.squares - wanted * wanted / all), loss(sums.hits)};
    }

    // The shares that sum up to k. Where the ramp holds a few examples only, these are noted and gone through.
    Shares shared(State &now, const double *scores, double last, double h) const {
        const Index few = count_where<std::less_equal<>>(now.sampled, static_cast<Index>(sample.size()), last + h) -
                          count_where<std::less<>>(now.sampled, static_cast<Index>(sample.size()), last - h);
        double wanted = static_cast<double>(k);
        if (8 * few > static_cast<Index>(sample.size())) {
            for_blocks(n, [&](Index first, Index count) {
                double labels[kBlock];
                as_numbers(&y[first], count, labels);
                top_costs(scores + first, labels, count, bonus, now.costs.get() + first);
            });
            now.size = n;
        } else {
            wanted -= pass(now, Point{*this, scores, nullptr}, last - h, last + h).count;
        }
        return share_out(now.costs.get(), now.size, EqualWeight{}, wanted, last, h);
    }

    // The slopes of those called in part share what is missing in the sum of the shares: it would be multiplied by what
    // all scores have in common.
    void balance(const double *scores, Shares shares, double each, double *slope) const {
        for_blocks(n, [&](Index first, Index count) {
            double labels[kBlock];
            as_numbers(&y[first], count, labels);
            add_to_parts(shares, scores + first, labels, count, bonus, each, slope + first);
        });
    }

    // The risk at scores + t * move, and its slope in t.
    std::pair<double, double> risk(State &now, const double *scores, const double *move, double t) const {
        const Called called = find(now, Moved{*this, scores, move, t}).first;
        const double risk = value(called);
        if (!(risk > 0))
            return {0.0, 0.0};
        return {risk, scale * called.rise};
    }

    // Examples at some scores. Where there is a slope to write, it is that of those called positive.
    struct Point {
        const TopSearch &search;
        const double *scores;
        double *slope;

        Called call_below(double level, Index first, Index count, const double *y, double *costs) const {
            const double bonus = search.bonus, scale = search.scale;
            return slope
                       ? metrimax::call_below<true>(level, scores + first, y, count, bonus, scale, costs, slope + first)
                       : metrimax::call_below<false>(level, scores + first, y, count, bonus, scale, costs, nullptr);
        }
        double score(Index i) const { return scores[i]; }
        double move_of(Index) const { return 0.0; }
        void call(Index i) const {
            if (slope)
                slope[i] = search.y[i] ? 0.0 : search.scale;
        }
    };

    // Examples at scores + t * move.
    struct Moved {
        const TopSearch &search;
        const double *scores, *move;
        double t;

        Called call_below(double level, Index first, Index count, const double *y, double *costs) const {
            return call_below_on_line(level, scores + first, move + first, t, y, count, search.bonus, costs);
        }
        double score(Index i) const { return scores[i] + t * move[i]; }
        double move_of(Index i) const { return move[i]; }
        void call(Index) const {}
    };

    double loss(double hits) const { return u + bonus * scale * (static_cast<double>(n_pos) + hits); }
    double value(const Called &called) const { return loss(called.hits) + scale * called.value; }

    double cost(double score, Index i) const { return top_cost(score, y[i] ? bonus : 0.0); }

    // Go through all examples: those with costs from `low` to `high` are noted, those below are called positive.
    template <class Examples> Called pass(State &now, const Examples &examples, double low, double high) const {
        Called called;
        const Index most = low < high ? n : k; // where all that are noted are alike, the first k will do
        Index noted = 0, *const at = now.near.get();
        double *const its = now.costs.get();
        for_blocks(n, [&](Index first, Index count) {
            double labels[kBlock], block[kBlock];
            as_numbers(&y[first], count, labels);
            called += examples.call_below(low, first, count, labels, block);
            if (noted < most)
                for_inside<std::less_equal<>>(block, count, low, high, [&](Index i, bool inside) {
                    at[noted] = first + i;
                    its[noted] = block[i];
                    noted += inside;
                });
        });
        now.size = noted;
        return called;
    }

    // Call the k examples of lowest cost positive; returns the highest of their costs, too. Those at it go by position.
    template <class Examples> std::pair<Called, double> find(State &now, const Examples &examples) const {
        Called called = look(now, examples);
        Index left = k - static_cast<Index>(called.count);
        const double last = select(now.costs.get(), now.size, left - 1);
        Index ties = left - count_where<std::less<>>(now.costs.get(), now.size, last); // that are called positive
        for (Index j = 0; j < now.size && left > 0; ++j) {
            const Index i = now.near[j];
            const double score = examples.score(i), its = cost(score, i);
            if (its < last || (its == last && ties-- > 0)) {
                --left;
                called += {1.0, static_cast<double>(y[i]), score, examples.move_of(i)};
                examples.call(i);
            }
        }
        learn(now, last);
        return {called, last};
    }

    // The pass that notes the example of the k-th lowest cost, which is about where it was in the sample the last time.
    template <class Examples> Called look(State &now, const Examples &examples) const {
        for (std::size_t j = 0; j < sample.size(); ++j)
            now.sampled[j] = cost(examples.score(sample[j]), sample[j]);
        const auto bound = [&](double at) {
            const auto size = static_cast<Index>(sample.size());
            return at < 0 ? -kInf : at < few() ? select(now.sampled, size, static_cast<Index>(at)) : kInf;
        };
        for (double reach = now.off;; reach *= 3) {
            const Called called = pass(now, examples, bound(now.rank - reach), bound(now.rank + reach));
            if (called.count < k && k <= called.count + now.size)
                return called;
        }
    }

    void learn(State &now, double last) const {
        const auto size = static_cast<Index>(sample.size());
        const auto below = static_cast<double>(count_where<std::less<>>(now.sampled, size, last)),
                   up_to = static_cast<double>(count_where<std::less_equal<>>(now.sampled, size, last));
        const double before = std::exchange(now.rank, std::min(std::max(now.rank, below), up_to));
        now.off = std::min(std::max({1.0, 0.7 * now.off, 2 * std::abs(now.rank - before)}), widest());
    }

    double few() const { return static_cast<double>(sample.size()); }

    // What a sample's rank is off by at most, but for one in a hundred samples.
    double widest() const {
        const double part = static_cast<double>(k) * scale;
        return 2 + 2.5 * std::sqrt(part * (1 - part) * few());
    }

    static constexpr double kInf = std::numeric_limits<double>::infinity();

    const Index n, k;
    const std::vector<unsigned char> y; // 1 for positives
    const Index n_pos;
    const double u, bonus, scale;
    std::vector<Index> sample; // examples whose costs tell where the k-th lowest is about
    Scratch<State> scratch{[this] { return State(n, static_cast<double>(k) * scale * few(), widest()); }};
};

} // namespace metrimax
