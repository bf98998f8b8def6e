// The pieces of a smoothed measure: sets of labellings, with a linear function on each that bounds the loss from below.
//
// Input    the loss, by the number of predicted positives, by the number of false positives, or as planes;  mu
// Output   ranges of numbers with one linear function each, which miss no more than a fifth of mu, or one piece for
//          each plane; and ranges of these
#pragma once

#include "table_argmax.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

namespace metrimax {

// What a piece limits to a range.
enum class Limited { kNothing, kCalled, kFalsePositives };

// D >= u + v tp + w tn for all labellings with lo to hi of what is limited; h are the widths of the ramps of both
// classes.
struct Piece {
    double u, v, w, lo, hi;
    std::array<double, 2> h;
};

// The weights of both classes in units, and what a unit of each weighs in the sample.
struct Sides {
    std::array<double, 2> totals, steps;
    double n() const { return totals[0] + totals[1]; }
};

// The pieces of a loss at one mu, and ranges of them, each with the greatest u, v and w in it: a binary tree, in
// preorder.
class PieceTree {
  public:
    // D = u[m] + v[m] tp for m predicted positives, from m_low on.
    static PieceTree by_called(const Sides &sides, ByCount u, ByCount v, Index m_low, Index size, double mu) {
        PieceTree tree(sides, mu, Limited::kCalled);
        for (Index first = 0, next; first < size; first = next) {
            Range us{u[first], u[first]}, vs{v[first], v[first]};
            for (next = first + 1; next < size; ++next) {
                const Range wider_u = us.with(u[next]), wider_v = vs.with(v[next]);
                const double tp = std::min(static_cast<double>(m_low + next), sides.totals[0]);
                if (!(wider_u.width() + wider_v.width() * tp <= kMissed * mu))
                    break;
                us = wider_u;
                vs = wider_v;
            }
            const auto lo = static_cast<double>(m_low + first), hi = static_cast<double>(m_low + next - 1);
            tree.leaves.push_back({us.low, vs.low, 0.0, lo, hi, {}});
        }
        return tree.share_mu(kMissed, 0.3);
    }

    // D = 1 - g[j] (1 - rise fn) for j false positives, where rise fn <= 1.
    static PieceTree by_false_positives(const Sides &sides, double rise, const double *g, Index size, double mu) {
        PieceTree tree(sides, mu, Limited::kFalsePositives);
        const double right = 1 - rise * sides.totals[0]; // the last factor where there is no true positive
        for (Index first = 0, next; first < size; first = next) {
            Range gs{g[first], g[first]};
            for (next = first + 1; next < size && gs.with(g[next]).width() <= kMissed * mu; ++next)
                gs = gs.with(g[next]);
            const auto lo = static_cast<double>(first), hi = static_cast<double>(next - 1);
            tree.leaves.push_back({1 - gs.high * right, -gs.high * rise, 0.0, lo, hi, {}});
        }
        return tree.share_mu(kMissed, 0.3);
    }

    // D = max c - a tp - b tn over planes in order; the ramps of all are those of the middle a and b.
    static PieceTree of_planes(const Sides &sides, const double *c, const double *a, const double *b, Index size,
                               double mu) {
        PieceTree tree(sides, mu, Limited::kNothing);
        for (Index k = 0; k < size; ++k) {
            const auto place = static_cast<double>(k) / static_cast<double>(size);
            tree.leaves.push_back({c[k], -a[k], -b[k], place, place, {}});
        }
        tree.plane_widths = widths(sides, {middle(a, size), middle(b, size)}, 0.5 * mu);
        return tree.share_mu(0.1, 0.4);
    }

    // Widths of ramps in proportion to the losses of one flip in either class; the prox is mu at every labelling.
    static std::array<double, 2> widths(const Sides &sides, std::array<double, 2> loss, double mu) {
        const double a = std::max(loss[0], 1e-3 * loss[1]), b = std::max(loss[1], 1e-3 * loss[0]);
        const double scale = 8 * mu / (a * sides.totals[0] + b * sides.totals[1]);
        return {scale * a / sides.steps[0], scale * b / sides.steps[1]};
    }

    // A range of pieces; those of its halves follow, the second one at `right`.
    struct Node {
        Piece piece;
        Index size, right;
    };

    // The share of flips in both classes where the prox is zero.
    std::array<double, 2> centre(const Piece &piece) const {
        if (limited == Limited::kNothing)
            return {0.5, 0.5};
        const double sum = piece.lo + piece.hi;
        if (limited == Limited::kFalsePositives)
            return {0.5, sum / (2 * sides.totals[1])};
        return {1 - sum / (2 * sides.n()), sum / (2 * sides.n())};
    }

    double temperature() const { return entropy / std::log(static_cast<double>(leaves.size())); }

    Sides sides;
    double mu;
    Limited limited;
    std::vector<Piece> leaves;
    std::vector<Node> nodes;
    double quadratic = 0, entropy = 0; // the parts of mu
    double above = 0;                  // by how much a piece may be worth more than a range it is in

  private:
    PieceTree(const Sides &sides, double mu, Limited limited) : sides(sides), mu(mu), limited(limited) {}

    static constexpr double kMissed = 0.2;

    struct Range {
        double low, high;
        Range with(double x) const { return {std::min(low, x), std::max(high, x)}; }
        double width() const { return high - low; }
    };

    static double middle(const double *values, Index size) {
        std::vector<double> copy(values, values + size);
        std::nth_element(copy.begin(), copy.begin() + size / 2, copy.end());
        return copy[size / 2];
    }

    // What the entropy and what is missed leave of mu is for the quadratic term.
    PieceTree share_mu(double missed, double mixed) {
        const auto size = static_cast<Index>(leaves.size());
        entropy = size == 1 ? 0.0 : mixed * mu;
        quadratic = (1 - missed) * mu - entropy;
        above = limited == Limited::kNothing ? 0.0 : quadratic; // planes have one prox
        for (Piece &leaf : leaves)
            leaf.h = width(leaf);
        nodes.reserve(2 * leaves.size());
        build(0, size);
        return std::move(*this);
    }

    // With which the prox is `quadratic` at the farthest labelling.
    std::array<double, 2> width(const Piece &piece) const {
        if (limited == Limited::kNothing)
            return plane_widths;
        const std::array<double, 2> at = centre(piece);
        const double rise = 1 - 2 * at[1]; // of the squared distances, by what is limited
        const double own = at[1] * at[1] * (limited == Limited::kCalled ? sides.n() : sides.totals[1]);
        const double other = limited == Limited::kCalled ? 0.0 : sides.totals[0] / 4;
        const double reach = std::max(std::max(piece.lo * rise, piece.hi * rise) + own + other, 0.5);
        return {2 * quadratic / (sides.steps[0] * reach), 2 * quadratic / (sides.steps[1] * reach)};
    }

    Piece build(Index first, Index size) {
        const auto at = static_cast<Index>(nodes.size());
        nodes.push_back({leaves[first], size, 0});
        if (size > 1) {
            const Index half = size / 2;
            const Piece a = build(first, half);
            nodes[at].right = static_cast<Index>(nodes.size());
            const Piece b = build(first + half, size - half);
            Piece both{std::max(a.u, b.u), std::max(a.v, b.v), std::max(a.w, b.w), a.lo, b.hi, {}};
            both.h = width(both);
            nodes[at].piece = both;
        }
        return nodes[at].piece;
    }

    std::array<double, 2> plane_widths{};
};

} // namespace metrimax
