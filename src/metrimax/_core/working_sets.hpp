// Block coordinate ascent on the dual of a structural SVM, over the constraints found so far. Plain C++17, no Python.
//
// Problem   min over w of  1/2 |w|^2 + C sum_i max over k of (loss_ik + <x_ik, w>),    loss_i0 = 0 and x_i0 = 0
// Dual      max over a of  C sum_ik loss_ik a_ik - 1/2 |C sum_ik a_ik x_ik|^2,    a_i in the simplex for every i
// Input     constraints k of the examples i by their losses and sparse rows, some at a time
// Output    a and w = -C sum_ik a_ik x_ik, and the value of the dual, a lower bound of the problem
//
// A block is the multipliers of one example; k = 0 is its true output. Given the others, a block is solved exactly by
// SimplexQP on the Gram matrix of its rows. The gap is a sum over the blocks,
//     C sum_i [max over k of v_ik - sum_k a_ik v_ik],    v_ik = loss_ik + <x_ik, w>,
// so a block whose part is small is not solved, and not visited again before the others are done.
// Lacoste-Julien et al. (2013) for the blocks; Chang, Srikumar & Roth (2013) for working sets.
#pragma once

#include "csr_loops.hpp"
#include "dual_cd.hpp"
#include "simplex_qp.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

namespace metrimax {

// The constraints of one example, that of its true output first.
struct WorkingSet {
    std::vector<double> losses{0.0}, shares{1.0};
    std::vector<double> gram{0.0};      // (size, size)
    std::vector<std::uint32_t> idle{0}; // how often in a row `drop` has found it without a share
    std::vector<size_t> begin{0, 0};    // row k is the entries begin[k] .. begin[k + 1]
    std::vector<std::int32_t> features; // rising in every row
    std::vector<double> values;

    size_t size() const { return losses.size(); }

    std::int32_t length(size_t k) const { return static_cast<std::int32_t>(begin[k + 1] - begin[k]); }

    double dot(size_t k, const double *w) const {
        return csr_dot(values.data() + begin[k], features.data() + begin[k], std::int32_t{0}, length(k), w);
    }

    void add(size_t k, double c, double *w) const {
        csr_add(values.data() + begin[k], features.data() + begin[k], std::int32_t{0}, length(k), c, w);
    }

    double inner(size_t k, size_t l) const {
        double sum = 0.0;
        for (size_t a = begin[k], b = begin[l]; a < begin[k + 1] && b < begin[l + 1];) {
            if (features[a] == features[b])
                sum += values[a++] * values[b++];
            else if (features[a] < features[b])
                ++a;
            else
                ++b;
        }
        return sum;
    }

    // Whether the length of the row is a number.
    bool append(double loss, const std::int64_t *columns, const double *entries, size_t count) {
        const size_t k = size();
        losses.push_back(loss);
        shares.push_back(0.0);
        idle.push_back(0);
        features.insert(features.end(), columns, columns + count);
        values.insert(values.end(), entries, entries + count);
        begin.push_back(features.size());
        std::vector<double> wider((k + 1) * (k + 1));
        for (size_t row = 0; row < k; ++row) {
            std::copy_n(&gram[row * k], k, &wider[row * (k + 1)]);
            wider[row * (k + 1) + k] = wider[k * (k + 1) + row] = inner(row, k);
        }
        gram.swap(wider);
        return std::isfinite(gram[k * (k + 1) + k] = inner(k, k));
    }

    // Drop the constraints that were without a share more than `patience` times in a row.
    void drop(std::uint32_t patience) {
        std::vector<size_t> kept;
        for (size_t k = 0; k < size(); ++k) {
            idle[k] = k == 0 || shares[k] > 0.0 ? 0 : idle[k] + 1;
            if (idle[k] <= patience)
                kept.push_back(k);
        }
        if (kept.size() == size())
            return;
        WorkingSet left;
        left.losses.clear(), left.shares.clear(), left.idle.clear();
        left.begin.resize(1);
        left.gram.resize(kept.size() * kept.size());
        for (size_t row = 0; row < kept.size(); ++row) {
            const size_t k = kept[row];
            left.losses.push_back(losses[k]);
            left.shares.push_back(shares[k]);
            left.idle.push_back(idle[k]);
            left.features.insert(left.features.end(), features.begin() + begin[k], features.begin() + begin[k + 1]);
            left.values.insert(left.values.end(), values.begin() + begin[k], values.begin() + begin[k + 1]);
            left.begin.push_back(left.features.size());
            for (size_t column = 0; column < kept.size(); ++column)
                left.gram[row * kept.size() + column] = gram[k * size() + kept[column]];
        }
        *this = std::move(left);
    }
};

class WorkingSets {
  public:
    const double C;
    std::vector<double> w;

    WorkingSets(size_t n, size_t p, double C) : C(C), w(p, 0.0), sets(n) {}

    size_t examples() const { return sets.size(); }

    // Constraints found, those of the true outputs not among them.
    size_t size() const {
        return count([](double) { return true; });
    }
    size_t n_support() const {
        return count([](double share) { return share > 0.0; });
    }

    bool append(size_t i, double loss, const std::int64_t *columns, const double *entries, size_t size) {
        return sets[i].append(loss, columns, entries, size);
    }

    void drop(std::uint32_t patience) {
        for (WorkingSet &set : sets)
            set.drop(patience);
    }

    // Visit every example once, and then, in at most so many epochs more, those whose part of the gap is not small
    // beside `precision`. Returns the mean over the examples of what their gaps were when all were visited: if it is
    // at most `precision`, that is about the gap of this problem over C n.
    double ascend(double precision, size_t epochs) {
        const double n = static_cast<double>(sets.size()), small = kSmall * precision;
        std::vector<std::int64_t> order(sets.size());
        std::iota(order.begin(), order.end(), 0);
        const double first = epoch(order, small);
        double last = first;
        for (size_t k = 0; k < epochs && !order.empty() && last > precision * n / 2; ++k)
            last = epoch(order, small);
        return first / n;
    }

    // Sum w anew from the multipliers, so that no rounding gathers; returns the value of the dual.
    double settle() {
        std::fill(w.begin(), w.end(), 0.0);
        double gain = 0.0;
        for (const WorkingSet &set : sets)
            for (size_t k = 1; k < set.size(); ++k)
                if (set.shares[k] > 0.0) {
                    gain += C * set.losses[k] * set.shares[k];
                    set.add(k, -C * set.shares[k], w.data());
                }
        return gain - dot(w.data(), w.data(), w.size()) / 2;
    }

    // The highest value of the constraints of every example at any weights.
    void slacks(const double *weights, double *out) const {
        for (size_t i = 0; i < sets.size(); ++i) {
            out[i] = 0.0;
            for (size_t k = 1; k < sets[i].size(); ++k)
                out[i] = std::max(out[i], sets[i].losses[k] + sets[i].dot(k, weights));
        }
    }

  private:
    static constexpr double kSmall = 0.1;
    std::vector<WorkingSet> sets;
    Shuffle shuffle;
    std::vector<double> v, linear, before; // of one block

    template <class F> size_t count(F &&counts) const {
        size_t sum = 0;
        for (const WorkingSet &set : sets)
            sum += static_cast<size_t>(std::count_if(set.shares.begin() + 1, set.shares.end(), counts));
        return sum;
    }

    // Visit the examples of `order`, and leave in it those whose gap was above `small`; returns the sum of the gaps.
    double epoch(std::vector<std::int64_t> &order, double small) {
        double total = 0.0;
        size_t left = 0;
        shuffle(order.data(), order.size());
        for (const std::int64_t i : order) {
            const double gap = visit(sets[static_cast<size_t>(i)], small);
            total += gap;
            if (gap > small)
                order[left++] = i;
        }
        order.resize(left);
        return total;
    }

    // Solve the block of an example unless its gap is small; returns the gap it had, over C.
    double visit(WorkingSet &set, double small) {
        const size_t m = set.size();
        if (m == 1)
            return 0.0;
        v.assign(m, 0.0);
        double highest = 0.0, level = 0.0;
        for (size_t k = 1; k < m; ++k) {
            v[k] = set.losses[k] + set.dot(k, w.data());
            highest = std::max(highest, v[k]);
            level += set.shares[k] * v[k];
        }
        const double gap = highest - level;
        if (!(gap > small))
            return gap;
        linear = v;
        for (size_t k = 1; k < m; ++k)
            linear[k] += C * dot(&set.gram[k * m], set.shares.data(), m);
        before = set.shares;
        SimplexQP(set.gram.data(), static_cast<Index>(m), linear.data(), C, static_cast<Index>(m), set.shares.data())
            .solve(kSmall * small, static_cast<Index>(10 * m));
        for (size_t k = 1; k < m; ++k)
            if (set.shares[k] != before[k])
                set.add(k, C * (before[k] - set.shares[k]), w.data());
        return gap;
    }
};

} // namespace metrimax
