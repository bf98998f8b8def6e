// The cuts of a model of the risk, their Gram matrix, and the solution of the quadratic program over them. Plain C++17,
// no Python.
//
// Problem  min over w of  lam/2 |w|^2 + max over cuts k of (loss_k + <row_k, w>), by its dual (simplex_qp.hpp)
// Input    cuts, as they come
// Output   the minimiser and the lower bound that it proves; cuts without weight for a long time are dropped
//
// Joachims (2005), Algorithm 1; Teo et al. (2010).
//
// A vector is kept by its entries, and beside them by its image under a symmetric matrix K where there is one. Inner
// products are <a, b> = a'K b, or a'b where there is none.
#pragma once

#include "dense_loops.hpp"
#include "memory.hpp"
#include "simplex_qp.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

namespace metrimax {

// The solution of the program: the squared length of the minimiser, and the lower bound that it proves.
struct Minimised {
    double square, bound;
};

class CutPool {
  public:
    using Values = std::shared_ptr<double[]>;    // a reader keeps them alive if the pool moves to others
    using Parts = std::array<const double *, 2>; // entries and image, or nullptr

    // The first cut is zero, and stays. There is room for some without moving.
    CutPool(size_t width, bool images, size_t room)
        : width(width), parts(images ? 2 : 1), room(std::max<size_t>(room, 1)), losses(fresh(this->room)),
          alpha(fresh(this->room)), gram(fresh(this->room, this->room)), idle(this->room), lengths(this->room) {
        for (size_t part = 0; part < parts; ++part) {
            rows[part] = fresh(this->room, width);
            std::fill_n(rows[part].get(), width, 0.0);
        }
        losses[0] = gram[0] = 0.0;
        alpha[0] = 1.0;
    }

    const size_t width, parts; // of the vectors, and how many arrays hold them
    size_t room, size = 1;     // of the arrays, and how much of it is used
    Values losses, alpha, gram;
    std::array<Values, 2> rows;

    // The length of the longest image; of the longest vector where there are none.
    double longest() const { return *std::max_element(lengths.begin(), lengths.begin() + static_cast<Index>(size)); }

    // Append cuts: a loss and a vector each. False where one's product with itself is not finite.
    bool append(const std::vector<double> &new_losses, const std::vector<Parts> &vectors) {
        const size_t first = size, added = vectors.size();
        reserve(first + added);
        for (size_t k = 0; k < added; ++k, ++size) {
            losses[size] = new_losses[k];
            alpha[size] = 0.0;
            idle[size] = 0;
            for (size_t part = 0; part < parts; ++part)
                std::copy_n(vectors[k][part], width, row(part, size));
            lengths[size] = length(row(parts - 1, size));
        }
        for (size_t k = 0; k < added;) {
            const double *one = vectors[k][0], *two = k + 1 < added ? vectors[k + 1][0] : nullptr;
            double *out = gram.get() + (first + k) * room;
            if (two != nullptr && !mostly_zero(one, width) && !mostly_zero(two, width)) {
                dense_dot_rows_pair(row(parts - 1, 0), size, width, one, two, out, out + room, 1);
                k += 2;
            } else {
                dense_dot_rows_sparse(row(parts - 1, 0), size, width, one, out);
                k += 1;
            }
        }
        bool finite = true;
        for (size_t k = first; k < size; ++k) {
            finite = finite && std::isfinite(gram[k * room + k]);
            for (size_t l = 0; l < k; ++l)
                gram[l * room + k] = gram[k * room + l];
        }
        return finite;
    }

    // Begin with cuts of another pool, whose inner products are known: `products` (count, count).
    void begin(size_t count, const double *their_losses, const double *products, Parts vectors) {
        reserve(1 + count);
        for (size = 1; size <= count; ++size) {
            losses[size] = their_losses[size - 1];
            alpha[size] = 0.0;
            idle[size] = 0;
            gram[size * room] = gram[size] = 0.0; // with the zero cut
            std::copy_n(products + (size - 1) * count, count, gram.get() + size * room + 1);
        }
        for (size_t part = 0; part < parts; ++part)
            std::copy_n(vectors[part], count * width, row(part, 1));
        for (size_t k = 1; k < size; ++k)
            lengths[k] = length(row(parts - 1, k));
    }

    // Minimise lam/2 |w|^2 + max_k (loss_k + <row_k, w>) to within tol. Out: w and its image, overwritten.
    // |w|^2 comes from w itself: in the Gram matrix of long vectors that nearly cancel, rounding could exceed it. Where
    // it is the product of w with its image, in which long images nearly cancel, it could still be too small, or even
    // negative: what rounding may have taken off is added to it, so that the bound is none too high.
    Minimised minimise(double lam, double tol, std::array<double *, 2> out) {
        const auto cuts = static_cast<Index>(size);
        SimplexQP(gram.get(), static_cast<Index>(room), losses.get(), 1 / lam, cuts, alpha.get())
            .solve(tol, 20 * cuts + 100);
        std::vector<double> shares(size);
        std::vector<size_t> used;
        double loss = 0, reach = 0;
        for (size_t k = 0; k < size; ++k) {
            idle[k] = alpha[k] == 0 ? idle[k] + 1 : 0;
            if (alpha[k] == 0)
                continue;
            used.push_back(k);
            shares[k] = alpha[k] / -lam;
            loss += alpha[k] * losses[k];
            reach += alpha[k] / lam * lengths[k];
        }
        for (size_t part = 0; part < parts; ++part) {
            std::fill_n(out[part], width, 0.0);
            dense_add_rows_by_blocks(rows[part].get(), width, used.data(), used.size(), shares.data(), 0, width,
                                     out[part]);
        }
        const double square = dot(out[0], out[parts - 1], width);
        const double lost = parts == 1 ? 0.0 : std::numeric_limits<double>::epsilon() * reach * length(out[0]);
        return {square, std::max(0.0, loss - lam / 2 * (square + lost))}; // the zero cut alone proves 0
    }

    // Drop the cuts that were without weight in more than so many solutions in a row, where there are more than that.
    // The last ones move into their places.
    void prune(size_t patience) {
        if (size <= patience)
            return;
        for (size_t k = size; --k > 0;) {
            if (idle[k] <= patience)
                continue;
            --size;
            losses[k] = losses[size];
            alpha[k] = alpha[size];
            idle[k] = idle[size];
            lengths[k] = lengths[size];
            std::copy_n(gram.get() + size * room, size + 1, gram.get() + k * room);
            for (size_t l = 0; l <= size; ++l)
                gram[l * room + k] = gram[l * room + size];
            for (size_t part = 0; part < parts; ++part)
                std::copy_n(row(part, size), width, row(part, k));
        }
    }

    // Make room, by half as much again.
    void reserve(size_t needed) {
        if (needed <= room)
            return;
        const size_t more = std::max(needed, room + room / 2);
        idle.resize(more);
        lengths.resize(more);
        losses = moved(losses, 1, 1, more);
        alpha = moved(alpha, 1, 1, more);
        for (size_t part = 0; part < parts; ++part)
            rows[part] = moved(rows[part], width, width, more); // the old ones go before the next grow
        gram = moved(gram, room, more, more);
        room = more; // only now, since nothing can fail any more
    }

  private:
    std::vector<size_t> idle;    // solutions in a row in which a cut had no weight
    std::vector<double> lengths; // of the images, or of the entries where there are none

    double *row(size_t part, size_t k) { return rows[part].get() + k * width; }

    double length(const double *values) const { return std::sqrt(dot(values, values, width)); }

    static Values fresh(size_t count) { return empty<double>(count); } // unused memory is not touched
    static Values fresh(size_t rows, size_t columns) {
        if (columns > 0 && rows > std::numeric_limits<size_t>::max() / columns)
            throw std::bad_alloc();
        return fresh(rows * columns);
    }

    // The rows in use, of another length now, with room for more.
    Values moved(const Values &values, size_t length, size_t longer, size_t more) const {
        Values out = fresh(more, longer);
        for (size_t k = 0; k < size; ++k)
            std::copy_n(values.get() + k * length, length, out.get() + k * longer);
        return out;
    }
};

} // namespace metrimax
