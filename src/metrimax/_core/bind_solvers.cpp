// Python bindings of what the solvers do with small or single vectors.
#include "bindings.hpp"
#include "loops.hpp"
#include "quasi_newton.hpp"
#include "simplex_qp.hpp"

namespace metrimax {

using Vec = nb::ndarray<double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

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
        "axpy",
        [](double t, In1<double> x, Vec y) {
            check_length("axpy", y.size(), x.size());
            const double *a = x.data();
            double *out = y.data();
            const size_t size = x.size();
            nb::gil_scoped_release unlocked;
            for (size_t i = 0; i < size; ++i)
                out[i] += t * a[i];
        },
        nb::arg("t"), nb::arg("x").noconvert(), nb::arg("y").noconvert(), "y += t x, in place and without a copy.");
    m.def(
        "lbfgs_shares",
        [](In2<double> gram, In1<double> with_gradient, Index pairs, Vec out) {
            const size_t rows = out.size();
            if (rows == 0 || rows % 2 || gram.shape(0) != rows || gram.shape(1) != rows ||
                with_gradient.size() != rows || pairs < 1)
                throw nb::value_error("lbfgs_shares: gram, with_gradient and out do not fit together, or are empty");
            return lbfgs_shares(gram.data(), with_gradient.data(), static_cast<Index>(rows / 2), pairs, out.data());
        },
        nb::arg("gram").noconvert(), nb::arg("with_gradient").noconvert(), nb::arg("pairs"), nb::arg("out").noconvert(),
        "The quasi-Newton direction as coefficients of steps and changes; returns that of the gradient.");
    m.def(
        "simplex_qp",
        [](In2<double> G, In1<double> b, double scale, Vec a, double tol, Index max_changes) {
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
