// The most violated rankings for measures of the top K, where every pair of examples that is in the wrong order pays
// its difference of scores.
#pragma once

#include "tables.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>
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
                    if (v > most) {
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

} // namespace metrimax
