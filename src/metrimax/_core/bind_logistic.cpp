// Python bindings of the losses of examples.
#include "bindings.hpp"
#include "logistic.hpp"

namespace metrimax {

void bind_logistic(nb::module_ &m) {
    nb::class_<BaseLosses, Risk>(m, "BaseLosses",
                                 "Hinges and logistic losses of examples, whose shares have the signs of their labels.")
        .def(
            "__init__",
            [](BaseLosses *self, In1<double> shares, double hinge, double logistic) {
                require(hinge >= 0 && logistic >= 0, "BaseLosses: expected weights that are not negative");
                new (self) BaseLosses(shares.data(), shares.size(), hinge, logistic);
            },
            nb::arg("shares").noconvert(), nb::arg("hinge"), nb::arg("logistic"));
}

} // namespace metrimax
