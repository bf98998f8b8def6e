// The base losses that may stand beside a measure's risk. Plain C++17, no Python.
//
//     R(s) = 1/n sum_i weight_i (hinge max(0, 1 - y_i s_i) + logistic log(1 + exp(-y_i s_i)))
//
// Input    scores of a sample; the share of every example, y_i weight_i / n; the weights of the two losses
// Output   loss and slope of the plane that touches R there, or the risk and its rise along a line
#pragma once

#include "clones.hpp"
#include "risk.hpp"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

namespace metrimax {

// One of two numbers by the sign bit of a third: a branch, or a choice that may become one, would keep loops from being
// vectorised.
inline double by_sign(double of, double if_negative, double otherwise) {
    uint64_t sign, first, second;
    std::memcpy(&sign, &of, sizeof sign);
    std::memcpy(&first, &if_negative, sizeof first);
    std::memcpy(&second, &otherwise, sizeof second);
    const uint64_t mask = 0 - (sign >> 63), bits = (first & mask) | (second & ~mask);
    double chosen;
    std::memcpy(&chosen, &bits, sizeof chosen);
    return chosen;
}

// exp(-x) for x from 0 to 700, and log(1 + e) for e from 0 to 1, without branches or calls, so that loops over them are
// vectorised: line searches need them more often than products with X. Within a few units in the last place.
inline double exp_minus(double x) {
    // 2^k exp(r) with |r| <= log(2) / 2; adding the constant, 1.5 * 2^52, rounds to a whole k, left in the lowest bits
    const double shifted = 6755399441055744.0 - x * 1.4426950408889634, k = shifted - 6755399441055744.0;
    const double r = (-x - k * 0.6931471803691238) - k * 1.9082149292705877e-10;
    double p = 1.0 / 479001600;
    p = p * r + 1.0 / 39916800;
    p = p * r + 1.0 / 3628800;
    p = p * r + 1.0 / 362880;
    p = p * r + 1.0 / 40320;
    p = p * r + 1.0 / 5040;
    p = p * r + 1.0 / 720;
    p = p * r + 1.0 / 120;
    p = p * r + 1.0 / 24;
    p = p * r + 1.0 / 6;
    p = p * r + 0.5;
    p = p * r + 1.0;
    p = p * r + 1.0;
    uint64_t bits, exponent;
    std::memcpy(&bits, &p, sizeof bits);
    std::memcpy(&exponent, &shifted, sizeof exponent);
    bits += exponent << 52;
    double e;
    std::memcpy(&e, &bits, sizeof e);
    return e;
}

inline double log_one_plus(double e) {
    const double z = e / (2 + e), s = z * z; // 2 artanh(z), z at most 1/3
    double q = 1.0 / 31;
    q = q * s + 1.0 / 29;
    q = q * s + 1.0 / 27;
    q = q * s + 1.0 / 25;
    q = q * s + 1.0 / 23;
    q = q * s + 1.0 / 21;
    q = q * s + 1.0 / 19;
    q = q * s + 1.0 / 17;
    q = q * s + 1.0 / 15;
    q = q * s + 1.0 / 13;
    q = q * s + 1.0 / 11;
    q = q * s + 1.0 / 9;
    q = q * s + 1.0 / 7;
    q = q * s + 1.0 / 5;
    q = q * s + 1.0 / 3;
    q = q * s + 1.0;
    return 2 * z * q;
}

// The losses of one example with a given margin, and how fast they fall as it grows; without `smooth` the hinge alone.
// No exponential overflows: only those of -|margin| are taken. Beyond a margin of 100 they are less than 1e-43,
// and taken as zero: X times slopes that are denormal numbers, or nearly, takes up to fifteen times as long.
template <bool smooth> struct ExampleLoss {
    double value, fall;
    double at_zero; // of the tangent, where the margin is zero; the entropy of a flip, in which nothing cancels

    ExampleLoss(double margin, double hinge, double logistic) {
        const double slack = 1 - margin;
        fall = at_zero = by_sign(slack, 0.0, hinge);
        value = hinge * by_sign(slack, 0.0, slack);
        if constexpr (smooth) {
            constexpr double kFar = 100;
            const double far = std::abs(margin), near = by_sign(kFar - far, kFar, far);
            const double e = by_sign(kFar - far, 0.0, exp_minus(near)), less = 1 / (1 + e), log = log_one_plus(e);
            value += logistic * (log + by_sign(margin, far, 0.0));
            fall += logistic * less * by_sign(margin, 1.0, e);
            at_zero += logistic * (log + near * e * less);
        }
    }
};

// The tangent to the losses of all examples: its loss, and its slopes. An example's share has the sign of its label.
template <bool smooth>
METRIMAX_CLONES inline double tangent_of_losses(const double *shares, const double *scores, size_t n, double hinge,
                                                double logistic, double *METRIMAX_RESTRICT slope) {
    double loss = 0;
#pragma omp simd reduction(+ : loss)
    for (size_t i = 0; i < n; ++i) {
        const ExampleLoss<smooth> here(by_sign(shares[i], -scores[i], scores[i]), hinge, logistic);
        loss += std::abs(shares[i]) * here.at_zero;
        slope[i] = -shares[i] * here.fall;
    }
    return loss;
}

// The losses of all examples at scores + t move, and their rise in t.
template <bool smooth>
METRIMAX_CLONES inline std::pair<double, double> losses_along(const double *shares, const double *scores,
                                                              const double *move, size_t n, double hinge,
                                                              double logistic, double t) {
    double value = 0, rise = 0;
#pragma omp simd reduction(+ : value, rise)
    for (size_t i = 0; i < n; ++i) {
        const double score = scores[i] + t * move[i];
        const ExampleLoss<smooth> here(by_sign(shares[i], -score, score), hinge, logistic);
        value += std::abs(shares[i]) * here.value;
        rise -= shares[i] * here.fall * move[i];
    }
    return {value, rise};
}

// R(s) = sum_i |share_i| ( hinge max(0, 1 - m_i) + logistic log(1 + exp(-m_i)) ) with the margin m_i = sign(share_i)
// s_i.
class BaseLosses : public Risk {
  public:
    BaseLosses(const double *shares, size_t n, double hinge, double logistic)
        : shares(shares, shares + n), hinge(hinge), logistic(logistic) {}

    size_t size() const override { return shares.size(); }

    // The tangent, whatever mu; where a hinge has its kink, that of the side that falls.
    double plane(const double *scores, double, double *slope) override {
        const auto tangent = logistic > 0 ? tangent_of_losses<true> : tangent_of_losses<false>;
        return tangent(shares.data(), scores, shares.size(), hinge, logistic, slope);
    }

    Line line(const double *scores, const double *move) override {
        return [this, scores, move, along = logistic > 0 ? losses_along<true> : losses_along<false>](double t) {
            return along(shares.data(), scores, move, shares.size(), hinge, logistic, t);
        };
    }

  private:
    std::vector<double> shares;
    double hinge, logistic;
};

} // namespace metrimax
