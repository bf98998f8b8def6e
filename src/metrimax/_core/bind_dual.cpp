// Python bindings of dual coordinate descent.
#include "bind_matrix.hpp"
#include "dual_cd.hpp"
#include "pair_cd.hpp"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>

#include <cstdint>
#include <tuple>
#include <vector>

namespace metrimax {

namespace {

using Order = InOut1<std::int64_t>;

template <class T> DenseRows<T> rows_of(const DenseMatrix<T> &X, double bias) {
    require(!X.fortran, "rows: expected a dense matrix in C-order, got one in Fortran order");
    return {X.X, X.p, bias};
}

template <class T, class I> CSRRows<T, I> rows_of(const CSRMatrix<T, I> &X, double bias) {
    return {X.data, X.indices, X.indptr, X.p, bias};
}

template <class M> constexpr bool kDense = false;
template <class T> constexpr bool kDense<DenseMatrix<T>> = true;

// Calls with the rows of the matrix, or, if it is the kernel matrix of the examples (`gram`), with what stands for
// them.
template <class Call> auto with_rows(const PyMatrix &self, double bias, bool gram, Call &&call) {
    return std::visit(
        [&](const auto &X) {
            if constexpr (kDense<std::decay_t<decltype(X)>>)
                if (gram) {
                    require(X.n == X.p, "kernel matrix: expected a square matrix");
                    return call(GramRows<std::decay_t<decltype(X.X[0])>>{X.X, X.n, bias});
                }
            require(!gram, "kernel matrix: expected a dense matrix, got a sparse one");
            return call(rows_of(X, bias));
        },
        self.matrix);
}

Out1<double> row_squares_of(const PyMatrix &self, double bias) {
    auto out = empty<double>(self.n());
    std::visit(
        [&](const auto &X) {
            const auto rows = rows_of(X, bias);
            nb::gil_scoped_release unlocked;
            std::vector<double> scratch(X.p + 1, 0.0);
            row_squares(rows, X.n, scratch.data(), out.get());
        },
        self.matrix);
    return make_array(std::move(out), self.n());
}

// A sum of hinges as it comes from Python: everything about the examples but their rows and their multipliers.
struct PyHingeSum {
    In1<double> squares, sign, margin, upper;

    PyHingeSum(In1<double> squares, In1<double> sign, In1<double> margin, In1<double> upper)
        : squares(squares), sign(sign), margin(margin), upper(upper) {
        check_length("HingeSum: sign", sign.size(), squares.size());
        check_length("HingeSum: margin", margin.size(), squares.size());
        check_length("HingeSum: upper", upper.size(), squares.size());
    }

    HingeSum view() const { return {squares.size(), squares.data(), sign.data(), margin.data(), upper.data()}; }
};

// The rows that are visited and the limits, as they come from Python.
using Visited = std::tuple<Order, double, double, double>;

Working working_of(const Visited &visited, size_t n) {
    const auto &[order, low, high, others] = visited;
    for (size_t s = 0; s < order.size(); ++s) // what follows reads them unchecked
        if (order.data()[s] < 0 || static_cast<size_t>(order.data()[s]) >= n)
            throw nb::value_error(("working: expected row numbers from 0 to " + std::to_string(n) + " - 1, got " +
                                   std::to_string(order.data()[s]))
                                      .c_str());
    return {order.data(), order.size(), low, high, others};
}

// Visits, whether the accuracy was reached, the gap; and what is left to visit: how many rows, and the limits.
using Done = std::tuple<size_t, bool, double, size_t, double, double, double>;

Done descend(const PyMatrix &self, double bias, const PyHingeSum &hinges, InOut1<double> alpha, InOut1<double> w,
             const Visited &visited, bool again, double tol, double gap, size_t max_visits, bool gram) {
    const HingeSum sum = hinges.view();
    check_length("hinges", sum.n, self.n());
    check_length("alpha", alpha.size(), self.n());
    Working working = working_of(visited, self.n());
    const Descent done = with_rows(self, bias, gram, [&](const auto &rows) {
        check_length("w", w.size(), rows.width());
        nb::gil_scoped_release unlocked;
        return dual_cd(rows, sum, working, again, alpha.data(), w.data(), {tol, gap, max_visits});
    });
    return {done.visits, done.reached, done.gap, working.count, working.low, working.high, working.others};
}

std::tuple<size_t, bool, double> descend_in_pairs(const PyMatrix &self, const PyHingeSum &hinges, InOut1<double> alpha,
                                                  InOut1<double> w, Order order, double tol, size_t max_visits,
                                                  bool gram) {
    const HingeSum sum = hinges.view();
    check_length("hinges", sum.n, self.n());
    check_length("alpha", alpha.size(), self.n());
    const Working working = working_of({order, 0.0, 0.0, 0.0}, self.n());
    const PairDescent done = with_rows(self, 0.0, gram, [&](const auto &rows) {
        check_length("w", w.size(), rows.width());
        nb::gil_scoped_release unlocked;
        std::vector<double> scratch(rows.width(), 0.0);
        return pair_cd(rows, sum, working.order, working.count, alpha.data(), w.data(), scratch.data(), tol,
                       max_visits);
    });
    return {done.visits, done.reached, done.violation};
}

} // namespace

void bind_dual(nb::module_ &m) {
    nb::class_<PyHingeSum>(m, "HingeSum", "A sum of hinges: upper_i max(0, margin_i - sign_i <w, x_i>).")
        .def(nb::init<In1<double>, In1<double>, In1<double>, In1<double>>(), nb::kw_only(),
             nb::arg("squares").noconvert(), nb::arg("sign").noconvert(), nb::arg("margin").noconvert(),
             nb::arg("upper").noconvert(), "By the squared lengths of the rows, and one number each per row.");
    m.def("row_squares", &row_squares_of, nb::arg("matrix"), nb::arg("bias"),
          "Squared lengths of the rows, bias^2 included.");
    m.def(
        "dual_cd", &descend, nb::arg("matrix"), nb::arg("bias"), nb::arg("hinges"), nb::arg("alpha").noconvert(),
        nb::arg("w").noconvert(), nb::arg("working").noconvert(), nb::kw_only(), nb::arg("again"), nb::arg("tol"),
        nb::arg("gap"), nb::arg("max_visits"), nb::arg("gram") = false,
        "Dual coordinate descent in place on alpha, w and the rows of `working` (rows, low, high, others). With `gram` "
        "the matrix holds the kernel's values, and w stands for the scores of all examples. Returns "
        "the row visits, whether tol was reached, what the gap looks like, how many rows were not set aside, and the "
        "limits for the next call.");
    m.def("pair_cd", &descend_in_pairs, nb::arg("matrix"), nb::arg("hinges"), nb::arg("alpha").noconvert(),
          nb::arg("w").noconvert(), nb::arg("working").noconvert(), nb::kw_only(), nb::arg("tol"),
          nb::arg("max_visits"), nb::arg("gram") = false,
          "Pair descent with a free bias in place on alpha and w, over the rows `working`; `gram` as for `dual_cd`. "
          "Returns the row visits, whether the violation of pairs is within tol, and what it was when last looked at.");
    m.def(
        "dual_working",
        [](In1<double> sign, In1<double> margin, In1<double> upper, In1<double> alpha, In1<double> scores) {
            const size_t n = sign.size();
            check_length("margin", margin.size(), n);
            check_length("upper", upper.size(), n);
            check_length("alpha", alpha.size(), n);
            check_length("scores", scores.size(), n);
            const HingeSum sum{n, nullptr, sign.data(), margin.data(), upper.data()};
            auto order = empty<std::int64_t>(n);
            Working working{order.get(), n};
            std::pair<double, double> found;
            {
                nb::gil_scoped_release unlocked;
                found = choose(sum, alpha.data(), scores.data(), working);
            }
            const auto [loss, violation] = found;
            return std::make_tuple(loss, violation, make_array(std::move(order), working.count), working.low,
                                   working.high, working.others);
        },
        nb::arg("sign").noconvert(), nb::arg("margin").noconvert(), nb::arg("upper").noconvert(),
        nb::arg("alpha").noconvert(), nb::arg("scores").noconvert(),
        "The sum of the hinges, the largest projected gradient, and whom coordinate descent visits next: rows, limits, "
        "and the sum of the hinges of the others.");
}

} // namespace metrimax
