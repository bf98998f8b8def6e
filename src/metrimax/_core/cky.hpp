// Highest-scoring parse trees of a weighted context-free grammar in Chomsky normal form.
//
// Input    the rules and their weights, which may depend on the span, the scores of symbols over single words
// Output   the tree of highest score
//
// By the algorithm of Cocke, Kasami (1965) and Younger (1967).
#pragma once

#include "index.hpp"

#include <cstdint>
#include <limits>
#include <vector>

namespace metrimax {

using Symbol = std::int32_t;

struct BinaryRules { // parent -> left right, ordered by left; those of a left symbol are begin[left] .. begin[left + 1]
    const Symbol *parent, *left, *right;
    std::vector<size_t> begin;

    BinaryRules(const Symbol *parent, const Symbol *left, const Symbol *right, size_t size, size_t symbols)
        : parent(parent), left(left), right(right), begin(symbols + 1, 0) {
        for (size_t r = 0; r < size; ++r)
            ++begin[left[r] + 1];
        for (size_t s = 0; s < symbols; ++s)
            begin[s + 1] += begin[s];
    }
};

struct Node { // a constituent of a tree: the rule at its top, and its span [start, end) with the split
    std::int32_t rule, start, split, end;
};

// The weights of the binary rules: one row for all spans (stride 0), or one row for each span, at start n + end - 1.
struct RuleWeights {
    const double *first;
    size_t stride;

    const double *of(size_t span) const { return first + span * stride; }
};

// The tree over words 0 .. n-1 with one of `roots` at its top and the highest sum of the weights of its binary rules
// and of lexical[i][A], the score of A over the word i alone; and a price for every constituent of two words or more
// that differs from gold[start][end - 1], the label of the true tree there (-1 for none). By CKY, in O(n^3 rules).
// Returns the score, minus infinity without a tree; nodes in the order parent, left, right. Labels of words in `words`.
inline double cky(const BinaryRules &rules, const RuleWeights &weights, const double *lexical, size_t n, size_t symbols,
                  const std::vector<Symbol> &roots, const Symbol *gold, double price, std::vector<Node> &nodes,
                  Symbol *words) {
    constexpr double kNone = -std::numeric_limits<double>::infinity();
    struct Back {
        std::int32_t rule, split;
    };
    std::vector<double> best(n * n * symbols, kNone); // [start][end - 1][symbol]
    std::vector<Back> back(n * n * symbols, Back{-1, -1});
    const auto cell = [&](size_t start, size_t end) { return (start * n + end - 1) * symbols; };
    for (size_t i = 0; i < n; ++i)
        for (size_t s = 0; s < symbols; ++s)
            best[cell(i, i + 1) + s] = lexical[i * symbols + s];
    for (size_t length = 2; length <= n; ++length)
        for (size_t start = 0; start + length <= n; ++start) {
            const size_t end = start + length;
            double *top = &best[cell(start, end)];
            Back *from = &back[cell(start, end)];
            const double *weight = weights.of(start * n + end - 1);
            for (size_t split = start + 1; split < end; ++split) {
                const double *lefts = &best[cell(start, split)], *rights = &best[cell(split, end)];
                for (size_t left = 0; left < symbols; ++left) {
                    if (lefts[left] == kNone)
                        continue;
                    for (size_t r = rules.begin[left]; r < rules.begin[left + 1]; ++r) {
                        const double score = lefts[left] + rights[rules.right[r]] + weight[r];
                        if (score > top[rules.parent[r]]) {
                            top[rules.parent[r]] = score;
                            from[rules.parent[r]] = {static_cast<std::int32_t>(r), static_cast<std::int32_t>(split)};
                        }
                    }
                }
            }
            const Symbol truth = gold[start * n + end - 1];
            for (size_t s = 0; s < symbols; ++s)
                if (static_cast<Symbol>(s) != truth)
                    top[s] += price;
        }
    nodes.clear();
    Symbol root = roots.front();
    for (const Symbol other : roots)
        if (best[cell(0, n) + other] > best[cell(0, n) + root])
            root = other;
    const double score = best[cell(0, n) + root];
    if (score == kNone)
        return score;
    struct Open {
        size_t start, end;
        Symbol symbol;
    };
    std::vector<Open> open{{0, n, root}};
    while (!open.empty()) {
        const Open here = open.back();
        open.pop_back();
        if (here.end - here.start == 1) {
            words[here.start] = here.symbol;
            continue;
        }
        const Back by = back[cell(here.start, here.end) + here.symbol];
        const auto split = static_cast<size_t>(by.split);
        nodes.push_back(
            {by.rule, static_cast<std::int32_t>(here.start), by.split, static_cast<std::int32_t>(here.end)});
        open.push_back({split, here.end, rules.right[by.rule]});
        open.push_back({here.start, split, rules.left[by.rule]});
    }
    return score;
}

} // namespace metrimax
