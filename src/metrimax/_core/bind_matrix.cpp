// Python bindings of the data matrix: check lengths, make room for the result, let go of the GIL, call the kernel.
#include "bind_matrix.hpp"
#include "some_rows.hpp"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <memory>
#include <tuple>
#include <utility>
#include <vector>

namespace metrimax {

namespace {

using Arrays = nb::typed<nb::list, Out1<double>>;

// The products with several vectors that lie apart, where X has one more feature of the value `bias` unless that is 0.
Arrays products(const PyMatrix &self, bool pull, const std::vector<In1<double>> &vectors, double bias, int n_threads) {
    const size_t n = self.n(), p = self.p(), width = p + (bias != 0.0), size = pull ? width : n;
    const Ins in = starts("vectors", vectors, pull ? n : width);
    std::vector<Fresh<double>> results;
    Outs out;
    for (size_t l = 0; l < in.size(); ++l)
        out.push_back(results.emplace_back(empty<double>(size)).get());
    {
        nb::gil_scoped_release unlocked;
        std::visit([&](const auto &X) { X.products(pull, in, out, n_threads); }, self.matrix);
        if (bias != 0.0)
            add_bias(bias, n, p, pull, in, out);
    }
    Arrays arrays;
    for (Fresh<double> &result : results)
        arrays.append(make_array(std::move(result), size));
    return arrays;
}

// The product with vectors side by side.
Out2<double> columns(const PyMatrix &self, bool pull, In2<double> V, int n_threads) {
    const size_t L = V.shape(1), size = pull ? self.p() : self.n();
    check_length("rows of V", V.shape(0), pull ? self.n() : self.p());
    const bool added = std::visit([&](const auto &X) { return X.adds(pull); }, self.matrix);
    auto out = added ? zeros<double>(size * L) : empty<double>(size * L);
    {
        nb::gil_scoped_release unlocked;
        std::visit([&](const auto &X) { X.products(pull, V.data(), L, out.get(), n_threads); }, self.matrix);
    }
    return make_array(std::move(out), size, L);
}

using Some = std::pair<PyMatrix, Out1<std::int64_t>>;

template <class T> Some some(const DenseMatrix<T> &, const std::int64_t *, size_t) {
    throw nb::type_error("some: expected a CSR matrix, got a dense one: index its array");
}
template <class T, class I> Some some(const CSRMatrix<T, I> &X, const std::int64_t *rows, size_t n_rows) {
    const auto part = std::make_shared<SomeRows<T, I>>(X.data, X.indices, X.indptr, X.p, rows, n_rows);
    const CSRMatrix<T, I> matrix(part->data.get(), part->nnz, part->indices.get(), part->nnz, part->indptr.get(),
                                 n_rows + 1, part->n_features, true);
    return Some(PyMatrix{matrix, std::any(part)}, make_array(std::move(part->features), part->n_features));
}

// Some rows of a CSR matrix, and the features that they have.
Some some_rows(const PyMatrix &self, In1<std::int64_t> rows) {
    for (size_t r = 0; r < rows.size(); ++r)
        require(rows.data()[r] >= 0 && static_cast<size_t>(rows.data()[r]) < self.n(),
                "some: expected rows of the matrix, got one out of its range");
    return std::visit([&](const auto &X) { return some(X, rows.data(), rows.size()); }, self.matrix);
}

template <class T> void bind_dense(nb::module_ &m) {
    m.def(
        "dense_matrix",
        [](In2<T> X, bool fortran) {
            const size_t n = X.shape(fortran ? 1 : 0), p = X.shape(fortran ? 0 : 1);
            return PyMatrix{DenseMatrix<T>{X.data(), n, p, fortran}, X};
        },
        nb::arg("X").noconvert(), nb::arg("fortran") = false,
        "A dense matrix in C-order; or the one whose transpose this is, where `fortran` says so.");
}

template <class T, class I> void bind_csr(nb::module_ &m) {
    m.def(
        "csr_matrix",
        [](In1<T> data, In1<I> indices, In1<I> indptr, size_t n_cols, bool trusted) {
            const CSRMatrix<T, I> X(data.data(), data.size(), indices.data(), indices.size(), indptr.data(),
                                    indptr.size(), n_cols, trusted);
            return PyMatrix{X, std::tuple(data, indices, indptr)};
        },
        nb::arg("data").noconvert(), nb::arg("indices").noconvert(), nb::arg("indptr").noconvert(), nb::arg("n_cols"),
        nb::arg("trusted") = false,
        "A CSR matrix, whose arrays must not change any more. ValueError unless its structure is sound; that of one "
        "that was found sound before may be trusted.");
}

} // namespace

void bind_matrix(nb::module_ &m) {
    nb::class_<PyMatrix>(m, "Matrix", "A data matrix X, dense or CSR, which keeps the arrays it was made of.")
        .def_prop_ro("shape", [](const PyMatrix &self) { return std::pair(self.n(), self.p()); })
        .def("products", &products, nb::arg("pull"), nb::arg("vectors").noconvert(), nb::arg("bias"),
             nb::arg("n_threads"), "X v, or X'v to pull, for each of several v.")
        .def("columns", &columns, nb::arg("pull"), nb::arg("V").noconvert(), nb::arg("n_threads"),
             "X V, or X'V to pull, for the columns of V.")
        .def("some", &some_rows, nb::arg("rows").noconvert(),
             "Some rows of a CSR matrix as a matrix, and its features: those that are zero in all of these rows are "
             "left out, as long as there are more features than rows.");
    bind_dense<float>(m);
    bind_dense<double>(m);
    bind_csr<float, std::int32_t>(m);
    bind_csr<double, std::int32_t>(m);
    bind_csr<float, std::int64_t>(m);
    bind_csr<double, std::int64_t>(m);
}

} // namespace metrimax
