// Python bindings of dual coordinate descent.
#include "bindings.hpp"
#include "dual_cd.hpp"

#include <nanobind/stl/pair.h>

#include <cstdint>
#include <vector>

namespace metrimax {

namespace {

using Vec = nb::ndarray<double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

template <class Rows> Out1<double> squares_of(const Rows &rows, size_t n) {
    auto out = empty<double>(n);
    {
        nb::gil_scoped_release unlocked;
        std::vector<double> scratch(rows.width(), 0.0);
        row_squares(rows, n, scratch.data(), out.get());
    }
    return make_array(std::move(out), n);
}

template <class Rows>
std::pair<size_t, bool> descend(const Rows &rows, size_t n, In1<double> squares, In1<double> sign, In1<double> margin,
                                In1<double> upper, Vec alpha, Vec w, double tol, size_t max_epochs,
                                std::uint64_t seed) {
    check_length("squares", squares.size(), n);
    check_length("sign", sign.size(), n);
    check_length("margin", margin.size(), n);
    check_length("upper", upper.size(), n);
    check_length("alpha", alpha.size(), n);
    check_length("w", w.size(), rows.width());
    const double *q = squares.data(), *y = sign.data(), *m = margin.data(), *u = upper.data();
    double *a = alpha.data(), *v = w.data();
    nb::gil_scoped_release unlocked;
    return dual_cd(rows, n, q, y, m, u, a, v, tol, max_epochs, seed);
}

template <class T> void bind_dense(nb::module_ &m) {
    m.def(
        "dense_squares",
        [](In2<T> X, double bias) { return squares_of(DenseRows<T>{X.data(), X.shape(1), bias}, X.shape(0)); },
        nb::arg("X").noconvert(), nb::arg("bias"), "Squared lengths of the rows, bias^2 included.");
    m.def(
        "dense_dual_cd",
        [](In2<T> X, double bias, In1<double> squares, In1<double> sign, In1<double> margin, In1<double> upper,
           Vec alpha, Vec w, double tol, size_t max_epochs, std::uint64_t seed) {
            const DenseRows<T> rows{X.data(), X.shape(1), bias};
            return descend(rows, X.shape(0), squares, sign, margin, upper, alpha, w, tol, max_epochs, seed);
        },
        nb::arg("X").noconvert(), nb::arg("bias"), nb::arg("squares").noconvert(), nb::arg("sign").noconvert(),
        nb::arg("margin").noconvert(), nb::arg("upper").noconvert(), nb::arg("alpha").noconvert(),
        nb::arg("w").noconvert(), nb::arg("tol"), nb::arg("max_epochs"), nb::arg("seed"),
        "Dual coordinate descent in place on alpha and w; returns the row visits, and whether tol was reached.");
}

template <class T, class I> void bind_csr(nb::module_ &m) {
    using Rows = CSRRows<T, I>;
    m.def(
        "csr_squares",
        [](In1<T> data, In1<I> indices, In1<I> indptr, size_t p, double bias) {
            const size_t n = indptr.size() - 1;
            return squares_of(Rows{data.data(), indices.data(), indptr.data(), p, bias}, n);
        },
        nb::arg("data").noconvert(), nb::arg("indices").noconvert(), nb::arg("indptr").noconvert(), nb::arg("p"),
        nb::arg("bias"), "Squared lengths of the rows, bias^2 included.");
    m.def(
        "csr_dual_cd",
        [](In1<T> data, In1<I> indices, In1<I> indptr, size_t p, double bias, In1<double> squares, In1<double> sign,
           In1<double> margin, In1<double> upper, Vec alpha, Vec w, double tol, size_t max_epochs, std::uint64_t seed) {
            const Rows rows{data.data(), indices.data(), indptr.data(), p, bias};
            return descend(rows, indptr.size() - 1, squares, sign, margin, upper, alpha, w, tol, max_epochs, seed);
        },
        nb::arg("data").noconvert(), nb::arg("indices").noconvert(), nb::arg("indptr").noconvert(), nb::arg("p"),
        nb::arg("bias"), nb::arg("squares").noconvert(), nb::arg("sign").noconvert(), nb::arg("margin").noconvert(),
        nb::arg("upper").noconvert(), nb::arg("alpha").noconvert(), nb::arg("w").noconvert(), nb::arg("tol"),
        nb::arg("max_epochs"), nb::arg("seed"),
        "Dual coordinate descent in place on alpha and w; returns the row visits, and whether tol was reached.");
}

} // namespace

void bind_dual(nb::module_ &m) {
    bind_dense<float>(m);
    bind_dense<double>(m);
    bind_csr<float, std::int32_t>(m);
    bind_csr<double, std::int32_t>(m);
    bind_csr<float, std::int64_t>(m);
    bind_csr<double, std::int64_t>(m);
}

} // namespace metrimax
