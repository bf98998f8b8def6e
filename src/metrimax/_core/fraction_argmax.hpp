// The best table of a measure that is a fraction of two linear functions of the mistakes, as F_beta and kappa are.
//
//     D(i, j) = (a[0] + a[1] i + a[2] j) / (b[0] + b[1] i + b[2] j),   b[0] + b[1] i + b[2] j > 0
//
// Problem  max over (i, j) of  D(i, j) + P[i] + N[j],    with P and N as in table_argmax.hpp
// Input    a and b; the costs of both classes, ascending
// Output   the best i and j, and the value there
//
// D is computed for each table that is visited, so the mistakes of the two classes may weigh differently. Then no
// number of predicted positives is shared by many tables. The cross-differences of D must never be positive (Monge).
#pragma once

#include "table_argmax.hpp"

#include <array>

namespace metrimax {

struct Fraction {
    std::array<double, 3> above, below;

    double operator()(double i, double j) const {
        return (above[0] + above[1] * i + above[2] * j) / (below[0] + below[1] * i + below[2] * j);
    }

    // Whether D rises less and less with j, for every i up to n_pos. The sign of its second difference is that of
    //     -b[2] (a[2] below - b[2] above),
    // which does not depend on j and is linear in i.
    bool concave(double n_pos) const {
        const auto bend = [&](double i) {
            return below[2] * (above[2] * (below[0] + below[1] * i) - below[2] * (above[0] + above[1] * i));
        };
        return bend(0) >= 0 && bend(n_pos) >= 0;
    }
};

// Divide and conquer over the rows, of which the best column never grows with the row. Where D is concave in j the best
// column of a row is found by bisection. Rows and columns that cannot hold anything better than the best so far are
// left out: where no loss falls with one more mistake, that is most of them.
class FractionArgmax {
  public:
    FractionArgmax(const Queue &pos, const Queue &neg, const std::vector<double> &P, const std::vector<double> &N,
                   const Fraction &loss, bool concave, bool rising)
        : pos(pos), neg(neg), P(P), N(N), loss(loss), concave(concave), rising(rising), pos_peak(pos.peak()),
          neg_peak(neg.peak()) {}

    Best operator()() {
        search(0, pos.size, 0, neg.size);
        return {best.value, best.i + pos.first, best.j + neg.first};
    }

  private:
    double at(Index i, Index j) const {
        return loss(static_cast<double>(pos.first + i), static_cast<double>(neg.first + j));
    }

    void search(Index low, Index high, Index first, Index last) {
        while (low <= high) {
            const double most = P[std::clamp(pos_peak, low, high)] + N[std::clamp(neg_peak, first, last)];
            if (rising && !(at(high, last) + most > best.value))
                return;
            const Index row = low + (high - low) / 2;
            const Index column = concave ? bisect(row, first, last) : scan(row, first, last);
            const double value = at(row, column) + P[row] + N[column];
            if (value > best.value)
                best = {value, row, column};
            search(low, row - 1, column, last); // fewer false negatives: at least as many false positives
            low = row + 1;
            last = column;
        }
    }

    Index bisect(Index row, Index first, Index last) const {
        while (first < last) {
            const Index middle = first + (last - first) / 2;
            if (at(row, middle + 1) - at(row, middle) > neg.step * neg.costs[middle])
                first = middle + 1;
            else
                last = middle;
        }
        return first;
    }

    Index scan(Index row, Index first, Index last) const {
        Index column = first;
        double highest = -std::numeric_limits<double>::infinity();
        for (Index j = first; j <= last; ++j)
            if (const double value = at(row, j) + N[j]; value > highest) {
                highest = value;
                column = j;
            }
        return column;
    }

    const Queue &pos, &neg;
    const std::vector<double> &P, &N;
    const Fraction loss;
    const bool concave, rising;
    const Index pos_peak, neg_peak;
    Best best;
};

} // namespace metrimax
