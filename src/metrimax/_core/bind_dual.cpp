// Python bindings of dual coordinate descent.
#include "bindings.hpp"
#include "dual_cd.hpp"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>

#include <cstdint>
#include <tuple>
#include <vector>

namespace metrimax {

namespace {

template <class Rows> Out1<double> squares_of(const Rows &rows, size_t n) {
    auto out = empty<double>(n);
    {
        nb::gil_scoped_release unlocked;
        std::vector<double> scratch(rows.p + 1, 0.0);
        row_squares(rows, n, scratch.data(), out.get());
    }
    return make_array(std::move(out), n);
}

// Everything about the examples but their rows, as it comes from Python.
struct Examples {
    In1<double> squares, sign, margin, upper;
    InOut1<double> alpha;

    HingeSum sum(size_t n) const {
        check_length("squares", squares.size(), n);
        check_length("sign", sign.size(), n);
        check_length("margin", margin.size(), n);
        check_length("upper", upper.size(), n);
        check_length("alpha", alpha.size(), n);
        return {n, squares.data(), sign.data(), margin.data(), upper.data()};
    }
};

using Order = InOut1<std::int64_t>;

// The rows that are visited and the limits, as they come from Python.
struct Visited {
    Order order;
    double low, high, others;
    bool again;

    // Raises IndexError for a row that is not there: what follows reads them unchecked.
    Working working(size_t n) const {
        for (size_t s = 0; s < order.size(); ++s)
            if (order.data()[s] < 0 || static_cast<size_t>(order.data()[s]) >= n)
                throw nb::index_error("working: expected row numbers from 0 to n - 1");
        return {order.data(), order.size(), low, high, others};
    }
};

// Visits, whether the accuracy was reached, the gap; and what is left to visit: how many rows, and the limits.
using Done = std::tuple<size_t, bool, double, size_t, double, double, double>;

template <class Rows>
Done descend(const Rows &rows, size_t n, const Examples &examples, InOut1<double> w, const Visited &visited,
             const Until &until) {
    const HingeSum sum = examples.sum(n);
    check_length("w", w.size(), rows.width());
    Working working = visited.working(n);
    double *alpha = examples.alpha.data(), *weights = w.data();
    nb::gil_scoped_release unlocked;
    const Descent done = dual_cd(rows, sum, working, visited.again, alpha, weights, until);
    return {done.visits, done.reached, done.gap, working.count, working.low, working.high, working.others};
}

template <class T> void bind_dense(nb::module_ &m) {
    m.def(
        "dense_squares",
        [](In2<T> X, double bias) { return squares_of(DenseRows<T>{X.data(), X.shape(1), bias}, X.shape(0)); },
        nb::arg("X").noconvert(), nb::arg("bias"), "Squared lengths of the rows, bias^2 included.");
    m.def(
        "dense_dual_cd",
        [](In2<T> X, double bias, In1<double> squares, In1<double> sign, In1<double> margin, In1<double> upper,
           InOut1<double> alpha, InOut1<double> w, Order order, double low, double high, double others, bool again,
           double tol, double gap, size_t max_visits) {
            const DenseRows<T> rows{X.data(), X.shape(1), bias};
            const Examples examples{squares, sign, margin, upper, alpha};
            return descend(rows, X.shape(0), examples, w, {order, low, high, others, again}, {tol, gap, max_visits});
        },
        nb::arg("X").noconvert(), nb::arg("bias"), nb::arg("squares").noconvert(), nb::arg("sign").noconvert(),
        nb::arg("margin").noconvert(), nb::arg("upper").noconvert(), nb::arg("alpha").noconvert(),
        nb::arg("w").noconvert(), nb::arg("order").noconvert(), nb::arg("low"), nb::arg("high"), nb::arg("others"),
        nb::arg("again"), nb::arg("tol"), nb::arg("gap"), nb::arg("max_visits"),
        "Dual coordinate descent in place on alpha, w and order. Returns the row visits, whether tol was reached, what "
        "the gap looks like, how many rows of the order were not set aside, and the limits for the next call.");
}

template <class T, class I> void bind_csr(nb::module_ &m) {
    using Rows = CSRRows<T, I>;
    m.def(
        "csr_squares",
        [](In1<T> data, In1<I> indices, In1<I> indptr, size_t p, double bias) {
            const size_t n = csr_rows(data, indices, indptr);
            return squares_of(Rows{data.data(), indices.data(), indptr.data(), p, bias}, n);
        },
        nb::arg("data").noconvert(), nb::arg("indices").noconvert(), nb::arg("indptr").noconvert(), nb::arg("p"),
        nb::arg("bias"), "Squared lengths of the rows, bias^2 included.");
    m.def(
        "csr_dual_cd",
        [](In1<T> data, In1<I> indices, In1<I> indptr, size_t p, double bias, In1<double> squares, In1<double> sign,
           In1<double> margin, In1<double> upper, InOut1<double> alpha, InOut1<double> w, Order order, double low,
           double high, double others, bool again, double tol, double gap, size_t max_visits) {
            const Rows rows{data.data(), indices.data(), indptr.data(), p, bias};
            const Examples examples{squares, sign, margin, upper, alpha};
            return descend(rows, csr_rows(data, indices, indptr), examples, w, {order, low, high, others, again},
                           {tol, gap, max_visits});
        },
        nb::arg("data").noconvert(), nb::arg("indices").noconvert(), nb::arg("indptr").noconvert(), nb::arg("p"),
        nb::arg("bias"), nb::arg("squares").noconvert(), nb::arg("sign").noconvert(), nb::arg("margin").noconvert(),
        nb::arg("upper").noconvert(), nb::arg("alpha").noconvert(), nb::arg("w").noconvert(),
        nb::arg("order").noconvert(), nb::arg("low"), nb::arg("high"), nb::arg("others"), nb::arg("again"),
        nb::arg("tol"), nb::arg("gap"), nb::arg("max_visits"),
        "Dual coordinate descent in place on alpha, w and order. Returns the row visits, whether tol was reached, what "
        "the gap looks like, how many rows of the order were not set aside, and the limits for the next call.");
}

} // namespace

void bind_dual(nb::module_ &m) {
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
    bind_dense<float>(m);
    bind_dense<double>(m);
    bind_csr<float, std::int32_t>(m);
    bind_csr<double, std::int32_t>(m);
    bind_csr<float, std::int64_t>(m);
    bind_csr<double, std::int64_t>(m);
}

} // namespace metrimax
