// The proof that a table is the best. The search sees the flips of lowest cost only; the tables that it did not see are
// ruled out here, many at a time.
//
// Input    the losses of all tables, the sums of the costs as far as they are known, the value of the table found
// Output   whether no table that flips more of a class is worth more
//
// Branch and bound over rectangles of tables, after Land & Doig (1960).
#pragma once

#include "table_losses.hpp"

namespace metrimax {

// What the flips of one class give up: exactly as far as their costs are known, and at least so much from there on.
// Concave in their number.
class Sums {
  public:
    Sums(const Queue &queue, Index total, double high)
        : known(queue.prefix()), total(total - queue.first), top(queue.peak()) {
        know(queue.size, queue.step * high);
    }

    // Use only this many flips; each of the others gives up at least this much.
    void know(Index count, double each) {
        last = count;
        fall = total > last ? each : 0.0;
        peak = total > last && fall < 0 ? total : std::min(top, last);
    }

    double at(Index k) const { return k <= last ? known[k] : known[last] - fall * static_cast<double>(k - last); }
    double most(Index from, Index to) const { return at(std::clamp(peak, from, to)); }

    const std::vector<double> known;
    const Index total; // flips that there could be
    Index last;        // flips whose costs are known

  private:
    const Index top;
    Index peak;
    double fall;
};

// The proof that a value is the greatest, but for rounding. Over a rectangle of tables the loss is at most that of the
// far corner, where it is rising, and the sums are greatest at an end or at their peak. A rectangle that this does not
// rule out is divided, until the patience is at its end.
class Proof {
  public:
    Proof(const Tables &tables, const Queue &pos, const Queue &neg, const Sums &P, const Sums &N, double value)
        : tables(tables), P(P), N(N), pos_first(pos.first), neg_first(neg.first),
          limit(value + kRounding * std::max(1.0, tables.top)) {}

    // Whether no table is better that flips more of a class (0 for positives) than is known.
    bool beyond(int side) {
        patience = kPatience;
        return side == 0 ? below(P.last + 1, P.total, 0, N.last) : below(0, P.total, N.last + 1, N.total);
    }

  private:
    static constexpr double kRounding = 1e-12;
    static constexpr int kPatience = 300;

    bool below(Index i0, Index i1, Index j0, Index j1) {
        if (i0 > i1 || j0 > j1)
            return true;
        const double loss = corner(i1, j1);
        if (loss + P.most(i0, i1) + N.most(j0, j1) <= limit)
            return true;
        if (!tables.rising || --patience < 0 || (i0 == i1 && j0 == j1))
            return false;
        const double across = loss - corner(i0, j1) + std::abs(P.at(i1) - P.at(i0));
        const double down = loss - corner(i1, j0) + std::abs(N.at(j1) - N.at(j0));
        if (j0 == j1 || (i0 < i1 && across > down)) {
            const Index middle = i0 + (i1 - i0) / 2;
            return below(i0, middle, j0, j1) && below(middle + 1, i1, j0, j1);
        }
        const Index middle = j0 + (j1 - j0) / 2;
        return below(i0, i1, j0, middle) && below(i0, i1, middle + 1, j1);
    }

    double corner(Index i, Index j) const {
        return tables.rising ? tables.loss(pos_first + i, neg_first + j) : tables.top;
    }

    const Tables &tables;
    const Sums &P, &N;
    const Index pos_first, neg_first;
    const double limit;
    int patience = 0;
};

} // namespace metrimax
