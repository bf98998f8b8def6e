// Python bindings of the argmax kernels of ranking measures.
#include "bindings.hpp"
#include "bundle.hpp"
#include "precision.hpp"
#include "rankings.hpp"

#include <nanobind/stl/pair.h>

#include <vector>

namespace metrimax {

constexpr double kMostStates = 1 << 24; // nine bytes each

class PyPrecisionSearch : public Risk {
  public:
    PyPrecisionSearch(In1<Place> pos, In1<Place> neg, double ratio, Index size)
        : pos(pos), neg(neg), ratio(ratio), n_scores(static_cast<size_t>(size)) {
        for (const In1<Place> &members : {pos, neg}) {
            require(members.size() > 0, "PrecisionSearch: a class is empty");
            for (size_t k = 0; k < members.size(); ++k)
                require(members.data()[k] < size, "PrecisionSearch: a member is out of range");
        }
    }

    size_t size() const override { return n_scores; }

    double plane(const double *scores, double, double *slope) override {
        std::fill_n(slope, n_scores, 0.0);
        const PrecisionRanking worst = ranking(scores, nullptr, 0.0);
        worst.slope(slope);
        return worst.loss();
    }

    Line line(const double *scores, const double *move) override {
        return [this, scores, move](double t) { return ranking(scores, move, t).risk(); };
    }

  private:
    PrecisionRanking ranking(const double *scores, const double *move, double t) {
        return {pos.data(), static_cast<Index>(pos.size()),
                neg.data(), static_cast<Index>(neg.size()),
                ratio,      scores,
                move,       t,
                enough};
    }

    In1<Place> pos, neg;
    double ratio;
    size_t n_scores;
    Index enough = 0;
};

class PyTopRankingSearch : public Risk {
  public:
    // Whose example each of those ranked is a copy of, and its grade; the size of the sample.
    PyTopRankingSearch(In1<Index> of, In1<Index> grades, In1<double> gains, In1<double> discounts, double weight,
                       Index size)
        : of(of), grades(grades), gains(gains), discounts(discounts), weight(weight),
          n_scores(static_cast<size_t>(size)) {
        const auto n = static_cast<Index>(of.size()), L = static_cast<Index>(gains.size());
        check_length("TopRankingSearch: grades", grades.size(), of.size());
        const auto within = [](const In1<Index> &values, Index end) {
            return std::all_of(values.data(), values.data() + values.size(),
                               [end](Index value) { return value >= 0 && value < end; });
        };
        require(within(of, size), "TopRankingSearch: an example is out of range");
        require(L <= 100 && within(grades, L), "TopRankingSearch: grades must lie in 0 ... len(gains) - 1 < 100");
        K = std::min(static_cast<Index>(discounts.size()), n);
        require(TopArgmax::states(grades.data(), n, L, K) <= kMostStates,
                "TopRankingSearch: too many combinations of grades in the first ranks");
    }

    size_t size() const override { return n_scores; }

    double plane(const double *scores, double, double *slope) override {
        const std::vector<double> its = copies([=](size_t i) { return scores[i]; });
        std::vector<double> slopes(of.size());
        const double loss = ranking(its, slopes);
        std::fill_n(slope, n_scores, 0.0);
        for (size_t i = 0; i < slopes.size(); ++i)
            slope[of.data()[i]] += slopes[i];
        return loss;
    }

    Line line(const double *scores, const double *move) override {
        return [this, scores, move](double t) {
            const std::vector<double> its = copies([=](size_t i) { return scores[i] + t * move[i]; });
            std::vector<double> slopes(of.size());
            double value = ranking(its, slopes), rise = 0;
            for (size_t i = 0; i < slopes.size(); ++i) {
                value += slopes[i] * its[i];
                rise += slopes[i] * move[of.data()[i]];
            }
            return std::pair(value, rise);
        };
    }

  private:
    template <class Score> std::vector<double> copies(Score score) const {
        std::vector<double> its(of.size());
        for (size_t i = 0; i < its.size(); ++i)
            its[i] = score(static_cast<size_t>(of.data()[i]));
        return its;
    }

    double ranking(const std::vector<double> &scores, std::vector<double> &slopes) const {
        const TopArgmax best(scores.data(), grades.data(), static_cast<Index>(of.size()), gains.data(),
                             static_cast<Index>(gains.size()), discounts.data(), K, weight);
        best.slope(grades.data(), slopes.data());
        return best.loss();
    }

    In1<Index> of, grades;
    In1<double> gains, discounts;
    double weight;
    size_t n_scores;
    Index K;
};

void bind_rankings(nb::module_ &m) {
    nb::class_<PyPrecisionSearch, Risk>(m, "PrecisionSearch", "The most violated ranking of average precision.")
        .def(nb::init<In1<Place>, In1<Place>, double, Index>(), nb::arg("pos").noconvert(), nb::arg("neg").noconvert(),
             nb::arg("ratio"), nb::arg("size"));
    m.def(
        "interleave",
        [](In1<double> pos, In1<double> neg, double ratio) {
            const auto n_pos = static_cast<Index>(pos.size()), n_neg = static_cast<Index>(neg.size());
            const double *p = pos.data(), *q = neg.data();
            Fresh<Index> above = empty<Index>(neg.size());
            {
                nb::gil_scoped_release unlocked;
                Interleaving(p, n_pos, n_neg, q, n_neg, ratio, above.get());
            }
            return make_array(std::move(above), neg.size());
        },
        nb::arg("pos").noconvert(), nb::arg("neg").noconvert(), nb::arg("ratio"),
        "How many positives stand above each negative in the most violated ranking of average precision; scores "
        "descending.");
    nb::class_<PyTopRankingSearch, Risk>(
        m, "TopRankingSearch",
        "The most violated ranking, for a loss of the grades at the first ranks. Examples may be repeated: `of`.")
        .def(nb::init<In1<Index>, In1<Index>, In1<double>, In1<double>, double, Index>(), nb::arg("of").noconvert(),
             nb::arg("grades").noconvert(), nb::arg("gains").noconvert(), nb::arg("discounts").noconvert(),
             nb::arg("weight"), nb::arg("size"));
}

} // namespace metrimax
