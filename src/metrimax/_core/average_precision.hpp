// The risk of average precision: the most violated ranking, where every pair of examples that is in the wrong order
// pays its difference of scores.
//
// Problem  max over rankings of  1 - AP - 1/(n+ n-) * sum over swapped pairs of (s_i - s_j)
// Input    scores of a sample; the members of both classes, the weight of a negative over that of a positive
// Output   loss and slope of the ranking that attains it, or the risk and its rise along a line
//
// Yue, Finley, Radlinski & Joachims (2007), Algorithm 2, by divide and conquer in the place of its greedy scan.
#pragma once

#include "cell_sort.hpp"
#include "class_costs.hpp"
#include "risk.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <utility>
#include <vector>

namespace metrimax {

// max over rankings of (1 - AP) n+ - 1/n- * sum over swapped pairs of (s_k - t_j)
// Input: scores of the positives and of the negatives, both descending; ratio is the weight of a negative over that of
// a positive. Output: above[j], the number of positives above negative j.
//
// A negative j that stands below p positives contributes the sum over k > p (counted from 1, as j) of
//     c(k, j) = k/(k + (j-1) r) - k/(k + j r) - (s_k - t_j) / n-
// independently of the others (Yue et al. 2007, section 4.2). c falls with j, so the best p grows with j, and divide
// and conquer over j finds all of them in O((n+ + n-) log n-): no table of n+ x n- is looked at.
class Interleaving {
  public:
    // of all n_neg negatives the first `count`; the others are known to stand below all positives
    Interleaving(const double *pos, Index n_pos, Index n_neg, const double *neg, Index count, double ratio,
                 Index *above)
        : pos(pos), neg(neg), ratio(ratio), scale(1 / static_cast<double>(n_neg)), above(above) {
        solve(0, count, 0, n_pos);
    }

  private:
    // Negatives first <= j < last, of which each has from low to high positives above it.
    void solve(Index first, Index last, Index low, Index high) {
        while (first < last) {
            const Index j = first + (last - first) / 2;
            const double before = static_cast<double>(j) * ratio, after = before + ratio, t = neg[j];
            double sum = 0, best = 0;
            Index p = high;
            for (Index k = high; k > low; --k) { // c(k, j): the positive at k - 1 falls below the negative
                const auto rank = static_cast<double>(k);
                sum += rank * ratio / ((rank + before) * (rank + after)) - (pos[k - 1] - t) * scale;
                if (sum > best) {
                    best = sum;
                    p = k - 1;
                }
            }
            above[j] = p;
            solve(first, j, low, p);
            first = j + 1;
            low = p;
        }
    }

    const double *pos, *neg;
    double ratio, scale;
    Index *above;
};

// The same from the scores s + t * move (no move: null) of a sample whose examples are all whole units.
//
// Only the negatives at the top are sorted: in the j-th place from above (from 0), a negative gains no more than
//     max over k of  k r / ((k + j r) (k + (j+1) r))
// above any positive, which falls with j, as its score does. From where that is no more than the lowest positive's lead
// divided by n-, all negatives stay below all positives. `enough` is how many the last call needed.
class PrecisionRanking {
  public:
    PrecisionRanking(const Place *pos_members, Index n_pos, const Place *neg_members, Index n_neg, double ratio,
                     const double *scores, const double *move, double t, Index &enough)
        : n_pos(n_pos), n_neg(n_neg), ratio(ratio), move(move), pos(n_pos), neg(n_neg) {
        const auto fill = [=](std::vector<Entry> &entries, const Place *members) {
            for (std::size_t k = 0; k < entries.size(); ++k) {
                const Index i = members[k];
                const double score = move ? scores[i] + t * move[i] : scores[i];
                // A NaN has no place in an order: it would lead a sort out of its array.
                entries[k] = {score == score ? score : -std::numeric_limits<double>::infinity(), i};
            }
        };
        fill(pos, pos_members);
        fill(neg, neg_members);
        sort_by(pos.data(), n_pos, [](const Entry &entry) { return -entry.score; });
        collect(enough);
        std::vector<double> s(n_pos), top(count);
        for (Index k = 0; k < n_pos; ++k)
            s[k] = pos[k].score;
        for (Index j = 0; j < count; ++j)
            top[j] = neg[j].score;
        above.resize(count);
        below.resize(n_pos);
        Interleaving(s.data(), n_pos, n_neg, top.data(), count, ratio, above.data());
        for (Index k = 0, j = 0; k < n_pos; ++k) {
            while (j < count && above[j] <= k)
                ++j;
            below[k] = static_cast<double>(j);
        }
    }

    double loss() const {
        double kept = 0;
        for (Index k = 0; k < n_pos; ++k) {
            const auto rank = static_cast<double>(k + 1);
            kept += rank / (rank + below[k] * ratio);
        }
        return 1 - kept / static_cast<double>(n_pos);
    }

    // The value of the risk, and how fast it changes with t.
    std::pair<double, double> risk() const {
        double value = 0, rise = 0;
        visit([&](const Entry &entry, double pairs) {
            value += pairs * entry.score;
            rise += pairs * move[entry.at];
        });
        return {loss() + value / all(), rise / all()};
    }

    void slope(double *out) const {
        visit([&](const Entry &entry, double pairs) { out[entry.at] = pairs / all(); });
    }

  private:
    struct Entry {
        double score;
        Index at;
    };

    double all() const { return static_cast<double>(n_pos) * static_cast<double>(n_neg); }

    // Call f(example, swapped pairs that it gains from - those that it loses from) for all that are in one.
    template <class F> void visit(F &&f) const {
        for (Index k = 0; k < n_pos; ++k)
            f(pos[k], -below[k]);
        for (Index j = 0; j < count; ++j)
            f(neg[j], static_cast<double>(n_pos - above[j]));
    }

    // Whether a negative of this score in place j may stand above a positive.
    bool reaches(double score, Index j) const {
        const double a = static_cast<double>(j) * ratio, b = a + ratio;
        const double k = std::clamp(std::sqrt(a * b), 1.0, static_cast<double>(n_pos));
        return k * ratio / ((k + a) * (k + b)) * static_cast<double>(n_neg) > pos.back().score - score;
    }

    // Sort the negatives that may stand above a positive to the front of all.
    void collect(Index &enough) {
        const auto higher = [](const Entry &a, const Entry &b) { return a.score > b.score; };
        for (count = std::max(enough + enough / 4, Index{32});; count *= 4) {
            count = std::min(count, n_neg);
            if (count == n_neg)
                break;
            std::nth_element(neg.begin(), neg.begin() + count, neg.end(), higher);
            if (!reaches(neg[count].score, count))
                break;
        }
        sort_by(neg.data(), count, [](const Entry &entry) { return -entry.score; });
        Index low = 0, high = count;
        while (low < high) {
            const Index middle = low + (high - low) / 2;
            if (reaches(neg[middle].score, middle))
                low = middle + 1;
            else
                high = middle;
        }
        count = enough = low;
    }

    Index n_pos, n_neg, count = 0;
    double ratio;
    const double *move;
    std::vector<Entry> pos, neg;
    std::vector<Index> above;
    std::vector<double> below;
};

// That risk.
class PrecisionSearch : public Risk {
  public:
    // `ratio` is the weight of a negative over that of a positive.
    PrecisionSearch(Index sample, const Place *pos, Index n_pos, const Place *neg, Index n_neg, double ratio)
        : n(static_cast<size_t>(sample)), pos(pos), neg(neg), n_pos(n_pos), n_neg(n_neg), ratio(ratio) {
        if (n_pos == 0 || n_neg == 0)
            throw std::invalid_argument("PrecisionSearch: expected a member or more in each class, got none");
        check_members("PrecisionSearch", pos, n_pos, sample);
        check_members("PrecisionSearch", neg, n_neg, sample);
    }

    size_t size() const override { return n; }

    double plane(const double *scores, double, double *slope) override {
        std::fill_n(slope, n, 0.0);
        const PrecisionRanking worst = ranking(scores, nullptr, 0.0);
        worst.slope(slope);
        return worst.loss();
    }

    Line line(const double *scores, const double *move) override {
        return [this, scores, move](double t) { return ranking(scores, move, t).risk(); };
    }

  private:
    PrecisionRanking ranking(const double *scores, const double *move, double t) {
        Index looked_at = enough.load(std::memory_order_relaxed);
        PrecisionRanking worst(pos, n_pos, neg, n_neg, ratio, scores, move, t, looked_at);
        enough.store(looked_at, std::memory_order_relaxed);
        return worst;
    }

    const size_t n;
    const Place *const pos, *const neg;
    const Index n_pos, n_neg;
    const double ratio;
    std::atomic<Index> enough{0}; // negatives that the last ranking needed, in any thread: a hint
};

} // namespace metrimax
