// Threads: plain std::thread, started per call, and none where they would cost more than they save.
#pragma once

#include "index.hpp"

#include <algorithm>
#include <exception>
#include <thread>
#include <vector>

namespace metrimax {

// Multiply-adds that one thread must have before a second one pays: starting and joining a thread costs some
// 20 to 50 microseconds, in which one core does about this much.
constexpr size_t kWorkPerThread = size_t{1} << 17;

// The number of threads worth starting for `work` multiply-adds; at least 1, at most what was asked for.
inline size_t threads_for(int n_threads, size_t work) {
    const size_t asked = n_threads > 1 ? static_cast<size_t>(n_threads) : 1;
    return std::max<size_t>(1, std::min(asked, work / kWorkPerThread));
}

// Call f(part) for part = 0 .. parts-1, each in a thread of its own (part 0 in the caller's).
// The first exception, in the order of the parts, is thrown again once all threads have ended.
template <class F> void run_parts(size_t parts, F &&f) {
    if (parts <= 1) {
        if (parts == 1)
            f(size_t{0});
        return;
    }
    std::vector<std::exception_ptr> errors(parts);
    auto guarded = [&](size_t part) noexcept {
        try {
            f(part);
        } catch (...) {
            errors[part] = std::current_exception();
        }
    };
    std::vector<std::thread> team;
    team.reserve(parts - 1);
    size_t started = 1;
    try {
        for (; started < parts; ++started)
            team.emplace_back(guarded, started);
    } catch (...) {
        // The system has no thread left to give: the caller does the remaining parts below.
    }
    guarded(0);
    for (size_t part = started; part < parts; ++part)
        guarded(part);
    for (std::thread &thread : team)
        thread.join();
    for (const std::exception_ptr &error : errors)
        if (error)
            std::rethrow_exception(error);
}

// Split n_items evenly: f(begin, end, thread). `n_threads` is used as given; see threads_for.
template <class F> void parallel_for(size_t n_threads, size_t n_items, F &&f) {
    const size_t parts = std::max<size_t>(1, std::min(n_threads, n_items));
    const size_t share = n_items / parts, extra = n_items % parts;
    run_parts(parts, [&](size_t part) {
        const size_t begin = part * share + std::min(part, extra);
        f(begin, begin + share + (part < extra ? 1 : 0), part);
    });
}

// Split the rows of a CSR matrix so that each part has about the same number of non-zeros, counting one more per
// row for the loop itself: the part borders, parts + 1 of them, from 0 to n.
template <class I> std::vector<size_t> split_rows(const I *indptr, size_t n, size_t parts) {
    std::vector<size_t> borders(parts + 1, n);
    borders[0] = 0;
    const size_t total = static_cast<size_t>(indptr[n]) + n;
    for (size_t part = 1; part < parts; ++part) {
        const size_t target = total / parts * part;
        size_t low = borders[part - 1], high = n; // the first row whose cost so far reaches the target
        while (low < high) {
            const size_t middle = low + (high - low) / 2;
            if (static_cast<size_t>(indptr[middle]) + middle < target)
                low = middle + 1;
            else
                high = middle;
        }
        borders[part] = low;
    }
    return borders;
}

} // namespace metrimax
