// Sums over smoothed flips of many costs, without sorting all of them.
//
// Input    the costs of a class, in any order, and their weights; thresholds and widths of ramps
// Output   number and gain of the flips under each ramp (see ramp_sums.hpp), and by how much the gain may be off
//
// Costs are summed up in cells. What lies below a threshold is known but for the cell the threshold is in. Until that
// cell is opened, all of its costs count as below where their mean is. To open cells is to sort what is in them: so
// only costs near the thresholds that matter are sorted. Cells are narrow where these are expected, and wide elsewhere.
// Costs are counted from the middle of that range, and added up from there: few digits are lost to costs far away.
#pragma once

#include "cell_order.hpp"
#include "class_costs.hpp"
#include "ramp_sums.hpp"
#include "select.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <tuple>
#include <utility>
#include <vector>

namespace metrimax {

// Cells of equal width over each of three ranges, one after the other: from `from`, `scale` cells in a unit, `first`
// and on, at most up to `last`.
struct CellRanges {
    std::array<double, 3> from, scale, first, last;

    std::int32_t operator()(double x) const {
        double c = first[0] + (x - from[0]) * scale[0], most = last[0];
        for (int k = 1; k < 3; ++k) {
            const double next = first[k] + (x - from[k]) * scale[k];
            c = x < from[k] ? c : next;
            most = x < from[k] ? most : last[k];
        }
        const double high = c < most ? c : most;
        return static_cast<std::int32_t>(high > 0 ? high : 0.0);
    }
};

// The cells of a block of costs; what is infinite, of another class, is in the cell `none`.
METRIMAX_CLONES inline void cells_in(CellRanges ranges, const double *METRIMAX_RESTRICT costs, Index size,
                                     std::int32_t none, std::int32_t *METRIMAX_RESTRICT out) {
#pragma omp simd
    for (Index k = 0; k < size; ++k) {
        const std::int32_t cell = ranges(costs[k]);
        out[k] = costs[k] < std::numeric_limits<double>::infinity() ? cell : none;
    }
}

class CellRamp {
  public:
    // The costs of members, from `least` to `greatest` at most, and their weights by place, or null for all 1; where
    // thresholds are expected.
    void fill(const PointCosts &source, const double *weights, double least, double greatest, double low, double high) {
        if (!(low > -std::numeric_limits<double>::infinity() && high < std::numeric_limits<double>::infinity()))
            std::tie(low, high) = common(source);
        low = std::min(std::max(low, least), greatest);
        high = std::min(std::max(high, low), greatest);
        its = weights;
        lowest_cost = least;
        highest_cost = greatest;
        const Index size = source.members.size, extent = source.members.extent();
        const auto narrow = static_cast<double>(std::min(std::max<Index>(size / 2, 1), kMost)), wide = narrow / 4;
        count = 0;
        const std::array<double, 4> ends{least, low, high, greatest};
        for (int k = 0; k < 3; ++k) {
            const double width = ends[k + 1] - ends[k], parts = std::ceil(k == 1 ? narrow : wide);
            const double scale = width > 0 ? parts / width : 0.0;
            ranges.from[k] = ends[k];
            ranges.scale[k] = std::isfinite(scale) ? scale : 0.0;
            ranges.first[k] = static_cast<double>(count);
            count += static_cast<Index>(parts);
            ranges.last[k] = static_cast<double>(count - 1);
            widths[k] = width / parts;
        }
        origin = low + (high - low) / 2;
        if (!std::isfinite(origin))
            origin = 0;
        const auto none = static_cast<std::int32_t>(count);
        cell.resize(static_cast<std::size_t>(extent));
        below_cell.assign(static_cast<std::size_t>(count) + 2, Sums{0, 0, 0, 0});
        for_blocks(extent, [&](Index first, Index here) {
            double block[kBlock];
            source.block(first, here, block);
            cells_in(ranges, block, here, none, &cell[first]);
            if (its)
                for (Index k = 0; k < here; ++k)
                    below_cell[cell[first + k] + 1].add(its[first + k], block[k] - origin);
            else
                for (Index k = 0; k < here; ++k)
                    below_cell[cell[first + k] + 1].add(1.0, block[k] - origin);
        });
        add_up(static_cast<Index>(ranges.first[1] + ranges.last[1]) / 2);
        wanted.assign(static_cast<std::size_t>(count) + 1, size <= kFew);
        wanted[count] = 0;
        begin.assign(static_cast<std::size_t>(count), -1);
        end.resize(static_cast<std::size_t>(count));
        if (size <= kFew)
            open(source);
    }

    RampSums operator()(double t, double h) const {
        const Sums &full = below(t - h), &part = below(t);
        const double w = part.weight - full.weight, x = t - origin;
        const double s = part.cost - full.cost, q = part.square - full.square;
        const double flips = full.weight + (w * x - s) / h;
        const double gain = below_cell[0].cost - full.cost - h / 2 * full.weight + (q - w * x * x) / (2 * h);
        return {flips, gain - origin * flips, w};
    }

    // By how much that gain may be off: a cost on the wrong side of an end, by x, is taken for x^2 / 2h more or less.
    double off(double t, double h) const { return (off_at(t - h) + off_at(t)) / (2 * h); }

    // Whether the costs about t are sorted. If not, they are wanted: those of the next cell, too, if it is near.
    bool sorted_at(double t) {
        if (sorted(t))
            return true;
        const Index c = ranges(t);
        const int k = range_of_cell(c);
        const double x = ranges.first[k] + (t - ranges.from[k]) * ranges.scale[k] - static_cast<double>(c);
        wanted[c] = 1;
        if (x < kNear && c > 0)
            wanted[c - 1] = 1;
        if (x > 1 - kNear && c < count - 1)
            wanted[c + 1] = 1;
        return false;
    }

    // Sort the costs of all cells that are wanted.
    void open(const PointCosts &source) {
        const Index extent = source.members.extent();
        places.resize(static_cast<std::size_t>(extent) + 1);
        Index found = 0;
        for (Index k = 0; k < extent; ++k) {
            places[found] = static_cast<Place>(k);
            found += wanted[cell[k]];
        }
        entries.resize(static_cast<std::size_t>(found));
        for (Index k = 0; k < found; ++k)
            entries[k] = {source(places[k]), its ? its[places[k]] : 1.0};
        sort_by(entries.data(), found, [](const Entry &entry) { return entry.cost; });
        inner.resize(static_cast<std::size_t>(found));
        Index k = 0;
        for (Index c = 0; c < count; ++c) {
            if (!wanted[c])
                continue;
            begin[c] = k;
            Sums sums = below_cell[c];
            for (; k < found && ranges(entries[k].cost) == c; ++k) {
                sums.add(entries[k].weight, entries[k].cost - origin);
                inner[k] = sums;
            }
            end[c] = k;
        }
    }

    // The number of cells; those of the places, the number itself for what is in none; and the first cell beyond t.
    Index size() const { return count; }
    const std::int32_t *cells() const { return cell.data(); }
    Index cell_after(double t) const { return !(t >= lowest_cost) ? 0 : t >= highest_cost ? count : ranges(t) + 1; }

    double lowest() const { return lowest_cost; }
    double highest() const { return highest_cost; }

  private:
    // At most so many narrow cells. With 2^10 the search over pieces takes up to three times as long at mu = 1e-4
    // (300,000 examples), with 2^14 about as long. Where there are few costs, all are sorted; to do so up to 2^14 of
    // them takes twice as long at 15,000 examples.
    static constexpr Index kMost = Index{1} << 12, kFew = Index{1} << 10;
    static constexpr double kNear = 1.0 / 64; // of a cell

    struct Sums {
        double weight, cost, square, none; // four, for vector instructions

        void add(double w, double x) {
            weight += w;
            cost += w * x;
            square += w * x * x;
        }
    };
    struct Entry {
        double cost, weight;
    };

    // Between which most costs are, but for one in twenty or so, in a sample of them.
    static std::pair<double, double> common(const PointCosts &source) {
        constexpr Index kSample = 512;
        std::vector<double> costs;
        const Index extent = source.members.extent(), stride = std::max<Index>(extent / kSample, 1);
        for (Index k = 0; k < extent; k += stride)
            if ((!source.members.inside || source.members.inside[k]) && std::isfinite(source(k)))
                costs.push_back(source(k));
        if (costs.empty())
            return {0.0, 0.0};
        const auto size = static_cast<Index>(costs.size());
        return {select(costs.data(), size, size / 40), select(costs.data(), size, size - 1 - size / 40)};
    }

    // From the sums of each cell, listed one further, to sums over all costs before each: weights from the first cell
    // on; costs and squares from the cell `middle` on, and negative before it.
    void add_up(Index middle) {
        double cost = 0, square = 0;
        for (Index c = middle - 1; c >= 0; --c) {
            Sums &next = below_cell[c + 1];
            cost -= std::exchange(next.cost, cost);
            square -= std::exchange(next.square, square);
        }
        below_cell[0] = {0, cost, square, 0};
        for (Index c = 0; c < count; ++c) {
            const Sums &before = below_cell[c];
            Sums &next = below_cell[c + 1];
            next.weight += before.weight;
            next.cost += c < middle ? 0.0 : before.cost;
            next.square += c < middle ? 0.0 : before.square;
        }
    }

    int range_of_cell(Index c) const {
        const auto at = static_cast<double>(c);
        return at >= ranges.first[2] ? 2 : at >= ranges.first[1] ? 1 : 0;
    }

    bool sorted(double t) const { return !(t >= lowest_cost) || t >= highest_cost || begin[ranges(t)] >= 0; }

    double off_at(double t) const {
        if (sorted(t))
            return 0.0;
        const Index c = ranges(t);
        const double width = widths[range_of_cell(c)];
        return (below_cell[c + 1].weight - below_cell[c].weight) * width * width;
    }

    // The sums over all costs that are at most t.
    const Sums &below(double t) const {
        if (!(t >= lowest_cost))
            return below_cell[0];
        if (t >= highest_cost)
            return below_cell[count];
        const Index c = ranges(t);
        const Sums &before = below_cell[c], &after = below_cell[c + 1];
        if (begin[c] < 0) // at most t on the average
            return after.cost - before.cost <= (t - origin) * (after.weight - before.weight) ? after : before;
        const Entry *from = entries.data() + begin[c], *to = entries.data() + end[c];
        const Entry *at = std::upper_bound(from, to, t, [](double x, const Entry &entry) { return x < entry.cost; });
        return at == from ? before : inner[at - entries.data() - 1];
    }

    const double *its = nullptr; // weights
    double lowest_cost = 0, highest_cost = 0, origin = 0;
    CellRanges ranges{};
    std::array<double, 3> widths{};
    Index count = 0;
    std::vector<std::int32_t> cell;      // of each place
    std::vector<Sums> below_cell, inner; // before each cell; up to each cost that is sorted
    std::vector<unsigned char> wanted;
    std::vector<Index> begin, end; // of each cell among what is sorted; -1 if it is not
    std::vector<Place> places;     // of what is sorted
    std::vector<Entry> entries;
};

} // namespace metrimax
