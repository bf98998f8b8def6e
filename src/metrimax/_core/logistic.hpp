// The losses of examples one by one that may stand beside a measure's risk: hinges and logistic losses, weighted.
// Plain C++17, no Python.
#pragma once

#include "risk.hpp"

#include <cmath>
#include <utility>
#include <vector>

namespace metrimax {

// R(s) = sum_i |share_i| ( hinge max(0, 1 - m_i) + logistic log(1 + exp(-m_i)) ) with the margin m_i = sign(share_i)
// s_i. No exponential overflows: only those of -|m| are taken.
class BaseLosses : public Risk {
  public:
    BaseLosses(const double *shares, size_t n, double hinge, double logistic)
        : shares(shares, shares + n), hinge(hinge), logistic(logistic) {}

    size_t size() const override { return shares.size(); }

    // The tangent, whatever mu: where a hinge has a kink, that of its flat side.
    double plane(const double *scores, double, double *slope) override {
        double loss = 0;
        for (size_t i = 0; i < shares.size(); ++i) {
            const double weight = std::abs(shares[i]), margin = shares[i] < 0 ? -scores[i] : scores[i];
            double at_zero = margin < 1 ? hinge : 0.0, fall = at_zero;
            if (logistic > 0) {
                const double far = std::abs(margin), e = std::exp(-far), less = e / (1 + e);
                at_zero += logistic * (std::log1p(e) + far * less); // the entropy of the flip: nothing cancels
                fall += logistic * (margin > 0 ? less : 1 / (1 + e));
            }
            loss += weight * at_zero;
            slope[i] = -shares[i] * fall;
        }
        return loss;
    }

    Line line(const double *scores, const double *move) override {
        return [this, scores, move](double t) {
            double value = 0, rise = 0;
            for (size_t i = 0; i < shares.size(); ++i) {
                const double weight = std::abs(shares[i]), score = scores[i] + t * move[i];
                const double margin = shares[i] < 0 ? -score : score;
                double here = margin < 1 ? hinge * (1 - margin) : 0.0, fall = margin < 1 ? hinge : 0.0;
                if (logistic > 0) {
                    const double e = std::exp(-std::abs(margin));
                    here += logistic * (std::log1p(e) + (margin < 0 ? -margin : 0.0));
                    fall += logistic * (margin > 0 ? e / (1 + e) : 1 / (1 + e));
                }
                value += weight * here;
                rise -= shares[i] * fall * move[i];
            }
            return std::pair(value, rise);
        };
    }

  private:
    std::vector<double> shares;
    double hinge, logistic;
};

} // namespace metrimax
