// Python bindings of the kernels of the smoothed measures.
#include "bindings.hpp"
#include "smoothing.hpp"

namespace metrimax {

static Ramp ramp(const In1<double> &costs, const In1<double> &weights) {
    if (weights.size() != 0 && weights.size() != costs.size())
        throw nb::value_error("ramp: costs and weights differ in length");
    return Ramp(costs.data(), weights.size() ? weights.data() : nullptr, static_cast<Index>(costs.size()));
}

void bind_smoothing(nb::module_ &m) {
    m.def(
        "ramp_sums",
        [](In1<double> costs, In1<double> weights, In1<double> t, In1<double> h, InOut1<double> count,
           InOut1<double> gain) {
            check_length("ramp_sums: h", h.size(), t.size());
            check_length("ramp_sums: count", count.size(), t.size());
            check_length("ramp_sums: gain", gain.size(), t.size());
            const double *td = t.data(), *hd = h.data();
            double *c = count.data(), *g = gain.data();
            const auto size = static_cast<Index>(t.size());
            nb::gil_scoped_release unlocked;
            const Ramp sums = ramp(costs, weights);
            RampEnds ends;
            for (Index k = 0; k < size; ++k) {
                const RampSums at = sums(td[k], hd[k], ends);
                c[k] = at.count;
                g[k] = at.gain;
            }
        },
        nb::arg("costs").noconvert(), nb::arg("weights").noconvert(), nb::arg("t").noconvert(),
        nb::arg("h").noconvert(), nb::arg("count").noconvert(), nb::arg("gain").noconvert(),
        "Number and gain of the flips under each ramp (t, h), for costs sorted ascending (empty weights: all 1).");
    m.def(
        "ramp_thresholds",
        [](In1<double> pos, In1<double> pos_weights, In1<double> neg, In1<double> neg_weights, In1<double> tau,
           In1<double> target, In1<double> h, InOut1<double> t) {
            check_length("ramp_thresholds: target", target.size(), tau.size());
            check_length("ramp_thresholds: h", h.size(), tau.size());
            check_length("ramp_thresholds: t", t.size(), tau.size());
            const double *taud = tau.data(), *goal = target.data(), *hd = h.data();
            double *out = t.data();
            const auto size = static_cast<Index>(tau.size());
            nb::gil_scoped_release unlocked;
            const Ramp p = ramp(pos, pos_weights), q = ramp(neg, neg_weights);
            RampEnds pos_ends, neg_ends;
            double b = q.lowest();
            for (Index k = 0; k < size; ++k)
                out[k] = b = ramp_threshold(p, q, taud[k], hd[k], goal[k], b, pos_ends, neg_ends);
        },
        nb::arg("pos").noconvert(), nb::arg("pos_weights").noconvert(), nb::arg("neg").noconvert(),
        nb::arg("neg_weights").noconvert(), nb::arg("tau").noconvert(), nb::arg("target").noconvert(),
        nb::arg("h").noconvert(), nb::arg("t").noconvert(),
        "Thresholds t with count(neg, t) - count(pos, tau - t) = target, for costs sorted ascending.");
    m.def(
        "count_values",
        [](In1<double> pos, In1<double> neg, double step, Index n_pos, Index m_low, Strided1<double> u,
           Strided1<double> v, InOut1<double> values) {
            check_length("count_values: v", v.size(), u.size());
            check_length("count_values: values", values.size(), u.size());
            const Queue p{pos.data(), static_cast<Index>(pos.size()), 0, 0.0, step};
            const Queue q{neg.data(), static_cast<Index>(neg.size()), 0, 0.0, step};
            const ByCount us{u.data(), static_cast<Index>(u.stride(0))}, vs{v.data(), static_cast<Index>(v.stride(0))};
            const Index m_high = m_low + static_cast<Index>(u.size()) - 1;
            double *out = values.data();
            nb::gil_scoped_release unlocked;
            const auto P = p.prefix(), N = q.prefix();
            CountScan(p, q, P, N, n_pos, m_low, m_high, us, vs).visit([&](Index m, double value, Index, Index) {
                out[m - m_low] = value;
            });
        },
        nb::arg("pos").noconvert(), nb::arg("neg").noconvert(), nb::arg("step"), nb::arg("n_pos"), nb::arg("m_low"),
        nb::arg("u").noconvert(), nb::arg("v").noconvert(), nb::arg("values").noconvert(),
        "The best value for every number m of predicted positives, for costs of all units sorted ascending.");
}

} // namespace metrimax
