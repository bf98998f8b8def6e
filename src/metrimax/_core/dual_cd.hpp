// Coordinate descent on the dual of a sum of hinges. Plain C++17, no Python.
//
// Problem   min over w of  1/2 |w|^2 + sum_i upper_i max(0, margin_i - sign_i <w, x_i>)
// Dual      max over a of  sum_i margin_i a_i - 1/2 |sum_i a_i sign_i x_i|^2,    0 <= a_i <= upper_i
// Input     the rows x_i, or a kernel matrix; sign, margin and upper; multipliers a and their w; which rows to visit
// Output    a and w, moved; the rows left to visit, and an estimate of the gap
//
// One step minimises exactly along one coordinate; w = sum_i a_i sign_i x_i is kept beside a, so a step costs two
// passes over one row. Examples at a bound whose gradient says that they stay there are set aside (shrinking) and
// checked again before the end. Hsieh et al. (2008), Algorithm 3.
#pragma once

#include "csr_loops.hpp"
#include "dense_loops.hpp"
#include "prefetch.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>

namespace metrimax {

// Whether indices rise, so that none is repeated.
template <class I> bool increasing(const I *indices, size_t size) {
    bool rises = true;
    for (size_t k = 1; k < size; ++k)
        rises &= indices[k - 1] < indices[k];
    return rises;
}

// One problem: n rows with their squared lengths, signs (+1 or -1), margins (>= 0) and upper bounds (>= 0).
struct HingeSum {
    size_t n;
    const double *squares, *sign, *margin, *upper;

    void expect(size_t i) const {
        for (const double *values : {squares, sign, margin, upper})
            prefetch(values + i);
    }
};

// The rows of a dense matrix (n, p) in C-order, each followed by one constant feature; bias 0 for none.
// Where there is a bias, w has p + 1 entries and the last is its weight.
template <class T> struct DenseRows {
    const T *X;
    size_t p;
    double bias;

    double dot(size_t i, const double *w) const {
        const double sum = inner_product(X + i * p, w, p);
        return bias != 0.0 ? sum + bias * w[p] : sum;
    }
    void add(size_t i, double c, double *w) const {
        const T *x = X + i * p;
#pragma omp simd
        for (size_t j = 0; j < p; ++j)
            w[j] += c * static_cast<double>(x[j]);
        if (bias != 0.0)
            w[p] += c * bias;
    }
    double square(size_t i, double *) const {
        const T *x = X + i * p;
        return metrimax::dot(x, x, p) + bias * bias;
    }
    void expect_start(size_t) const {}
    void expect(size_t i) const { prefetch(X + i * p, p); }
    size_t width() const { return bias != 0.0 ? p + 1 : p; }
    double square_length(const HingeSum &, const double *, const double *w) const {
        return metrimax::dot(w, w, width());
    }
    // <x_i, x_j>, the constant features included. `scratch` is not needed.
    double inner(size_t i, size_t j, double *) const { return metrimax::dot(X + i * p, X + j * p, p) + bias * bias; }
};

// The same for CSR; repeated column indices within a row add up, as in every product.
template <class T, class I> struct CSRRows {
    const T *data;
    const I *indices;
    const I *indptr;
    size_t p;
    double bias;

    double dot(size_t i, const double *w) const {
        const double sum = csr_dot(data, indices, indptr[i], indptr[i + 1], w);
        return bias != 0.0 ? sum + bias * w[p] : sum;
    }
    void add(size_t i, double c, double *w) const {
        csr_add(data, indices, indptr[i], indptr[i + 1], c, w);
        if (bias != 0.0)
            w[p] += c * bias;
    }
    double square(size_t i, double *w) const {
        const I begin = indptr[i], end = indptr[i + 1];
        if (increasing(indices + begin, static_cast<size_t>(end - begin)))
            return metrimax::dot(data + begin, data + begin, static_cast<size_t>(end - begin)) + bias * bias;
        add(i, 1.0, w);
        const double sum = dot(i, w);
        for (I k = begin; k < end; ++k)
            w[indices[k]] = 0.0;
        w[p] = 0.0;
        return sum;
    }
    void expect_start(size_t i) const { prefetch(indptr + i); } // `expect` reads it, and would wait
    void expect(size_t i) const {
        const size_t size = static_cast<size_t>(indptr[i + 1] - indptr[i]);
        prefetch(data + indptr[i], size);
        prefetch(indices + indptr[i], size);
    }
    size_t width() const { return bias != 0.0 ? p + 1 : p; }
    double square_length(const HingeSum &, const double *, const double *w) const {
        return metrimax::dot(w, w, width());
    }
    double inner(size_t i, size_t j, double *scratch) const {
        const I begin = indptr[i], end = indptr[i + 1];
        csr_add(data, indices, begin, end, 1.0, scratch);
        const double sum = csr_dot(data, indices, indptr[j], indptr[j + 1], scratch);
        for (I k = begin; k < end; ++k)
            scratch[indices[k]] = 0.0;
        return sum + bias * bias;
    }
};

// The rows of a kernel matrix K (n, n), symmetric, in the place of the examples. In the place of w are the scores of
// all examples, K (sign a) + bias^2 sum(sign a): to read a score costs nothing, a step costs n.
template <class T> struct GramRows {
    const T *K;
    size_t n;
    double bias;

    double dot(size_t i, const double *scores) const { return scores[i]; }
    void add(size_t i, double c, double *scores) const {
        const T *k = K + i * n;
        const double constant = bias * bias;
#pragma omp simd
        for (size_t j = 0; j < n; ++j)
            scores[j] += c * (static_cast<double>(k[j]) + constant);
    }
    void expect_start(size_t) const {}
    void expect(size_t) const {}
    size_t width() const { return n; }
    double square_length(const HingeSum &sum, const double *alpha, const double *scores) const {
        double square = 0.0;
        for (size_t i = 0; i < n; ++i)
            square += sum.sign[i] * alpha[i] * scores[i];
        return square;
    }
    double inner(size_t i, size_t j, double *) const { return static_cast<double>(K[i * n + j]) + bias * bias; }
};

// Squared length of every row, bias included. w is scratch, p + 1 numbers that are zero before and after.
template <class Rows> void row_squares(const Rows &rows, size_t n, double *w, double *out) {
    for (size_t i = 0; i < n; ++i)
        out[i] = rows.square(i, w);
}

// SplitMix64: a few lines, the same numbers on every platform.
class Shuffle {
  public:
    void operator()(std::int64_t *order, size_t size) {
        for (size_t i = size; i > 1; --i)
            std::swap(order[i - 1], order[below(i)]);
    }

  private:
    std::uint64_t state = 0;

    // A number below i, by a product instead of a division; 32 random bits are enough for orders that need no proof.
    size_t below(size_t i) {
        const std::uint64_t z = next();
        return i >> 32 ? z % i : static_cast<size_t>(((z >> 32) * i) >> 32);
    }

    std::uint64_t next() {
        std::uint64_t z = (state += 0x9e3779b97f4a7c15ULL);
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
        return z ^ (z >> 31);
    }
};

// The examples still worth a visit, and the extremes of the projected gradient they were chosen by: one at zero is set
// aside if its gradient exceeds `high`, one at its upper bound if its gradient is below `low`. `others` is the sum of
// the hinges of those set aside, when they were last seen.
struct Working {
    std::int64_t *order;
    size_t count;
    double low = -std::numeric_limits<double>::infinity();
    double high = std::numeric_limits<double>::infinity();
    double others = 0.0;
};

// The extremes of the projected gradient over the examples visited.
class Extremes {
  public:
    void see(double projected) {
        high = std::max(high, projected);
        low = std::min(low, projected);
    }
    double largest() const { return std::max({high, -low, 0.0}); }
    double above() const { return high > 0.0 ? high : kInf; } // if nothing is violated, nothing is set aside
    double below() const { return low < 0.0 ? low : -kInf; }

  private:
    static constexpr double kInf = std::numeric_limits<double>::infinity();
    double high = -kInf, low = kInf;
};

// The gradient of the dual projected on 0 <= alpha <= upper: zero where only the bound keeps alpha from moving.
inline double projection(double gradient, double alpha, double upper) {
    if (alpha <= 0.0)
        gradient = std::min(gradient, 0.0);
    return alpha >= upper ? std::max(gradient, 0.0) : gradient;
}

inline double hinge(double gradient, double upper) { return upper * std::max(0.0, -gradient); }

inline bool set_aside(double gradient, double alpha, double upper, double low, double high) {
    return (alpha <= 0.0 && gradient > high) || (alpha >= upper && gradient < low);
}

// From the scores of all rows: the sum of the hinges and the largest projected gradient, and in `working` (room for n)
// whom to visit next.
inline std::pair<double, double> choose(const HingeSum &sum, const double *alpha, const double *scores,
                                        Working &working) {
    double loss = 0.0;
    Extremes extremes;
    for (size_t i = 0; i < sum.n; ++i) {
        const double gradient = sum.sign[i] * scores[i] - sum.margin[i];
        loss += hinge(gradient, sum.upper[i]);
        extremes.see(projection(gradient, alpha[i], sum.upper[i]));
    }
    working.low = extremes.below();
    working.high = extremes.above();
    working.count = 0;
    working.others = 0.0;
    for (size_t i = 0; i < sum.n; ++i) {
        const double gradient = sum.sign[i] * scores[i] - sum.margin[i];
        if (set_aside(gradient, alpha[i], sum.upper[i], working.low, working.high))
            working.others += hinge(gradient, sum.upper[i]);
        else
            working.order[working.count++] = static_cast<std::int64_t>(i);
    }
    return {loss, extremes.largest()};
}

// When the epochs end: no coordinate's projected gradient exceeds `accuracy`, the gap looks like `gap` or less, or so
// many rows were visited.
struct Until {
    double accuracy, gap;
    size_t visits;
};

// What they came to: the row visits (divided by n, the passes over the data), whether the accuracy was reached, and
// what the gap looks like. Each hinge in that is the one seen on the way, before its coordinate moved.
struct Descent {
    size_t visits = 0;
    bool reached = false;
    double gap = std::numeric_limits<double>::infinity();
};

// Run epochs over the working examples. In and out: alpha (feasible) and w = sum_i alpha_i sign_i x_i; the working
// examples, of which those not set aside since are left, so that another call goes on from there.
// The accuracy is reached among the working examples not set aside since, or with `again` among all that were given.
template <class Rows>
METRIMAX_CLONES Descent dual_cd(const Rows &rows, const HingeSum &sum, Working &working, bool again, double *alpha,
                                double *w, const Until &until) {
    constexpr double kInf = std::numeric_limits<double>::infinity();
    constexpr size_t kAhead = 8; // visits; with 4 a pass over 105 MB of text takes 56 ms instead of 40
    const Working given = working;
    Shuffle shuffle;
    Descent descent;
    std::int64_t *order = working.order;
    size_t &active = working.count;
    double gain = 0.0; // the linear part of the dual
    for (size_t i = 0; i < sum.n; ++i)
        gain += sum.margin[i] * alpha[i];
    do {
        Extremes extremes;
        double loss = 0.0;
        shuffle(order, active);
        descent.visits += active;
        for (size_t s = 0; s < active;) {
            const size_t i = static_cast<size_t>(order[s]);
            const size_t later = static_cast<size_t>(order[std::min(s + kAhead, active - 1)]);
            rows.expect(later);
            sum.expect(later);
            prefetch(alpha + later);
            rows.expect_start(static_cast<size_t>(order[std::min(s + 2 * kAhead, active - 1)]));
            const double a = alpha[i], upper = sum.upper[i];
            const double gradient = sum.sign[i] * rows.dot(i, w) - sum.margin[i];
            if (set_aside(gradient, a, upper, working.low, working.high)) {
                working.others += hinge(gradient, upper);
                std::swap(order[s], order[--active]);
                continue;
            }
            ++s;
            loss += hinge(gradient, upper);
            const double projected = projection(gradient, a, upper);
            extremes.see(projected);
            if (projected == 0.0)
                continue;
            const double square = sum.squares[i];
            const double target = square > 0.0 ? a - gradient / square : (gradient < 0.0 ? kInf : 0.0);
            const double next = std::min(std::max(target, 0.0), upper);
            alpha[i] = next;
            gain += sum.margin[i] * (next - a);
            if (next != a)
                rows.add(i, (next - a) * sum.sign[i], w);
        }
        descent.gap = rows.square_length(sum, alpha, w) + loss + working.others - gain;
        working.low = extremes.below();
        working.high = extremes.above();
        if (active == 0 || extremes.largest() <= until.accuracy) {
            descent.reached = !again || active == given.count;
            if (descent.reached)
                return descent;
            active = given.count; // re-check the shrunk examples
            working.others = given.others;
            working.high = kInf;
            working.low = -kInf;
        }
    } while (descent.visits < until.visits && descent.gap > until.gap);
    return descent;
}

} // namespace metrimax
