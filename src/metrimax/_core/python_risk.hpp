// The risk of an oracle that is written in Python.
#pragma once

#include "bindings.hpp"
#include "memory.hpp"
#include "risk.hpp"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>

#include <algorithm>
#include <string>
#include <utility>

namespace metrimax {

// Its methods are called with the GIL.
class PythonRisk : public Risk {
  public:
    PythonRisk(nb::handle oracle, size_t n) : oracle(oracle), n(n) {}

    size_t size() const override { return n; }

    double plane(const double *scores, double mu, double *slope) override {
        const nb::object cut = mu > 0 ? oracle.attr("mean_cut")(copied(scores), mu) : oracle(copied(scores));
        const auto values = as<Strided1<double>>(cut.attr("slope"), "the slope of a cut as an array of float64");
        check_length("the slope of a cut", values.size(), n);
        for (size_t i = 0; i < n; ++i)
            slope[i] = values.data()[static_cast<int64_t>(i) * values.stride(0)];
        return as<double>(cut.attr("loss"), "the loss of a cut as a number");
    }

    Line line(const double *scores, const double *move) override {
        const nb::object line = oracle.attr("line")(copied(scores), copied(move));
        return [line](double t) {
            return as<std::pair<double, double>>(line(t), "two numbers of a risk along a line, value and rise");
        };
    }

  private:
    nb::handle oracle;
    size_t n;

    template <class T> static T as(nb::handle answer, const char *expected) {
        T value;
        if (!nb::try_cast(answer, value))
            throw nb::type_error(("the oracle: expected " + std::string(expected) + ", got " +
                                  nb::cast<std::string>(nb::repr(answer.type())))
                                     .c_str());
        return value;
    }

    // It may keep what it gets.
    Out1<double> copied(const double *values) const {
        auto copy = empty<double>(n);
        std::copy_n(values, n, copy.get());
        return make_array(std::move(copy), n);
    }
};

} // namespace metrimax
