// The extension module metrimax._kernels. Each file binds one family of kernels.
#include "bindings.hpp"

NB_MODULE(_kernels, m) {
    m.doc() = "Compiled kernels. Private: the arguments are checked for type and length, not for meaning.";
    metrimax::bind_products(m);
    metrimax::bind_oracles(m);
    metrimax::bind_smoothing(m);
    metrimax::bind_bundle(m);
    metrimax::bind_solvers(m);
    metrimax::bind_files(m);
    metrimax::bind_matrix(m);
    metrimax::bind_dual(m);
    metrimax::bind_rankings(m);
    metrimax::bind_composed(m);
    metrimax::bind_logistic(m);
    metrimax::bind_structured(m);
}
