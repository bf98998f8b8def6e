// Risks against brute force: over all labellings, or all rankings, of small samples.
//
// At any scores s a risk must be the maximum, its cut must touch it there, and lie nowhere above it.
#include "test_risks.hpp"

#include "check.hpp"

#include <functional>
#include <numeric>

namespace metrimax::tests {

namespace {

using Brute = std::function<double(const Vector &)>;

// All that a risk answers, at some scores and along lines between them.
void check_risk(const std::string &name, Risk &risk, const Brute &brute, const Sample &sample, std::mt19937 &random) {
    Vector slope(risk.size(), 7.0); // which is overwritten
    for (int round = 0; round < 6; ++round) {
        const Vector scores = sample.scores(random, round % 2 == 1), other = sample.scores(random);
        const double here = brute(scores);
        const double loss = risk.plane(scores.data(), 0.0, slope.data());
        check_close(loss + dot_of(slope, scores), here, name + ", the cut where it is taken");
        check(loss + dot_of(slope, other) <= brute(other) + 1e-10, name + ", the cut elsewhere");
        const double mu = 0.05, mean_loss = risk.plane(scores.data(), mu, slope.data());
        const double value = mean_loss + dot_of(slope, scores);
        check(value <= here + 1e-10 && value >= here - mu - 1e-10, name + ", a mean of cuts where it is taken");
        check(mean_loss + dot_of(slope, other) <= brute(other) + 1e-10, name + ", a mean of cuts elsewhere");
        const Line line = risk.line(scores.data(), other.data());
        for (const double t : {0.0, 0.3, 1.7}) {
            Vector at(scores), beyond(scores);
            for (size_t i = 0; i < at.size(); ++i) {
                at[i] += t * other[i];
                beyond[i] += (t + 0.4) * other[i];
            }
            const auto [on_line, rise] = line(t);
            check_close(on_line, brute(at), name + ", the risk on a line");
            check(on_line + 0.4 * rise <= brute(beyond) + 1e-10, name + ", its rise");
        }
    }
}

double over_labellings(const Sample &sample, const Vector &s, const TableCase &one) {
    double best = 0; // of the true labelling
    for (unsigned flips = 0; flips < 1u << sample.n; ++flips) {
        Index fn = 0, fp = 0;
        double cost = 0;
        for (Index i = 0; i < sample.n; ++i)
            if (flips >> i & 1u) {
                (sample.y[i] ? fn : fp) += 1;
                cost += sample.y[i] ? s[i] : -s[i];
            }
        best = std::max(best, one.loss(fn, fp, sample.n_pos()) - sample.step() * cost);
    }
    return best;
}

double over_calls(const Sample &sample, const Vector &s, Index k, double u, double v) {
    double best = 0;
    for (unsigned called = 0; called < 1u << sample.n; ++called) {
        Index count = 0, hits = 0;
        double change = 0;
        for (Index i = 0; i < sample.n; ++i) {
            const Index one = called >> i & 1u;
            count += one;
            hits += one * sample.y[i];
            change += static_cast<double>(one - sample.y[i]) * s[i];
        }
        if (count == k)
            best = std::max(best, u + v * static_cast<double>(hits) + sample.step() * change);
    }
    return best;
}

double over_pairs(const Sample &sample, const Vector &s) {
    double sum = 0;
    for (const Place i : sample.pos)
        for (const Place j : sample.neg)
            sum += std::max(0.0, 1 - s[i] + s[j]);
    return sum / sample.pairs();
}

// The greatest of value(ranking) - weight * (scores lost by pairs in the wrong order), where rank(i) tells who should
// stand above whom.
template <class Rank, class Value> double over_rankings(const Vector &s, double weight, Rank rank, Value value) {
    std::vector<Index> order(s.size());
    std::iota(order.begin(), order.end(), Index{0});
    double best = -1e300;
    do {
        double lost = 0;
        for (size_t a = 0; a < order.size(); ++a)
            for (size_t b = a + 1; b < order.size(); ++b)
                if (rank(order[b]) > rank(order[a]))
                    lost += s[order[b]] - s[order[a]];
        best = std::max(best, value(order) - weight * lost);
    } while (std::next_permutation(order.begin(), order.end()));
    return best;
}

double over_precisions(const Sample &sample, const Vector &s, double ratio) {
    return over_rankings(
        s, 1 / sample.pairs(), [&](Index i) { return static_cast<Index>(sample.y[i]); },
        [&](const std::vector<Index> &order) {
            double precision = 0, hits = 0, misses = 0;
            for (const Index i : order) {
                (sample.y[i] ? hits : misses) += 1;
                if (sample.y[i])
                    precision += hits / (hits + ratio * misses);
            }
            return 1 - precision / static_cast<double>(sample.n_pos());
        });
}

double over_top_ranks(const Sample &sample, const Vector &s, double weight) {
    return over_rankings(
        s, weight, [&](Index i) { return sample.grades[i]; },
        [&](const std::vector<Index> &order) {
            double kept = 0;
            for (size_t r = 0; r < std::min(order.size(), sample.discounts.size()); ++r)
                kept += sample.discounts[r] * sample.gains[sample.grades[order[r]]];
            return 1 - kept;
        });
}

double over_examples(const Vector &shares, const Vector &s, double hinge, double logistic) {
    double sum = 0;
    for (size_t i = 0; i < s.size(); ++i) {
        const double margin = shares[i] < 0 ? -s[i] : s[i];
        sum += std::abs(shares[i]) * (hinge * std::max(0.0, 1 - margin) + logistic * std::log1p(std::exp(-margin)));
    }
    return sum;
}

void check_composed(const Sample &sample, std::mt19937 &random) {
    const auto pairs = pair_search(sample);
    const auto pairs_of = [&](const Vector &s) { return over_pairs(sample, s); };
    Vector shares(sample.y.size());
    for (size_t i = 0; i < shares.size(); ++i)
        shares[i] = (sample.y[i] ? 0.5 : -0.25) * sample.step();
    BaseLosses losses(shares.data(), shares.size(), 0.7, 1.3);
    const auto losses_of = [&](const Vector &s) { return over_examples(shares, s, 0.7, 1.3); };
    check_risk("base losses", losses, losses_of, sample, random);
    SumOfRisks sum({{pairs.get(), 1.0}, {&losses, 0.5}});
    check_risk("sum", sum, [&](const Vector &s) { return pairs_of(s) + 0.5 * losses_of(s); }, sample, random);
    // Two groups, of which one is turned around, and one example of none.
    const Index n = sample.n, all = 2 * n + 1;
    std::vector<std::int64_t> order(static_cast<size_t>(all));
    std::iota(order.begin(), order.end(), std::int64_t{0});
    std::reverse(order.begin() + n, order.begin() + 2 * n);
    MeanOfGroups mean(order.data(), order.size(), {{pairs.get(), 0}, {pairs.get(), static_cast<size_t>(n)}});
    Sample twice(sample);
    twice.n = all;
    twice.y.resize(order.size());
    const Brute mean_of = [&](const Vector &s) {
        const Vector first(s.begin(), s.begin() + n);
        Vector second(s.begin() + n, s.begin() + 2 * n);
        std::reverse(second.begin(), second.end());
        return (pairs_of(first) + pairs_of(second)) / 2;
    };
    check_risk("mean of groups", mean, mean_of, twice, random);
}

template <class Make> void check_refused(const char *what, Make make) {
    try {
        make();
        check(false, std::string(what) + ": expected std::invalid_argument");
    } catch (const std::invalid_argument &) {
    }
}

} // namespace

void test_risks() {
    std::mt19937 random(1);
    for (const Index n : {2, 3, 5, 8, 10})
        for (const double share : {0.2, 0.6, 0.9}) {
            const Sample sample(n, share, random);
            for (const TableCase &one : table_cases(sample)) {
                const auto risk = table_search(sample, one);
                check_risk(
                    one.name, *risk, [&](const Vector &s) { return over_labellings(sample, s, one); }, sample, random);
            }
            for (const Index k : {Index{1}, (n + 1) / 2, n}) {
                TopSearch risk(sample.y.data(), n, k, 1.0, -1.0 / static_cast<double>(k));
                const Brute brute = [&](const Vector &s) {
                    return over_calls(sample, s, k, 1.0, -1.0 / static_cast<double>(k));
                };
                check_risk("top " + std::to_string(k), risk, brute, sample, random);
            }
            const auto pairs = pair_search(sample);
            check_risk("pairs", *pairs, [&](const Vector &s) { return over_pairs(sample, s); }, sample, random);
            check_composed(sample, random);
        }
    for (const Index n : {2, 4, 6}) {
        const Sample sample(n, 0.5, random);
        for (const double ratio : {1.0, 0.3}) {
            const auto risk = precision_search(sample, ratio);
            check_risk(
                "average precision", *risk, [&](const Vector &s) { return over_precisions(sample, s, ratio); }, sample,
                random);
        }
        const double weight = 1 / sample.pairs();
        const auto risk = top_ranking_search(sample, weight);
        check_risk(
            "first ranks", *risk, [&](const Vector &s) { return over_top_ranks(sample, s, weight); }, sample, random);
    }
    const Sample sample(5, 0.5, random);
    const std::vector<Place> far{0, 5};
    check_refused("a member beyond the sample", [&] { Side::of(far.data(), 2, 1.0, 5, 0.2, 0.0, 1.0); });
    check_refused("k = 0", [&] { TopSearch(sample.y.data(), 5, 0, 1.0, -1.0); });
    check_refused("an empty class", [&] { PrecisionSearch(5, far.data(), 0, far.data(), 1, 1.0); });
}

} // namespace metrimax::tests
