// What every binding file shares: array types, fresh output arrays, checks. The maths is in the other headers.
#pragma once

#include "memory.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <string>

namespace metrimax {

namespace nb = nanobind;

// Inputs are read-only, C-contiguous and on the CPU. Bind every one with nb::arg(...).noconvert():
// nanobind otherwise converts a wrong dtype silently, and an output would be written to a copy.
template <class T> using In1 = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T> using Strided1 = nb::ndarray<const T, nb::ndim<1>, nb::device::cpu>; // or one number, repeated
template <class T> using In2 = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class T> using InOut1 = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>; // written in place
template <class T> using Out1 = nb::ndarray<nb::numpy, T, nb::ndim<1>, nb::c_contig>;
template <class T> using Out2 = nb::ndarray<nb::numpy, T, nb::ndim<2>, nb::c_contig>;

// Memory for a result, all zero.
template <class T> Fresh<T> zeros(std::size_t size) {
    Fresh<T> values = empty<T>(size);
    std::fill_n(values.get(), size, T{0});
    return values;
}

// Hand a fresh array over to Python.
template <class T> Out1<T> make_array(Fresh<T> values, std::size_t n) {
    nb::capsule owner(values.get(), [](void *memory) noexcept { std::free(memory); });
    return Out1<T>(values.release(), {n}, owner);
}

template <class T> Out2<T> make_array(Fresh<T> values, std::size_t n, std::size_t m) {
    nb::capsule owner(values.get(), [](void *memory) noexcept { std::free(memory); });
    return Out2<T>(values.release(), {n, m}, owner);
}

inline void require(bool fits, const char *message) {
    if (!fits)
        throw nb::value_error(message);
}

// Raise ValueError unless the length that came is the one expected.
inline void check_length(const char *what, std::size_t came, std::size_t expected) {
    if (came != expected)
        throw nb::value_error(
            (std::string(what) + ": expected length " + std::to_string(expected) + ", got " + std::to_string(came))
                .c_str());
}

// The number of rows of a CSR matrix. What can be checked in no time is, at every call; csr_check has seen the rest.
template <class T, class I> std::size_t csr_rows(const In1<T> &data, const In1<I> &indices, const In1<I> &indptr) {
    require(indptr.size() > 0, "indptr: expected at least one entry, got none");
    const std::size_t n = indptr.size() - 1;
    check_length("indices", indices.size(), data.size());
    check_length("data", data.size(), static_cast<std::size_t>(indptr.data()[n]));
    return n;
}

void bind_products(nb::module_ &m);
void bind_oracles(nb::module_ &m);
void bind_smoothing(nb::module_ &m);
void bind_bundle(nb::module_ &m);
void bind_solvers(nb::module_ &m);
void bind_files(nb::module_ &m);
void bind_dual(nb::module_ &m);
void bind_rankings(nb::module_ &m);
void bind_composed(nb::module_ &m);
void bind_logistic(nb::module_ &m);
void bind_structured(nb::module_ &m);

} // namespace metrimax
