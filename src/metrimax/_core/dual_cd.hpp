// Coordinate descent on the dual of a sum of hinges. Plain C++17, no Python.
//
// Problem   min over w of  1/2 |w|^2 + sum_i upper_i max(0, margin_i - sign_i <w, x_i>)
// Dual      max over a of  sum_i margin_i a_i - 1/2 |sum_i a_i sign_i x_i|^2,    0 <= a_i <= upper_i
//
// One step minimises exactly along one coordinate; w = sum_i a_i sign_i x_i is kept beside a, so a step costs two
// passes over one row. Examples at a bound whose gradient says that they stay there are set aside (shrinking) and
// looked at again before the end. Hsieh et al. (2008), Algorithm 3.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

namespace metrimax {

// The rows of a dense matrix (n, p) in C-order, each followed by one constant feature; bias 0 for none.
// Where there is a bias, w has p + 1 entries and the last is its weight.
template <class T> struct DenseRows {
    const T *X;
    size_t p;
    double bias;

    double dot(size_t i, const double *w) const {
        const T *x = X + i * p;
        double sum = 0.0;
#pragma omp simd reduction(+ : sum)
        for (size_t j = 0; j < p; ++j)
            sum += static_cast<double>(x[j]) * w[j];
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
    void clear(size_t, double *w) const { std::fill_n(w, width(), 0.0); }
    size_t width() const { return bias != 0.0 ? p + 1 : p; }
};

// The same for CSR; repeated column indices within a row add up, as in every product.
template <class T, class I> struct CSRRows {
    const T *data;
    const I *indices;
    const I *indptr;
    size_t p;
    double bias;

    double dot(size_t i, const double *w) const {
        double sum = bias != 0.0 ? bias * w[p] : 0.0;
        for (I k = indptr[i]; k < indptr[i + 1]; ++k)
            sum += static_cast<double>(data[k]) * w[indices[k]];
        return sum;
    }
    void add(size_t i, double c, double *w) const {
        for (I k = indptr[i]; k < indptr[i + 1]; ++k)
            w[indices[k]] += c * static_cast<double>(data[k]);
        if (bias != 0.0)
            w[p] += c * bias;
    }
    void clear(size_t i, double *w) const {
        for (I k = indptr[i]; k < indptr[i + 1]; ++k)
            w[indices[k]] = 0.0;
        if (bias != 0.0)
            w[p] = 0.0;
    }
    size_t width() const { return bias != 0.0 ? p + 1 : p; }
};

// Squared length of every row, bias included. w is scratch of the length of a weight vector, all zero before and after.
template <class Rows> void row_squares(const Rows &rows, size_t n, double *w, double *out) {
    for (size_t i = 0; i < n; ++i) {
        rows.add(i, 1.0, w);
        out[i] = rows.dot(i, w);
        rows.clear(i, w);
    }
}

// SplitMix64: a few lines, the same numbers on every platform.
class Shuffle {
  public:
    explicit Shuffle(std::uint64_t seed) : state(seed) {}

    void operator()(std::vector<size_t> &order, size_t size) {
        for (size_t i = size; i > 1; --i)
            std::swap(order[i - 1], order[next() % i]);
    }

  private:
    std::uint64_t state;

    std::uint64_t next() {
        std::uint64_t z = (state += 0x9e3779b97f4a7c15ULL);
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
        return z ^ (z >> 31);
    }
};

// Run epochs until no coordinate's projected gradient exceeds tol, or max_epochs have passed.
// In:   rows, squares (|x_i|^2), sign (+1 or -1), margin (>= 0), upper (>= 0), all of length n.
// In and out: alpha (feasible) and w = sum_i alpha_i sign_i x_i.
// Returns the number of row visits (divided by n, the passes over the data), and whether tol was reached.
template <class Rows>
std::pair<size_t, bool> dual_cd(const Rows &rows, size_t n, const double *squares, const double *sign,
                                const double *margin, const double *upper, double *alpha, double *w, double tol,
                                size_t max_epochs, std::uint64_t seed) {
    constexpr double kInf = std::numeric_limits<double>::infinity();
    std::vector<size_t> order(n);
    std::iota(order.begin(), order.end(), size_t{0});
    Shuffle shuffle(seed);
    size_t active = n, visits = 0;
    double high_before = kInf, low_before = -kInf; // extremes of the projected gradient in the last epoch
    for (size_t epoch = 0; epoch < max_epochs; ++epoch) {
        double high = -kInf, low = kInf;
        shuffle(order, active);
        for (size_t s = 0; s < active; ++s) {
            const size_t i = order[s];
            ++visits;
            const double gradient = sign[i] * rows.dot(i, w) - margin[i];
            double projected = gradient;
            if (alpha[i] <= 0.0) {
                if (gradient > high_before) {
                    std::swap(order[s--], order[--active]);
                    continue;
                }
                projected = std::min(gradient, 0.0);
            }
            if (alpha[i] >= upper[i]) {
                if (gradient < low_before) {
                    std::swap(order[s--], order[--active]);
                    continue;
                }
                projected = std::max(projected, 0.0);
            }
            high = std::max(high, projected);
            low = std::min(low, projected);
            if (projected == 0.0)
                continue;
            const double target = squares[i] > 0.0 ? alpha[i] - gradient / squares[i] : (gradient < 0.0 ? kInf : 0.0);
            const double next = std::min(std::max(target, 0.0), upper[i]);
            const double change = next - alpha[i];
            alpha[i] = next;
            if (change != 0.0)
                rows.add(i, change * sign[i], w);
        }
        if (active == 0 || std::max(high, -low) <= tol) {
            if (active == n)
                return {visits, true};
            active = n; // what was set aside has its say
            high_before = kInf;
            low_before = -kInf;
            continue;
        }
        high_before = high > 0.0 ? high : kInf;
        low_before = low < 0.0 ? low : -kInf;
    }
    return {visits, false};
}

} // namespace metrimax
