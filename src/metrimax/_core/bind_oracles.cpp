// Python bindings of the argmax kernels.
#include "bindings.hpp"
#include "bundle.hpp"
#include "ranking.hpp"
#include "search.hpp"
#include "tables.hpp"
#include "top.hpp"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <limits>
#include <numeric>
#include <string>
#include <tuple>
#include <vector>

namespace metrimax {

using Pair = std::pair<double, double>;

template <class Array> static Index size_of(const Array &v) { return static_cast<Index>(v.size()); }

static ByCount by_count(const Strided1<double> &v) { return {v.data(), static_cast<Index>(v.stride(0))}; }

static Members members_of(const In1<Place> &members, double sign) {
    require(members.size() < std::numeric_limits<Place>::max(), "a class has more members than can be numbered");
    return {members.data(), static_cast<Index>(members.size()), sign};
}

static std::pair<double, Out1<double>> cut(Risk &risk, In1<double> scores, double mu) {
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

// The compiled search, together with the arrays it looks at.
class PyTableSearch : public Risk {
  public:
    PyTableSearch(In1<Place> pos, In1<Place> neg, Index size, const std::string &structure, Pair units, double n,
                  Pair pos_limits, Pair neg_limits, Index first_count, Strided1<double> u, Strided1<double> v,
                  double top, bool rising)
        : pos(pos), neg(neg), u(u), v(v), n_scores(size),
          search(side(pos, +1.0, units.first / n, pos_limits), side(neg, -1.0, units.second / n, neg_limits),
                 tables(structure, first_count, top, rising)) {}

    size_t size() const override { return static_cast<size_t>(n_scores); }

    double plane(const double *scores, double mu, double *slope) override {
        std::fill_n(slope, size(), 0.0);
        return search.cut(scores, mu, slope);
    }

    Line line(const double *scores, const double *move) override {
        return [this, scores, move](double t) { return search.risk(scores, move, t); };
    }

  private:
    Side side(const In1<Place> &members, double sign, double step, Pair limits) const {
        require(n_scores < static_cast<Index>(std::numeric_limits<Place>::max()),
                "TableSearch: more examples than can be numbered");
        for (size_t k = 0; k < members.size(); ++k)
            require(members.data()[k] < n_scores, "TableSearch: a member is out of range");
        return Side::of(members.data(), static_cast<Index>(members.size()), sign, n_scores, step, limits.first,
                        limits.second);
    }

    std::unique_ptr<Tables> tables(const std::string &structure, Index first_count, double top, bool rising) const {
        const auto n_pos = static_cast<Index>(pos.size()), n_neg = static_cast<Index>(neg.size());
        if (structure == "count") {
            require(u.size() == v.size() && u.size() > 0 && first_count >= 0 &&
                        first_count + size_of(u) - 1 <= n_pos + n_neg,
                    "TableSearch: u and v do not fit the sample");
            return std::make_unique<CountTables>(n_pos, first_count, first_count + size_of(u) - 1, by_count(u),
                                                 by_count(v), top, rising);
        }
        require(u.stride(0) == 1 && v.stride(0) == 1, "TableSearch: A and B do not lie in one piece");
        require(size_of(u) == n_pos + 1 && size_of(v) == n_neg + 1, "TableSearch: A and B do not fit the sample");
        if (structure == "product")
            return std::make_unique<LinkTables<ProductLink>>(u.data(), v.data(), top, rising);
        if (structure == "hypot")
            return std::make_unique<LinkTables<HypotLink>>(u.data(), v.data(), top, rising);
        require(structure == "max", "TableSearch: structure must be 'count', 'product', 'hypot' or 'max'");
        return std::make_unique<LinkTables<MaxLink>>(u.data(), v.data(), top, rising);
    }

    In1<Place> pos, neg;
    Strided1<double> u, v;
    Index n_scores;
    TableSearch search;
};

class PyTopSearch : public Risk {
  public:
    PyTopSearch(In1<bool> y, Index k, double u, double v)
        : y(y), search(y.data(), static_cast<Index>(y.size()), k, u, v) {
        require(k >= 1 && k <= static_cast<Index>(y.size()),
                "TopSearch: k must be between 1 and the number of examples");
    }

    size_t size() const override { return y.size(); }

    double plane(const double *scores, double mu, double *slope) override { return search.cut(scores, mu, slope); }

    Line line(const double *scores, const double *move) override {
        return [this, scores, move](double t) { return search.risk(scores, move, t); };
    }

  private:
    In1<bool> y;
    TopSearch search;
};

class PyPairSearch : public Risk {
  public:
    PyPairSearch(In1<Place> members, double sign, In1<double> weights, In1<Place> other_members, double other_sign,
                 In1<double> other_weights, Index size, double pairs)
        : members(members), other_members(other_members), weights(weights), other_weights(other_weights),
          own(view(members, sign, weights, size)), other(view(other_members, other_sign, other_weights, size)),
          n_scores(static_cast<size_t>(size)), pairs(pairs) {
        if (other.weights == nullptr) { // which are by member
            inside = inside_large(other.members.at, other.members.size, size);
            other.members.inside = inside.get();
            other.members.sample = size;
        }
    }

    size_t size() const override { return n_scores; }

    double plane(const double *scores, double, double *slope) override {
        std::fill_n(slope, n_scores, 0.0);
        return MarginPairs(own, other, scores, nullptr, 0.0, room).slopes(1 / pairs, slope) / pairs;
    }

    Line line(const double *scores, const double *move) override {
        return [this, scores, move](double t) {
            const auto [value, rise] = MarginPairs(own, other, scores, move, t, room).risk();
            return Pair(value / pairs, rise / pairs);
        };
    }

  private:
    static PairClass view(const In1<Place> &members, double sign, const In1<double> &weights, Index size) {
        require(members.size() > 0, "PairSearch: a class is empty");
        require(weights.size() == 0 || weights.size() == members.size(), "PairSearch: weights and members do not fit");
        for (size_t k = 0; k < members.size(); ++k)
            require(members.data()[k] < size, "PairSearch: a member is out of range");
        return {members_of(members, sign), weights.size() ? weights.data() : nullptr};
    }

    In1<Place> members, other_members;
    In1<double> weights, other_weights;
    PairClass own, other;
    std::unique_ptr<unsigned char[]> inside;
    MarginPairs::Room room;
    size_t n_scores;
    double pairs; // their number, or weight
};

template <class Link> static Best monge(const Queue &pos, const Queue &neg, const double *A, const double *B) {
    const auto P = pos.prefix(), N = neg.prefix();
    return MongeArgmax<Link>(pos, neg, P, N, A, B)();
}

void bind_oracles(nb::module_ &m) {
    nb::class_<PyLine>(m, "Line", "The risk along a line of scores.")
        .def(nb::init<Risk &, In1<double>, In1<double>>(), nb::keep_alive<1, 2>(), nb::arg("risk"),
             nb::arg("scores").noconvert(), nb::arg("move").noconvert())
        .def("__call__", &PyLine::at, nb::arg("t"), "The risk at t, and its slope there.");
    nb::class_<Risk>(m, "Risk", "The risk of the scores of a sample.")
        .def("cut", &cut, nb::arg("scores").noconvert(), nb::arg("mu") = 0.0,
             "Loss and slope of the cut at these scores; with mu > 0 it may be a mean of cuts within mu of it there.");
    nb::class_<PyTableSearch, Risk>(m, "TableSearch", "The most violated labelling of a sample of whole units.")
        .def(nb::init<In1<Place>, In1<Place>, Index, const std::string &, Pair, double, Pair, Pair, Index,
                      Strided1<double>, Strided1<double>, double, bool>(),
             nb::arg("pos").noconvert(), nb::arg("neg").noconvert(), nb::arg("size"), nb::arg("structure"),
             nb::arg("units"), nb::arg("n"), nb::arg("pos_limits"), nb::arg("neg_limits"), nb::arg("first_count"),
             nb::arg("u").noconvert(), nb::arg("v").noconvert(), nb::arg("top"), nb::arg("rising"));
    nb::class_<PyTopSearch, Risk>(m, "TopSearch",
                                  "The most violated labelling with exactly k positives, without weights.")
        .def(nb::init<In1<bool>, Index, double, double>(), nb::arg("y").noconvert(), nb::arg("k"), nb::arg("u"),
             nb::arg("v"));
    m.def(
        "collect",
        [](In1<double> scores, In1<Place> members, double sign, double low, double high, InOut1<double> out) {
            require(out.size() >= members.size(), "collect: out is shorter than members");
            const PointCosts costs{scores.data(), members_of(members, sign)};
            double *const room = out.data();
            nb::gil_scoped_release unlocked;
            const Buffer<Place> places(new Place[members.size() + 1]);
            const Index size = collect(costs, high, room, places.get());
            const Collected got = without_certain(room, size, low);
            return std::make_tuple(got.size, got.first, got.first_sum);
        },
        nb::arg("scores").noconvert(), nb::arg("members").noconvert(), nb::arg("sign"), nb::arg("low"), nb::arg("high"),
        nb::arg("out").noconvert(),
        "Costs sign * score in [low, high) into out; returns their number, the number below low and its sum.");
    m.def(
        "mark",
        [](In1<double> scores, In1<Place> members, double sign, Index count, double last, double value,
           InOut1<double> slope) {
            require(slope.size() == scores.size(), "mark: slope and scores differ in length");
            const PointCosts costs{scores.data(), members_of(members, sign)};
            double *const out = slope.data();
            nb::gil_scoped_release unlocked;
            std::vector<Place> places(members.size());
            std::iota(places.begin(), places.end(), Place{0});
            mark(costs, places.data(), costs.members.size, count, last, value, out);
        },
        nb::arg("scores").noconvert(), nb::arg("members").noconvert(), nb::arg("sign"), nb::arg("count"),
        nb::arg("last"), nb::arg("value"), nb::arg("slope").noconvert(),
        "Write value to the slope of the count members of lowest cost sign * score, the highest of which is last.");
    m.def(
        "count_argmax",
        [](In1<double> pos, Index pos_first, double pos_sum, In1<double> neg, Index neg_first, double neg_sum,
           double step, Index n_pos, Index m_low, Strided1<double> u, Strided1<double> v) {
            require(u.size() == v.size(), "count_argmax: u and v differ in length");
            const Queue p{pos.data(), size_of(pos), pos_first, pos_sum, step};
            const Queue q{neg.data(), size_of(neg), neg_first, neg_sum, step};
            const Index m_high = m_low + size_of(u) - 1;
            nb::gil_scoped_release unlocked;
            const auto P = p.prefix(), N = q.prefix();
            const Best best = CountScan(p, q, P, N, n_pos, m_low, m_high, by_count(u), by_count(v)).best();
            return std::make_tuple(best.value, best.i, best.j);
        },
        nb::arg("pos").noconvert(), nb::arg("pos_first"), nb::arg("pos_sum"), nb::arg("neg").noconvert(),
        nb::arg("neg_first"), nb::arg("neg_sum"), nb::arg("step"), nb::arg("n_pos"), nb::arg("m_low"),
        nb::arg("u").noconvert(), nb::arg("v").noconvert(),
        "Best (value, fn, fp) of D = u[m] + v[m] tp over m = tp + fp, for "
        "costs sorted ascending.");
    m.def(
        "count_bounds",
        [](Strided1<double> u, Strided1<double> v, Index n_pos, Index n_neg, Index m_low) {
            const Index m_high = m_low + size_of(u) - 1;
            require(u.size() == v.size() && u.size() > 0, "count_bounds: u and v differ in length, or are empty");
            require(m_low >= 0 && n_pos > 0 && n_neg > 0 && m_high <= n_pos + n_neg,
                    "count_bounds: u and v do not fit the sample");
            nb::gil_scoped_release unlocked;
            const CountBounds b =
                count_bounds(by_count(u), by_count(v), static_cast<double>(n_pos), static_cast<double>(n_neg),
                             static_cast<double>(m_low), m_high - m_low + 1);
            return std::make_tuple(b.top, b.fn_least, b.fn_most, b.fp_least, b.fp_most);
        },
        nb::arg("u").noconvert(), nb::arg("v").noconvert(), nb::arg("n_pos"), nb::arg("n_neg"), nb::arg("m_low"),
        "The greatest D = u[m] + v[m] tp of all tables; the least and greatest rise of D by one more false negative, "
        "and by one more false positive.");
    m.def(
        "monge_argmax",
        [](const std::string &link, In1<double> pos, Index pos_first, double pos_sum, double pos_step, In1<double> neg,
           Index neg_first, double neg_sum, double neg_step, In1<double> A, In1<double> B) {
            require(pos_first >= 0 && pos_first + size_of(pos) < size_of(A), "monge_argmax: A is too short");
            require(neg_first >= 0 && neg_first + size_of(neg) < size_of(B), "monge_argmax: B is too short");
            const auto run = link == "product" ? monge<ProductLink>
                             : link == "hypot" ? monge<HypotLink>
                             : link == "max"   ? monge<MaxLink>
                                               : nullptr;
            require(run != nullptr, "monge_argmax: link must be 'product', 'hypot' or 'max'");
            const Queue p{pos.data(), size_of(pos), pos_first, pos_sum, pos_step};
            const Queue q{neg.data(), size_of(neg), neg_first, neg_sum, neg_step};
            const double *a = A.data(), *b = B.data();
            nb::gil_scoped_release unlocked;
            const Best best = run(p, q, a, b);
            return std::make_tuple(best.value, best.i, best.j);
        },
        nb::arg("link"), nb::arg("pos").noconvert(), nb::arg("pos_first"), nb::arg("pos_sum"), nb::arg("pos_step"),
        nb::arg("neg").noconvert(), nb::arg("neg_first"), nb::arg("neg_sum"), nb::arg("neg_step"),
        nb::arg("A").noconvert(), nb::arg("B").noconvert(),
        "Best (value, fn, fp) of D = link(A[fn], B[fp]), for costs sorted "
        "ascending.");
    nb::class_<PyPairSearch, Risk>(m, "PairSearch",
                                   "The pairs inside the margin, of two classes of which one is sorted.")
        .def(nb::init<In1<Place>, double, In1<double>, In1<Place>, double, In1<double>, Index, double>(),
             nb::arg("members").noconvert(), nb::arg("sign"), nb::arg("weights").noconvert(),
             nb::arg("other_members").noconvert(), nb::arg("other_sign"), nb::arg("other_weights").noconvert(),
             nb::arg("size"), nb::arg("pairs"));
}

} // namespace metrimax
