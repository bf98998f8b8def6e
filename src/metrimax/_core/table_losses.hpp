// The losses of one measure on one sample, for every table of so many false negatives and so many false positives.
//
// Input    the coefficients of the measure, by its structure: see table_argmax.hpp
// Output   the loss of a table, and the best table for given costs of the flips
#pragma once

#include "fraction_argmax.hpp"

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace metrimax {

struct Tables {
    double top;  // the greatest loss of any table
    bool rising; // no loss falls with one more mistake of either kind

    Tables(double top, bool rising) : top(top), rising(rising) {}
    virtual ~Tables() = default;
    virtual Best best(const Queue &pos, const Queue &neg, const std::vector<double> &P,
                      const std::vector<double> &N) const = 0;
    virtual double loss(Index fn, Index fp) const = 0;
};

// D = u[m] + v[m] * tp, by the number m = tp + fp of predicted positives, m_low <= m <= m_high.
struct CountTables : Tables {
    Index n_pos, m_low, m_high;
    ByCount u, v;
    bool bent; // u and v

    CountTables(Index n_pos, Index m_low, Index m_high, ByCount u, ByCount v, double top, bool rising)
        : Tables(top, rising), n_pos(n_pos), m_low(m_low), m_high(m_high), u(u), v(v),
          bent(metrimax::bent(u, m_high - m_low + 1) && metrimax::bent(v, m_high - m_low + 1)) {}
    Best best(const Queue &pos, const Queue &neg, const std::vector<double> &P,
              const std::vector<double> &N) const override {
        const CountScan scan(pos, neg, P, N, n_pos, m_low, m_high, u, v);
        return bent ? scan.best_bent() : scan.best();
    }
    double loss(Index fn, Index fp) const override {
        const Index tp = n_pos - fn, m = tp + fp;
        return u[m - m_low] + v[m - m_low] * static_cast<double>(tp);
    }
};

// D = link(A[fn], B[fp]).
template <class Link> struct LinkTables : Tables {
    const double *A, *B;

    LinkTables(const double *A, const double *B, double top, bool rising) : Tables(top, rising), A(A), B(B) {}
    Best best(const Queue &pos, const Queue &neg, const std::vector<double> &P,
              const std::vector<double> &N) const override {
        return MongeArgmax<Link>(pos, neg, P, N, A, B)();
    }
    double loss(Index fn, Index fp) const override { return Link{}(A[fn], B[fp]); }
};

// D is a fraction of linear functions of fn and fp.
struct FractionTables : Tables {
    Fraction fraction;
    bool concave;

    FractionTables(Fraction fraction, Index n_pos, double top, bool rising)
        : Tables(top, rising), fraction(fraction), concave(fraction.concave(static_cast<double>(n_pos))) {}
    Best best(const Queue &pos, const Queue &neg, const std::vector<double> &P,
              const std::vector<double> &N) const override {
        return FractionArgmax(pos, neg, P, N, fraction, concave, rising)();
    }
    double loss(Index fn, Index fp) const override {
        return fraction(static_cast<double>(fn), static_cast<double>(fp));
    }
};

// What such tables are made from. By count: u and v from m_low on. By link: A for 0 .. n_pos, B for 0 .. n_neg. By
// fraction: the coefficients of 1, fn and fp above and below the line.
struct Coefficients {
    std::string structure; // "count", "product", "hypot", "max" or "fraction"
    ByCount first, second;
    Index first_size, second_size;
    Index m_low; // by count
    double top;
    bool rising;

    // For a sample of so many positives and negatives. Throws std::invalid_argument where the lengths do not fit.
    std::unique_ptr<Tables> tables(Index n_pos, Index n_neg) const {
        if (structure == "count") {
            expect(first_size > 0 && second_size == first_size, "u and v of one length, one or more");
            expect(m_low >= 0 && m_low <= n_pos + n_neg - (first_size - 1),
                   "u and v for numbers of predicted positives from 0 to the size of the sample");
            // The proof asks for the losses of tables with any number of predicted positives.
            expect(!rising || first_size == n_pos + n_neg + 1,
                   "u and v for all numbers of predicted positives where the loss is rising");
            return std::make_unique<CountTables>(n_pos, m_low, m_low + first_size - 1, first, second, top, rising);
        }
        expect(first.stride == 1 && second.stride == 1, "A and B in one piece");
        if (structure == "fraction") {
            expect(first_size == 3 && second_size == 3, "three coefficients above the line and three below it");
            const Fraction fraction{{first[0], first[1], first[2]}, {second[0], second[1], second[2]}};
            return std::make_unique<FractionTables>(fraction, n_pos, top, rising);
        }
        expect(first_size == n_pos + 1 && second_size == n_neg + 1,
               "A and B for every number of mistakes, one more than the members of the class");
        if (structure == "product")
            return std::make_unique<LinkTables<ProductLink>>(first.values, second.values, top, rising);
        if (structure == "hypot")
            return std::make_unique<LinkTables<HypotLink>>(first.values, second.values, top, rising);
        expect(structure == "max", "'count', 'product', 'hypot', 'max' or 'fraction'");
        return std::make_unique<LinkTables<MaxLink>>(first.values, second.values, top, rising);
    }

  private:
    void expect(bool fits, const char *what) const {
        if (!fits)
            throw std::invalid_argument("losses of tables: expected " + std::string(what) + ", got the structure '" +
                                        structure + "' with lengths " + std::to_string(first_size) + " and " +
                                        std::to_string(second_size));
    }
};

} // namespace metrimax
