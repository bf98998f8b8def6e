// Python bindings of what the solvers do with small or single vectors.
#include "bindings.hpp"
#include "dense_loops.hpp"
#include "line_descent.hpp"
#include "line_search.hpp"
#include "simplex_qp.hpp"

#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

namespace metrimax {

using Pair = std::pair<double, double>;
using Callable = nb::typed<nb::callable, nb::object(double)>;

static auto evaluated(const Callable &line) {
    return [&line](double t) {
        Pair risk;
        if (!nb::try_cast(line(t), risk))
            throw nb::type_error(
                "line: expected two numbers of a risk along a line, value and rise, got something else");
        return risk;
    };
}

void bind_solvers(nb::module_ &m) {
    m.def(
        "dot",
        [](In1<double> u, In1<double> v) {
            check_length("dot", v.size(), u.size());
            const double *a = u.data(), *b = v.data();
            const size_t size = u.size();
            nb::gil_scoped_release unlocked;
            return dot(a, b, size);
        },
        nb::arg("u").noconvert(), nb::arg("v").noconvert(),
        "u'v in the calling thread (a threaded BLAS spends more on its threads than they give).");
    m.def(
        "combine",
        [](const std::vector<double> &shares, const std::vector<In1<double>> &vectors) {
            check_length("combine", vectors.size(), shares.size());
            require(!vectors.empty(), "combine: expected at least one vector, got none");
            const size_t size = vectors[0].size();
            const std::vector<const double *> terms = starts("combine", vectors, size);
            auto out = zeros<double>(size);
            {
                nb::gil_scoped_release unlocked;
                for (size_t k = 0; k < terms.size(); ++k)
                    add_scaled(shares[k], terms[k], out.get(), size);
            }
            return make_array(std::move(out), size);
        },
        nb::arg("shares"), nb::arg("vectors").noconvert(), "The sum of the vectors, each times its share.");
    m.def(
        "rows_read",
        [](const std::vector<In1<double>> &slopes) {
            require(!slopes.empty(), "rows_read: expected at least one vector, got none");
            const size_t n = slopes[0].size();
            const std::vector<const double *> vectors = starts("rows_read", slopes, n);
            nb::gil_scoped_release unlocked;
            return n > 0 ? static_cast<double>(rows_read(vectors, n)) / static_cast<double>(n) : 0.0;
        },
        nb::arg("slopes").noconvert(),
        "The share of the rows of X that a product of X' with these vectors reads: those where any is not zero.");
    m.def(
        "line_search",
        [](Callable line, std::array<double, 4> parabola, double risk, std::optional<Pair> tangent, double accuracy,
           double reach) {
            const auto [lam, square, cross, bend] = parabola;
            const LineStep found = LineSearch({lam, square, cross, bend})
                                       .minimise(risk, tangent, accuracy, reach, std::nullopt, evaluated(line));
            return std::make_tuple(found.t, found.risk);
        },
        nb::arg("line"), nb::arg("parabola"), nb::arg("risk"), nb::arg("tangent").none(), nb::arg("accuracy"),
        nb::arg("reach"),
        "Minimise lam/2 (square + 2 t cross + t^2 bend) + risk(t) over t >= 0, where line(t) is the risk at t and its "
        "rise, known at 0; returns t and the risk there.");
    m.def(
        "descend",
        [](Callable line, double lam, std::tuple<InOut1<double>, InOut1<double>, double> from, double risk,
           std::pair<In1<double>, In1<double>> by, bool images, Pair tangent, double accuracy) {
            auto &[point, scores, square] = from;
            const auto &[move, move_scores] = by;
            const size_t width = point.size(), n = scores.size();
            check_length("descend: move", move.size(), width);
            check_length("descend: move_scores", move_scores.size(), n);
            require(!images || width == n, "descend: expected as many entries as scores");
            const Track track{lam, {point.data(), scores.data()}, {move.data(), move_scores.data()}, width, n, images};
            const LineStep found =
                track.descend(square, risk, tangent, {}, accuracy, 1.0, std::nullopt, evaluated(line));
            return std::make_tuple(found.t, found.risk, square);
        },
        nb::arg("line"), nb::arg("lam"), nb::arg("point").noconvert(), nb::arg("risk"), nb::arg("move").noconvert(),
        nb::kw_only(), nb::arg("images"), nb::arg("tangent"), nb::arg("accuracy"),
        "Minimise lam/2 |point + t move|^2 + risk(t) over t >= 0 and go there, in place: point is (entries, scores, "
        "squared length), move (entries, scores). line(t) is the risk at t and its rise; known at 0 are the risk and a "
        "tangent to it. "
        "Returns t, the risk there and the squared length.");
    m.def(
        "simplex_qp",
        [](In2<double> G, In1<double> b, double scale, InOut1<double> a, double tol, Index max_changes) {
            const auto size = static_cast<Index>(b.size());
            require(size > 0, "simplex_qp: expected one variable or more, got none");
            check_length("simplex_qp: a", a.size(), b.size());
            require(G.shape(0) >= b.size() && G.shape(1) >= b.size(),
                    "simplex_qp: expected G with at least as many rows and columns as b is long, got fewer");
            const double *g = G.data(), *c = b.data();
            double *x = a.data();
            const auto ld = static_cast<Index>(G.shape(1));
            nb::gil_scoped_release unlocked;
            return SimplexQP(g, ld, c, scale, size, x).solve(tol, max_changes);
        },
        nb::arg("G").noconvert(), nb::arg("b").noconvert(), nb::arg("scale"), nb::arg("a").noconvert(), nb::arg("tol"),
        nb::arg("max_changes"),
        "Minimise scale/2 a'Ga - b'a over the simplex, in place from a feasible a; returns the changes made.");
}

} // namespace metrimax
