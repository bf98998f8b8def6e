// Python bindings of the risks of rankings.
#include "average_precision.hpp"
#include "bindings.hpp"
#include "top_ranking.hpp"

namespace metrimax {

namespace {

// The searches, together with the arrays they look at.

class PyPrecisionSearch : public PrecisionSearch {
  public:
    PyPrecisionSearch(In1<Place> pos, In1<Place> neg, double ratio, Index size)
        : PrecisionSearch(size, pos.data(), size_of(pos), neg.data(), size_of(neg), ratio), pos(pos), neg(neg) {}

  private:
    In1<Place> pos, neg;
};

class PyTopRankingSearch : public TopRankingSearch {
  public:
    PyTopRankingSearch(In1<Index> of, In1<Index> grades, In1<double> gains, In1<double> discounts, double weight,
                       Index size)
        : TopRankingSearch(size, graded(of, grades), gains.data(), size_of(gains), discounts.data(), size_of(discounts),
                           weight),
          of(of), grades(grades), gains(gains), discounts(discounts) {}

  private:
    static Graded graded(const In1<Index> &of, const In1<Index> &grades) {
        check_length("TopRankingSearch: grades", grades.size(), of.size());
        return {of.data(), grades.data(), size_of(of)};
    }

    In1<Index> of, grades;
    In1<double> gains, discounts;
};

Out1<Index> interleave(In1<double> pos, In1<double> neg, double ratio) {
    Fresh<Index> above = empty<Index>(neg.size());
    {
        nb::gil_scoped_release unlocked;
        Interleaving(pos.data(), size_of(pos), size_of(neg), neg.data(), size_of(neg), ratio, above.get());
    }
    return make_array(std::move(above), neg.size());
}

} // namespace

void bind_rankings(nb::module_ &m) {
    nb::class_<PyPrecisionSearch, Risk>(m, "PrecisionSearch", "The most violated ranking of average precision.")
        .def(nb::init<In1<Place>, In1<Place>, double, Index>(), nb::arg("pos").noconvert(), nb::arg("neg").noconvert(),
             nb::arg("ratio"), nb::arg("size"));
    m.def("interleave", &interleave, nb::arg("pos").noconvert(), nb::arg("neg").noconvert(), nb::arg("ratio"),
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
