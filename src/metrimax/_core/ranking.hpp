// The most violated ranking for ROC area (Joachims 2005, Algorithm 3).
#pragma once

#include "tables.hpp"

namespace metrimax {

// R = 1/(n+ n-) * sum over pairs of max(0, 1 - (s_i - s_j)): which pairs are inside the margin?
// Input: positive and negative scores, both ascending, with optional weights in the same order (null: all 1).
// Output: for every positive the weight of negatives with s_j > s_i - 1, for every negative the weight of
// positives with s_i < s_j + 1, and the total weight of such pairs. One merge, O(n).
inline double margin_pairs(const double *pos, const double *pos_weight, Index n_pos, const double *neg,
                           const double *neg_weight, Index n_neg, double *pos_count, double *neg_count) {
    auto weight = [](const double *w, Index k) { return w ? w[k] : 1.0; };
    double total = 0, seen = 0;
    Index i = 0;
    for (Index j = 0; j < n_neg; ++j) { // positives below s_j + 1
        while (i < n_pos && 1 - pos[i] + neg[j] > 0)
            seen += weight(pos_weight, i++);
        neg_count[j] = seen;
        total += seen * weight(neg_weight, j);
    }
    seen = 0;
    Index j = n_neg;
    for (i = n_pos; i-- > 0;) { // negatives above s_i - 1
        while (j > 0 && 1 - pos[i] + neg[j - 1] > 0)
            seen += weight(neg_weight, --j);
        pos_count[i] = seen;
    }
    return total;
}

} // namespace metrimax
