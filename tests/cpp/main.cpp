// Tests of the kernels without Python, for the sanitizers: one program, no framework.
#include "test_risks.hpp"

#include "check.hpp"

int main() {
    metrimax::tests::test_risks();
    metrimax::tests::test_threads();
    if (metrimax::tests::failures > 0)
        return std::printf("%d checks failed\n", metrimax::tests::failures), 1;
    std::puts("all checks of the kernels passed");
    return 0;
}
