// Memory for large results. Plain C++17, no Python.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <memory>
#include <new>

#ifdef __linux__
#include <sys/mman.h>
#endif

namespace metrimax {

struct Free {
    void operator()(void *memory) const noexcept { std::free(memory); }
};
template <class T> using Fresh = std::unique_ptr<T[], Free>;

// Memory that is not initialised. Like NumPy, ask for huge pages where it is large: mapping small ones takes as long as
// a product that fills it.
template <class T> Fresh<T> empty(std::size_t size) {
    if (size > std::numeric_limits<std::size_t>::max() / sizeof(T))
        throw std::bad_alloc();
    const std::size_t bytes = (size > 0 ? size : 1) * sizeof(T);
    Fresh<T> values(static_cast<T *>(std::malloc(bytes)));
    if (!values)
        throw std::bad_alloc();
#ifdef MADV_HUGEPAGE
    constexpr std::size_t kLarge = std::size_t{1} << 22, kPage = 4096;
    if (bytes >= kLarge) {
        const std::size_t skip = kPage - reinterpret_cast<std::uintptr_t>(values.get()) % kPage;
        madvise(reinterpret_cast<char *>(values.get()) + skip, bytes - skip, MADV_HUGEPAGE); // a hint: it may fail
    }
#endif
    return values;
}

} // namespace metrimax
