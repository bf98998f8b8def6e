// The small quadratic program over the cuts.
//
// Problem  min over a of  1/2 a'Ha - b'a   subject to  a >= 0, sum(a) = 1,      H = scale * G positive semidefinite
// Input    G, b and scale; the a to begin with
// Output   a, to an accuracy of the objective
//
// A primal active-set method (Nocedal & Wright 2006, Algorithm 16.3). On the free set F it minimises with the equality
// alone, through the Cholesky factor of M = H_FF + sigma 11' (on the plane sum(a) = 1 this adds a constant). A column
// that depends on the others leaves a direction d with Hd = 0, sum(d) = 0: the objective is linear along it, so the
// step goes to the boundary. No regularisation is needed and none is added.
#pragma once

#include "dense_loops.hpp"
#include "index.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <utility>
#include <vector>

namespace metrimax {

class SimplexQP {
  public:
    // G is row-major with leading dimension ld; a is the feasible start on entry and the solution on exit.
    SimplexQP(const double *G, Index ld, const double *b, double scale, Index size, double *a)
        : G(G), b(b), scale(scale), ld(ld), size(size), a(a), L(size * size), free_(size, false) {
        double largest = 0; // of H and of b: with a smaller sigma, b / sigma would drown the solution
        for (Index k = 0; k < size; ++k)
            largest = std::max({largest, H(k, k), std::abs(b[k])});
        sigma = largest > 0 ? largest : 1;
    }

    // Returns the number of changes of the free set. Stops when, by the gradient, no a can improve the objective by
    // more than tol. Where tol is below the gradient's rounding, the same cuts would enter and leave without end. So
    // the search also stops when the objective has long not fallen by a hundredth of tol.
    Index solve(double tol, Index max_changes) {
        start();
        Index changes = 0, in_vain = 0;
        double least = std::numeric_limits<double>::infinity();
        std::vector<double> gradient(size);
        while (true) {
            while (!minimise_on_free() && changes < max_changes)
                ++changes;
            for (Index k = 0; k < size; ++k)
                gradient[k] = H_times(k, a) - b[k];
            double level = 0, objective = 0; // level is a'gradient: the common value on the free set
            for (Index f : F) {
                level += a[f] * gradient[f];
                objective += a[f] * (gradient[f] - b[f]) / 2;
            }
            in_vain = objective < least - 0.01 * tol ? 0 : in_vain + 1;
            least = std::min(least, objective);
            Index enter = -1;
            double lowest = level - tol;
            for (Index k = 0; k < size; ++k)
                if (!free_[k] && gradient[k] < lowest) {
                    lowest = gradient[k];
                    enter = k;
                }
            if (enter < 0 || changes >= max_changes || in_vain > size)
                return changes;
            ++changes;
            add(enter);
        }
    }

  private:
    double H(Index i, Index j) const { return scale * G[i * ld + j]; }
    double H_times(Index row, const double *x) const { return scale * dot(G + row * ld, x, static_cast<size_t>(size)); }
    double *l(Index row) { return L.data() + row * size; }
    double &l(Index row, Index column) { return L[row * size + column]; }

    void start() {
        double total = 0;
        for (Index k = 0; k < size; ++k)
            total += a[k] = a[k] > 0 ? a[k] : 0;
        if (!(total > 0) || !std::isfinite(total)) {
            std::fill(a, a + size, 0.0);
            a[0] = total = 1;
        }
        for (Index k = 0; k < size; ++k)
            a[k] /= total;
        for (Index k = 0; k < size; ++k)
            if (a[k] > 0 && !free_[k])
                add(k);
    }

    // Let k join the free set; if its column depends on the others, step along the null direction first.
    void add(Index k) {
        const Index m = static_cast<Index>(F.size());
        double diagonal = H(k, k) + sigma, rest = diagonal;
        for (Index r = 0; r < m; ++r) {
            l(m, r) = (H(F[r], k) + sigma - dot(l(r), l(m), static_cast<size_t>(r))) / l(r, r);
            rest -= l(m, r) * l(m, r);
        }
        if (rest > 1e-13 * diagonal) {
            l(m, m) = std::sqrt(rest);
            F.push_back(k);
            free_[k] = true;
            return;
        }
        std::vector<double> y(l(m), l(m) + m); // column k = sum of y_f column f, sum(y) = 1
        backward(y);
        double gain = b[k]; // of moving weight from the others to k
        for (Index r = 0; r < m; ++r)
            gain -= y[r] * b[F[r]];
        const double direction = gain >= 0 ? 1.0 : -1.0;
        double step = direction > 0 ? std::numeric_limits<double>::infinity() : a[k];
        Index leaves = -1;
        for (Index r = 0; r < m; ++r) {
            const double speed = direction * y[r];
            const double room = a[F[r]];
            if (speed > 0 && room <= step * speed) {
                step = room / speed;
                leaves = r;
            }
        }
        if (!std::isfinite(step))
            return;
        a[k] += direction * step;
        for (Index r = 0; r < m; ++r) {
            double &share = a[F[r]];
            share = std::max(0.0, share - direction * step * y[r]);
        }
        if (leaves >= 0) {
            a[F[leaves]] = 0;
            remove(leaves);
            if (a[k] > 0)
                add(k);
        } else {
            a[k] = 0;
        }
    }

    // Let the free variable at this position leave: rank-one update of the rows below it.
    void remove(Index position) {
        const Index m = static_cast<Index>(F.size());
        free_[F[static_cast<std::size_t>(position)]] = false;
        F.erase(F.begin() + position);
        std::vector<std::pair<double, double>> turns; // cosine and sine, for every column from `position` on
        turns.reserve(m - position);
        for (Index r = position; r + 1 < m; ++r) { // row by row, as they lie: each is turned as the columns were before
            const double *from = l(r + 1);
            double *to = l(r), x = from[position];
            std::copy_n(from, position, to);
            for (Index c = position; c < r; ++c) {
                const auto [cosine, sine] = turns[c - position];
                const double old = from[c + 1];
                to[c] = cosine * old + sine * x;
                x = cosine * x - sine * old;
            }
            const double length = std::hypot(from[r + 1], x);
            turns.emplace_back(from[r + 1] / length, x / length);
            to[r] = length;
        }
    }

    // x := M^-1 x on the free set.
    void backsolve(std::vector<double> &x) {
        for (Index r = 0; r < static_cast<Index>(x.size()); ++r)
            x[r] = (x[r] - dot(l(r), x.data(), static_cast<size_t>(r))) / l(r, r);
        backward(x);
    }

    // x := L'^-1 x.
    void backward(std::vector<double> &x) {
        for (Index r = static_cast<Index>(x.size()); r-- > 0;) {
            x[r] /= l(r, r);
            add_scaled(-x[r], l(r), x.data(), static_cast<size_t>(r));
        }
    }

    // Add a multiple of M^-1 1 so that x sums to `total`.
    static void fix_sum(std::vector<double> &x, const std::vector<double> &ones, double total) {
        double sum = -total, sum_ones = 0;
        for (std::size_t r = 0; r < x.size(); ++r) {
            sum += x[r];
            sum_ones += ones[r];
        }
        for (std::size_t r = 0; r < x.size(); ++r)
            x[r] -= sum / sum_ones * ones[r];
    }

    // Minimise over the free set with the equality alone. If that leaves the simplex, stop at its boundary, drop
    // what became zero, and return false.
    bool minimise_on_free() {
        const Index m = static_cast<Index>(F.size());
        std::vector<double> x(m), ones(m, 1.0), rest(m), everywhere(size);
        for (Index r = 0; r < m; ++r)
            x[r] = b[F[r]];
        backsolve(x);
        backsolve(ones);
        fix_sum(x, ones, 1);
        for (Index r = 0; r < m; ++r)
            everywhere[F[r]] = x[r];
        for (Index r = 0; r < m; ++r) // one step of refinement: sigma may be far from the scale of some cuts
            rest[r] = b[F[r]] - H_times(F[r], everywhere.data());
        backsolve(rest);
        fix_sum(rest, ones, 0);
        for (Index r = 0; r < m; ++r)
            x[r] += rest[r];
        double step = 1;
        Index leaves = -1;
        for (Index r = 0; r < m; ++r) {
            double &target = x[r];
            const double now = a[F[r]];
            if (target <= 0 && now <= step * (now - target)) {
                step = now > target ? now / (now - target) : 0;
                leaves = r;
            }
        }
        double total = 0;
        for (Index r = 0; r < m; ++r) {
            double &share = a[F[r]];
            share = std::max(0.0, share + step * (x[r] - share));
            total += share;
        }
        for (Index r = 0; r < m; ++r)
            a[F[r]] /= total;
        if (leaves < 0 || m == 1)
            return true;
        a[F[leaves]] = 0;
        remove(leaves);
        return false;
    }

    const double *G, *b;
    double scale, sigma;
    Index ld, size;
    double *a;
    std::vector<double> L; // Cholesky factor, row-major, leading dimension size
    std::vector<Index> F;  // the free set, in the order of the factor's rows
    std::vector<bool> free_;
};

} // namespace metrimax
