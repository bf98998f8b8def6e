// The two-loop recursion of L-BFGS (Liu & Nocedal 1989) on coefficients instead of vectors (Chen, Wang & Zhou 2014).
#pragma once

#include "tables.hpp"

#include <vector>

namespace metrimax {

// Minus the inverse Hessian times the gradient g, as a combination of the past steps s_k, the changes y_k and g.
// In: the inner products of all s and y (2m rows: first s, then y), those with g, and the number of pairs ever stored;
//     pair number k lies in slot k modulo m, and the last m are remembered.
// Out: the coefficients of s and y (2m, overwritten). Returns that of g.
inline double lbfgs_shares(const double *gram, const double *with_gradient, Index m, Index pairs, double *out) {
    const Index rows = 2 * m, oldest = std::max<Index>(0, pairs - m);
    double own = -1.0;
    std::fill_n(out, rows, 0.0);
    auto inner = [&](Index row) {
        double sum = own * with_gradient[row];
        for (Index k = 0; k < rows; ++k)
            sum += gram[row * rows + k] * out[k];
        return sum;
    };
    auto curvature = [&](Index slot) { return gram[slot * rows + slot + m]; };
    std::vector<double> shares(static_cast<size_t>(m));
    for (Index pair = pairs; pair-- > oldest;) {
        const Index slot = pair % m;
        shares[slot] = inner(slot) / curvature(slot);
        out[slot + m] -= shares[slot];
    }
    const Index last = (pairs - 1) % m;
    const double scale = curvature(last) / gram[(last + m) * rows + last + m];
    own *= scale;
    for (Index k = 0; k < rows; ++k)
        out[k] *= scale;
    for (Index pair = oldest; pair < pairs; ++pair) {
        const Index slot = pair % m;
        out[slot] += shares[slot] - inner(slot + m) / curvature(slot);
    }
    return own;
}

} // namespace metrimax
