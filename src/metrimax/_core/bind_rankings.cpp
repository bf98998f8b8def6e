// Python bindings of the argmax kernels of ranking measures.
#include "bindings.hpp"
#include "bundle.hpp"
#include "precision.hpp"
#include "rankings.hpp"

#include <nanobind/stl/pair.h>

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
    m.def(
        "top_argmax",
        [](In1<double> scores, In1<Index> grades, In1<double> gains, In1<double> discounts, double weight,
           InOut1<double> slope) {
            check_length("top_argmax: grades", grades.size(), scores.size());
            check_length("top_argmax: slope", slope.size(), scores.size());
            const auto n = static_cast<Index>(scores.size()), L = static_cast<Index>(gains.size());
            const auto K = std::min(static_cast<Index>(discounts.size()), n);
            const double *s = scores.data(), *G = gains.data(), *D = discounts.data();
            const Index *y = grades.data();
            double *out = slope.data();
            if (L > 100 || std::any_of(y, y + n, [L](Index g) { return g < 0 || g >= L; }))
                throw nb::value_error("top_argmax: grades must lie in 0 ... len(gains) - 1 < 100");
            if (TopArgmax::states(y, n, L, K) > kMostStates)
                throw nb::value_error("top_argmax: too many combinations of grades in the first ranks");
            nb::gil_scoped_release unlocked;
            const TopArgmax best(s, y, n, G, L, D, K, weight);
            best.slope(y, out);
            return best.loss();
        },
        nb::arg("scores").noconvert(), nb::arg("grades").noconvert(), nb::arg("gains").noconvert(),
        nb::arg("discounts").noconvert(), nb::arg("weight"), nb::arg("slope").noconvert(),
        "Loss and slope of the most violated ranking, for a loss of the grades at the first ranks.");
}

} // namespace metrimax
