// Python bindings of the argmaxes over sequences and trees, and of the constraints that training finds.
#include "bindings.hpp"
#include "cky.hpp"
#include "viterbi.hpp"
#include "working_sets.hpp"

#include <nanobind/stl/tuple.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>
#include <vector>

namespace metrimax {

namespace {

// The rules of a grammar, together with the arrays that hold them.
struct PyRules {
    In1<Symbol> parent, left, right;
    size_t symbols;
    BinaryRules rules;

    PyRules(In1<Symbol> parent, In1<Symbol> left, In1<Symbol> right, size_t symbols)
        : parent(parent), left(left), right(right), symbols(symbols), rules(checked()) {}

  private:
    BinaryRules checked() const {
        check_length("BinaryRules: left", left.size(), parent.size());
        check_length("BinaryRules: right", right.size(), parent.size());
        for (const In1<Symbol> &side : {parent, left, right})
            for (size_t r = 0; r < side.size(); ++r)
                require(side.data()[r] >= 0 && static_cast<size_t>(side.data()[r]) < symbols,
                        "BinaryRules: expected symbols by numbers from 0 to their number less one, got another one");
        require(std::is_sorted(left.data(), left.data() + left.size()),
                "BinaryRules: expected rules ordered by their left symbol, got another order");
        return BinaryRules(parent.data(), left.data(), right.data(), parent.size(), symbols);
    }
};

std::tuple<double, Out2<std::int32_t>, Out1<Symbol>> highest_tree(const PyRules &grammar, In2<double> weight,
                                                                  In2<double> lexical, In1<Symbol> roots,
                                                                  In2<Symbol> gold, double price) {
    const size_t n = lexical.shape(0);
    require(n > 0, "cky: expected one word or more, got none");
    require(weight.shape(0) == 1 || weight.shape(0) == n * n, "cky: expected one row of weights, or n^2");
    check_length("cky: columns of weight", weight.shape(1), grammar.parent.size());
    check_length("cky: symbols of lexical", lexical.shape(1), grammar.symbols);
    check_length("cky: rows of gold", gold.shape(0), n);
    check_length("cky: columns of gold", gold.shape(1), n);
    require(roots.size() > 0, "cky: expected one root or more, got none");
    for (size_t k = 0; k < roots.size(); ++k)
        require(roots.data()[k] >= 0 && static_cast<size_t>(roots.data()[k]) < grammar.symbols,
                "cky: expected roots among the symbols");
    require(std::isfinite(price), "cky: expected a price that is finite");
    const RuleWeights weights{weight.data(), weight.shape(0) == 1 ? 0 : weight.shape(1)};
    const std::vector<Symbol> tops(roots.data(), roots.data() + roots.size());
    auto words = zeros<Symbol>(n);
    std::vector<Node> nodes;
    double score = 0;
    {
        nb::gil_scoped_release unlocked;
        score = cky(grammar.rules, weights, lexical.data(), n, grammar.symbols, tops, gold.data(), price, nodes,
                    words.get());
    }
    auto out = empty<std::int32_t>(4 * nodes.size());
    for (size_t k = 0; k < nodes.size(); ++k) {
        const Node &node = nodes[k];
        const std::int32_t values[] = {node.rule, node.start, node.split, node.end};
        std::copy(values, values + 4, out.get() + 4 * k);
    }
    return {score, make_array(std::move(out), nodes.size(), 4), make_array(std::move(words), n)};
}

void check_markov(In2<double> unary, In2<double> transition, In1<double> start) {
    const size_t tags = unary.shape(1);
    require(tags > 0, "viterbi: expected one tag or more, got none");
    check_length("viterbi: rows of transition", transition.shape(0), tags);
    check_length("viterbi: columns of transition", transition.shape(1), tags);
    check_length("viterbi: start", start.size(), tags);
}

// The constraints of one run: a second thread that asks is told so (OneAtATime).
class PyWorkingSets {
  public:
    PyWorkingSets(size_t n, size_t p, double C) : sets(n, checked(p), C) {
        require(n > 0, "WorkingSets: expected one example or more, got none");
        check_positive("WorkingSets: C", C);
    }

    void append(In1<std::int64_t> examples, In1<double> losses, In1<std::int64_t> indptr, In1<std::int64_t> indices,
                In1<double> data) {
        const auto turn = alone.turn();
        const size_t count = examples.size(), n = sets.examples();
        const std::int64_t *i = examples.data(), *begin = indptr.data(), *column = indices.data();
        check_length("append: losses", losses.size(), count);
        check_length("append: indptr", indptr.size(), count + 1);
        check_length("append: data", data.size(), indices.size());
        require(begin[0] == 0 && static_cast<size_t>(begin[count]) == indices.size() &&
                    std::is_sorted(begin, begin + count + 1),
                "append: expected an indptr that rises from 0 to the number of entries");
        for (size_t k = 0; k < count; ++k) {
            require(i[k] >= 0 && static_cast<size_t>(i[k]) < n, "append: expected numbers of examples");
            require(std::isfinite(losses.data()[k]), "append: expected finite losses");
            for (std::int64_t e = begin[k]; e < begin[k + 1]; ++e)
                require(column[e] >= 0 && static_cast<size_t>(column[e]) < sets.w.size() &&
                            (e == begin[k] || column[e] > column[e - 1]),
                        "append: expected rows with rising column numbers below the number of weights");
        }
        bool finite = true;
        {
            nb::gil_scoped_release unlocked;
            for (size_t k = 0; k < count && finite; ++k)
                finite = sets.append(static_cast<size_t>(i[k]), losses.data()[k], column + begin[k],
                                     data.data() + begin[k], static_cast<size_t>(begin[k + 1] - begin[k]));
        }
        require(finite, "the features are too large: their inner products overflow; scale them before training");
    }

    double ascend(double precision, size_t epochs) {
        const auto turn = alone.turn();
        check_positive("ascend: precision", precision);
        nb::gil_scoped_release unlocked;
        return sets.ascend(precision, epochs);
    }

    double settle() {
        const auto turn = alone.turn();
        nb::gil_scoped_release unlocked;
        return sets.settle();
    }

    void drop(std::uint32_t patience) {
        const auto turn = alone.turn();
        sets.drop(patience);
    }

    Out1<double> slacks(In1<double> w) {
        const auto turn = alone.turn();
        check_length("slacks: w", w.size(), sets.w.size());
        auto out = empty<double>(sets.examples());
        {
            nb::gil_scoped_release unlocked;
            sets.slacks(w.data(), out.get());
        }
        return make_array(std::move(out), sets.examples());
    }

    Out1<double> weights() {
        const auto turn = alone.turn();
        auto out = empty<double>(sets.w.size());
        std::copy(sets.w.begin(), sets.w.end(), out.get());
        return make_array(std::move(out), sets.w.size());
    }

    size_t size() {
        const auto turn = alone.turn();
        return sets.size();
    }

    size_t n_support() {
        const auto turn = alone.turn();
        return sets.n_support();
    }

  private:
    static size_t checked(size_t p) {
        require(p <= static_cast<size_t>(std::numeric_limits<std::int32_t>::max()),
                "WorkingSets: expected fewer than 2^31 weights");
        return p;
    }

    OneAtATime alone{"WorkingSets"};
    WorkingSets sets;
};

} // namespace

void bind_structured(nb::module_ &m) {
    m.def(
        "viterbi",
        [](In2<double> unary, In2<double> transition, In1<double> start, In1<std::int64_t> offsets, int n_threads) {
            check_markov(unary, transition, start);
            const size_t rows = unary.shape(0), tags = unary.shape(1), size = offsets.size();
            const std::int64_t *o = offsets.data();
            require(size > 0 && o[0] == 0 && static_cast<size_t>(o[size - 1]) == rows,
                    "viterbi: offsets must lead from 0 to the number of rows");
            require(std::is_sorted(o, o + size), "viterbi: offsets must not decrease");
            auto path = empty<Tag>(rows);
            const double *u = unary.data(), *t = transition.data(), *b = start.data();
            {
                nb::gil_scoped_release unlocked;
                viterbi(u, t, b, o, size - 1, tags, path.get(), n_threads);
            }
            return make_array(std::move(path), rows);
        },
        nb::arg("unary").noconvert(), nb::arg("transition").noconvert(), nb::arg("start").noconvert(),
        nb::arg("offsets").noconvert(), nb::arg("n_threads"), "The highest-scoring tags of every sequence.");
    m.def(
        "viterbi_by_mistakes",
        [](In2<double> unary, In2<double> transition, In1<double> start, In1<Tag> truth) {
            check_markov(unary, transition, start);
            const size_t length = unary.shape(0), tags = unary.shape(1);
            require(length > 0, "viterbi_by_mistakes: expected a sequence that is not empty");
            check_length("viterbi_by_mistakes: truth", truth.size(), length);
            auto scores = empty<double>(length + 1);
            auto paths = empty<Tag>((length + 1) * length);
            const double *u = unary.data(), *t = transition.data(), *b = start.data();
            const Tag *y = truth.data();
            {
                nb::gil_scoped_release unlocked;
                viterbi_by_mistakes(u, t, b, y, length, tags, scores.get(), paths.get());
            }
            return std::make_tuple(make_array(std::move(scores), length + 1),
                                   make_array(std::move(paths), length + 1, length));
        },
        nb::arg("unary").noconvert(), nb::arg("transition").noconvert(), nb::arg("start").noconvert(),
        nb::arg("truth").noconvert(),
        "For m = 0, 1, ...: the score and the tags of the highest sequence with m mistakes.");
    nb::class_<PyRules>(m, "BinaryRules", "The rules parent -> left right of a grammar, ordered by their left symbol.")
        .def(nb::init<In1<Symbol>, In1<Symbol>, In1<Symbol>, size_t>(), nb::arg("parent").noconvert(),
             nb::arg("left").noconvert(), nb::arg("right").noconvert(), nb::arg("symbols"),
             "By numbers below `symbols`.");
    m.def("cky", &highest_tree, nb::arg("rules"), nb::arg("weight").noconvert(), nb::arg("lexical").noconvert(),
          nb::arg("roots").noconvert(), nb::arg("gold").noconvert(), nb::arg("price"),
          "The highest-scoring tree: its score, its nodes (rule, start, split, end) from the top, the labels of the "
          "words. `weight` has one row for all spans, or one for each at start * n + end - 1.");
    nb::class_<PyWorkingSets>(m, "WorkingSets", "Constraints by example, their multipliers and the weights w.")
        .def(nb::init<size_t, size_t, double>(), nb::arg("n"), nb::arg("p"), nb::arg("C"))
        .def("append", &PyWorkingSets::append, nb::arg("examples").noconvert(), nb::arg("losses").noconvert(),
             nb::arg("indptr").noconvert(), nb::arg("indices").noconvert(), nb::arg("data").noconvert(),
             "Constraints as losses and CSR rows, each with the number of its example.")
        .def("ascend", &PyWorkingSets::ascend, nb::arg("precision"), nb::arg("epochs"),
             "Solve the examples' blocks one after the other; returns the gap per example before that.")
        .def("settle", &PyWorkingSets::settle, "Sum w anew from the multipliers; returns the value of the dual.")
        .def("drop", &PyWorkingSets::drop, nb::arg("patience"),
             "Drop constraints without a share in more than so many calls in a row.")
        .def("slacks", &PyWorkingSets::slacks, nb::arg("w").noconvert(), "The slack of every example at any w.")
        .def("weights", &PyWorkingSets::weights, "A copy of w.")
        .def_prop_ro("size", &PyWorkingSets::size, "Number of constraints.")
        .def_prop_ro("n_support", &PyWorkingSets::n_support, "Number of those with a share.");
}

} // namespace metrimax
