// What the C++ tests share: checks that count their failures, random samples, and the risks of one.
#pragma once

#include "average_precision.hpp"
#include "composed_risks.hpp"
#include "logistic.hpp"
#include "pair_search.hpp"
#include "table_search.hpp"
#include "top_k_search.hpp"
#include "top_ranking.hpp"

#include <cstdio>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace metrimax::tests {

using Vector = std::vector<double>;

inline int failures = 0;

inline void check(bool holds, const std::string &what) {
    if (!holds && ++failures <= 20)
        std::printf("FAILED %s\n", what.c_str());
}

inline bool close(double a, double b) { return std::abs(a - b) <= 1e-10 * (1 + std::abs(a) + std::abs(b)); }

inline void check_close(double found, double expected, const std::string &what) {
    check(close(found, expected), what + ": expected " + std::to_string(expected) + ", got " + std::to_string(found));
}

inline double dot_of(const Vector &a, const Vector &b) {
    double sum = 0;
    for (size_t i = 0; i < a.size(); ++i)
        sum += a[i] * b[i];
    return sum;
}

// A sample of which every risk below can be made: labels, grades, and the members of both classes.
struct Sample {
    Index n;
    std::vector<unsigned char> y;
    std::vector<Place> pos, neg;
    std::vector<Index> of, grades;
    Vector gains{0.0, 0.4, 1.0}, discounts{0.6, 0.3, 0.1};

    Sample(Index n, double share, std::mt19937 &random)
        : n(n), y(static_cast<size_t>(n)), of(y.size()), grades(y.size()) {
        std::uniform_real_distribution<double> uniform;
        for (size_t i = 0; i < y.size(); ++i) {
            y[i] = i == 0 || (i != 1 && uniform(random) < share);
            (y[i] ? pos : neg).push_back(static_cast<Place>(i));
            of[i] = static_cast<Index>(i);
            grades[i] = y[i] ? 1 + static_cast<Index>(2 * uniform(random)) : 0;
        }
    }

    Index n_pos() const { return static_cast<Index>(pos.size()); }
    Index n_neg() const { return static_cast<Index>(neg.size()); }
    double step() const { return 1.0 / static_cast<double>(n); }
    double pairs() const { return static_cast<double>(n_pos()) * static_cast<double>(n_neg()); }

    Vector scores(std::mt19937 &random, bool ties = false) const {
        std::normal_distribution<double> normal;
        Vector s(y.size());
        for (size_t i = 0; i < s.size(); ++i) {
            s[i] = normal(random) + (y[i] ? 0.7 : -0.7);
            s[i] = ties ? std::round(2 * s[i]) / 2 : s[i];
        }
        return s;
    }
};

// The loss of a table, and the coefficients that say the same to the search.
struct TableCase {
    std::string name, structure;
    Vector first, second;
    Index m_low;
    bool rising;

    double loss(Index fn, Index fp, Index n_pos) const {
        if (structure == "count") {
            const Index tp = n_pos - fn, m = tp + fp - m_low;
            if (m < 0 || m >= static_cast<Index>(first.size()))
                return -std::numeric_limits<double>::infinity(); // not admissible
            return first[m] + second[m] * static_cast<double>(tp);
        }
        const double a = first[fn], b = second[fp];
        return structure == "product" ? ProductLink{}(a, b)
               : structure == "hypot" ? HypotLink{}(a, b)
                                      : MaxLink{}(a, b);
    }
};

inline std::vector<TableCase> table_cases(const Sample &sample) {
    const Index P = sample.n_pos(), N = sample.n_neg();
    TableCase f1{"f1", "count", {}, {}, 0, true}, error{"error", "count", {}, {}, 0, true};
    for (Index m = 0; m <= P + N; ++m) {
        f1.first.push_back(1.0);
        f1.second.push_back(-2.0 / static_cast<double>(P + m));
        error.first.push_back(static_cast<double>(P + m) * sample.step()); // (fn + fp) / n = (P + m - 2 tp) / n
        error.second.push_back(-2.0 * sample.step());
    }
    std::vector<TableCase> cases{f1, error};
    cases.push_back({"break-even", "count", {1.0}, {-1.0 / static_cast<double>(P)}, P, false}); // m = P alone
    for (const char *link : {"product", "hypot", "max"}) {
        TableCase one{link, link, {}, {}, 0, true};
        for (Index i = 0; i <= P; ++i)
            one.first.push_back(static_cast<double>(i) / static_cast<double>(P));
        for (Index j = 0; j <= N; ++j)
            one.second.push_back(static_cast<double>(j) / static_cast<double>(N));
        cases.push_back(one);
    }
    return cases;
}

// The greatest loss of any table, which the search may count on.
inline double top_of(const TableCase &one, Index P, Index N) {
    double top = 0;
    for (Index i = 0; i <= P; ++i)
        for (Index j = 0; j <= N; ++j)
            top = std::max(top, one.loss(i, j, P));
    return top;
}

inline std::unique_ptr<Risk> table_search(const Sample &sample, const TableCase &one) {
    constexpr double kInf = std::numeric_limits<double>::infinity();
    const auto size = [](const Vector &v) { return static_cast<Index>(v.size()); };
    const Coefficients loss{one.structure,
                            {one.first.data(), 1},
                            {one.second.data(), 1},
                            size(one.first),
                            size(one.second),
                            one.m_low,
                            top_of(one, sample.n_pos(), sample.n_neg()),
                            one.rising};
    const auto side = [&](const std::vector<Place> &members, double sign) {
        return Side::of(members.data(), static_cast<Index>(members.size()), sign, sample.n, sample.step(), -kInf, kInf);
    };
    return std::make_unique<TableSearch>(sample.n, side(sample.pos, 1.0), side(sample.neg, -1.0),
                                         loss.tables(sample.n_pos(), sample.n_neg()));
}

inline std::unique_ptr<Risk> pair_search(const Sample &sample) {
    const PairClass pos{{sample.pos.data(), sample.n_pos(), 1.0}, nullptr};
    const PairClass neg{{sample.neg.data(), sample.n_neg(), -1.0}, nullptr};
    return std::make_unique<PairSearch>(sample.n, pos, neg, sample.pairs());
}

inline std::unique_ptr<Risk> precision_search(const Sample &sample, double ratio) {
    return std::make_unique<PrecisionSearch>(sample.n, sample.pos.data(), sample.n_pos(), sample.neg.data(),
                                             sample.n_neg(), ratio);
}

inline std::unique_ptr<Risk> top_ranking_search(const Sample &sample, double weight) {
    const Graded ranked{sample.of.data(), sample.grades.data(), sample.n};
    return std::make_unique<TopRankingSearch>(sample.n, ranked, sample.gains.data(), 3, sample.discounts.data(), 3,
                                              weight);
}

} // namespace metrimax::tests
