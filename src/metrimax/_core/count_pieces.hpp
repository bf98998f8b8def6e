// The pieces of a smoothed measure by count: ranges of predicted positives on which one linear loss bounds the loss.
//
// Input    u and v of  D = u[m] + v[m] tp;  mu
// Output   ranges of m with the least u and v of each, which miss no more than a fifth of mu; ranges of these
#pragma once

#include "table_argmax.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

namespace metrimax {

// D >= u + v tp for all labellings with lo to hi predicted positives; h is the width of the ramps.
struct CountPiece {
    double u, v, lo, hi, h;
};

// The pieces of a loss at one mu, and ranges of them, each with the greatest u and v in it: a binary tree, in preorder.
class CountPieces {
  public:
    CountPieces(ByCount u, ByCount v, Index m_low, Index size, double n_pos, double n, double step, double mu)
        : mu(mu), n(n), step(step) {
        constexpr double kMissed = 0.2;
        for (Index first = 0; first < size;) {
            Range us{u[first], u[first]}, vs{v[first], v[first]};
            Index next = first + 1;
            for (; next < size; ++next) {
                const Range wider_u = us.with(u[next]), wider_v = vs.with(v[next]);
                const double tp = std::min(static_cast<double>(m_low + next), n_pos);
                if (!(wider_u.width() + wider_v.width() * tp <= kMissed * mu))
                    break;
                us = wider_u;
                vs = wider_v;
            }
            leaves.push_back(
                {us.low, vs.low, static_cast<double>(m_low + first), static_cast<double>(m_low + next - 1), 0.0});
            first = next;
        }
        const bool one = leaves.size() == 1;
        quadratic = one ? (1 - kMissed) * mu : 0.5 * mu;
        entropy = one ? 0.0 : 0.3 * mu;
        for (CountPiece &leaf : leaves)
            leaf.h = width(leaf);
        nodes.reserve(2 * leaves.size());
        build(0, static_cast<Index>(leaves.size()));
    }

    // A range of pieces; those of its halves follow, the second one at `right`.
    struct Node {
        CountPiece piece;
        Index size, right;
    };

    double temperature() const { return entropy / std::log(static_cast<double>(leaves.size())); }

    std::vector<CountPiece> leaves;
    std::vector<Node> nodes;
    double mu, quadratic, entropy;

  private:
    struct Range {
        double low, high;
        Range with(double x) const { return {std::min(low, x), std::max(high, x)}; }
        double width() const { return high - low; }
    };

    // With which the prox is `quadratic` at the farthest labelling.
    double width(const CountPiece &piece) const {
        const double centre = (piece.lo + piece.hi) / (2 * n), rise = 1 - 2 * centre;
        const double reach = std::max(piece.lo * rise, piece.hi * rise) + n * centre * centre;
        return 2 * quadratic / (step * std::max(reach, 0.5));
    }

    CountPiece build(Index first, Index size) {
        const auto at = static_cast<Index>(nodes.size());
        nodes.push_back({leaves[first], size, 0});
        if (size > 1) {
            const Index half = size / 2;
            const CountPiece a = build(first, half);
            nodes[at].right = static_cast<Index>(nodes.size());
            const CountPiece b = build(first + half, size - half);
            CountPiece both{std::max(a.u, b.u), std::max(a.v, b.v), a.lo, b.hi, 0.0};
            both.h = width(both);
            nodes[at].piece = both;
        }
        return nodes[at].piece;
    }

    double n, step;
};

} // namespace metrimax
