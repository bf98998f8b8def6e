// Python bindings of the cuts of a run, and of what its iterations do with them.
#include "bindings.hpp"
#include "bundle_steps.hpp"
#include "cut_pool.hpp"
#include "python_risk.hpp"
#include "quasi_newton.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace metrimax {

using Strided = nb::ndarray<nb::numpy, double, nb::ndim<2>>;
using Vectors = std::vector<In1<double>>;

// What follows belongs to one run: a second thread that asks is told so (OneAtATime).

// The quasi-Newton matrix, made for the vectors of the first call.
class PyQuasiNewton {
  public:
    PyQuasiNewton(double lam, size_t memory) : lam(lam), memory(memory) {
        check_positive("QuasiNewton: lam", lam);
        require(memory > 0 && memory <= kMostPairs,
                "QuasiNewton: expected a memory of 1 to 1000 pairs, got another one");
    }

    // Vectors come by their entries and images; without images these are empty.
    std::pair<Out1<double>, Out1<double>> direction(In1<double> point, In1<double> image, In1<double> slope,
                                                    In1<double> slope_image) {
        const auto turn = alone.turn();
        const size_t n = point.size(), images = image.size();
        require(images == 0 || images == n, "direction: expected an image as long as its vector, or none");
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
        const auto turn = alone.turn();
        if (matrix)
            matrix->forget();
    }

    static constexpr size_t kMostPairs = 1000;

  private:
    OneAtATime alone{"QuasiNewton"};
    double lam;
    size_t memory, size = 0, scored = 0;
    std::optional<QuasiNewton> matrix;
};

// Vectors come by their entries and images; without images these are empty.
class PyCutPool {
  public:
    PyCutPool(size_t width, bool images, size_t room) : pool(width, images, room) {}

    void begin(In1<double> losses, In2<double> gram, const std::vector<In2<double>> &rows) {
        const auto turn = alone.turn();
        const size_t count = losses.size();
        check_length("begin: rows", rows.size(), pool.parts);
        for (const auto &one : rows) {
            check_length("begin: rows", one.shape(0), count);
            check_length("begin: columns of rows", one.shape(1), pool.width);
        }
        check_length("begin: rows of gram", gram.shape(0), count);
        check_length("begin: columns of gram", gram.shape(1), count);
        pool.begin(count, losses.data(), gram.data(), {rows[0].data(), pool.parts == 2 ? rows[1].data() : nullptr});
    }

    void append(const std::vector<double> &losses, const std::vector<In1<double>> &entries,
                const std::vector<In1<double>> &images, size_t patience) {
        const auto turn = alone.turn();
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
        check_positive("minimise: lam", lam);
        const auto turn = alone.turn();
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

    size_t size() {
        const auto turn = alone.turn();
        return pool.size;
    }
    double longest() {
        const auto turn = alone.turn();
        return pool.longest();
    }

    // Views, which stay valid.
    Out1<double> losses() { return view(pool.losses); }
    Out1<double> alpha() { return view(pool.alpha); }
    Strided gram() {
        const auto turn = alone.turn();
        return Strided(pool.gram.get(), {pool.size, pool.size}, owner(pool.gram), {static_cast<int64_t>(pool.room), 1});
    }
    std::vector<Out2<double>> rows() {
        const auto turn = alone.turn();
        std::vector<Out2<double>> views;
        for (size_t part = 0; part < pool.parts; ++part)
            views.emplace_back(pool.rows[part].get(), std::initializer_list<size_t>{pool.size, pool.width},
                               owner(pool.rows[part]));
        return views;
    }

    OneAtATime alone{"CutPool"};
    CutPool pool;

  private:
    Out1<double> view(const CutPool::Values &values) {
        const auto turn = alone.turn();
        return Out1<double>(values.get(), {pool.size}, owner(values));
    }

    static nb::capsule owner(const CutPool::Values &values) {
        return nb::capsule(new CutPool::Values(values),
                           [](void *kept) noexcept { delete static_cast<CutPool::Values *>(kept); });
    }
};

// The steps of a run, with the vectors that are on their way between Python and here.
class PyBundleSteps {
  public:
    // The point: entries, scores and squared length.
    using Point = std::tuple<InOut1<double>, InOut1<double>, double>;

    PyBundleSteps(PyCutPool &pool, double lam, const Point &point, double risk, double stride, double accuracy,
                  size_t memory)
        : pool(pool), lam(lam), memory(memory), n(std::get<1>(point).size()), images(pool.pool.parts == 2),
          best{std::get<0>(point), std::get<1>(point)}, steps(lam, pool.pool.width, n, images, stride, accuracy) {
        const auto &[entries, scores, square] = point;
        check_positive("BundleSteps: lam", lam);
        require(memory > 0 && memory <= PyQuasiNewton::kMostPairs,
                "BundleSteps: expected a memory of 1 to 1000 pairs, got another one");
        check_length("BundleSteps: entries", entries.size(), pool.pool.width);
        require(!images || n == pool.pool.width, "BundleSteps: expected as many entries as scores");
        steps.best = {entries.data(), scores.data()};
        steps.square = square;
        steps.risk = risk;
    }

    // The cuts join the pool, and the model is minimised. The moves of the iteration: the minimiser, and the
    // quasi-Newton direction if there is one; none where the gap is closed.
    std::vector<Out1<double>> propose(const std::vector<double> &losses, const Vectors &entries, const Vectors &scores,
                                      size_t patience, double precision, double tol, bool quasi_newton) {
        const auto turn = alone.turn();
        require(!quasi_newton || !losses.empty(),
                "propose: a quasi-Newton direction needs the slope at the best point");
        if (!losses.empty()) // or cuts of another C would go before they had a say
            pool.append(losses, entries, scores, patience);
        planes.clear();
        for (size_t k = 0; k < losses.size(); ++k)
            planes.push_back({losses[k], entries[k].data()});
        slopes = entries;
        moves.clear();
        stage = Stage::kIdle;
        if (quasi_newton && !matrix)
            matrix.emplace(memory, pool.pool.width, images);
        Move minimiser(pool.pool.width, images), direction(quasi_newton ? pool.pool.width : 0, images);
        bool closed;
        {
            const auto turn_of_pool = pool.alone.turn();
            nb::gil_scoped_release unlocked;
            const Minimised found = pool.pool.minimise(lam, precision, minimiser.at);
            steps.bound = std::max(steps.bound, found.bound);
            closed = steps.gap() <= tol; // as Progress has it: both sum alike
            if (quasi_newton && !closed) {
                const double *image = images ? scores.back().data() : nullptr;
                matrix->direction(lam, {steps.best[0], steps.best[1]}, {planes.back().entries, image},
                                  direction.at.data());
            }
        }
        if (closed)
            return {};
        moves.push_back(std::move(minimiser));
        if (quasi_newton)
            moves.push_back(std::move(direction));
        std::vector<Out1<double>> wanted;
        for (const Move &move : moves)
            wanted.push_back(move.entries);
        stage = Stage::kProposed;
        return wanted;
    }

    // The moves, whose scores have come, are made; the last one first.
    void search(nb::handle oracle, const std::vector<InOut1<double>> &scores) {
        const auto turn = alone.turn();
        require(stage == Stage::kProposed, "search: nothing was proposed");
        check_length("search: scores", scores.size(), images ? 0 : moves.size());
        for (size_t k = 0; k < scores.size(); ++k) {
            check_length("search: scores", scores[k].size(), n);
            moves[k].at[1] = scores[k].data();
        }
        if (!images)
            way = scores[0];
        stage = Stage::kIdle; // should the oracle fail on the way, there is no going on from there
        with(oracle, [&](Risk &risk) {
            if (moves.size() > 1)
                steps.along(risk, moves[1].at, planes);
            steps.towards(risk, moves[0].at, planes);
        });
        slopes.clear();
        planes.clear();
        moves.erase(moves.begin() + 1, moves.end());
        stage = Stage::kSearched;
    }

    // The next cuts: losses and slopes.
    std::pair<std::vector<double>, std::vector<Out1<double>>> cuts(nb::handle oracle, double mu,
                                                                   std::optional<double> at_best) {
        const auto turn = alone.turn();
        require(stage == Stage::kSearched, "cuts: no search came before");
        stage = Stage::kIdle;
        std::vector<std::pair<double, Fresh<double>>> found;
        with(oracle, [&](Risk &risk) {
            found.push_back(steps.cut(risk, mu));
            if (at_best)
                found.push_back(steps.cut_at_best(risk, *at_best));
        });
        moves.clear();
        way = std::nullopt;
        std::pair<std::vector<double>, std::vector<Out1<double>>> out;
        for (auto &[loss, slope] : found) {
            out.first.push_back(loss);
            out.second.push_back(make_array(std::move(slope), n));
        }
        return out;
    }

    void forget() {
        const auto turn = alone.turn();
        if (matrix)
            matrix->forget();
    }

    // What another run needs to go on as this one would: the pace of its searches, and the rows of its matrix.
    nb::typed<nb::dict, nb::str, nb::ndarray<nb::numpy, double>> kept() {
        const auto turn = alone.turn();
        nb::typed<nb::dict, nb::str, nb::ndarray<nb::numpy, double>> arrays;
        const double pace[] = {steps.far, steps.reach, static_cast<double>(steps.in_vain),
                               matrix && matrix->compares() ? 1.0 : 0.0};
        auto numbers = empty<double>(kPace);
        std::copy_n(pace, kPace, numbers.get());
        arrays["pace"] = make_array(std::move(numbers), kPace);
        if (!matrix)
            return arrays;
        const size_t rows = pool.pool.parts * (2 + matrix->count());
        auto values = empty<double>(rows * pool.pool.width);
        matrix->keep(values.get());
        arrays["pairs"] = make_array(std::move(values), rows, pool.pool.width);
        return arrays;
    }

    // Go on from there. What does not fit, or is not finite, is left alone.
    void go_on(In1<double> pace, In2<double> pairs) {
        const auto turn = alone.turn();
        const auto finite = [](const double *values, size_t size) {
            return std::all_of(values, values + size, [](double value) { return std::isfinite(value); });
        };
        if (pace.size() != kPace || !finite(pace.data(), kPace))
            return;
        steps.far = std::min(1.0, std::max(pace.data()[0], 1e-3)); // as next_reach has them
        steps.reach = std::min(1.0, std::max(pace.data()[1], 1e-3));
        steps.in_vain = pace.data()[2] >= 0 && pace.data()[2] < 1e6 ? static_cast<int>(pace.data()[2]) : 0;
        const size_t parts = pool.pool.parts, rows = pairs.shape(0) / parts;
        if (pairs.shape(1) != pool.pool.width || pairs.shape(0) % (2 * parts) != 0 || rows < 2 ||
            rows > 2 + 2 * memory || !finite(pairs.data(), pairs.size()))
            return;
        matrix.emplace(memory, pool.pool.width, images);
        matrix->go_on(pairs.data(), rows / 2 - 1, pace.data()[3] != 0);
    }

    const BundleSteps &state() const { return steps; }

  private:
    static constexpr size_t kPace = 4;
    OneAtATime alone{"BundleSteps"};

    // A vector that is to be scored, or is by its image.
    struct Move {
        Move(size_t width, bool images)
            : entries(make_array(empty<double>(width), width)),
              image(make_array(empty<double>(images ? width : 0), images ? width : 0)),
              at{entries.data(), image.data()} {}
        Out1<double> entries, image;
        Scored at;
    };

    template <class F> void with(nb::handle oracle, F &&f) {
        if (nb::isinstance<Risk>(oracle)) {
            Risk &risk = nb::cast<Risk &>(oracle);
            check_length("BundleSteps: the sample of the oracle", risk.size(), n);
            nb::gil_scoped_release unlocked;
            f(risk);
        } else {
            PythonRisk risk(oracle, n);
            f(risk);
        }
    }

    PyCutPool &pool;
    double lam;
    size_t memory, n;
    bool images;
    std::array<InOut1<double>, 2> best;
    BundleSteps steps;
    std::optional<QuasiNewton> matrix;
    std::vector<Plane> planes; // the newest cuts,
    Vectors slopes;            // and what holds their entries
    std::vector<Move> moves;
    std::optional<InOut1<double>> way; // what holds the scores of the first move
    enum class Stage { kIdle, kProposed, kSearched } stage = Stage::kIdle;
};

void bind_bundle(nb::module_ &m) {
    nb::class_<PyCutPool>(m, "CutPool",
                          "Cuts of a risk, their Gram matrix, and the program over them. It belongs to one run.")
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
        .def_prop_ro("size", &PyCutPool::size)
        .def_prop_ro("longest", &PyCutPool::longest,
                     "The length of the longest image; of the longest vector where there are none.")
        .def_prop_ro("losses", &PyCutPool::losses, nb::rv_policy::automatic)
        .def_prop_ro("alpha", &PyCutPool::alpha, nb::rv_policy::automatic)
        .def_prop_ro("gram", &PyCutPool::gram, nb::rv_policy::automatic)
        .def_prop_ro("rows", &PyCutPool::rows, nb::rv_policy::automatic);
    nb::class_<PyQuasiNewton>(m, "QuasiNewton", "The matrix of limited-memory BFGS. It belongs to one run.")
        .def(nb::init<double, size_t>(), nb::arg("lam"), nb::arg("memory"))
        .def("direction", &PyQuasiNewton::direction, nb::arg("point").noconvert(), nb::arg("image").noconvert(),
             nb::arg("slope").noconvert(), nb::arg("slope_image").noconvert(),
             "Minus the inverse Hessian times lam point + slope, and its image; learns from the last call.")
        .def("forget", &PyQuasiNewton::forget, "Do not compare the next gradient with the last one.");
    nb::class_<PyBundleSteps>(
        m, "BundleSteps",
        "What the iterations of the bundle method do between products with X. They belong to one run.")
        .def(nb::init<PyCutPool &, double, const PyBundleSteps::Point &, double, double, double, size_t>(),
             nb::arg("pool"), nb::arg("lam"), nb::arg("point").noconvert(), nb::arg("risk"), nb::kw_only(),
             nb::arg("stride"), nb::arg("accuracy"), nb::arg("memory"), nb::keep_alive<1, 2>(),
             "From a point (entries, scores, squared length) of this risk, which is moved in place.")
        .def("propose", &PyBundleSteps::propose, nb::arg("losses"), nb::arg("entries").noconvert(),
             nb::arg("images").noconvert(), nb::kw_only(), nb::arg("patience"), nb::arg("precision"), nb::arg("tol"),
             nb::arg("quasi_newton"),
             "Append cuts and minimise the model to within precision; returns the minimiser and, if asked for, the "
             "quasi-Newton direction by the last cut's slope. Nothing where the gap is within tol.")
        .def("search", &PyBundleSteps::search, nb::arg("oracle"), nb::arg("scores").noconvert(),
             "Move the best point along the direction and towards the minimiser, whose scores these are (none where "
             "vectors have images).")
        .def("cuts", &PyBundleSteps::cuts, nb::arg("oracle"), nb::arg("mu"), nb::arg("at_best").none(),
             "The cut that follows, within mu of the risk where it is taken, and one at the best point if asked for: "
             "losses and slopes.")
        .def("forget", &PyBundleSteps::forget, "Do not compare the next gradient with the last one.")
        .def("kept", &PyBundleSteps::kept, "What `go_on` needs, by name; no pairs without a quasi-Newton matrix.")
        .def("go_on", &PyBundleSteps::go_on, nb::arg("pace").noconvert(), nb::arg("pairs").noconvert(),
             "Go on with the pace and the quasi-Newton pairs that another run kept, where they fit.")
        .def_prop_ro("bound", [](const PyBundleSteps &self) { return self.state().bound; })
        .def_prop_ro("square", [](const PyBundleSteps &self) { return self.state().square; })
        .def_prop_ro("risk", [](const PyBundleSteps &self) { return self.state().risk; })
        .def_prop_ro(
            "in_vain", [](const PyBundleSteps &self) { return self.state().in_vain; },
            "Quasi-Newton directions in a row that led nowhere.");
}

} // namespace metrimax
