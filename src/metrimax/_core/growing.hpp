// Arrays that grow and are handed over in the end. Plain C++17, no Python.
#pragma once

#include "memory.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace metrimax {

// An array that grows. `share` is what the array will have in the end for every entry that it has now, where that is
// known: memory that is asked for and not written costs nothing, so a good guess saves the copies of growing.
template <class T> class Growing {
  public:
    std::size_t size() const { return used; }
    T last() const { return values[used - 1]; }

    void make_room(std::size_t more, double share) {
        if (used + more <= room)
            return;
        const double guess = 1.02 * share * static_cast<double>(used + more);
        const std::size_t wanted = std::max(used + more, room + room / 2);
        room = guess < 1e15 ? std::max(wanted, static_cast<std::size_t>(guess)) : wanted;
        Fresh<T> larger = empty<T>(room);
        std::copy_n(values.get(), used, larger.get());
        values = std::move(larger);
    }

    void push(T value) { values[used++] = value; } // where there is room

    void append(const std::vector<T> &more, double share) {
        make_room(more.size(), share);
        std::copy(more.begin(), more.end(), values.get() + used);
        used += more.size();
    }

    void fill(std::size_t more, T value) {
        make_room(more, 0.0);
        std::fill_n(values.get() + used, more, value);
        used += more;
    }

    // The array itself, at the end.
    Fresh<T> take() {
        make_room(1, 0.0); // so that it is one
        room = used = 0;
        return std::move(values);
    }

  private:
    Fresh<T> values;
    std::size_t used = 0, room = 0;
};

} // namespace metrimax
