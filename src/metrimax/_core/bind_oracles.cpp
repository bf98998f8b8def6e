// Python bindings of the risks of contingency tables and of pairs.
#include "bind_records.hpp"
#include "pair_search.hpp"
#include "table_search.hpp"
#include "top_k_search.hpp"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <numeric>
#include <string>
#include <tuple>
#include <vector>

namespace metrimax {

namespace {

using Pair = std::pair<double, double>;

std::pair<double, Out1<double>> cut(Risk &risk, In1<double> scores, double mu) {
    check_length("scores", scores.size(), risk.size());
    auto slope = empty<double>(risk.size());
    double loss;
    {
        nb::gil_scoped_release unlocked;
        loss = risk.plane(scores.data(), mu, slope.get());
    }
    return {loss, make_array(std::move(slope), risk.size())};
}

// The risk along a line, together with the arrays it looks at.
class PyLine {
  public:
    PyLine(Risk &risk, In1<double> scores, In1<double> move) : scores(scores), move(move) {
        check_length("scores", scores.size(), risk.size());
        check_length("move", move.size(), risk.size());
        line = risk.line(scores.data(), move.data());
    }

    Pair at(double t) const {
        nb::gil_scoped_release unlocked;
        return line(t);
    }

  private:
    In1<double> scores, move;
    Line line;
};

// A class of which the examples flip or not.
struct PyFlips {
    In1<Place> members;
    double sign, step, low, high;
    In1<double> weights; // none where all are alike
    Index units;

    bool alike() const { return weights.size() == 0; }
    Index count() const { return alike() ? size_of(members) : units; }
    Side side(Index sample) const {
        if (alike())
            return Side::of(members.data(), size_of(members), sign, sample, step, low, high);
        check_length("FlipClass.weighted: weights", weights.size(), static_cast<size_t>(sample));
        return Side::weighted(members.data(), size_of(members), sign, sample, step, weights.data(), units);
    }
};

// What a measure makes of the counts.
struct PyTables {
    std::string structure;
    Strided1<double> first, second;
    Index m_low;
    double top;
    bool rising;

    std::unique_ptr<Tables> tables(Index n_pos, Index n_neg) const {
        return Coefficients{structure, by_count(first), by_count(second), size_of(first), size_of(second), m_low,
                            top,       rising}
            .tables(n_pos, n_neg);
    }
};

// The searches, together with the arrays they look at.

class PyTableSearch : public TableSearch {
  public:
    PyTableSearch(Index size, const PyFlips &pos, const PyFlips &neg, const PyTables &losses)
        : TableSearch(size, pos.side(size), neg.side(size), losses.tables(pos.count(), neg.count())), pos(pos),
          neg(neg), losses(losses) {}

  private:
    PyFlips pos, neg;
    PyTables losses;
};

class PyPairSearch : public PairSearch {
  public:
    PyPairSearch(Index size, const PyPairClass &sorted, const PyPairClass &other, double pairs)
        : PairSearch(size, sorted.view(), other.view(), pairs), sorted(sorted), other(other) {}

  private:
    PyPairClass sorted, other;
};

Members checked(const char *who, const In1<Place> &members, double sign, const In1<double> &scores) {
    check_members(who, members.data(), size_of(members), size_of(scores));
    return {members.data(), size_of(members), sign};
}

std::tuple<Out1<double>, Index, double> py_collect(In1<double> scores, In1<Place> members, double sign, double low,
                                                   double high) {
    const PointCosts costs{scores.data(), checked("collect", members, sign, scores)};
    auto room = empty<double>(members.size() + 1);
    Collected got;
    {
        nb::gil_scoped_release unlocked;
        const std::unique_ptr<Place[]> places(new Place[members.size() + 1]);
        got = without_certain(room.get(), collect(costs, high, room.get(), places.get()), low);
    }
    return {make_array(std::move(room), static_cast<size_t>(got.size)), got.first, got.first_sum};
}

void py_mark(In1<double> scores, In1<Place> members, double sign, std::pair<Index, double> lowest, double value,
             InOut1<double> slope) {
    check_length("mark: slope", slope.size(), scores.size());
    const PointCosts costs{scores.data(), checked("mark", members, sign, scores)};
    nb::gil_scoped_release unlocked;
    std::vector<Place> places(members.size());
    std::iota(places.begin(), places.end(), Place{0});
    mark(costs, places.data(), costs.members.size, lowest.first, lowest.second, value, slope.data());
}

using Table = std::tuple<double, Index, Index>;

Table count_argmax(const PyQueue &pos, const PyQueue &neg, const PyCounts &loss) {
    const Queue p = pos.view(), q = neg.view();
    nb::gil_scoped_release unlocked;
    const auto P = p.prefix(), N = q.prefix();
    const Best best = loss.scan(p, q, P, N).best();
    return {best.value, best.i, best.j};
}

template <class Link> Best monge(const Queue &pos, const Queue &neg, const double *A, const double *B) {
    const auto P = pos.prefix(), N = neg.prefix();
    return MongeArgmax<Link>(pos, neg, P, N, A, B)();
}

Table monge_argmax(const std::string &link, const PyQueue &pos, const PyQueue &neg, In1<double> A, In1<double> B) {
    const Queue p = pos.view(), q = neg.view();
    require(p.first + p.size < size_of(A), "monge_argmax: expected A for every number of flips, got fewer");
    require(q.first + q.size < size_of(B), "monge_argmax: expected B for every number of flips, got fewer");
    const auto run = link == "product" ? monge<ProductLink>
                     : link == "hypot" ? monge<HypotLink>
                     : link == "max"   ? monge<MaxLink>
                                       : nullptr;
    require(run != nullptr, "monge_argmax: expected the link 'product', 'hypot' or 'max', got another one");
    nb::gil_scoped_release unlocked;
    const Best best = run(p, q, A.data(), B.data());
    return {best.value, best.i, best.j};
}

std::tuple<double, double, double, double, double> bounds(const PyCounts &loss, Index n_neg) {
    const Index size = size_of(loss.u);
    require(size > 0, "count_bounds: expected one u and v or more, got none");
    require(loss.n_pos > 0 && n_neg > 0 && n_neg <= PyQueue::kMostUnits && loss.m_low + size - 1 <= loss.n_pos + n_neg,
            "count_bounds: expected u and v for no more predicted positives than there are examples of both classes");
    nb::gil_scoped_release unlocked;
    const CountBounds b = count_bounds(by_count(loss.u), by_count(loss.v), static_cast<double>(loss.n_pos),
                                       static_cast<double>(n_neg), static_cast<double>(loss.m_low), size);
    return {b.top, b.fn_least, b.fn_most, b.fp_least, b.fp_most};
}

void bind_risks(nb::module_ &m) {
    nb::class_<PyLine>(m, "Line", "The risk along a line of scores.")
        .def(nb::init<Risk &, In1<double>, In1<double>>(), nb::keep_alive<1, 2>(), nb::arg("risk"),
             nb::arg("scores").noconvert(), nb::arg("move").noconvert())
        .def("__call__", &PyLine::at, nb::arg("t"), "The risk at t, and its slope there.");
    nb::class_<Risk>(m, "Risk", "The risk of the scores of a sample. Several threads may ask it at once.")
        .def("cut", &cut, nb::arg("scores").noconvert(), nb::arg("mu") = 0.0,
             "Loss and slope of the cut at these scores; with mu > 0 it may be a mean of cuts within mu of it there.");
    nb::class_<PyFlips>(m, "FlipClass", "One class of a sample: its members, and what is known of their flips.")
        .def(
            "__init__",
            [](PyFlips *self, In1<Place> members, double sign, double step, double low, double high) {
                new (self) PyFlips{members, sign, step, low, high, {}, 0};
            },
            nb::arg("members").noconvert(), nb::kw_only(), nb::arg("sign"), nb::arg("step"), nb::arg("low"),
            nb::arg("high"),
            "`step` is the weight of one example divided by n. Costs below `low` flip in every optimum, costs from "
            "`high` on in none.")
        .def_static(
            "weighted",
            [](In1<Place> members, double sign, double step, In1<double> weights, Index units) {
                require(weights.size() > 0, "FlipClass.weighted: expected weights, got none");
                require(units >= 0 && units <= PyQueue::kMostUnits,
                        "FlipClass.weighted: expected from 0 to 2^48 units");
                return PyFlips{members, sign, step, 0, 0, weights, units};
            },
            nb::arg("members").noconvert(), nb::kw_only(), nb::arg("sign"), nb::arg("step"),
            nb::arg("weights").noconvert(), nb::arg("units"),
            "A class of so many units, in which an example may flip in part. `step` is the weight of one unit divided "
            "by n, `weights` are those of all examples of the sample, in units.");
    nb::class_<PyTables>(m, "TableLoss", "The loss of every contingency table of a sample.")
        .def(
            "__init__",
            [](PyTables *self, const std::string &structure, Strided1<double> first, Strided1<double> second,
               Index m_low, double top,
               bool rising) { new (self) PyTables{structure, first, second, m_low, top, rising}; },
            nb::arg("structure"), nb::arg("first").noconvert(), nb::arg("second").noconvert(), nb::kw_only(),
            nb::arg("m_low"), nb::arg("top"), nb::arg("rising"),
            "By count ('count'): u and v for every number of predicted positives from m_low on. By mistakes "
            "('product', 'hypot', 'max'): A and B for every number of false negatives, and of false positives. "
            "'fraction': the coefficients of 1, fn and fp above the line and below it, for a loss that is Monge.");
    nb::class_<PyTableSearch, Risk>(m, "TableSearch", "The most violated labelling of a sample.")
        .def(nb::init<Index, const PyFlips &, const PyFlips &, const PyTables &>(), nb::arg("size"), nb::arg("pos"),
             nb::arg("neg"), nb::arg("loss"));
    nb::class_<TopSearch, Risk>(m, "TopSearch",
                                "The most violated labelling with exactly k positives, without weights.")
        .def(
            "__init__",
            [](TopSearch *self, In1<bool> y, Index k, double u, double v) {
                new (self) TopSearch(reinterpret_cast<const unsigned char *>(y.data()), size_of(y), k, u, v);
            },
            nb::arg("y").noconvert(), nb::arg("k"), nb::arg("u"), nb::arg("v"))
        .def("smooth", &smooth<TopSearch>, nb::arg("scores").noconvert(), nb::arg("mu"),
             "The smoothed risk without R >= 0, no more than mu below: its value, and loss and slope of its plane.");
    nb::class_<PyPairClass>(m, "PairClass", "One class of the pairs: its members, and their weights or none.")
        .def(nb::init<In1<Place>, double, In1<double>>(), nb::arg("members").noconvert(), nb::arg("sign"),
             nb::arg("weights").noconvert());
    nb::class_<PyPairSearch, Risk>(m, "PairSearch", "The pairs inside the margin, of classes of which one is sorted.")
        .def(nb::init<Index, const PyPairClass &, const PyPairClass &, double>(), nb::arg("size"), nb::arg("sorted"),
             nb::arg("other"), nb::arg("pairs"))
        .def("smooth", &smooth<PyPairSearch>, nb::arg("scores").noconvert(), nb::arg("mu"),
             "The smoothed risk, no more than mu below the risk: its value, and loss and slope of its plane.");
}

} // namespace

void bind_oracles(nb::module_ &m) {
    bind_risks(m);
    nb::class_<PyQueue>(m, "Queue", "One class: the costs of its candidates, ascending, and what flips before them.")
        .def(nb::init<In1<double>, Index, double, double>(), nb::arg("costs").noconvert(), nb::arg("first"),
             nb::arg("first_sum"), nb::arg("step"),
             "`first` units flip before the candidates, with that sum of costs; a unit weighs `step` of the sample.");
    nb::class_<PyCounts>(m, "CountLoss", "D = u[m - m_low] + v[m - m_low] tp, by the number m of predicted positives.")
        .def(nb::init<Index, Index, Strided1<double>, Strided1<double>>(), nb::arg("n_pos"), nb::arg("m_low"),
             nb::arg("u").noconvert(), nb::arg("v").noconvert(), "All in units.");
    m.def("collect", &py_collect, nb::arg("scores").noconvert(), nb::arg("members").noconvert(), nb::arg("sign"),
          nb::arg("low"), nb::arg("high"),
          "Costs sign * score in [low, high), in the order of the members; the number below low, and its sum.");
    m.def("mark", &py_mark, nb::arg("scores").noconvert(), nb::arg("members").noconvert(), nb::arg("sign"),
          nb::arg("lowest"), nb::arg("value"), nb::arg("slope").noconvert(),
          "Write value to the slope of the members of lowest cost sign * score: `lowest` says how many, and the "
          "highest of their costs.");
    m.def("count_argmax", &count_argmax, nb::arg("pos"), nb::arg("neg"), nb::arg("loss"),
          "Best (value, fn, fp) of a loss by count.");
    m.def("count_bounds", &bounds, nb::arg("loss"), nb::arg("n_neg"),
          "The greatest D = u[m] + v[m] tp of all tables; the least and greatest rise of D by one more false negative, "
          "and by one more false positive.");
    m.def("monge_argmax", &monge_argmax, nb::arg("link"), nb::arg("pos"), nb::arg("neg"), nb::arg("A").noconvert(),
          nb::arg("B").noconvert(), "Best (value, fn, fp) of D = link(A[fn], B[fp]).");
}

} // namespace metrimax
