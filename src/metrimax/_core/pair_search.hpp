// The risk of ROC area: all pairs of a positive and a negative example inside the margin.
//
// Problem  R = 1/(W+ W-) * sum over pairs of w_i w_j max(0, 1 - (s_i - s_j))
// Input    scores of a sample; the members of both classes, and their weights
// Output   loss and slope of the most violated ranking, or the risk and its rise along a line
//
// Joachims (2005), Algorithm 3, sorting one class only.
#pragma once

#include "cell_order.hpp"
#include "class_costs.hpp"
#include "risk.hpp"
#include "scratch.hpp"
#include "select.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <stdexcept>
#include <utility>
#include <vector>

namespace metrimax {

// One class of the pairs: its examples, with cost = sign * score, and their weights by place (null: all 1).
struct PairClass {
    Members members;
    const double *weights;

    double weight(Index place) const { return weights ? weights[place] : 1.0; }
};

// R = 1/(W+ W-) * sum over pairs of w_i w_j max(0, 1 - cost_i - cost_j), at the scores s + t * move (no move: null).
// One class is sorted. Every example of the other looks up with how many of them it is inside the margin, and the sum
// of their costs. No array as long as the other class is stored.
class MarginPairs {
  private:
    // The sums over those of the sorted class before one.
    struct Node {
        double weight = 0, costs = 0, rates = 0;
    };

  public:
    // Memory of a search.
    struct Room {
        CellOrder order;
        std::vector<Node> nodes;
        std::vector<double> costs, rates; // of the sorted class
    };

    MarginPairs(const PairClass &sorted, const PairClass &other, const double *scores, const double *move, double t,
                Room &room)
        : own(sorted), other(other), scores(scores), move(move), t(t), order(room.order), nodes(room.nodes) {
        const Index size = own.members.size;
        room.costs.resize(static_cast<std::size_t>(size));
        room.rates.assign(static_cast<std::size_t>(size), 0.0);
        for (Index k = 0; k < size; ++k) {
            room.costs[k] = move ? line(own)(k) : point(own)(k);
            if (move)
                room.rates[k] = line(own).rate(k);
        }
        order.sort(room.costs);
        nodes.resize(static_cast<std::size_t>(size) + 1);
        Node sums;
        for (Index k = 0; k < size; ++k) {
            nodes[k] = sums;
            const double w = own.weight(order.place(k));
            sums = {sums.weight + w, sums.costs + w * order[k], sums.rates + w * room.rates[order.place(k)]};
        }
        nodes[size] = sums;
    }

    // The sum of the hinges of all pairs, and how fast it changes with t.
    std::pair<double, double> risk() const {
        double value = 0, rise = 0;
        const LineCosts costs = line(other);
        visit(costs, [&](const Index *places, const double *reach, const std::int32_t *inside, Index size) {
            double sum = 0, rate = 0;
            for (Index k = 0; k < size; ++k) {
                const double w = other.weight(places[k]);
                const Node &before = nodes[inside[k]];
                sum += w * (before.weight * reach[k] - before.costs);
                rate += w * (before.weight * costs.rate(places[k]) + before.rates);
            }
            value += sum;
            rise -= rate;
        });
        return {value, rise};
    }

    // The weight of all pairs inside the margin, and for every example -sign * share times the weight of its own.
    double slopes(double share, double *slope) const {
        std::vector<double> settled(nodes.size());
        double total = 0;
        visit(point(other), [&](const Index *places, const double *, const std::int32_t *inside, Index size) {
            for (Index k = 0; k < size; ++k) {
                const double w = other.weight(places[k]), pairs = w * nodes[inside[k]].weight;
                settled[inside[k]] += w;
                total += pairs;
                slope[other.members.example(places[k])] = -other.members.sign * share * pairs;
            }
        });
        double above = 0; // weight of those that reach beyond k
        for (Index k = own.members.size; k-- > 0;) {
            const Index at = order.place(k);
            above += settled[k + 1];
            slope[own.members.example(at)] = -own.members.sign * share * own.weight(at) * above;
        }
        return total;
    }

    // The smoothed risk: every pair flips by the share clip((margin - cost_i - cost_j) / h, 0, 1), h = 8 mu and the
    // margin 1 + h/2. Writes the slopes, and returns the sums over all pairs of  share (margin - cost_i - cost_j) - h/2
    // share^2  and of the shares. Costs of the sorted class count from their mean: sums of squares would drown in it.
    // Zhang, Saha & Vishwanathan (2011), section 3.2; there both classes are sorted.
    std::pair<double, double> ramps(double mu, double share, double *slope) {
        struct Sums {
            double weight = 0, costs = 0, squares = 0;
        };
        struct Ends {
            double full = 0, full_t = 0, part = 0, part_t = 0; // weights, and these times t, of ramps that end there
        };
        const double h = 8 * mu, mean = nodes.back().costs / nodes.back().weight;
        std::vector<Sums> sums(nodes.size());
        for (Index k = 0; k < own.members.size; ++k) {
            const double w = own.weight(order.place(k)), c = order[k] - mean;
            sums[k + 1] = {sums[k].weight + w, sums[k].costs + w * c, sums[k].squares + w * c * c};
        }
        std::vector<Ends> ends(nodes.size());
        double total = 0, flips = 0;
        margin = 1 + h / 2;
        visit(point(other), [&](const Index *places, const double *reach, const std::int32_t *part, Index size) {
            double begin[kBlock + 1];
            std::int32_t full[kBlock];
            for (Index k = 0; k < size; ++k)
                begin[k] = reach[k] - h;
            look_up(begin, size, full);
            for (Index k = 0; k < size; ++k) {
                const double w = other.weight(places[k]), t = reach[k] - mean;
                const Sums &a = sums[full[k]], &b = sums[part[k]];
                const double some = b.weight - a.weight, cost = b.costs - a.costs, square = b.squares - a.squares;
                const double count = a.weight + (some * t - cost) / h;
                total += w * (a.weight * (t - h / 2) - a.costs + ((some * t - 2 * cost) * t + square) / (2 * h));
                flips += w * count;
                Ends &first = ends[full[k]], &last = ends[part[k]];
                first.full += w;
                first.full_t += w * t;
                last.part += w;
                last.part_t += w * t;
                slope[other.members.example(places[k])] = -other.members.sign * share * w * count;
            }
        });
        Ends above; // of ramps that reach beyond k
        double back = 0;
        for (Index k = own.members.size; k-- > 0;) {
            const Ends &here = ends[k + 1];
            above = {above.full + here.full, above.full_t + here.full_t, above.part + here.part,
                     above.part_t + here.part_t};
            const double c = order[k] - mean, w = own.weight(order.place(k));
            const double ramp = above.part_t - above.full_t - c * (above.part - above.full);
            const double count = std::max(0.0, above.full + ramp / h);
            back += w * count;
            slope[own.members.example(order.place(k))] = -own.members.sign * share * w * count;
        }
        const double even = back > 0 ? flips / back : 1.0; // or what all scores share would multiply the rounding
        for (Index k = 0; k < own.members.size; ++k)
            slope[own.members.example(k)] *= even;
        return {total, flips};
    }

  private:
    static constexpr Index kNear = Index{1} << 13; // this many nodes are in the cache anyway

    PointCosts point(const PairClass &of) const { return {scores, of.members}; }
    LineCosts line(const PairClass &of) const { return {scores, move, of.members, t}; }

    // Call f(places, margin - costs, numbers of the sorted class below these, size) for the examples of the other class
    // that any of them is below, a block at a time. Where these are many it is called for all: the others, with none of
    // them below, add nothing to any sum.
    template <class Costs, class F> void visit(const Costs &costs, F &&f) const {
        constexpr double kAll = -std::numeric_limits<double>::infinity();
        const double most = margin - order[0];
        const bool dense = std::isfinite(most);
        for_blocks(other.members.extent(), [&](Index first, Index count) {
            double block[kBlock], reach[kBlock + 1];
            Index places[kBlock + 1], size = 0;
            std::int32_t inside[kBlock];
            costs.block(first, count, block);
            if (dense && 2 * count_where<std::less<>>(block, count, most) > count) {
                reach_from(block, count, margin, order[0], reach);
                for (; size < count; ++size)
                    places[size] = first + size;
            } else {
                for_inside<std::less<>>(block, count, kAll, most, [&](Index k, bool counts) {
                    reach[size] = margin - block[k];
                    places[size] = first + k;
                    size += counts;
                });
            }
            look_up(reach, size, inside);
            f(places, reach, inside, size);
        });
    }

    // How many of the sorted class are below each of some numbers, at most a block.
    void look_up(const double *reach, Index size, std::int32_t *inside) const {
        std::int32_t cells[kBlock];
        order.cells(reach, size, cells);
        if (own.members.size > kNear) {
            for (Index k = 0; k < size; ++k)
                order.expect(cells[k]);
            for (Index k = 0; k < size; ++k)
                order.expect_numbers(cells[k]);
        }
        order.below(reach, cells, size, inside);
    }

    PairClass own, other;
    const double *scores, *move;
    double t;
    double margin = 1; // a pair inside it counts
    CellOrder &order;
    std::vector<Node> &nodes;
};

// That risk, of two classes of which the first is sorted.
class PairSearch : public Risk {
  public:
    // `pairs` is W+ W-, their number or weight.
    PairSearch(Index sample, PairClass sorted, PairClass looked_up, double pairs)
        : n(static_cast<size_t>(sample)), sorted(checked(sorted, sample)), other(checked(looked_up, sample)),
          pairs(pairs) {
        if (other.weights == nullptr) { // weights are listed by member
            inside = inside_large(other.members.at, other.members.size, sample);
            other.members.inside = inside.get();
            other.members.sample = sample;
        }
    }

    size_t size() const override { return n; }

    double plane(const double *scores, double, double *slope) override {
        std::fill_n(slope, n, 0.0);
        return scratch.lend([&](MarginPairs::Room &room) {
            return MarginPairs(sorted, other, scores, nullptr, 0.0, room).slopes(1 / pairs, slope) / pairs;
        });
    }

    // The value of the smoothed risk, and the loss of its plane; its slope is written.
    std::pair<double, double> smooth(const double *scores, double mu, double *slope) {
        std::fill_n(slope, n, 0.0);
        return scratch.lend([&](MarginPairs::Room &room) {
            const auto [total, flips] =
                MarginPairs(sorted, other, scores, nullptr, 0.0, room).ramps(mu, 1 / pairs, slope);
            return std::pair(total / pairs - mu, flips / pairs);
        });
    }

    Line line(const double *scores, const double *move) override {
        return [this, scores, move](double t) {
            return scratch.lend([&](MarginPairs::Room &room) {
                const auto [value, rise] = MarginPairs(sorted, other, scores, move, t, room).risk();
                return std::pair(value / pairs, rise / pairs);
            });
        };
    }

  private:
    static const PairClass &checked(const PairClass &one, Index sample) {
        if (one.members.size == 0)
            throw std::invalid_argument("PairSearch: expected a member or more in each class, got none");
        check_members("PairSearch", one.members.at, one.members.size, sample);
        return one;
    }

    const size_t n;
    const PairClass sorted;
    PairClass other;
    const double pairs;
    std::unique_ptr<unsigned char[]> inside;
    Scratch<MarginPairs::Room> scratch{[] { return MarginPairs::Room(); }};
};

} // namespace metrimax
