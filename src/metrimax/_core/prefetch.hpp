// Reads of memory announced beforehand. Plain C++17, no Python.
#pragma once

#include <algorithm>
#include <cstddef>

namespace metrimax {

// Ask for what will be read soon: what is visited in random order is not in the cache, and the processor cannot foresee
// it.
inline void prefetch(const void *address) {
#if defined(__GNUC__) || defined(__clang__)
    __builtin_prefetch(address);
#else
    (void)address;
#endif
}

// The beginning of a long run of memory: the processor foresees the rest.
template <class T> void prefetch(const T *first, std::size_t size) {
    constexpr std::size_t kLine = 64 / sizeof(T), kMost = 4 * kLine;
    for (std::size_t k = 0; k < std::min(size, kMost); k += kLine)
        prefetch(first + k);
}

} // namespace metrimax
