// The matrix of limited-memory BFGS. Plain C++17, no Python.
//
// Input    points and the slopes of the risk there, one after the other
// Output   minus the inverse Hessian times the gradient
//
// Liu & Nocedal (1989), Algorithm 2.1; by coefficients as in Chen, Wang & Zhou (2014).
//
// A vector is kept by its entries, and beside them by its image under a symmetric matrix K where there is one. Inner
// products are <a, b> = a'K b, or a'b where there is none.
#pragma once

#include "dense_loops.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>
#include <numeric>
#include <vector>

namespace metrimax {

// A vector of `size` entries, and its image or nullptr.
struct Imaged {
    const double *entries, *image;
};

class QuasiNewton {
  public:
    QuasiNewton(size_t memory, size_t size, bool images)
        : m(memory), size(size), parts(images ? 2 : 1), gram(4 * m * m), with_gradient(2 * m),
          rows(static_cast<double *>(std::calloc(std::max<size_t>(1, parts * (kOwn + 2 * m) * size), sizeof(double))),
               std::free) {
        if (!rows)
            throw std::bad_alloc();
    }

    // Minus the inverse Hessian times the gradient lam point + slope. The change of the gradient since the last call is
    // learnt first: with the step from the last point a pair, of which the last m are remembered.
    // Out: direction[0] (size), and direction[1] its image where vectors have one; overwritten.
    void direction(double lam, Imaged point, Imaged slope, double *const *direction) {
        const double *points[] = {point.entries, point.image}, *slopes[] = {slope.entries, slope.image};
        for (size_t part = 0; part < parts; ++part) {
            difference(points[part], row(part, kPoint), row(part, kStep));
            std::copy_n(points[part], size, row(part, kPoint));
            double *gradient = row(part, kGradient), *change = row(part, kChange);
            for (size_t j = 0; j < size; ++j) {
                const double now = lam * points[part][j] + slopes[part][j];
                change[j] = now - gradient[j];
                gradient[j] = now;
            }
        }
        if (!(known && learn()))
            dense_dot_rows(past(0), count(), size, dual(kGradient), with_gradient.data());
        known = true;
        combine(lam, direction);
    }

    // The next gradient is not compared with the last one.
    void forget() { known = false; }
    bool compares() const { return known; }

    // What another matrix needs to go on: of every part the last point and gradient and, from the oldest pair on, step
    // and change. Out: out (parts, 2 + count(), size).
    void keep(double *out) const {
        for (size_t part = 0; part < parts; ++part) {
            out = std::copy_n(row(part, kPoint), 2 * size, out); // and the gradient, which lies beside it
            for (size_t pair = pairs - count() / 2; pair < pairs; ++pair)
                out = std::copy_n(past(part) + 2 * (pair % m) * size, 2 * size, out);
        }
    }
    size_t count() const { return 2 * std::min(pairs, m); }

    // Go on from what was kept, with no more than m pairs; `compare` the next gradient with the last one or not.
    void go_on(const double *kept, size_t n_pairs, bool compare) {
        pairs = n_pairs;
        known = compare;
        for (size_t part = 0; part < parts; ++part, kept += (2 + count()) * size) {
            std::copy_n(kept, 2 * size, row(part, kPoint));
            std::copy_n(kept + 2 * size, count() * size, past(part));
        }
        for (size_t k = 0; k < count(); ++k)
            dense_dot_rows(past(0), count(), size, past(parts - 1) + k * size, gram.data() + k * 2 * m);
        dense_dot_rows(past(0), count(), size, dual(kGradient), with_gradient.data());
    }

  private:
    enum Own { kPoint, kGradient, kStep, kChange, kOwn }; // the last ones

    size_t m, size, parts, pairs = 0;
    bool known = false;
    std::vector<double> gram;                         // inner products of the past steps and changes,
    std::vector<double> with_gradient;                // and theirs with the gradient
    std::unique_ptr<double[], void (*)(void *)> rows; // of each part; untouched until used

    double *row(size_t part, Own own) { return rows.get() + (part * (kOwn + 2 * m) + own) * size; }
    double *past(size_t part) { return row(part, kOwn); } // of pair k the step in row 2 k, the change after it
    const double *row(size_t part, Own own) const { return rows.get() + (part * (kOwn + 2 * m) + own) * size; }
    const double *past(size_t part) const { return row(part, kOwn); }
    double *dual(Own own) { return row(parts - 1, own); }
    double inner(size_t a, size_t b) const { return gram[a * 2 * m + b]; }

    void difference(const double *a, const double *b, double *out) const {
        for (size_t j = 0; j < size; ++j)
            out[j] = a[j] - b[j];
    }

    // Remember the last step and change, unless the curvature along the step is not a positive number; whether it is.
    bool learn() {
        double curvature, square;
        dense_dot_rows_pair(dual(kChange), 1, size, row(0, kStep), row(0, kChange), &curvature, &square, 1);
        if (!(curvature > 1e-12 * square && square > 0.0))
            return false;
        const size_t step = 2 * (pairs++ % m), rank = count();
        for (size_t part = 0; part < parts; ++part) // both lie side by side here as there
            std::copy_n(row(part, kStep), 2 * size, past(part) + step * size);
        std::vector<double> with(2 * rank);
        dense_dot_rows_pair(past(0), rank, size, dual(kStep), dual(kChange), with.data(), with.data() + rank, 1);
        for (size_t k = 0; k < rank; ++k)
            for (size_t l : {size_t{0}, size_t{1}})
                gram[(step + l) * 2 * m + k] = gram[k * 2 * m + step + l] = with[l * rank + k];
        for (size_t k = 0; k < rank; ++k)
            with_gradient[k] += with[rank + k]; // the gradient is the last one plus the change
        dense_dot_rows(past(0) + step * size, 2, size, dual(kGradient), with_gradient.data() + step);
        return true;
    }

    // The direction is a combination of the past steps and changes and the gradient: the recursion works on
    // coefficients, and the vectors are summed once at the end (Chen, Wang & Zhou 2014).
    void combine(double lam, double *const *direction) {
        std::vector<double> shares(count(), 0.0);
        const double own = pairs > 0 ? coefficients(shares) : -1.0 / lam;
        std::vector<size_t> used(count());
        std::iota(used.begin(), used.end(), size_t{0});
        for (size_t part = 0; part < parts; ++part) {
            const double *gradient = row(part, kGradient);
            for (size_t j = 0; j < size; ++j)
                direction[part][j] = own * gradient[j];
            dense_add_rows_by_blocks(past(part), size, used.data(), used.size(), shares.data(), 0, size,
                                     direction[part]);
        }
    }

    // The two loops, over pairs from the newest to the oldest and back. In and out: the coefficients of steps and
    // changes, zero on entry. Returns that of the gradient.
    double coefficients(std::vector<double> &out) {
        const size_t rank = count(), oldest = pairs > m ? pairs - m : 0;
        std::vector<double> shares(m);
        double own = -1.0;
        const auto product = [&](size_t k) { // of row k with the combination so far
            double sum = own * with_gradient[k];
            for (size_t l = 0; l < rank; ++l)
                sum += inner(k, l) * out[l];
            return sum;
        };
        for (size_t pair = pairs; pair-- > oldest;) {
            const size_t step = 2 * (pair % m);
            shares[pair % m] = product(step) / inner(step, step + 1);
            out[step + 1] -= shares[pair % m];
        }
        const size_t last = 2 * ((pairs - 1) % m);
        const double scale = inner(last, last + 1) / inner(last + 1, last + 1);
        own *= scale;
        for (double &share : out)
            share *= scale;
        for (size_t pair = oldest; pair < pairs; ++pair) {
            const size_t step = 2 * (pair % m);
            out[step] += shares[pair % m] - product(step + 1) / inner(step, step + 1);
        }
        return own;
    }
};

} // namespace metrimax
