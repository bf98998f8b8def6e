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

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

namespace metrimax {

using Index = std::ptrdiff_t;

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

// For measures that are linear in tp once the number m = tp + fp of predicted positives is given:
//     D = u[m] + v[m] * tp,  m_low <= m <= m_high.
// Input: the two queues (with equal steps), the number of positive units, u and v indexed by m - m_low, in units.
// Output: for every m, visit(m, the best value and its i = fn, j = fp).
// For fixed m, flipping one more pair (i, j) -> (i+1, j+1) gains -v[m] - step * (cost_i + cost_j), which never
// grows with i; the best i is where that turns non-positive. The search for the next m starts at the i of
// the last one and gallops: O(n) steps in practice, O(n log n) at worst.
template <class Visit>
void count_scan(const Queue &pos, const Queue &neg, const std::vector<double> &P, const std::vector<double> &N,
                Index n_pos, Index m_low, Index m_high, const double *u, const double *v, Visit visit) {
    const Index shift = n_pos - pos.first + neg.first; // m = shift - x + y with x, y local to the queues
    const Index from = std::max(m_low, shift - pos.size), to = std::min(m_high, shift + neg.size);
    Index x = 0;
    for (Index m = from; m <= to; ++m) {
        const Index d = m - shift; // y = x + d
        const Index low = std::max<Index>(0, -d), high = std::min(pos.size, neg.size - d);
        const double vm = v[m - m_low];
        auto gains = [&](Index k) { return -vm - pos.step * (pos.costs[k] + neg.costs[k + d]) > 0; };
        x = std::clamp(x, low, high);
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
        x = a;
        const Index i = pos.first + x, j = neg.first + x + d;
        visit(m, u[m - m_low] + vm * static_cast<double>(n_pos - i) + P[x] + N[x + d], i, j);
    }
}

// The best of all m.
inline Best count_argmax(const Queue &pos, const Queue &neg, const std::vector<double> &P, const std::vector<double> &N,
                         Index n_pos, Index m_low, Index m_high, const double *u, const double *v) {
    Best best;
    count_scan(pos, neg, P, N, n_pos, m_low, m_high, u, v, [&](Index, double value, Index i, Index j) {
        if (value > best.value)
            best = {value, i, j};
    });
    return best;
}

// The greatest loss of such a measure, and how much the loss rises by one more mistake of either kind, over all tables.
struct CountBounds {
    double top = -std::numeric_limits<double>::infinity();
    double fn_least = -top, fn_most = top, fp_least = -top, fp_most = top;
};

// In: u and v for m = m_low .. m_high. For a given m all is linear in tp, so the ends of its range are enough.
inline CountBounds count_bounds(const double *u, const double *v, Index n_pos, Index n_neg, Index m_low, Index m_high) {
    CountBounds found;
    const auto loss = [=](Index m, Index tp) { return u[m - m_low] + v[m - m_low] * static_cast<double>(tp); };
    for (Index m = m_low; m <= m_high; ++m) {
        const Index least = std::max<Index>(0, m - n_neg), most = std::min(m, n_pos);
        found.top = std::max({found.top, loss(m, least), loss(m, most)});
        if (m == m_high)
            break;
        const Index next_least = std::max<Index>(0, m + 1 - n_neg), next_most = std::min(m + 1, n_pos);
        for (const Index tp : {std::max<Index>(1, next_least), next_most}) { // from m + 1 and tp to m and tp - 1
            const double rise = loss(m, tp - 1) - loss(m + 1, tp);
            found.fn_least = std::min(found.fn_least, rise);
            found.fn_most = std::max(found.fn_most, rise);
        }
        for (const Index tp : {next_least, most}) { // from m to m + 1, tp stays
            const double rise = loss(m + 1, tp) - loss(m, tp);
            found.fp_least = std::min(found.fp_least, rise);
            found.fp_most = std::max(found.fp_most, rise);
        }
    }
    return found;
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
