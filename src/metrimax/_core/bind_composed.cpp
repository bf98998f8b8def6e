// Python bindings of risks made of risks.
#include "bindings.hpp"
#include "composed_risks.hpp"

#include <nanobind/stl/vector.h>

namespace metrimax {

namespace {

Risk &risk_of(const nb::object &given) {
    if (!nb::isinstance<Risk>(given))
        throw nb::type_error("expected risks that are compiled, got something else");
    return nb::cast<Risk &>(given);
}

// Together with the risks it asks.
class PyMeanOfGroups : public MeanOfGroups {
  public:
    PyMeanOfGroups(In1<int64_t> order, In1<int64_t> starts, std::vector<nb::object> risks)
        : MeanOfGroups(checked(order), order.size(), groups_of(order.size(), starts, risks)), kept(std::move(risks)) {}

  private:
    static const int64_t *checked(const In1<int64_t> &order) {
        std::vector<bool> seen(order.size());
        for (size_t i = 0; i < order.size(); ++i) {
            const int64_t at = order.data()[i];
            require(at >= 0 && static_cast<size_t>(at) < order.size() && !seen[static_cast<size_t>(at)],
                    "MeanOfGroups: order must hold every example once");
            seen[static_cast<size_t>(at)] = true;
        }
        return order.data();
    }

    static std::vector<Group> groups_of(size_t n, const In1<int64_t> &starts, const std::vector<nb::object> &risks) {
        require(!risks.empty(), "MeanOfGroups: expected a group or more");
        check_length("MeanOfGroups: starts", starts.size(), risks.size());
        std::vector<Group> groups;
        groups.reserve(risks.size());
        for (size_t g = 0; g < risks.size(); ++g) {
            Risk &risk = risk_of(risks[g]);
            const int64_t start = starts.data()[g];
            require(start >= 0 && risk.size() <= n && static_cast<size_t>(start) <= n - risk.size(),
                    "MeanOfGroups: a group does not lie within the sample");
            groups.push_back({&risk, static_cast<size_t>(start)});
        }
        return groups;
    }

    std::vector<nb::object> kept;
};

// Together with the risks it asks.
class PySumOfRisks : public SumOfRisks {
  public:
    PySumOfRisks(std::vector<nb::object> risks, const std::vector<double> &times)
        : SumOfRisks(parts_of(risks, times)), kept(std::move(risks)) {}

  private:
    static std::vector<Part> parts_of(const std::vector<nb::object> &risks, const std::vector<double> &times) {
        require(!risks.empty(), "SumOfRisks: expected a risk or more");
        check_length("SumOfRisks: times", times.size(), risks.size());
        std::vector<Part> parts;
        for (size_t k = 0; k < risks.size(); ++k) {
            parts.push_back({&risk_of(risks[k]), times[k]});
            check_length("SumOfRisks: a risk", parts[k].risk->size(), parts[0].risk->size());
            require(times[k] > 0, "SumOfRisks: expected positive numbers of times");
        }
        return parts;
    }

    std::vector<nb::object> kept;
};

} // namespace

void bind_composed(nb::module_ &m) {
    nb::class_<PyMeanOfGroups, Risk>(m, "MeanOfGroups", "The mean of the risks of groups of a sample.")
        .def(nb::init<In1<int64_t>, In1<int64_t>, std::vector<nb::object>>(), nb::arg("order").noconvert(),
             nb::arg("starts").noconvert(), nb::arg("risks"));
    nb::class_<PySumOfRisks, Risk>(m, "SumOfRisks", "A sum of risks, each so many times.")
        .def(nb::init<std::vector<nb::object>, std::vector<double>>(), nb::arg("risks"), nb::arg("times"));
}

} // namespace metrimax
