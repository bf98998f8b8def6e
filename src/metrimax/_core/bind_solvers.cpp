// Python bindings of what the solvers do with small or single vectors.
#include "bindings.hpp"
#include "cut_pool.hpp"
#include "descent.hpp"
#include "line_search.hpp"
#include "loops.hpp"
#include "quasi_newton.hpp"
#include "simplex_qp.hpp"

#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <limits>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

namespace metrimax {

using Pair = std::pair<double, double>;
using Vec = nb::ndarray<double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Strided = nb::ndarray<nb::numpy, double, nb::ndim<2>>;

// The quasi-Newton matrix, made for the vectors of the first call.
class PyQuasiNewton {
  public:
    PyQuasiNewton(double lam, size_t memory) : lam(lam), memory(memory) {
        require(memory > 0, "QuasiNewton: expected a memory of one pair or more, got 0");
    }

    // Vectors come by their entries and images; without images these are empty.
    std::pair<Out1<double>, Out1<double>> direction(In1<double> point, In1<double> image, In1<double> slope,
                                                    In1<double> slope_image) {
        const size_t n = point.size(), images = image.size();
        require(images == 0 || images == n, "direction: an image is as long as its vector, or empty");
        check_length("slope", slope.size(), n);
        check_length("slope_image", slope_image.size(), images);
        if (!matrix) {
            matrix.emplace(memory, n, images > 0);
            size = n, scored = images;
        }
        check_length("point", n, size);
        check_length("image", images, scored);
        auto entries = empty<double>(n), out = empty<double>(images);
        double *const both[] = {entries.get(), out.get()};
        {
            nb::gil_scoped_release unlocked;
            const bool given = images > 0;
            matrix->direction(lam, {point.data(), given ? image.data() : nullptr},
                              {slope.data(), given ? slope_image.data() : nullptr}, both);
        }
        return {make_array(std::move(entries), n), make_array(std::move(out), images)};
    }

    void forget() {
        if (matrix)
            matrix->forget();
    }

  private:
    double lam;
    size_t memory, size = 0, scored = 0;
    std::optional<QuasiNewton> matrix;
};

// Vectors come by their entries and images; without images these are empty.
class PyCutPool {
  public:
    PyCutPool(size_t width, bool images, size_t room) : pool(width, images, room) {}

    void begin(In1<double> losses, In2<double> gram, const std::vector<In2<double>> &rows) {
        const size_t count = losses.size();
        check_length("begin: rows", rows.size(), pool.parts);
        for (const auto &one : rows)
            require(one.shape(0) == count && one.shape(1) == pool.width,
                    "begin: rows do not fit the losses or the pool");
        require(gram.shape(0) == count && gram.shape(1) == count, "begin: gram does not fit the losses");
        pool.begin(count, losses.data(), gram.data(), {rows[0].data(), pool.parts == 2 ? rows[1].data() : nullptr});
    }

    void append(const std::vector<double> &losses, const std::vector<In1<double>> &entries,
                const std::vector<In1<double>> &images, size_t patience) {
        const size_t count = losses.size();
        check_length("append: entries", entries.size(), count);
        check_length("append: images", images.size(), pool.parts == 2 ? count : 0);
        std::vector<CutPool::Parts> vectors(count);
        for (size_t k = 0; k < count; ++k) {
            check_length("append", entries[k].size(), pool.width);
            vectors[k] = {entries[k].data(), nullptr};
            if (pool.parts == 2) {
                check_length("append", images[k].size(), pool.width);
                vectors[k][1] = images[k].data();
            }
        }
        bool finite;
        {
            nb::gil_scoped_release unlocked;
            pool.prune(patience);
            finite = pool.append(losses, vectors);
        }
        require(finite, "the features are too large: their inner products overflow; scale them before training");
    }

    std::tuple<Out1<double>, Out1<double>, double, double> minimise(double lam, double tol) {
        const size_t images = pool.parts == 2 ? pool.width : 0;
        auto entries = empty<double>(pool.width), out = empty<double>(images);
        Minimised found;
        {
            nb::gil_scoped_release unlocked;
            found = pool.minimise(lam, tol, {entries.get(), out.get()});
        }
        return {make_array(std::move(entries), pool.width), make_array(std::move(out), images), found.square,
                found.bound};
    }

    // Views, which stay valid.
    Out1<double> losses() const { return Out1<double>(pool.losses.get(), {pool.size}, owner(pool.losses)); }
    Out1<double> alpha() const { return Out1<double>(pool.alpha.get(), {pool.size}, owner(pool.alpha)); }
    Strided gram() const {
        return Strided(pool.gram.get(), {pool.size, pool.size}, owner(pool.gram), {static_cast<int64_t>(pool.room), 1});
    }
    std::vector<Out2<double>> rows() const {
        std::vector<Out2<double>> views;
        for (size_t part = 0; part < pool.parts; ++part)
            views.emplace_back(pool.rows[part].get(), std::initializer_list<size_t>{pool.size, pool.width},
                               owner(pool.rows[part]));
        return views;
    }

    CutPool pool;

  private:
    static nb::capsule owner(const CutPool::Values &values) {
        return nb::capsule(new CutPool::Values(values),
                           [](void *kept) noexcept { delete static_cast<CutPool::Values *>(kept); });
    }
};

using Callable = nb::typed<nb::callable, nb::object(double)>;

// The least point along a line whose risk and rise a Python function gives.
static LineStep search_line(const Callable &line, const Parabola &parabola, double risk, std::optional<Pair> tangent,
                            double accuracy, double reach, std::optional<Pair> at_reach) {
    const LineSearch search(parabola);
    const auto at = [&](double t) { return nb::cast<Pair>(line(t)); };
    const auto [value, rise] = tangent ? *tangent : Pair(risk, at(0.0).second);
    return search.minimise(search.step(0.0, {risk, rise}), search.step(0.0, {value, rise}), accuracy, reach,
                           at_reach ? *at_reach : at(reach), at);
}

void bind_solvers(nb::module_ &m) {
    nb::class_<PyCutPool>(m, "CutPool", "Cuts of a risk, their Gram matrix, and the program over them.")
        .def(nb::init<size_t, bool, size_t>(), nb::arg("width"), nb::arg("images"), nb::arg("room"))
        .def("begin", &PyCutPool::begin, nb::arg("losses").noconvert(), nb::arg("gram").noconvert(),
             nb::arg("rows").noconvert(),
             "Start from the cuts of another pool: they take the place of all but the zero cut.")
        .def("append", &PyCutPool::append, nb::arg("losses"), nb::arg("entries").noconvert(),
             nb::arg("images").noconvert(), nb::arg("patience") = std::numeric_limits<size_t>::max(),
             "Append cuts by their losses, vectors and, if there are any, images. Before that, those go that had no "
             "weight in more than so many solutions in a row.")
        .def("minimise", &PyCutPool::minimise, nb::arg("lam"), nb::arg("tol"),
             "Minimise lam/2 |w|^2 + max_k (losses[k] + <rows[k], w>) to within tol; returns w, its image, its squared "
             "length and the lower bound that this proves.")
        .def_prop_ro("size", [](const PyCutPool &self) { return self.pool.size; })
        .def_prop_ro("losses", &PyCutPool::losses, nb::rv_policy::automatic)
        .def_prop_ro("alpha", &PyCutPool::alpha, nb::rv_policy::automatic)
        .def_prop_ro("gram", &PyCutPool::gram, nb::rv_policy::automatic)
        .def_prop_ro("rows", &PyCutPool::rows, nb::rv_policy::automatic);
    nb::class_<PyQuasiNewton>(m, "QuasiNewton", "The matrix of limited-memory BFGS.")
        .def(nb::init<double, size_t>(), nb::arg("lam"), nb::arg("memory"))
        .def("direction", &PyQuasiNewton::direction, nb::arg("point").noconvert(), nb::arg("image").noconvert(),
             nb::arg("slope").noconvert(), nb::arg("slope_image").noconvert(),
             "Minus the inverse Hessian times lam point + slope, and its image; learns from the last call.")
        .def("forget", &PyQuasiNewton::forget, "Do not compare the next gradient with the last one.");
    m.def(
        "dot",
        [](In1<double> u, In1<double> v) {
            check_length("dot", v.size(), u.size());
            const double *a = u.data(), *b = v.data();
            const size_t size = u.size();
            nb::gil_scoped_release unlocked;
            double sum = 0;
            dense_dot_rows(a, 1, size, b, &sum);
            return sum;
        },
        nb::arg("u").noconvert(), nb::arg("v").noconvert(),
        "u'v in the calling thread (a threaded BLAS spends more on its threads than they give).");
    m.def(
        "axpy",
        [](double t, In1<double> x, Vec y) {
            check_length("axpy", y.size(), x.size());
            const double *a = x.data();
            double *out = y.data();
            const size_t size = x.size();
            nb::gil_scoped_release unlocked;
            add_scaled(t, a, out, size);
        },
        nb::arg("t"), nb::arg("x").noconvert(), nb::arg("y").noconvert(), "y += t x, in place and without a copy.");
    m.def(
        "combine",
        [](const std::vector<double> &shares, const std::vector<In1<double>> &vectors) {
            check_length("combine", vectors.size(), shares.size());
            require(!vectors.empty(), "combine: expected at least one vector, got none");
            const size_t size = vectors[0].size();
            for (const auto &vector : vectors)
                check_length("combine", vector.size(), size);
            auto out = zeros<double>(size);
            {
                nb::gil_scoped_release unlocked;
                for (size_t k = 0; k < vectors.size(); ++k)
                    add_scaled(shares[k], vectors[k].data(), out.get(), size);
            }
            return make_array(std::move(out), size);
        },
        nb::arg("shares"), nb::arg("vectors").noconvert(), "The sum of the vectors, each times its share.");
    m.def(
        "blend",
        [](Vec x, double t, In1<double> y) {
            check_length("blend", x.size(), y.size());
            double *out = x.data();
            const double *start = y.data();
            const size_t size = y.size();
            nb::gil_scoped_release unlocked;
            for (size_t i = 0; i < size; ++i)
                out[i] = start[i] + t * out[i];
        },
        nb::arg("x").noconvert(), nb::arg("t"), nb::arg("y").noconvert(), "x = y + t x, in place.");
    m.def(
        "line_search",
        [](Callable line, std::array<double, 4> parabola, double risk, std::optional<Pair> tangent, double accuracy,
           double reach) {
            const auto [lam, square, cross, bend] = parabola;
            const LineStep found =
                search_line(line, {lam, square, cross, bend}, risk, tangent, accuracy, reach, std::nullopt);
            return std::make_tuple(found.t, found.risk);
        },
        nb::arg("line"), nb::arg("parabola"), nb::arg("risk"), nb::arg("tangent").none(), nb::arg("accuracy"),
        nb::arg("reach"),
        "Minimise lam/2 (square + 2 t cross + t^2 bend) + risk(t) over t >= 0, where line(t) is the risk at t and its "
        "rise, known at 0; returns t and the risk there.");
    m.def(
        "descend",
        [](Callable line, double lam, Vec point, Vec scores, double square, double risk, In1<double> move,
           In1<double> move_scores, bool images, const std::vector<double> &losses,
           const std::vector<In1<double>> &slopes, std::optional<Pair> tangent, double accuracy, double reach,
           std::optional<Pair> at_reach) {
            const size_t width = point.size(), n = scores.size();
            check_length("descend: move", move.size(), width);
            check_length("descend: move_scores", move_scores.size(), n);
            check_length("descend: losses", losses.size(), slopes.size());
            require(!images || width == n, "descend: expected as many entries as scores");
            const Track track{lam, {point.data(), scores.data()}, {move.data(), move_scores.data()}, width, n, images};
            std::vector<Plane> planes;
            for (size_t k = 0; k < slopes.size(); ++k) {
                check_length("descend: slope", slopes[k].size(), width);
                planes.push_back({losses[k], slopes[k].data()});
            }
            Parabola parabola{};
            {
                nb::gil_scoped_release unlocked;
                parabola = track.parabola(square);
                if (!tangent)
                    tangent = track.tangent(planes);
            }
            const LineStep found = search_line(line, parabola, risk, tangent, accuracy, reach, at_reach);
            if (found.t > 0) {
                nb::gil_scoped_release unlocked;
                track.advance(found.t);
            }
            return std::make_tuple(found.t, found.risk, parabola.square_at(found.t));
        },
        nb::arg("line"), nb::arg("lam"), nb::arg("point").noconvert(), nb::arg("scores").noconvert(), nb::arg("square"),
        nb::arg("risk"), nb::arg("move").noconvert(), nb::arg("move_scores").noconvert(), nb::arg("images"),
        nb::arg("losses"), nb::arg("slopes").noconvert(), nb::arg("tangent").none(), nb::arg("accuracy"),
        nb::arg("reach"), nb::arg("at_reach").none(),
        "Minimise lam/2 |point + t move|^2 + risk(t) over t >= 0 and go there, in place: point and move are given by "
        "entries and scores. line(t) is the risk at t and its rise; known at 0 are the risk and a tangent or planes "
        "below it, and maybe what it is at reach. Returns t, the risk there and the squared length.");
    m.def(
        "simplex_qp",
        [](In2<double> G, In1<double> b, double scale, Vec a, double tol, Index max_changes) {
            const auto size = static_cast<Index>(b.size());
            if (size == 0 || a.size() != b.size() || G.shape(0) < b.size() || G.shape(1) < b.size())
                throw nb::value_error("simplex_qp: G, b and a do not fit together, or are empty");
            const double *g = G.data(), *c = b.data();
            double *x = a.data();
            const auto ld = static_cast<Index>(G.shape(1));
            nb::gil_scoped_release unlocked;
            return SimplexQP(g, ld, c, scale, size, x).solve(tol, max_changes);
        },
        nb::arg("G").noconvert(), nb::arg("b").noconvert(), nb::arg("scale"), nb::arg("a").noconvert(), nb::arg("tol"),
        nb::arg("max_changes"),
        "Minimise scale/2 a'Ga - b'a over the simplex, in place from a feasible a; returns the changes made.");
}

} // namespace metrimax
