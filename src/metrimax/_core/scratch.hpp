// What a risk keeps from one call to the next: memory, since fresh pages cost as much as a search, and where the last
// search ended. It is lent to one call at a time. Plain C++17, no Python.
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <utility>

namespace metrimax {

template <class State> class Scratch {
  public:
    explicit Scratch(std::function<State()> fresh) : fresh(std::move(fresh)) {}

    // f(state), with the state that is kept; or, while another thread has that, with a fresh one of this call's own.
    // A single thread pays one atomic exchange, next to nothing, and no thread ever waits.
    template <class F> auto lend(F &&f) {
        if (taken.exchange(true, std::memory_order_acquire)) {
            State own = fresh();
            return f(own);
        }
        const Return back{taken};
        if (!kept)
            kept.emplace(fresh());
        return f(*kept);
    }

  private:
    struct Return {
        std::atomic<bool> &taken;
        ~Return() { taken.store(false, std::memory_order_release); }
    };

    std::atomic<bool> taken{false};
    std::optional<State> kept;
    std::function<State()> fresh;
};

} // namespace metrimax
