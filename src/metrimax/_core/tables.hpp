// The most violated labelling of measures of the contingency table (Joachims 2005, Algorithm 2), without
// looking at every table.
//
// The cost of a flip is the margin it gives up: cost = y * score, in both classes. With each class sorted by
// ascending cost, the best labelling with a given table flips the first i positives (false negatives) and the
// first j negatives (false positives), so all that is left is
//     max over (i, j) of  D(i, j) + P[i] + N[j],    P[i] = -step * sum(cost[:i]), N likewise (both concave).
// i and j count units: examples, or steps of weight. Only candidates are sorted: the `first` units of a class
// flip in every optimum and stand before them with the sum of their costs.
#pragma once

#include "loops.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace metrimax {

using Index = std::ptrdiff_t;

// Where something is among the members of a class, or among the examples of the sample. For every example there is one
// or more of these, so they are kept short.
using Place = std::uint32_t;

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

    // The same where v never falls, as for F_beta. There the best i never grows with m and is followed down, along
    // several ranges of m at a time: every step waits for the one before it, but not for those of other ranges.
    Best best_falling() const {
        constexpr Index kLanes = 4;
        struct Lane {
            Index m, end, x;
            Best best;
        } lanes[kLanes];
        const Index width = (to - from + kLanes) / kLanes;
        for (Index k = 0; k < kLanes; ++k) {
            const Index first = from + k * width, end = std::min(first + width, to + 1);
            lanes[k] = {first, end, first < end ? find(first, 0) : 0, {}};
        }
        for (Index step = 0; step < width; ++step)
            for (Lane &lane : lanes)
                if (lane.m < lane.end) {
                    lane.x = follow(lane.m, lane.x);
                    const double here = value(lane.m, lane.x);
                    if (here > lane.best.value)
                        lane.best = {here, pos.first + lane.x, neg.first + lane.x + lane.m - shift};
                    ++lane.m;
                }
        Best best;
        for (const Lane &lane : lanes)
            if (lane.best.value > best.value)
                best = lane.best;
        return best;
    }

  private:
    // With m = shift - x + y, where x and y are local to the queues: the range of x.
    Index low(Index m) const { return std::max<Index>(0, shift - m); }
    Index high(Index m) const { return std::min(pos.size, neg.size + shift - m); }
    bool gains(Index m, Index x) const {
        return -v[m - m_low] - pos.step * (pos.costs[x] + neg.costs[x + m - shift]) > 0;
    }
    double value(Index m, Index x) const {
        return u[m - m_low] + v[m - m_low] * static_cast<double>(n_pos - pos.first - x) + P[x] + N[x + m - shift];
    }

    Index find(Index m, Index x) const {
        const Index least = low(m), most = high(m);
        return gallop(std::clamp(x, least, most), least, most, [&](Index k) { return gains(m, k); });
    }
    Index follow(Index m, Index x) const {
        const Index least = low(m);
        x = std::clamp(x, least, high(m));
        if (x > least)
            x -= !gains(m, x - 1);            // without a branch: whether it goes down is a matter of chance,
        while (x > least && !gains(m, x - 1)) // and that it goes further is rare
            --x;
        return x;
    }

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
