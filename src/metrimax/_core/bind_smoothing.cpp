// Python bindings of the kernels of the smoothed measures.
#include "bind_records.hpp"
#include "linear_smoothing.hpp"
#include "piece_smoothing.hpp"
#include "ramp_sums.hpp"

#include <nanobind/stl/array.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>

#include <utility>

namespace metrimax {

namespace {

// Sums over the flips of a class, together with the costs they are of.
struct PyRamp {
    In1<double> costs, weights;
    Ramp sums;

    PyRamp(In1<double> costs, In1<double> weights)
        : costs(costs), weights(weights), sums(costs.data(), checked(costs, weights), size_of(costs)) {}

  private:
    static const double *checked(const In1<double> &costs, const In1<double> &weights) {
        if (weights.size() > 0)
            check_length("Ramp: weights", weights.size(), costs.size());
        return weights.size() ? weights.data() : nullptr;
    }
};

std::pair<Out1<double>, Out1<double>> ramp_sums(const PyRamp &ramp, In1<double> t, In1<double> h) {
    const size_t size = t.size();
    check_length("ramp_sums: h", h.size(), size);
    auto count = empty<double>(size), gain = empty<double>(size);
    {
        nb::gil_scoped_release unlocked;
        RampEnds ends;
        for (size_t k = 0; k < size; ++k) {
            const RampSums at = ramp.sums(t.data()[k], h.data()[k], ends);
            count[k] = at.count;
            gain[k] = at.gain;
        }
    }
    return {make_array(std::move(count), size), make_array(std::move(gain), size)};
}

Out1<double> ramp_thresholds(const PyRamp &pos, const PyRamp &neg, In1<double> tau, In1<double> target, In1<double> h) {
    const size_t size = tau.size();
    check_length("ramp_thresholds: target", target.size(), size);
    check_length("ramp_thresholds: h", h.size(), size);
    auto t = empty<double>(size);
    {
        nb::gil_scoped_release unlocked;
        RampEnds pos_ends, neg_ends;
        double b = neg.sums.lowest();
        for (size_t k = 0; k < size; ++k)
            t[k] = b =
                ramp_threshold(pos.sums, neg.sums, tau.data()[k], h.data()[k], target.data()[k], b, pos_ends, neg_ends);
    }
    return make_array(std::move(t), size);
}

class PyCountSmoothing : public CountSmoothing {
  public:
    PyCountSmoothing(Index size, const PyPairClass &pos, const PyPairClass &neg, double step, const PyCounts &loss)
        : CountSmoothing(size, pos.view(), neg.view(), step, loss.m_low, by_count(loss.u), by_count(loss.v),
                         size_of(loss.u)),
          pos(pos), neg(neg), loss(loss) {
        check_positive("CountSmoothing: step", step);
    }

  private:
    PyPairClass pos, neg;
    PyCounts loss;
};

constexpr const char *kSmooth =
    "The smoothed risk, no more than mu below the risk: its value, and loss and slope of its plane.";

using Both = std::array<double, 2>; // of the positives, and of the negatives

Both positive(const char *what, Both steps) {
    for (const double step : steps)
        check_positive(what, step);
    return steps;
}

class PyLinearSmoothing : public LinearSmoothing {
  public:
    PyLinearSmoothing(Index size, const PyPairClass &pos, const PyPairClass &neg, Both steps, Both loss)
        : LinearSmoothing(size, pos.view(), neg.view(), positive("LinearSmoothing: step", steps), loss), pos(pos),
          neg(neg) {}

  private:
    PyPairClass pos, neg;
};

class PyRowSmoothing : public RowSmoothing {
  public:
    PyRowSmoothing(Index size, const PyPairClass &pos, const PyPairClass &neg, Both steps, double rise, In1<double> g)
        : RowSmoothing(size, pos.view(), neg.view(), positive("RowSmoothing: step", steps), rise, g.data(), size_of(g)),
          pos(pos), neg(neg), g(g) {}

  private:
    PyPairClass pos, neg;
    In1<double> g;
};

class PyPlaneSmoothing : public PlaneSmoothing {
  public:
    PyPlaneSmoothing(Index size, const PyPairClass &pos, const PyPairClass &neg, Both steps)
        : PlaneSmoothing(size, pos.view(), neg.view(), positive("PlaneSmoothing: step", steps)), pos(pos), neg(neg) {}

    std::tuple<double, double, Out1<double>> ask(In1<double> scores, double mu, In1<double> c, In1<double> a,
                                                 In1<double> b) {
        require(c.size() > 1, "PlaneSmoothing: expected two planes or more");
        check_length("PlaneSmoothing: a", a.size(), c.size());
        check_length("PlaneSmoothing: b", b.size(), c.size());
        return smoothed(*this, scores, mu, [&](double *slope) {
            return smooth(scores.data(), mu, slope, c.data(), a.data(), b.data(), size_of(c));
        });
    }

  private:
    PyPairClass pos, neg;
};

} // namespace

void bind_smoothing(nb::module_ &m) {
    nb::class_<PyRamp>(m, "Ramp", "Costs of a class, ascending, and their weights or none, to be summed under ramps.")
        .def(nb::init<In1<double>, In1<double>>(), nb::arg("costs").noconvert(), nb::arg("weights").noconvert());
    nb::class_<PyCountSmoothing>(m, "CountSmoothing", "The smoothed risk of a loss by count.")
        .def(nb::init<Index, const PyPairClass &, const PyPairClass &, double, const PyCounts &>(), nb::arg("size"),
             nb::arg("pos"), nb::arg("neg"), nb::arg("step"), nb::arg("loss"),
             "Weights of members and the loss are in units of which each weighs `step` of the sample.")
        .def("smooth", &smooth<PyCountSmoothing>, nb::arg("scores").noconvert(), nb::arg("mu"), kSmooth);
    nb::class_<PyLinearSmoothing>(m, "LinearSmoothing", "The smoothed risk of a loss a fn + b fp.")
        .def(nb::init<Index, const PyPairClass &, const PyPairClass &, Both, Both>(), nb::arg("size"), nb::arg("pos"),
             nb::arg("neg"), nb::arg("steps"), nb::arg("loss"),
             "Weights of members and the losses of a flip are in units, of which each weighs a step of the sample.")
        .def("smooth", &smooth<PyLinearSmoothing>, nb::arg("scores").noconvert(), nb::arg("mu"), kSmooth);
    nb::class_<PyRowSmoothing>(m, "RowSmoothing", "The smoothed risk of 1 - g[j] (1 - rise fn), j the false positives.")
        .def(nb::init<Index, const PyPairClass &, const PyPairClass &, Both, double, In1<double>>(), nb::arg("size"),
             nb::arg("pos"), nb::arg("neg"), nb::arg("steps"), nb::arg("rise"), nb::arg("g").noconvert(),
             "Weights of members and the loss are in units, of which each weighs a step of the sample.")
        .def("smooth", &smooth<PyRowSmoothing>, nb::arg("scores").noconvert(), nb::arg("mu"), kSmooth);
    nb::class_<PyPlaneSmoothing>(m, "PlaneSmoothing", "The smoothed risk of the highest of planes c - a tp - b tn.")
        .def(nb::init<Index, const PyPairClass &, const PyPairClass &, Both>(), nb::arg("size"), nb::arg("pos"),
             nb::arg("neg"), nb::arg("steps"), "Weights of members are in units, of which each weighs a step.")
        .def("smooth", &PyPlaneSmoothing::ask, nb::arg("scores").noconvert(), nb::arg("mu"), nb::arg("c").noconvert(),
             nb::arg("a").noconvert(), nb::arg("b").noconvert(), kSmooth);
    m.def("ramp_sums", &ramp_sums, nb::arg("ramp"), nb::arg("t").noconvert(), nb::arg("h").noconvert(),
          "Number and gain of the flips under each ramp (t, h).");
    m.def("ramp_thresholds", &ramp_thresholds, nb::arg("pos"), nb::arg("neg"), nb::arg("tau").noconvert(),
          nb::arg("target").noconvert(), nb::arg("h").noconvert(),
          "Thresholds t with count(neg, t) - count(pos, tau - t) = target.");
}

} // namespace metrimax
