// Bindings of products.hpp: check lengths, make room for the result, let go of the GIL, call the kernel.
#include "bindings.hpp"
#include "products.hpp"
#include "several.hpp"

#include <nanobind/stl/vector.h>

#include <cstdint>
#include <vector>

namespace metrimax {

namespace {

using Arrays = nb::typed<nb::list, Out1<double>>;

// Where vectors begin that must all have this length.
Ins starts(const char *what, const std::vector<In1<double>> &vectors, size_t length) {
    Ins starts;
    for (const auto &vector : vectors) {
        check_length(what, vector.size(), length);
        starts.push_back(vector.data());
    }
    return starts;
}

// The product of X (n, p), or of its transpose, with vectors side by side: multiply(L, out), which adds to zeros where
// X is transposed.
template <class F> Out2<double> columns(In2<double> V, bool transposed, size_t n, size_t p, F &&multiply) {
    const size_t L = V.shape(1), size = transposed ? p : n;
    check_length("rows of V", V.shape(0), transposed ? n : p);
    auto out = transposed ? zeros<double>(size * L) : empty<double>(size * L);
    {
        nb::gil_scoped_release unlocked;
        multiply(L, out.get());
    }
    return make_array(std::move(out), size, L);
}

// F-order is the transpose of a C-order matrix: `fortran` says that X' came, and swaps the kernels.
template <class T> Out2<double> py_dense_columns(In2<T> X, bool fortran, bool pull, In2<double> V, int n_threads) {
    const size_t n = X.shape(0), p = X.shape(1);
    return columns(V, pull != fortran, n, p, [&](size_t L, double *out) {
        (pull != fortran ? dense_rmatmat<T> : dense_matmat<T>)(X.data(), n, p, V.data(), L, out, n_threads);
    });
}

Out2<double> py_transpose(In2<double> A) {
    const size_t n = A.shape(0), m = A.shape(1);
    auto out = empty<double>(n * m);
    {
        nb::gil_scoped_release unlocked;
        transpose(A.data(), n, m, out.get());
    }
    return make_array(std::move(out), m, n);
}

Out2<double> py_as_columns(std::vector<In1<double>> vectors) {
    const size_t m = vectors.size(), n = m ? vectors[0].size() : 0;
    const Ins in = starts("as_columns", vectors, n);
    auto out = empty<double>(n * m);
    {
        nb::gil_scoped_release unlocked;
        side_by_side(in, n, m, out.get());
    }
    return make_array(std::move(out), n, m);
}

// The products of X (n, p), with one more feature of the value `bias` unless that is 0, with several vectors that lie
// apart: multiply(in, out).
template <class F>
Arrays several(const std::vector<In1<double>> &vectors, bool pull, size_t n, size_t p, double bias, F &&multiply) {
    const size_t width = p + (bias != 0.0), size = pull ? width : n;
    const Ins in = starts("vectors", vectors, pull ? n : width);
    std::vector<Fresh<double>> results;
    Outs out;
    for (size_t l = 0; l < in.size(); ++l)
        out.push_back(results.emplace_back(empty<double>(size)).get());
    {
        nb::gil_scoped_release unlocked;
        multiply(in, out);
        if (bias != 0.0)
            add_bias(bias, n, p, pull, in, out);
    }
    Arrays arrays;
    for (Fresh<double> &result : results)
        arrays.append(make_array(std::move(result), size));
    return arrays;
}

template <class T>
Arrays py_dense_products(In2<T> X, bool fortran, bool pull, std::vector<In1<double>> vectors, double bias,
                         int n_threads) {
    const size_t rows = X.shape(0), columns = X.shape(1);
    return several(vectors, pull, fortran ? columns : rows, fortran ? rows : columns, bias,
                   [&](const Ins &in, const Outs &out) {
                       dense_products(X.data(), rows, columns, pull != fortran, in, out, n_threads);
                   });
}

// For a few columns, where NumPy's loops over the last axis are short and slow.
Out1<double> py_column_sums(In2<double> A) {
    const size_t n = A.shape(0), m = A.shape(1);
    auto out = zeros<double>(m);
    {
        nb::gil_scoped_release unlocked;
        const double *a = A.data();
        if (m == 2) {
            double first = 0, second = 0;
            for (size_t i = 0; i < n; ++i) {
                first += a[2 * i];
                second += a[2 * i + 1];
            }
            out[0] = first;
            out[1] = second;
        } else {
            for (size_t i = 0; i < n; ++i)
                for (size_t l = 0; l < m; ++l)
                    out[l] += a[i * m + l];
        }
    }
    return make_array(std::move(out), m);
}

void py_add_row(nb::ndarray<double, nb::ndim<2>, nb::c_contig, nb::device::cpu> A, In1<double> row) {
    const size_t n = A.shape(0), m = A.shape(1);
    check_length("add_row", row.size(), m);
    nb::gil_scoped_release unlocked;
    double *a = A.data();
    const double *r = row.data();
    for (size_t i = 0; i < n; ++i)
        for (size_t l = 0; l < m; ++l)
            a[i * m + l] += r[l];
}

template <class I> void py_csr_check(In1<I> indices, In1<I> indptr, size_t n_cols) {
    if (indptr.shape(0) == 0)
        throw nb::value_error("bad CSR matrix: indptr must have at least one entry, got none");
    nb::gil_scoped_release unlocked;
    csr_check(indptr.data(), indptr.shape(0) - 1, indices.data(), indices.shape(0), n_cols);
}

template <class T, class I>
Out2<double> py_csr_columns(In1<T> data, In1<I> indices, In1<I> indptr, size_t n_cols, bool pull, In2<double> V,
                            int n_threads) {
    const size_t n = csr_rows(data, indices, indptr);
    return columns(V, pull, n, n_cols, [&](size_t L, double *out) {
        if (pull)
            csr_rmatmat(data.data(), indices.data(), indptr.data(), n, n_cols, V.data(), L, out, n_threads);
        else
            csr_matmat(data.data(), indices.data(), indptr.data(), n, V.data(), L, out, n_threads);
    });
}

template <class T, class I>
Arrays py_csr_products(In1<T> data, In1<I> indices, In1<I> indptr, size_t n_cols, bool pull,
                       std::vector<In1<double>> vectors, double bias, int n_threads) {
    const size_t n = csr_rows(data, indices, indptr);
    return several(vectors, pull, n, n_cols, bias, [&](const Ins &in, const Outs &out) {
        csr_products(data.data(), indices.data(), indptr.data(), n, n_cols, pull, in, out, n_threads);
    });
}

template <class T> void bind_dense(nb::module_ &m) {
    const auto X = nb::arg("X").noconvert(), V = nb::arg("V").noconvert(), vectors = nb::arg("vectors").noconvert();
    const auto fortran = nb::arg("fortran"), pull = nb::arg("pull"), n_threads = nb::arg("n_threads");
    m.def("dense_columns", &py_dense_columns<T>, X, fortran, pull, V, n_threads, "X V, or X'V to pull.");
    m.def("dense_products", &py_dense_products<T>, X, fortran, pull, vectors, nb::arg("bias"), n_threads,
          "X v, or X'v to pull, for each of several v.");
}

template <class T, class I> void bind_csr(nb::module_ &m) {
    const auto data = nb::arg("data").noconvert();
    const auto indices = nb::arg("indices").noconvert(), indptr = nb::arg("indptr").noconvert();
    const auto V = nb::arg("V").noconvert(), vectors = nb::arg("vectors").noconvert();
    const auto n_cols = nb::arg("n_cols"), pull = nb::arg("pull"), n_threads = nb::arg("n_threads");
    m.def("csr_columns", &py_csr_columns<T, I>, data, indices, indptr, n_cols, pull, V, n_threads,
          "X V, or X'V to pull.");
    m.def("csr_products", &py_csr_products<T, I>, data, indices, indptr, n_cols, pull, vectors, nb::arg("bias"),
          n_threads, "X v, or X'v to pull, for each of several v.");
}

template <class I> void bind_index(nb::module_ &m) {
    m.def("csr_check", &py_csr_check<I>, nb::arg("indices").noconvert(), nb::arg("indptr").noconvert(),
          nb::arg("n_cols"), "Raise ValueError unless the CSR structure is sound.");
    bind_csr<float, I>(m);
    bind_csr<double, I>(m);
}

} // namespace

void bind_products(nb::module_ &m) {
    m.def("as_columns", &py_as_columns, nb::arg("vectors").noconvert(), "Vectors of one length side by side, (n, L).");
    m.def("column_sums", &py_column_sums, nb::arg("A").noconvert(), "The sum of every column of A.");
    m.def("add_row", &py_add_row, nb::arg("A").noconvert(), nb::arg("row").noconvert(), "Add a row to all rows of A.");
    m.def("transpose", &py_transpose, nb::arg("A").noconvert(), "The transpose, in C-order.");
    bind_dense<float>(m);
    bind_dense<double>(m);
    bind_index<std::int32_t>(m);
    bind_index<std::int64_t>(m);
}

} // namespace metrimax
