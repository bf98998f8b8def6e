// The most violated labelling with exactly k positives, for a loss u + v * tp: the k examples of lowest cost,
//     cost = -(score + n v [y = +1]),
// are called positive. A selection, O(n), in a sample without weights, and mostly in one pass: a sample of the costs
// tells between which bounds the k-th lowest lies; what is below them is called positive by vector instructions, and
// what is between, a few in a hundred, is noted and gone through one by one.
#pragma once

#include "select.hpp"
#include "shares.hpp"

#include <memory>
#include <random>
#include <utility>

namespace metrimax {

// The loops over one block (see scan.hpp), in which a label is 1 or 0, and so is what an example is called. They
// multiply with these: of sums over what is called positive alone a compiler may make branches.

METRIMAX_CLONES inline void as_numbers(const unsigned char *METRIMAX_RESTRICT y, Index size,
                                       double *METRIMAX_RESTRICT out) {
#pragma omp simd
    for (Index i = 0; i < size; ++i)
        out[i] = y[i];
}

inline double top_cost(double score, double bonus) {
    constexpr double kInf = std::numeric_limits<double>::infinity();
    const double cost = -(score + bonus);
    return cost < kInf ? cost : kInf; // what is no number comes last
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

class TopSearch {
  public:
    TopSearch(const bool *y, Index size, Index k, double u, double v)
        : y(reinterpret_cast<const unsigned char *>(y)), n(size), n_pos(std::count(y, y + size, true)), k(k), u(u),
          bonus(v * static_cast<double>(size)), scale(1 / static_cast<double>(size)), near(new Index[size]),
          costs(new double[size]) {
        const Index stride = std::max(kStride, (n + kSample - 1) / kSample);
        std::minstd_rand random; // since labels may come at regular distances
        for (Index first = 0; first + stride <= n; first += stride)
            sample.push_back(first + static_cast<Index>(random()) % stride);
        rank = static_cast<double>(k) * scale * few();
        off = widest();
    }

    // The loss of the labelling that attains the risk, and its slope; or, with mu > 0, of a mean of labellings that is
    // no more than mu below the risk at these scores. Without a positive risk, both are zero.
    double cut(const double *scores, double mu, double *slope) {
        const Index most_flips = n_pos + k - 2 * std::max<Index>(0, k - (n - n_pos));
        const double h = 2 * mu * static_cast<double>(n) / static_cast<double>(std::max<Index>(most_flips, 1));
        const bool mean = h > 0;
        const Point at{*this, scores, mean ? nullptr : slope};
        const auto [called, last] = find(at);
        if (!(value(called) > 0)) {
            std::fill_n(slope, n, 0.0);
            return 0.0;
        }
        if (!mean)
            return loss(called.hits);
        if (!resolves(h, last))
            return cut(scores, 0.0, slope);
        const auto certain = static_cast<Index>(pass(at, last - h, last + h).count);
        const Shares shares = share_out(costs.get(), size, k - certain, last, h);
        double hits = 0;
        for_blocks(n, [&](Index first, Index count) {
            double labels[kBlock];
            as_numbers(y + first, count, labels);
            hits += call_by_shares(shares, scores + first, labels, count, bonus, scale, slope + first);
        });
        return loss(hits);
    }

    // The risk at scores + t * move, and its slope in t.
    std::pair<double, double> risk(const double *scores, const double *move, double t) {
        const Called called = find(Line{*this, scores, move, t}).first;
        const double risk = value(called);
        if (!(risk > 0))
            return {0.0, 0.0};
        return {risk, scale * called.rise};
    }

  private:
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
    struct Line {
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
    template <class Examples> Called pass(const Examples &examples, double low, double high) {
        Called called;
        const Index most = low < high ? n : k; // where all that are noted are alike, the first k will do
        Index noted = 0, *const at = near.get();
        double *const its = costs.get();
        for_blocks(n, [&](Index first, Index count) {
            double labels[kBlock], block[kBlock];
            as_numbers(y + first, count, labels);
            called += examples.call_below(low, first, count, labels, block);
            if (noted < most)
                for_inside<std::less_equal<>>(block, count, low, high, [&](Index i, bool inside) {
                    at[noted] = first + i;
                    its[noted] = block[i];
                    noted += inside;
                });
        });
        size = noted;
        return called;
    }

    // Call the k examples of lowest cost positive; returns the highest of their costs, too. Those at it go by position.
    template <class Examples> std::pair<Called, double> find(const Examples &examples) {
        Called called = look(examples);
        Index left = k - static_cast<Index>(called.count);
        const double last = select(costs.get(), size, left - 1);
        Index ties = left - count_where<std::less<>>(costs.get(), size, last); // that are called positive
        for (Index j = 0; j < size && left > 0; ++j) {
            const Index i = near[j];
            const double score = examples.score(i), its = cost(score, i);
            if (its < last || (its == last && ties-- > 0)) {
                --left;
                called += {1.0, static_cast<double>(y[i]), score, examples.move_of(i)};
                examples.call(i);
            }
        }
        learn(last);
        return {called, last};
    }

    // The pass that notes the example of the k-th lowest cost, which is about where it was in the sample the last time.
    template <class Examples> Called look(const Examples &examples) {
        for (std::size_t j = 0; j < sample.size(); ++j)
            sampled[j] = cost(examples.score(sample[j]), sample[j]);
        const auto bound = [&](double at) {
            const auto size = static_cast<Index>(sample.size());
            return at < 0 ? -kInf : at < few() ? select(sampled, size, static_cast<Index>(at)) : kInf;
        };
        for (double reach = off;; reach *= 3) {
            const Called called = pass(examples, bound(rank - reach), bound(rank + reach));
            if (called.count < k && k <= called.count + size)
                return called;
        }
    }

    void learn(double last) {
        const auto size = static_cast<Index>(sample.size());
        const auto below = static_cast<double>(count_where<std::less<>>(sampled, size, last)),
                   up_to = static_cast<double>(count_where<std::less_equal<>>(sampled, size, last));
        const double before = std::exchange(rank, std::min(std::max(rank, below), up_to));
        off = std::min(std::max({1.0, 0.7 * off, 2 * std::abs(rank - before)}), widest());
    }

    double few() const { return static_cast<double>(sample.size()); }

    // What a sample's rank is off by at most, but for one in a hundred samples.
    double widest() const {
        const double part = static_cast<double>(k) * scale;
        return 2 + 2.5 * std::sqrt(part * (1 - part) * few());
    }

    static constexpr double kInf = std::numeric_limits<double>::infinity();
    static constexpr Index kSample = 512, kStride = 8; // at most that many examples, and at most one in eight

    const unsigned char *y;
    Index n, n_pos, k;
    double u, bonus, scale;
    std::unique_ptr<Index[]> near; // what the last pass noted, in order, and its costs, in any
    std::unique_ptr<double[]> costs;
    Index size = 0;
    std::vector<Index> sample;
    double sampled[kSample]; // the costs of the sample, in any order
    double rank = 0;         // of the last boundary among these,
    double off = 0;          // and how far from it the next one is looked for
};

} // namespace metrimax
