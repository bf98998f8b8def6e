// Risks that several threads ask at once, and products that use several: both give what one thread gives.
#include "test_risks.hpp"

#include "check.hpp"
#include "matrix.hpp"

#include <thread>

namespace metrimax::tests {

namespace {

constexpr int kThreads = 4, kRounds = 40;

// Every thread asks for cuts and points of lines, in another order; one thread has said before what they are.
void check_shared(const std::string &name, Risk &risk, const Sample &sample, std::mt19937 &random) {
    std::vector<Vector> scores;
    for (int k = 0; k < 8; ++k)
        scores.push_back(sample.scores(random));
    Vector slope(risk.size()), cuts, points;
    for (size_t k = 0; k < scores.size(); ++k) {
        const double loss = risk.plane(scores[k].data(), 0.0, slope.data());
        cuts.push_back(loss + dot_of(slope, scores[k]));
        points.push_back(risk.line(scores[k].data(), scores[0].data())(0.5).first);
    }
    std::vector<int> wrong(kThreads, 0);
    std::vector<std::thread> team;
    for (int thread = 0; thread < kThreads; ++thread)
        team.emplace_back([&, thread] {
            Vector own(risk.size());
            for (int round = 0; round < kRounds; ++round) {
                const size_t k = static_cast<size_t>(thread + round * (thread + 1)) % scores.size();
                const double loss = risk.plane(scores[k].data(), 0.0, own.data());
                const double point = risk.line(scores[k].data(), scores[0].data())(0.5).first;
                wrong[static_cast<size_t>(thread)] +=
                    !close(loss + dot_of(own, scores[k]), cuts[k]) + !close(point, points[k]);
                risk.plane(scores[k].data(), 0.01, own.data());
            }
        });
    for (std::thread &thread : team)
        thread.join();
    for (const int count : wrong)
        check(count == 0, name + ": " + std::to_string(count) + " wrong values in one of several threads");
}

template <class M> void check_products(const std::string &name, const M &X, std::mt19937 &random) {
    std::normal_distribution<double> normal;
    for (const bool pull : {false, true})
        for (const size_t L : {1, 2, 3, 9}) {
            std::vector<Vector> in(L, Vector(pull ? X.n : X.p));
            for (Vector &vector : in)
                for (double &value : vector)
                    value = normal(random);
            std::vector<std::vector<Vector>> found;
            for (const int threads : {1, 4, 1, 4}) {
                found.emplace_back(L, Vector(pull ? X.p : X.n));
                Ins ins;
                Outs outs;
                for (size_t l = 0; l < L; ++l) {
                    ins.push_back(in[l].data());
                    outs.push_back(found.back()[l].data());
                }
                X.products(pull, ins, outs, threads);
            }
            for (size_t l = 0; l < L; ++l)
                for (size_t i = 0; i < found[0][l].size(); ++i)
                    for (size_t again = 1; again < found.size(); ++again) // CSR: by columns from the third time on
                        check_close(found[again][l][i], found[0][l][i], name + " by several threads");
        }
}

} // namespace

void test_threads() {
    std::mt19937 random(2);
    const Sample sample(1500, 0.3, random);
    for (const TableCase &one : table_cases(sample))
        check_shared(one.name, *table_search(sample, one), sample, random);
    TopSearch top(sample.y.data(), sample.n, 100, 1.0, -0.01);
    check_shared("top 100", top, sample, random);
    const auto pairs = pair_search(sample), precision = precision_search(sample, 1.0);
    check_shared("pairs", *pairs, sample, random);
    check_shared("average precision", *precision, sample, random);
    check_shared("first ranks", *top_ranking_search(sample, 1 / sample.pairs()), sample, random);
    SumOfRisks sum({{pairs.get(), 1.0}, {&top, 0.5}});
    check_shared("sum", sum, sample, random);
    std::vector<std::int64_t> order(sample.of.begin(), sample.of.end());
    MeanOfGroups mean(order.data(), order.size(), {{pairs.get(), 0}, {pairs.get(), 0}});
    check_shared("mean of groups", mean, sample, random);

    const size_t n = 4000, p = 120;
    std::vector<double> dense(n * p);
    for (double &value : dense)
        value = static_cast<double>(random() % 1000) / 1000;
    check_products("dense", DenseMatrix<double>{dense.data(), n, p, false}, random);
    check_products("Fortran order", DenseMatrix<double>{dense.data(), p, n, true}, random);
    std::vector<float> data;
    std::vector<std::int32_t> indices, indptr{0};
    for (size_t i = 0; i < n; ++i) {
        for (size_t j = random() % 7; j < p; j += 1 + random() % 3) {
            indices.push_back(static_cast<std::int32_t>(j));
            data.push_back(static_cast<float>(dense[i * p + j]));
        }
        indptr.push_back(static_cast<std::int32_t>(data.size()));
    }
    check_products("CSR",
                   CSRMatrix<float, std::int32_t>(data.data(), data.size(), indices.data(), indices.size(),
                                                  indptr.data(), indptr.size(), p, false),
                   random);
}

} // namespace metrimax::tests
