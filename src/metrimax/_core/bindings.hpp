// What every binding file shares: array types, fresh output arrays, checks. The maths is in the other headers.
#pragma once

#include "index.hpp"
#include "memory.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace metrimax {

namespace nb = nanobind;

// An array whose entries lie where their type wants them, as the compiler takes for granted: at multiples of its size.
template <class... Args> class Aligned : public nb::ndarray<Args...> {
  public:
    using nb::ndarray<Args...>::ndarray;
    explicit Aligned(nb::ndarray<Args...> array) : nb::ndarray<Args...>(std::move(array)) {}
    bool holds() const {
        using Scalar = typename nb::ndarray<Args...>::Scalar;
        return this->size() == 0 || reinterpret_cast<std::uintptr_t>(this->data()) % alignof(Scalar) == 0;
    }
};

// Inputs are read-only, C-contiguous and on the CPU. Bind every one with nb::arg(...).noconvert():
// nanobind otherwise converts a wrong dtype silently, and an output would be written to a copy.
template <class T> using In1 = Aligned<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T> using Strided1 = Aligned<const T, nb::ndim<1>, nb::device::cpu>; // or one number, repeated
template <class T> using In2 = Aligned<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class T> using InOut1 = Aligned<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>; // written in place
template <class T> using InOut2 = Aligned<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
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

// Where vectors begin that must all have this length.
inline std::vector<const double *> starts(const char *what, const std::vector<In1<double>> &vectors, size_t length) {
    std::vector<const double *> starts;
    for (const auto &vector : vectors) {
        check_length(what, vector.size(), length);
        starts.push_back(vector.data());
    }
    return starts;
}

// Raise ValueError unless a number is positive and finite.
inline void check_positive(const char *what, double came) {
    if (!(came > 0 && std::isfinite(came)))
        throw nb::value_error(
            (std::string(what) + ": expected a positive number, got " + std::to_string(came)).c_str());
}

template <class Array> Index size_of(const Array &array) { return static_cast<Index>(array.size()); }

// An object of one run, which cannot serve two calls at once: the second one raises RuntimeError and touches nothing.
class OneAtATime {
  public:
    explicit OneAtATime(const char *what) : what(what) {}

    class Turn {
      public:
        explicit Turn(OneAtATime &owner) : owner(owner) {
            if (owner.busy.exchange(true, std::memory_order_acquire))
                throw std::runtime_error(std::string(owner.what) +
                                         " is in use: it belongs to one run, which asks it one thing at a time; "
                                         "make one for every thread");
        }
        ~Turn() { owner.busy.store(false, std::memory_order_release); }
        Turn(const Turn &) = delete;
        Turn &operator=(const Turn &) = delete;

      private:
        OneAtATime &owner;
    };

    Turn turn() { return Turn(*this); }

  private:
    const char *what;
    std::atomic<bool> busy{false};
};

void bind_products(nb::module_ &m);
void bind_oracles(nb::module_ &m);
void bind_smoothing(nb::module_ &m);
void bind_bundle(nb::module_ &m);
void bind_solvers(nb::module_ &m);
void bind_files(nb::module_ &m);
void bind_matrix(nb::module_ &m);
void bind_dual(nb::module_ &m);
void bind_rankings(nb::module_ &m);
void bind_composed(nb::module_ &m);
void bind_logistic(nb::module_ &m);
void bind_structured(nb::module_ &m);

} // namespace metrimax

namespace nanobind::detail {

// Arrays that are not aligned are no match, like those of another type.
template <class... Args> struct type_caster<metrimax::Aligned<Args...>> {
    using Plain = ndarray<Args...>;
    NB_TYPE_CASTER(metrimax::Aligned<Args...>, make_caster<Plain>::Name)

    template <class Flags> bool from_python(handle source, Flags flags, cleanup_list *cleanup) noexcept {
        make_caster<Plain> caster;
        if (!caster.from_python(source, flags, cleanup))
            return false;
        value = metrimax::Aligned<Args...>(std::move(caster.value));
        return value.holds();
    }
};

} // namespace nanobind::detail
