// A data matrix as Python has it: what the kernels read, together with the arrays that hold it.
#pragma once

#include "bindings.hpp"
#include "matrix.hpp"

#include <any>

namespace metrimax {

struct PyMatrix {
    Matrix matrix;
    std::any arrays; // that it was made of

    size_t n() const {
        return std::visit([](const auto &X) { return X.n; }, matrix);
    }
    size_t p() const {
        return std::visit([](const auto &X) { return X.p; }, matrix);
    }
};

} // namespace metrimax
