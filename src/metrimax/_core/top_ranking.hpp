// The risk of measures of the first K ranks, such as NDCG: the most violated ranking, where every pair of examples that
// is in the wrong order pays its difference of scores.
//
// Problem  max over rankings of  1 - sum over ranks r <= K of D_r gain(r) - weight * sum over swapped pairs (s_i - s_j)
// Input    scores of a sample; grades, the gains of these, the discounts D of the ranks
// Output   loss and slope of the ranking that attains it, or the risk and its rise along a line
//
// Dynamic programming over the numbers of each grade in the first ranks; after Chapelle, Le & Smola (2007), who solve
// a linear assignment problem for a bound without the pairs.
#pragma once

#include "index.hpp"
#include "risk.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace metrimax {

// max over rankings of 1 - sum over ranks r <= K of D_r gain(r) - weight * sum over swapped pairs of (s_i - s_j)
// where a pair is one of different grades, i of the higher one, and swapped if j stands above i.
//
// Examples of one grade stand in the order of their scores, so the first K are known by how many of each grade they
// hold, and the rest follow in the order of their scores. Every pair that is not in the order of its scores costs
// weight |s_i - s_j| against the ranking by scores; those costs are charged, rank by rank, to the example placed: it
// passes over what is left of the other grades with higher scores. Hence dynamic programming over the numbers of each
// grade that were placed: O(n log n + n L) and L^2 steps for each of at most binomial(K + L, L) states, L grades.
class TopArgmax {
  public:
    // gains of the grades, ascending, and discounts of the first K ranks
    TopArgmax(const double *scores, const Index *grades, Index n, const double *gains, Index n_grades,
              const double *discounts, Index K, double weight)
        : scores(scores), gains(gains), discounts(discounts), L(n_grades), K(std::min(K, n)), weight(weight), order(n),
          members(n_grades), sums(n_grades), stride(n_grades) {
        std::iota(order.begin(), order.end(), Index{0});
        std::stable_sort(order.begin(), order.end(), [=](Index a, Index b) { return scores[a] > scores[b]; });
        for (Index i : order)
            members[grades[i]].push_back(i);
        for (Index g = 0; g < L; ++g) {
            sums[g].assign(1, 0.0);
            for (Index i : members[g])
                sums[g].push_back(sums[g].back() + scores[i]);
        }
        place();
        rank(grades);
    }

    // The number of states that the search keeps.
    static double states(const Index *grades, Index n, Index n_grades, Index K) {
        std::vector<Index> sizes(n_grades);
        for (Index i = 0; i < n; ++i)
            ++sizes[grades[i]];
        double product = 1;
        for (Index size : sizes)
            product *= static_cast<double>(std::min(size, K) + 1);
        return product;
    }

    double loss() const {
        double kept = 0;
        for (Index r = 0; r < K; ++r)
            kept += discounts[r] * gains[top[r]];
        return 1 - kept;
    }

    // The slope of every example: weight times (higher grades below it - lower grades above it).
    void slope(const Index *grades, double *out) const {
        std::vector<Index> above(L), below(L);
        for (Index g = 0; g < L; ++g)
            below[g] = static_cast<Index>(members[g].size());
        for (Index i : order) {
            const Index own = grades[i];
            Index balance = 0;
            for (Index g = own + 1; g < L; ++g)
                balance += below[g];
            for (Index g = 0; g < own; ++g)
                balance -= above[g];
            out[i] = weight * static_cast<double>(balance);
            --below[own];
            ++above[own];
        }
    }

  private:
    // Which grade stands at each of the first K ranks.
    void place() {
        Index size = 1;
        std::vector<Index> depth(L);
        for (Index g = L; g-- > 0;) {
            stride[g] = size;
            depth[g] = std::min(static_cast<Index>(members[g].size()), K);
            size *= depth[g] + 1;
        }
        // higher[g][i * L + h]: how many of grade h have a higher score than the i-th of grade g
        std::vector<std::vector<Index>> higher(L);
        for (Index g = 0; g < L; ++g)
            for (Index i = 0; i < depth[g]; ++i)
                for (Index h = 0; h < L; ++h) {
                    const double s = scores[members[g][i]];
                    const auto end = std::partition_point(members[h].begin(), members[h].end(),
                                                          [&](Index k) { return scores[k] > s; });
                    higher[g].push_back(end - members[h].begin());
                }
        std::vector<double> value(size);
        std::vector<std::int8_t> last(size);
        std::vector<Index> count(L);
        Index placed = 0, at = 0, best = -1;
        while (true) {
            if (placed > 0) {
                double most = -std::numeric_limits<double>::infinity();
                last[at] = -1;
                for (Index g = 0; g < L; ++g) {
                    if (count[g] == 0)
                        continue;
                    const Index i = count[g] - 1;
                    const double s = scores[members[g][i]];
                    double cost = 0;
                    for (Index h = 0; h < L; ++h) {
                        const Index to = higher[g][i * L + h];
                        if (h != g && to > count[h])
                            cost += sums[h][to] - sums[h][count[h]] - static_cast<double>(to - count[h]) * s;
                    }
                    const double v = value[at - stride[g]] - discounts[placed - 1] * gains[g] - weight * cost;
                    if (v > most || last[at] < 0) { // one of them, even where v is NaN
                        most = v;
                        last[at] = static_cast<std::int8_t>(g);
                    }
                }
                value[at] = most;
            }
            if (placed == K && (best < 0 || value[at] > value[best]))
                best = at;
            Index g = L - 1; // the next state, in lexicographic order
            while (g >= 0 && (placed == K || count[g] == depth[g])) {
                placed -= count[g];
                at -= count[g] * stride[g];
                count[g--] = 0;
            }
            if (g < 0)
                break;
            ++count[g];
            ++placed;
            at += stride[g];
        }
        top.resize(K);
        for (Index r = K; r-- > 0;) {
            top[r] = last[best];
            best -= stride[top[r]];
        }
    }

    // The whole ranking: the first K, then the rest by their scores.
    void rank(const Index *grades) {
        std::vector<Index> count(L), first;
        for (Index g : top)
            first.push_back(members[g][count[g]++]);
        std::vector<Index> seen(L), rest;
        for (Index i : order)
            if (seen[grades[i]]++ >= count[grades[i]])
                rest.push_back(i);
        order = std::move(first);
        order.insert(order.end(), rest.begin(), rest.end());
    }

    const double *scores, *gains, *discounts;
    Index L, K;
    double weight;
    std::vector<Index> order;
    std::vector<std::vector<Index>> members;
    std::vector<std::vector<double>> sums;
    std::vector<Index> stride, top;
};

// What is ranked: copies of the examples of a sample, one or more of some, each with its grade.
struct Graded {
    const Index *of, *grades;
    Index size;
};

// That risk.
class TopRankingSearch : public Risk {
  public:
    static constexpr double kMostStates = 1 << 24; // nine bytes each
    static constexpr Index kMostGrades = 100;      // that a byte can tell apart

    TopRankingSearch(Index sample, Graded ranked, const double *gains, Index n_grades, const double *discounts,
                     Index n_discounts, double weight)
        : n(static_cast<size_t>(sample)), ranked(ranked), gains(gains), discounts(discounts), n_grades(n_grades),
          K(std::min(n_discounts, ranked.size)), weight(weight) {
        expect(n_grades <= kMostGrades, "at most 100 grades", n_grades);
        within("examples", ranked.of, sample);
        within("grades", ranked.grades, n_grades);
        const double states = TopArgmax::states(ranked.grades, ranked.size, n_grades, K);
        expect(states <= kMostStates, "at most 2^24 combinations of grades in the first ranks",
               static_cast<Index>(std::min(states, 1e18)));
    }

    size_t size() const override { return n; }

    double plane(const double *scores, double, double *slope) override {
        const std::vector<double> its = copies([=](Index i) { return scores[i]; });
        std::vector<double> slopes(its.size());
        const double loss = ranking(its, slopes);
        std::fill_n(slope, n, 0.0);
        for (size_t i = 0; i < slopes.size(); ++i)
            slope[ranked.of[i]] += slopes[i];
        return loss;
    }

    Line line(const double *scores, const double *move) override {
        return [this, scores, move](double t) {
            const std::vector<double> its = copies([=](Index i) { return scores[i] + t * move[i]; });
            std::vector<double> slopes(its.size());
            double value = ranking(its, slopes), rise = 0;
            for (size_t i = 0; i < slopes.size(); ++i) {
                value += slopes[i] * its[i];
                rise += slopes[i] * move[ranked.of[i]];
            }
            return std::pair(value, rise);
        };
    }

  private:
    static void expect(bool fits, const std::string &what, Index came) {
        if (!fits)
            throw std::invalid_argument("TopRankingSearch: expected " + what + ", got " + std::to_string(came));
    }

    void within(const char *what, const Index *values, Index end) const {
        for (Index i = 0; i < ranked.size; ++i)
            if (values[i] < 0 || values[i] >= end)
                expect(false, std::string(what) + " from 0 to " + std::to_string(end - 1), values[i]);
    }

    template <class Score> std::vector<double> copies(Score score) const {
        std::vector<double> its(static_cast<size_t>(ranked.size));
        for (size_t i = 0; i < its.size(); ++i)
            its[i] = score(ranked.of[i]);
        return its;
    }

    double ranking(const std::vector<double> &scores, std::vector<double> &slopes) const {
        const TopArgmax best(scores.data(), ranked.grades, ranked.size, gains, n_grades, discounts, K, weight);
        best.slope(ranked.grades, slopes.data());
        return best.loss();
    }

    const size_t n;
    const Graded ranked;
    const double *const gains, *const discounts;
    const Index n_grades, K;
    const double weight;
};

} // namespace metrimax
