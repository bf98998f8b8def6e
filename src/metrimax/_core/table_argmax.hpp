// The most violated labelling of measures of the contingency table, without looking at every table.
//
// Problem  max over (i, j) of  D(i, j) + P[i] + N[j],    P[i] = -step * sum(cost[:i]), N likewise (both concave)
// Input    the losses D by their structure; the costs of both classes, ascending
// Output   the best i and j, and the value there
//
// The cost of a flip is the margin it gives up: cost = y * score, in both classes. With each class sorted by ascending
// cost, the best labelling with a given table flips the first i positives (false negatives) and the first j negatives
// (false positives): Joachims (2005), Algorithm 2. i and j count units: examples, or steps of weight. Only candidates
// are sorted: the `first` units of a class flip in every optimum and stand before them with the sum of their costs.
#pragma once

#include "clones.hpp"
#include "index.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

namespace metrimax {

// The best table.
struct Best {
    double value = -std::numeric_limits<double>::infinity();
    Index i = 0, j = 0;
};

// One class: the costs of its candidates, ascending, and what flips before them.
struct Queue {
    const double *costs;
    Index size;
    Index first;
    double first_sum;
    double step; // weight of one unit divided by n

    std::vector<double> prefix() const {
        std::vector<double> sums(size + 1);
        sums[0] = -step * first_sum;
        for (Index k = 0; k < size; ++k)
            sums[k + 1] = sums[k] - step * costs[k];
        return sums;
    }

    // Where these sums are greatest: flips of negative cost gain.
    Index peak() const { return std::lower_bound(costs, costs + size, 0.0) - costs; }
};

// The first k from low to high for which gains(k), true up to somewhere and not after it, is false; high if there is
// none. The search begins at x and goes on in steps that double.
template <class Gains> Index gallop(Index x, Index low, Index high, Gains gains) {
    Index a = low, b = high; // the answer is the first k in [a, b] with !gains(k), or b
    if (x < high && gains(x)) {
        a = x + 1;
        for (Index width = 1; a + width < high; width *= 2) {
            if (!gains(a + width - 1)) {
                b = a + width - 1;
                break;
            }
            a += width;
        }
    } else {
        b = x;
        for (Index width = 1; b - width >= low; width *= 2) {
            if (gains(b - width)) {
                a = b - width + 1;
                break;
            }
            b -= width;
        }
    }
    while (a < b) {
        const Index middle = a + (b - a) / 2;
        if (gains(middle))
            a = middle + 1;
        else
            b = middle;
    }
    return a;
}

// One of the coefficients u and v below, for every number of predicted positives. Of F_beta u is the same for all, of
// the error rate v: one number, read again and again (stride 0), in the place of a vector as long as the sample.
struct ByCount {
    const double *values;
    Index stride;

    double operator[](Index k) const { return values[k * stride]; }
    ByCount from(Index first) const { return {values + first * stride, stride}; }
};

// By how much the rise from k to k + span exceeds that from k - span to k, at most and but for rounding.
METRIMAX_CLONES inline double most_bend(const double *values, Index size, Index span) {
    constexpr double kRounding = 1e-15;
    double most = -std::numeric_limits<double>::infinity();
#pragma omp simd reduction(max : most)
    for (Index k = span; k < size - span; ++k) {
        const double bend = values[k - span] + values[k + span] - 2 * values[k] - kRounding * std::abs(values[k]);
        most = bend > most ? bend : most;
    }
    return most;
}

// Whether values by count, `size` of them, never fall and rise less and less, but for rounding. Where rounding hides it
// between neighbours, values farther apart show it.
inline bool bent(ByCount values, Index size) {
    if (values.stride != 1)
        return values.stride == 0; // one number for all; others do not occur
    if (!std::is_sorted(values.values, values.values + size))
        return false;
    for (Index span = 1; 2 * span < size; span *= 8)
        if (most_bend(values.values, size, span) > 0)
            return false;
    return true;
}

// For measures that are linear in tp once the number m = tp + fp of predicted positives is given:
//     D = u[m] + v[m] * tp,  m_low <= m <= m_high.
// For fixed m, flipping one more pair (i, j) -> (i+1, j+1) gains -v[m] - step * (cost_i + cost_j), which never
// grows with i; the best i is where that turns non-positive.
class CountScan {
  public:
    // In: the two queues (with equal steps) and their prefix sums, the number of positive units, u and v indexed by
    // m - m_low, in units.
    CountScan(const Queue &pos, const Queue &neg, const std::vector<double> &P, const std::vector<double> &N,
              Index n_pos, Index m_low, Index m_high, ByCount u, ByCount v)
        : pos(pos), neg(neg), P(P), N(N), n_pos(n_pos), m_low(m_low), u(u), v(v), shift(n_pos - pos.first + neg.first),
          from(std::max(m_low, shift - pos.size)), to(std::min(m_high, shift + neg.size)) {}

    // Visit(m, the best value and its i = fn, j = fp) for every m. The search for the next m starts at the i of the
    // last one and gallops: O(n) steps in practice, O(n log n) at worst.
    template <class Visit> void visit(Visit visit) const {
        Index x = 0;
        for (Index m = from; m <= to; ++m) {
            x = find(m, x);
            visit(m, value(m, x), pos.first + x, neg.first + x + m - shift);
        }
    }

    // The best of all m.
    Best best() const {
        Best best;
        visit([&](Index, double value, Index i, Index j) {
            if (value > best.value)
                best = {value, i, j};
        });
        return best;
    }

    // The same where u and v never fall and rise less and less (see `bent`), as for F_beta. Then the best i never grows
    // with m, and the best tables of two m bound the values of all tables between them. Ranges of m that cannot hold a
    // better table than the best so far are left out, the others divided: O(log n) of them in practice.
    Best best_bent() const {
        Best best;
        if (from > to)
            return best;
        const Known first{from, find(from, 0)}, last{to, find(to, 0)};
        offer(first, best);
        offer(last, best);
        divide(first, last, best);
        return best;
    }

  private:
    // With m = shift - x + y, where x and y are local to the queues: the range of x.
    Index low(Index m) const { return std::max<Index>(0, shift - m); }
    Index high(Index m) const { return std::min(pos.size, neg.size + shift - m); }
    bool gains(Index m, Index x) const {
        return -v[m - m_low] - pos.step * (pos.costs[x] + neg.costs[x + m - shift]) > 0;
    }
    double value(Index m, Index x) const { return u[m - m_low] + v[m - m_low] * tp(x) + P[x] + N[x + m - shift]; }

    Index find(Index m, Index x) const {
        const Index least = low(m), most = high(m);
        return gallop(std::clamp(x, least, most), least, most, [&](Index k) { return gains(m, k); });
    }

    // The best x of an m.
    struct Known {
        Index m, x;
    };

    void offer(Known at, Best &best) const {
        if (const double here = value(at.m, at.x); here > best.value)
            best = {here, pos.first + at.x, neg.first + at.x + at.m - shift};
    }

    // Look for better tables between these two.
    void divide(Known left, Known right, Best &best) const {
        if (right.m - left.m <= 1 || !(most_between(left, right) > best.value))
            return;
        const Index m = left.m + (right.m - left.m) / 2;
        Index least = std::max(low(m), right.x), most = std::min(high(m), left.x);
        while (least < most) {
            const Index x = least + (most - least) / 2;
            if (gains(m, x))
                least = x + 1;
            else
                most = x;
        }
        const Known middle{m, least};
        offer(middle, best);
        divide(left, middle, best);
        divide(middle, right, best);
    }

    // No table is worth more whose m is between these two. Each of the two gives a bound, by the tangents of P, N, u
    // and v there, all of which bend down; what is left of the change in x is small, since x is the best one at either
    // end.
    double most_between(Known left, Known right) const {
        const double range = static_cast<double>(left.x - right.x);
        const double most = static_cast<double>(right.m - left.m - 1);
        // At most so many steps away, and at least one, a line has risen by that much.
        const auto farthest = [=](double rise) { return rise > 0 ? rise * most : rise; };
        // How u + v tp rises from m to m + 1, and how much of that may be rounding.
        const auto rises = [&](Index m, double tp) {
            const Index k = m - m_low;
            const double noise = 1e-15 * (std::abs(u[k + 1]) + std::abs(v[k + 1]) * tp);
            return std::make_pair(u[k + 1] - u[k] + (v[k + 1] - v[k]) * tp, noise);
        };
        const double tp_left = tp(left.x), tp_right = tp(right.x);
        const double n_left = pos.step * neg_cost(left.x + left.m - shift);
        const double n_right = pos.step * neg_cost(right.x + right.m - shift);
        const auto [rise_left, noise_left] = rises(left.m, tp_left);
        const auto [rise_right, noise_right] = rises(right.m - 1, tp_right);
        double from_left = value(left.m, left.x) + farthest(rise_left + noise_left - n_left);
        double from_right = value(right.m, right.x) + farthest(n_right - rise_right + noise_right);
        if (left.x > right.x) {
            const double fewer = v[right.m - 1 - m_low] + pos.step * pos.costs[left.x - 1] + n_left;
            const double more = -(v[left.m + 1 - m_low] + pos.step * pos.costs[right.x] + n_right);
            from_left += range * std::max(0.0, fewer);
            from_right += range * std::max(0.0, more);
        }
        return std::min(from_left, from_right);
    }

    double tp(Index x) const { return static_cast<double>(n_pos - pos.first - x); }

    // The cost of the y-th negative, or of the last one.
    double neg_cost(Index y) const { return neg.size > 0 ? neg.costs[std::min(y, neg.size - 1)] : 0.0; }

    const Queue &pos, &neg;
    const std::vector<double> &P, &N;
    Index n_pos, m_low;
    ByCount u, v;
    Index shift, from, to;
};

// The greatest loss of such a measure, and how much the loss rises by one more mistake of either kind, over all tables.
struct CountBounds {
    double top, fn_least, fn_most, fp_least, fp_most;
};

// In: u and v for m from m_low on, `size` of them. For a given m all is linear in tp, so the ends of its range tell.
METRIMAX_CLONES inline CountBounds count_bounds(ByCount u, ByCount v, double n_pos, double n_neg, double m_low,
                                                Index size) {
    constexpr Index kPart = Index{1} << 20; // counted by an int, which is what vector instructions convert
    constexpr double kInf = std::numeric_limits<double>::infinity();
    const auto lower = [](double a, double b) { return a < b ? a : b; };
    const auto higher = [](double a, double b) { return a > b ? a : b; };
    double top = -kInf, fn_least = kInf, fn_most = -kInf, fp_least = kInf, fp_most = -kInf;
    for (Index first = 0; first < size; first += kPart) {
        const ByCount up = u.from(first), vp = v.from(first);
        const double start = m_low + static_cast<double>(first);
        const int here = static_cast<int>(std::min(kPart, size - first));
#pragma omp simd reduction(max : top)
        for (int k = 0; k < here; ++k) {
            const double m = start + k;
            const double ends = higher(vp[k] * higher(0.0, m - n_neg), vp[k] * lower(m, n_pos));
            top = higher(top, up[k] + ends);
        }
        const int pairs = static_cast<int>(std::min(kPart, size - 1 - first)); // of m and m + 1
#pragma omp simd reduction(max : fn_most, fp_most) reduction(min : fn_least, fp_least)
        for (int k = 0; k < pairs; ++k) {
            const double m = start + k, least = higher(0.0, m + 1 - n_neg), most = lower(m + 1, n_pos);
            const double du = up[k + 1] - up[k], dv = vp[k + 1] - vp[k];
            const double fn = -du - vp[k]; // from m + 1 and tp to m and tp - 1
            const double fn_a = fn - dv * higher(1.0, least), fn_b = fn - dv * most;
            fn_least = lower(fn_least, lower(fn_a, fn_b));
            fn_most = higher(fn_most, higher(fn_a, fn_b));
            const double fp_a = du + dv * least, fp_b = du + dv * lower(m, n_pos); // from m to m + 1, tp stays
            fp_least = lower(fp_least, lower(fp_a, fp_b));
            fp_most = higher(fp_most, higher(fp_a, fp_b));
        }
    }
    return {top, fn_least, fn_most, fp_least, fp_most};
}

// How a separable measure joins the loss a = D(i, 0) of its false negatives and b = D(0, j) of its false positives.
struct ProductLink {
    double operator()(double a, double b) const { return 1 - (1 - a) * (1 - b); }
};
struct HypotLink {
    double operator()(double a, double b) const { return std::sqrt(a * a + b * b); }
};
struct MaxLink {
    double operator()(double a, double b) const { return a < b ? b : a; }
};

// For separable measures D(i, j) = link(A[i], B[j]) whose cross-differences are never positive (Monge), so that
// the best j never grows with i: divide and conquer over the rows.
// Input: the two queues, A and B (indexed by all units of the class). Output: the best value and its i, j.
// O((rows + columns) log rows).
template <class Link> class MongeArgmax {
  public:
    MongeArgmax(const Queue &pos, const Queue &neg, const std::vector<double> &P, const std::vector<double> &N,
                const double *A, const double *B)
        : P(P), N(N), A(A + pos.first), B(B + neg.first), pos(pos), neg(neg) {}

    Best operator()() {
        search(0, pos.size, 0, neg.size);
        best.i += pos.first;
        best.j += neg.first;
        return best;
    }

  private:
    void search(Index low, Index high, Index first, Index last) {
        while (low <= high) {
            const Index row = low + (high - low) / 2;
            const double a = A[row];
            double highest = -std::numeric_limits<double>::infinity();
            Index column = first;
            for (Index j = first; j <= last; ++j) {
                const double value = link(a, B[j]) + N[j];
                if (value > highest) {
                    highest = value;
                    column = j;
                }
            }
            highest += P[row];
            if (highest > best.value)
                best = {highest, row, column};
            search(low, row - 1, column, last); // fewer false negatives: at least as many false positives
            low = row + 1;
            last = column;
        }
    }

    const std::vector<double> &P, &N;
    const double *A, *B;
    const Queue &pos, &neg;
    Link link;
    Best best;
};

} // namespace metrimax
