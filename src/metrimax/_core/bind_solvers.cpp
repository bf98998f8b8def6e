// Python bindings of what the solvers do with small or single vectors.
#include "bindings.hpp"
#include "descent.hpp"
#include "line_search.hpp"
#include "loops.hpp"
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
    return [&line](double t) { return nb::cast<Pair>(line(t)); };
}

void bind_solvers(nb::module_ &m) {
    m.def(
        "dot",
        [](In1<double> u, In1<double> v) {
            check_length("dot", v.size(), u.size());
            const double *a = u.data(), *b = v.data();
            const size_t size = u.size();
            nb::gil_scoped_release unlocked;
            double sum = 0;
            dense_dot_rows(a, 1, size, b, &sum);
            return sum;
        },
        nb::arg("u").noconvert(), nb::arg("v").noconvert(),
        "u'v in the calling thread (a threaded BLAS spends more on its threads than they give).");
    m.def(
        "combine",
        [](const std::vector<double> &shares, const std::vector<In1<double>> &vectors) {
            check_length("combine", vectors.size(), shares.size());
            require(!vectors.empty(), "combine: expected at least one vector, got none");
            const size_t size = vectors[0].size();
            for (const auto &vector : vectors)
                check_length("combine", vector.size(), size);
            auto out = zeros<double>(size);
            {
                nb::gil_scoped_release unlocked;
                for (size_t k = 0; k < vectors.size(); ++k)
                    add_scaled(shares[k], vectors[k].data(), out.get(), size);
            }
            return make_array(std::move(out), size);
        },
        nb::arg("shares"), nb::arg("vectors").noconvert(), "The sum of the vectors, each times its share.");
    m.def(
        "rows_read",
        [](const std::vector<In1<double>> &slopes) {
            require(!slopes.empty(), "rows_read: expected at least one vector, got none");
            const size_t n = slopes[0].size();
            std::vector<const double *> vectors;
            for (const auto &slope : slopes) {
                check_length("rows_read", slope.size(), n);
                vectors.push_back(slope.data());
            }
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
        [](Callable line, double lam, InOut1<double> point, InOut1<double> scores, double square, double risk,
           In1<double> move, In1<double> move_scores, bool images, Pair tangent, double accuracy) {
            const size_t width = point.size(), n = scores.size();
            check_length("descend: move", move.size(), width);
            check_length("descend: move_scores", move_scores.size(), n);
            require(!images || width == n, "descend: expected as many entries as scores");
            const Track track{lam, {point.data(), scores.data()}, {move.data(), move_scores.data()}, width, n, images};
            const LineStep found =
                track.descend(square, risk, tangent, {}, accuracy, 1.0, std::nullopt, evaluated(line));
            return std::make_tuple(found.t, found.risk, square);
        },
        nb::arg("line"), nb::arg("lam"), nb::arg("point").noconvert(), nb::arg("scores").noconvert(), nb::arg("square"),
        nb::arg("risk"), nb::arg("move").noconvert(), nb::arg("move_scores").noconvert(), nb::arg("images"),
        nb::arg("tangent"), nb::arg("accuracy"),
        "Minimise lam/2 |point + t move|^2 + risk(t) over t >= 0 and go there, in place: point and move are given by "
        "entries and scores. line(t) is the risk at t and its rise; known at 0 are the risk and a tangent to it. "
        "Returns t, the risk there and the squared length.");
    m.def(
        "simplex_qp",
        [](In2<double> G, In1<double> b, double scale, InOut1<double> a, double tol, Index max_changes) {
            const auto size = static_cast<Index>(b.size());
            if (size == 0 || a.size() != b.size() || G.shape(0) < b.size() || G.shape(1) < b.size())
                throw nb::value_error("simplex_qp: G, b and a do not fit together, or are empty");
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
