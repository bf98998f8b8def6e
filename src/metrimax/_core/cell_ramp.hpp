// Sums over smoothed flips of many costs, without sorting all of them.
//
// Input    the costs of a class, in any order, and their weights; thresholds and widths of ramps
// Output   number and gain of the flips under each ramp (see ramp_sums.hpp)
//
// Costs are summed up in cells of equal width. What lies below a threshold is known but for the cell the threshold is
// in; until that cell is opened, its costs count as if all were at their mean, which is nearly right where a cell is
// narrow beside the ramp. To open cells is to sort what is in them: so only costs near the thresholds that matter are
// sorted.
#pragma once

#include "cell_order.hpp"
#include "ramp_sums.hpp"

#include <array>
#include <cmath>
#include <cstdint>
#include <vector>

namespace metrimax {

class CellRamp {
  public:
    // Weights in the same order, or null for all 1. What flips before them, if anything, has that weight, and that sum
    // of costs. Where there are few costs, or where cells would be wide beside the narrowest ramp, all are sorted.
    void fill(const double *its, const double *own, Index count, double before, double before_sum, double least_h) {
        costs = its;
        weights = own;
        size = count;
        const auto [low, high] = range_of(costs, size);
        least = low;
        greatest = high;
        cells = std::min(std::max<Index>(size / 8, 1), kMost);
        const double width = greatest - least;
        scale = width > 0 && std::isfinite(width) ? static_cast<double>(cells) / width : 0.0;
        if (!std::isfinite(scale))
            scale = 0.0;
        cell.resize(static_cast<std::size_t>(size));
        cells_of(costs, size, least, scale, static_cast<double>(cells - 1), cell.data());
        below_cell.assign(static_cast<std::size_t>(cells) + 1, Sums{0, 0, 0, 0});
        if (weights)
            for (Index k = 0; k < size; ++k)
                below_cell[cell[k] + 1].add(weights[k], costs[k]);
        else
            for (Index k = 0; k < size; ++k)
                below_cell[cell[k] + 1].add(1.0, costs[k]);
        below_cell[0] = {before, before_sum, 0, 0};
        for (Index c = 0; c < cells; ++c)
            below_cell[c + 1].add(below_cell[c]);
        wanted.assign(static_cast<std::size_t>(cells), 0);
        begin.assign(static_cast<std::size_t>(cells), -1);
        end.resize(static_cast<std::size_t>(cells));
        if (size <= kFew || !(8 * width <= least_h * static_cast<double>(cells))) {
            std::fill(wanted.begin(), wanted.end(), 1);
            open();
        }
    }

    RampSums operator()(double t, double h) const {
        const Sums &full = below(t - h), &part = below(t);
        const double w = part.weight - full.weight;
        const double s = part.cost - full.cost, q = part.square - full.square;
        return {full.weight + (w * t - s) / h, -full.cost - h / 2 * full.weight + (q - w * t * t) / (2 * h), w};
    }

    // Whether the costs about t are sorted. If not, they are wanted: those of the next cell, too, if it is near.
    bool sorted_at(double t) {
        if (!(t >= least) || t >= greatest)
            return true;
        const double x = (t - least) * scale;
        const Index c = cell_at(t);
        if (begin[c] >= 0)
            return true;
        for (const double near : {x - kNear, x, x + kNear})
            wanted[std::min(std::max<Index>(static_cast<Index>(near), 0), cells - 1)] = 1;
        return false;
    }

    // Sort the costs of all cells that are wanted.
    void open() {
        entries.resize(static_cast<std::size_t>(size) + 1);
        Index found = 0;
        for (Index k = 0; k < size; ++k) {
            entries[found] = {costs[k], weights ? weights[k] : 1.0};
            found += wanted[cell[k]];
        }
        sort_by(entries.data(), found, [](const Entry &entry) { return entry.cost; });
        inner.resize(static_cast<std::size_t>(found));
        Index k = 0;
        for (Index c = 0; c < cells; ++c) {
            if (!wanted[c])
                continue;
            begin[c] = k;
            Sums sums = below_cell[c];
            for (; k < found && cell_at(entries[k].cost) == c; ++k) {
                sums.add(entries[k].weight, entries[k].cost);
                inner[k] = sums;
            }
            end[c] = k;
        }
    }

    double total() const { return below_cell[cells].weight; }
    double lowest() const { return size ? least : 0.0; }
    double highest() const { return size ? greatest : 0.0; }

  private:
    static constexpr Index kMost = Index{1} << 13, kFew = Index{1} << 14;
    static constexpr double kNear = 1.0 / 64; // of a cell

    struct Sums {
        double weight, cost, square, none; // four, for vector instructions

        void add(double w, double x) {
            weight += w;
            cost += w * x;
            square += w * x * x;
        }
        void add(const Sums &other) {
            weight += other.weight;
            cost += other.cost;
            square += other.square;
        }
    };
    struct Entry {
        double cost, weight;
    };

    // As cells_of() has it.
    Index cell_at(double t) const {
        const double c = (t - least) * scale, last = static_cast<double>(cells - 1), high = c < last ? c : last;
        return static_cast<Index>(high > 0 ? high : 0.0);
    }

    // The sums over all costs that are at most t.
    const Sums &below(double t) const {
        if (!(t >= least))
            return below_cell[0];
        if (t >= greatest)
            return below_cell[cells];
        const Index c = cell_at(t);
        const Sums &before = below_cell[c], &after = below_cell[c + 1];
        if (begin[c] < 0) // at most t on the average
            return after.cost - before.cost <= t * (after.weight - before.weight) ? after : before;
        const Entry *from = entries.data() + begin[c], *to = entries.data() + end[c];
        const Entry *at = std::upper_bound(from, to, t, [](double x, const Entry &entry) { return x < entry.cost; });
        return at == from ? before : inner[at - entries.data() - 1];
    }

    const double *costs = nullptr, *weights = nullptr;
    Index size = 0, cells = 1;
    double least = 0, greatest = 0, scale = 0;
    std::vector<std::int32_t> cell;
    std::vector<Sums> below_cell, inner; // before each cell; up to each cost that is sorted
    std::vector<unsigned char> wanted;
    std::vector<Index> begin, end; // of each cell among what is sorted; -1 if it is not
    std::vector<Entry> entries;
};

} // namespace metrimax
