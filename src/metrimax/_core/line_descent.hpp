// A whole line search of the solvers: the inner products it needs, the search itself, and the step.
// Plain C++17, no Python.
//
// Input    a point and a move, by entries and scores; what is known of the risk; the risk along the line
// Output   the point, moved to where the objective is least, and its squared length
#pragma once

#include "dense_loops.hpp"
#include "line_search.hpp"

#include <array>
#include <optional>
#include <utility>
#include <vector>

namespace metrimax {

// A cut: its loss, and the entries of its vector.
struct Plane {
    double loss;
    const double *entries;
};

// From a point along a move, both by their entries (width of them) and by their scores (n of them). Inner products are
// taken of the entries, or of the entries of the one and the scores of the other (images).
struct Track {
    double lam;
    std::array<double *, 2> point;
    std::array<const double *, 2> move;
    size_t width, n;
    bool images;

    // Go where the objective is least. The arguments are those of LineSearch; where there is no tangent, the highest of
    // the planes takes its place. In and out: the squared length of the point.
    template <class Risk>
    LineStep descend(double &square, double risk_here, std::optional<std::pair<double, double>> known,
                     const std::vector<Plane> &planes, double accuracy, double reach,
                     std::optional<std::pair<double, double>> at_reach, Risk risk) const {
        const Parabola parabola = this->parabola(square);
        const LineStep found =
            LineSearch(parabola).minimise(risk_here, known ? known : tangent(planes), accuracy, reach, at_reach, risk);
        if (found.t > 0) {
            add_scaled(found.t, move[0], point[0], width);
            add_scaled(found.t, move[1], point[1], n);
            square = parabola.square_at(found.t);
        }
        return found;
    }

  private:
    // How the squared length of the point, `square` at first, changes on its way.
    Parabola parabola(double square) const {
        return {lam, square, dot(point[0], move[images], width), dot(move[0], move[images], width)};
    }

    // The plane below the risk that is highest at the point: its value there, and its rise.
    std::optional<std::pair<double, double>> tangent(const std::vector<Plane> &planes) const {
        std::optional<std::pair<double, double>> highest;
        for (const Plane &plane : planes) {
            double here = 0, rise = 0;
            dense_dot_rows_pair(plane.entries, 1, width, point[images], move[images], &here, &rise, 1);
            const std::pair<double, double> one{plane.loss + here, rise};
            if (!highest || one > *highest)
                highest = one;
        }
        return highest;
    }
};

} // namespace metrimax
