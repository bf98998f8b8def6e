// The most violated labelling with exactly k positives, for a loss u + v * tp: the k examples of highest merit,
//     merit = score + n v [y = +1],
// are called positive. A selection, O(n), in a sample without weights.
#pragma once

#include "shares.hpp"
#include "sorting.hpp"

#include <functional>
#include <utility>

namespace metrimax {

class TopSearch {
  public:
    TopSearch(const bool *y, Index size, Index k, double u, double v)
        : y(y), n(size), k(k), u(u), bonus(v * static_cast<double>(size)), merits(new double[size]),
          near(new double[size]) {
        const Index n_pos = std::count(y, y + size, true);
        most_flips = n_pos + k - 2 * std::max<Index>(0, k - (size - n_pos));
    }

    // The loss of the labelling that attains the risk, and its slope; or, with mu > 0, of a mean of labellings that is
    // no more than mu below the risk at these scores. Without a positive risk, both are zero.
    double cut(const double *scores, double mu, double *slope) {
        const double scale = 1 / static_cast<double>(n);
        for (Index i = 0; i < n; ++i)
            merits[i] = merit(scores[i], y[i]);
        const double last = boundary();
        Index open = k; // places for those at the boundary
        for (Index i = 0; i < n; ++i)
            open -= merits[i] > last;
        double value = u;
        Index tp = 0;
        for (Index i = 0; i < n; ++i) {
            const bool called = merits[i] > last || (merits[i] == last && open-- > 0);
            tp += called && y[i];
            slope[i] = (static_cast<double>(called) - static_cast<double>(y[i])) * scale;
            value += slope[i] * scores[i];
        }
        value += bonus * scale * static_cast<double>(tp);
        if (!(value > 0)) {
            std::fill_n(slope, n, 0.0);
            return 0.0;
        }
        const double h = 2 * mu * static_cast<double>(n) / static_cast<double>(std::max<Index>(most_flips, 1));
        if (!resolves(h, last))
            return u + bonus * scale * static_cast<double>(tp);
        Index certain = 0, size = 0;
        for (Index i = 0; i < n; ++i) {
            const double cost = -merits[i];
            certain += cost + h < -last;
            near[size] = cost;
            size += cost + h >= -last && cost <= h - last;
        }
        sort_values(near.get(), size);
        const double level = share_level(near.get(), size, k - certain, h);
        double share_tp = 0;
        for (Index i = 0; i < n; ++i) {
            const double cost = -merits[i];
            const double called = cost + h < -last ? 1.0 : cost <= h - last ? share(cost, level, h) : 0.0;
            share_tp += y[i] ? called : 0.0;
            slope[i] = (called - static_cast<double>(y[i])) * scale;
        }
        return u + bonus * scale * share_tp;
    }

    // The risk at scores + t * move, and its slope in t.
    std::pair<double, double> risk(const double *scores, const double *move, double t) {
        double truth = 0, truth_rise = 0;
        for (Index i = 0; i < n; ++i) {
            const double score = scores[i] + t * move[i];
            merits[i] = merit(score, y[i]);
            truth += y[i] ? score : 0.0;
            truth_rise += y[i] ? move[i] : 0.0;
        }
        const double last = boundary();
        double called = 0, rise = 0;
        Index open = k;
        for (Index i = 0; i < n; ++i) {
            const bool above = merits[i] > last;
            open -= above;
            called += above ? merits[i] : 0.0;
            rise += above ? move[i] : 0.0;
        }
        called += static_cast<double>(open) * last;
        for (Index i = 0; i < n && open > 0; ++i)
            if (merits[i] == last) {
                rise += move[i];
                --open;
            }
        const double value = u + (called - truth) / static_cast<double>(n);
        if (!(value > 0))
            return {0.0, 0.0};
        return {value, (rise - truth_rise) / static_cast<double>(n)};
    }

  private:
    double merit(double score, bool positive) const {
        return std::isnan(score) ? -std::numeric_limits<double>::infinity() : positive ? score + bonus : score;
    }

    // The k-th highest merit. It is looked for near the last one first, where few are to be compared.
    double boundary() {
        const double low = guess - width, high = guess + width;
        Index above = 0, size = 0;
        for (Index i = 0; i < n; ++i) {
            above += merits[i] > high;
            near[size] = merits[i];
            size += merits[i] >= low && merits[i] <= high;
        }
        const bool there = above < k && k <= above + size;
        if (!there) {
            std::copy_n(merits.get(), n, near.get());
            above = 0;
            size = n;
        }
        double *at = near.get() + (k - above - 1);
        std::nth_element(near.get(), at, near.get() + size, std::greater<>());
        width = !there ? 2 * width : 8 * size > n ? width / 2 : width;
        return guess = *at;
    }

    const bool *y;
    Index n, k;
    Index most_flips; // of a labelling with k positives
    double u, bonus;
    double guess = 0.0, width = 0.1;
    std::unique_ptr<double[]> merits, near;
};

} // namespace metrimax
