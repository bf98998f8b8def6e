// Python bindings of the small products and sums beside those of the data matrix.
#include "bindings.hpp"
#include "vector_products.hpp"

#include <nanobind/stl/vector.h>

#include <vector>

namespace metrimax {

namespace {

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

void py_add_row(InOut2<double> A, In1<double> row) {
    const size_t n = A.shape(0), m = A.shape(1);
    check_length("add_row", row.size(), m);
    nb::gil_scoped_release unlocked;
    double *a = A.data();
    const double *r = row.data();
    for (size_t i = 0; i < n; ++i)
        for (size_t l = 0; l < m; ++l)
            a[i * m + l] += r[l];
}

} // namespace

void bind_products(nb::module_ &m) {
    m.def("as_columns", &py_as_columns, nb::arg("vectors").noconvert(), "Vectors of one length side by side, (n, L).");
    m.def("column_sums", &py_column_sums, nb::arg("A").noconvert(), "The sum of every column of A.");
    m.def("add_row", &py_add_row, nb::arg("A").noconvert(), nb::arg("row").noconvert(), "Add a row to all rows of A.");
    m.def("transpose", &py_transpose, nb::arg("A").noconvert(), "The transpose, in C-order.");
}

} // namespace metrimax
