// Python bindings of the argmaxes over sequences and trees.
#include "bindings.hpp"
#include "cky.hpp"
#include "viterbi.hpp"

#include <nanobind/stl/tuple.h>

#include <tuple>

namespace metrimax {

namespace {

void check_symbols(In1<Symbol> values, size_t symbols, bool by_order) {
    for (size_t r = 0; r < values.size(); ++r) {
        const Symbol s = values.data()[r];
        if (s < 0 || static_cast<size_t>(s) >= symbols || (by_order && r > 0 && s < values.data()[r - 1]))
            throw nb::value_error("cky: a symbol is out of range, or the rules are not ordered by their left symbol");
    }
}

void check_markov(In2<double> unary, In2<double> transition, In1<double> start) {
    const size_t tags = unary.shape(1);
    if (tags == 0)
        throw nb::value_error("viterbi: expected at least one tag");
    check_length("viterbi: transition", transition.shape(0), tags);
    check_length("viterbi: transition", transition.shape(1), tags);
    check_length("viterbi: start", start.size(), tags);
}

} // namespace

void bind_structured(nb::module_ &m) {
    m.def(
        "viterbi",
        [](In2<double> unary, In2<double> transition, In1<double> start, In1<std::int64_t> offsets, int n_threads) {
            check_markov(unary, transition, start);
            const size_t rows = unary.shape(0), tags = unary.shape(1), size = offsets.size();
            const std::int64_t *o = offsets.data();
            if (size == 0 || o[0] != 0 || static_cast<size_t>(o[size - 1]) != rows)
                throw nb::value_error("viterbi: offsets must lead from 0 to the number of rows");
            for (size_t s = 1; s < size; ++s)
                if (o[s] < o[s - 1])
                    throw nb::value_error("viterbi: offsets must not decrease");
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
            if (length == 0)
                throw nb::value_error("viterbi_by_mistakes: expected a sequence that is not empty");
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
    m.def(
        "cky",
        [](In1<Symbol> parent, In1<Symbol> left, In1<Symbol> right, In1<double> weight, In2<double> lexical,
           Symbol root, In2<Symbol> gold, double price) {
            const size_t n = lexical.shape(0), symbols = lexical.shape(1);
            check_length("cky: left", left.size(), parent.size());
            check_length("cky: right", right.size(), parent.size());
            check_length("cky: weight", weight.size(), parent.size());
            check_length("cky: gold", gold.shape(0), n);
            check_length("cky: gold", gold.shape(1), n);
            check_symbols(parent, symbols, false);
            check_symbols(left, symbols, true);
            check_symbols(right, symbols, false);
            if (n == 0 || root < 0 || static_cast<size_t>(root) >= symbols)
                throw nb::value_error("cky: expected at least one word, and a root among the symbols");
            auto words = zeros<Symbol>(n);
            std::vector<Node> nodes;
            double score = 0;
            const double *l = lexical.data();
            const Symbol *g = gold.data();
            const Symbol *a = parent.data(), *b = left.data(), *c = right.data();
            const double *v = weight.data();
            const size_t rules = parent.size();
            {
                nb::gil_scoped_release unlocked;
                score = cky(BinaryRules(a, b, c, v, rules, symbols), l, n, symbols, root, g, price, nodes, words.get());
            }
            auto out = empty<std::int32_t>(4 * nodes.size());
            for (size_t k = 0; k < nodes.size(); ++k) {
                const Node &node = nodes[k];
                const std::int32_t values[] = {node.rule, node.start, node.split, node.end};
                std::copy(values, values + 4, out.get() + 4 * k);
            }
            return std::make_tuple(score, make_array(std::move(out), nodes.size(), 4), make_array(std::move(words), n));
        },
        nb::arg("parent").noconvert(), nb::arg("left").noconvert(), nb::arg("right").noconvert(),
        nb::arg("weight").noconvert(), nb::arg("lexical").noconvert(), nb::arg("root"), nb::arg("gold").noconvert(),
        nb::arg("price"),
        "The highest-scoring tree: its score, its nodes (rule, start, split, end) from the top, the labels of the "
        "words.");
}

} // namespace metrimax
