// Python bindings of the argmax kernels.
#include "bindings.hpp"
#include "ranking.hpp"
#include "tables.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>

#include <string>
#include <tuple>

namespace metrimax {

using Vec = nb::ndarray<double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

static Index size_of(const In1<double> &v) { return static_cast<Index>(v.size()); }

static void require(bool fits, const char *message) {
    if (!fits)
        throw nb::value_error(message);
}

template <class Link>
static Best monge(const Queue &pos, const Queue &neg, const double *A, const double *B, double top) {
    return MongeArgmax<Link>(pos, neg, A, B, top)();
}

void bind_oracles(nb::module_ &m) {
    m.def(
        "collect",
        [](In1<double> scores, In1<Index> members, double sign, double low, double high, Vec out) {
            require(out.size() >= members.size(), "collect: out is shorter than members");
            const double *s = scores.data();
            const Index *k = members.data();
            const auto size = static_cast<Index>(members.size());
            double *o = out.data();
            nb::gil_scoped_release unlocked;
            const Collected got = collect(s, k, size, sign, low, high, o);
            return std::make_tuple(got.size, got.first, got.first_sum);
        },
        nb::arg("scores").noconvert(), nb::arg("members").noconvert(), nb::arg("sign"), nb::arg("low"), nb::arg("high"),
        nb::arg("out").noconvert(),
        "Costs sign * score in [low, high) into out; returns their number, the number below low and its sum.");
    m.def(
        "collect_line",
        [](In1<double> scores, In1<double> move, In1<Index> members, double sign, double low, double high, double until,
           Vec costs, Vec rates) {
            require(scores.size() == move.size(), "collect_line: scores and move differ in length");
            require(costs.size() >= members.size() && rates.size() >= members.size(),
                    "collect_line: costs or rates are shorter than members");
            const double *s = scores.data(), *d = move.data();
            const Index *k = members.data();
            const auto size = static_cast<Index>(members.size());
            double *c = costs.data(), *r = rates.data();
            nb::gil_scoped_release unlocked;
            const CollectedLine got = collect_line(s, d, k, size, sign, low, high, until, c, r);
            return std::make_tuple(got.size, got.first, got.first_sum, got.first_rate);
        },
        nb::arg("scores").noconvert(), nb::arg("move").noconvert(), nb::arg("members").noconvert(), nb::arg("sign"),
        nb::arg("low"), nb::arg("high"), nb::arg("until"), nb::arg("costs").noconvert(), nb::arg("rates").noconvert(),
        "Costs and their rates of what may flip on scores + t * move, t in [0, until]; returns their number, and the "
        "number, sum and rate of what flips on all of it.");
    m.def(
        "collect_at",
        [](In1<double> costs, In1<double> rates, double t, double low, double high, Vec out) {
            require(costs.size() == rates.size() && out.size() >= costs.size(), "collect_at: lengths do not fit");
            const double *c = costs.data(), *r = rates.data();
            const Index size = size_of(costs);
            double *o = out.data();
            nb::gil_scoped_release unlocked;
            const Collected got = collect_at(c, r, size, t, low, high, o);
            return std::make_tuple(got.size, got.first, got.first_sum);
        },
        nb::arg("costs").noconvert(), nb::arg("rates").noconvert(), nb::arg("t"), nb::arg("low"), nb::arg("high"),
        nb::arg("out").noconvert(), "As collect, for the costs of a line at t.");
    m.def(
        "rate_of_lowest",
        [](In1<double> costs, In1<double> rates, double t, Index count, double last) {
            require(costs.size() == rates.size(), "rate_of_lowest: costs and rates differ in length");
            const double *c = costs.data(), *r = rates.data();
            const Index size = size_of(costs);
            nb::gil_scoped_release unlocked;
            return rate_of_lowest(c, r, size, t, count, last);
        },
        nb::arg("costs").noconvert(), nb::arg("rates").noconvert(), nb::arg("t"), nb::arg("count"), nb::arg("last"),
        "Sum of the rates of the count lowest costs at t, the highest of which is last.");
    m.def(
        "mark",
        [](In1<double> scores, In1<Index> members, double sign, Index count, double last, double value, Vec slope) {
            require(slope.size() == scores.size(), "mark: slope and scores differ in length");
            const double *s = scores.data();
            const Index *k = members.data();
            const auto size = static_cast<Index>(members.size());
            double *out = slope.data();
            nb::gil_scoped_release unlocked;
            mark(s, k, size, sign, count, last, value, out);
        },
        nb::arg("scores").noconvert(), nb::arg("members").noconvert(), nb::arg("sign"), nb::arg("count"),
        nb::arg("last"), nb::arg("value"), nb::arg("slope").noconvert(),
        "Write value to the slope of the count members of lowest cost sign * score, the highest of which is last.");
    m.def(
        "count_argmax",
        [](In1<double> pos, Index pos_first, double pos_sum, In1<double> neg, Index neg_first, double neg_sum,
           double step, Index n_pos, Index m_low, In1<double> u, In1<double> v, double top) {
            require(u.size() == v.size(), "count_argmax: u and v differ in length");
            const Queue p{pos.data(), size_of(pos), pos_first, pos_sum, step};
            const Queue q{neg.data(), size_of(neg), neg_first, neg_sum, step};
            const double *ud = u.data(), *vd = v.data();
            const Index m_high = m_low + size_of(u) - 1;
            nb::gil_scoped_release unlocked;
            const Best best = count_argmax(p, q, n_pos, m_low, m_high, ud, vd, top);
            return std::make_tuple(best.value, best.i, best.j, best.enough_pos, best.enough_neg);
        },
        nb::arg("pos").noconvert(), nb::arg("pos_first"), nb::arg("pos_sum"), nb::arg("neg").noconvert(),
        nb::arg("neg_first"), nb::arg("neg_sum"), nb::arg("step"), nb::arg("n_pos"), nb::arg("m_low"),
        nb::arg("u").noconvert(), nb::arg("v").noconvert(), nb::arg("top"),
        "Best (value, fn, fp, candidates that were enough of each class) of D = u[m] + v[m] tp over m = tp + fp, for "
        "costs sorted ascending.");
    m.def(
        "monge_argmax",
        [](const std::string &link, In1<double> pos, Index pos_first, double pos_sum, double pos_step, In1<double> neg,
           Index neg_first, double neg_sum, double neg_step, In1<double> A, In1<double> B, double top) {
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
            const Best best = run(p, q, a, b, top);
            return std::make_tuple(best.value, best.i, best.j, best.enough_pos, best.enough_neg);
        },
        nb::arg("link"), nb::arg("pos").noconvert(), nb::arg("pos_first"), nb::arg("pos_sum"), nb::arg("pos_step"),
        nb::arg("neg").noconvert(), nb::arg("neg_first"), nb::arg("neg_sum"), nb::arg("neg_step"),
        nb::arg("A").noconvert(), nb::arg("B").noconvert(), nb::arg("top"),
        "Best (value, fn, fp, candidates that were enough of each class) of D = link(A[fn], B[fp]), for costs sorted "
        "ascending.");
    m.def(
        "margin_pairs",
        [](In1<double> sorted, In1<double> sorted_weight, In1<double> other, In1<double> other_weight, Vec sorted_count,
           Vec other_count) {
            require(sorted_count.size() == sorted.size() && other_count.size() == other.size(),
                    "margin_pairs: counts and costs differ in length");
            require((sorted_weight.size() == 0 || sorted_weight.size() == sorted.size()) &&
                        (other_weight.size() == 0 || other_weight.size() == other.size()),
                    "margin_pairs: weights and costs differ in length");
            const double *p = sorted.data(), *q = other.data();
            const double *pw = sorted_weight.size() ? sorted_weight.data() : nullptr;
            const double *qw = other_weight.size() ? other_weight.data() : nullptr;
            const Index np = size_of(sorted), nq = size_of(other);
            double *pc = sorted_count.data(), *qc = other_count.data();
            nb::gil_scoped_release unlocked;
            return margin_pairs(p, pw, np, q, qw, nq, pc, qc);
        },
        nb::arg("sorted").noconvert(), nb::arg("sorted_weight").noconvert(), nb::arg("other").noconvert(),
        nb::arg("other_weight").noconvert(), nb::arg("sorted_count").noconvert(), nb::arg("other_count").noconvert(),
        "Weight of the other class inside the margin with each example, for costs of which one class is sorted (empty "
        "weights: all 1); returns the weight of all such pairs.");
}

} // namespace metrimax
