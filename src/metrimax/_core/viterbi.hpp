// Highest-scoring tag sequences of a first-order Markov model.
//
// Input    scores of tags by position, of transitions and of first tags
// Output   the sequence of highest score, by Viterbi's (1967) algorithm; or one for every number of mistakes
#pragma once

#include "clones.hpp"
#include "threads.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

namespace metrimax {

using Tag = std::int32_t;

// best[to] = the highest before[from] + transition[from][to], and the `from` that attains it; of equals the first.
inline void extend(const double *before, const double *transition, size_t tags, double *best, Tag *origin) {
    std::fill(best, best + tags, -std::numeric_limits<double>::infinity());
    std::fill(origin, origin + tags, Tag{0});
    for (size_t from = 0; from < tags; ++from) {
        const double score = before[from], *row = transition + from * tags;
        for (size_t to = 0; to < tags; ++to) {
            const double candidate = score + row[to];
            if (candidate > best[to]) {
                best[to] = candidate;
                origin[to] = static_cast<Tag>(from);
            }
        }
    }
}

// best[to] = the highest before[from] + transition[from][to]. Without the origins, this runs on several tags at once.
METRIMAX_CLONES inline void highest_before(const double *METRIMAX_RESTRICT before,
                                           const double *METRIMAX_RESTRICT transition, size_t tags,
                                           double *METRIMAX_RESTRICT best) {
    std::fill(best, best + tags, -std::numeric_limits<double>::infinity());
    for (size_t from = 0; from < tags; ++from) {
        const double score = before[from], *row = transition + from * tags;
        for (size_t to = 0; to < tags; ++to)
            best[to] = std::max(best[to], score + row[to]);
    }
}

// The first `from` with the highest before[from] + transition[from][to].
inline size_t origin_of(const double *before, const double *transition, size_t tags, size_t to) {
    double best = -std::numeric_limits<double>::infinity();
    size_t origin = 0;
    for (size_t from = 0; from < tags; ++from) {
        const double candidate = before[from] + transition[from * tags + to];
        if (candidate > best) {
            best = candidate;
            origin = from;
        }
    }
    return origin;
}

// The sequence with the highest start[y_0] + sum_t unary[t][y_t] + sum_t transition[y_t-1][y_t], by Viterbi's
// algorithm, for every sequence s of rows offsets[s] .. offsets[s+1] of `unary`. O(length tags^2) each. The origins are
// found on the way back, along the path only.
inline void viterbi(const double *unary, const double *transition, const double *start, const std::int64_t *offsets,
                    size_t sequences, size_t tags, Tag *path, int n_threads) {
    const size_t work = static_cast<size_t>(offsets[sequences]) * tags * tags;
    parallel_for(threads_for(n_threads, work), sequences, [&](size_t begin, size_t end, size_t) {
        std::vector<double> scores; // of the best sequence up to a position, by its last tag
        for (size_t s = begin; s < end; ++s) {
            const auto first = static_cast<size_t>(offsets[s]), length = static_cast<size_t>(offsets[s + 1]) - first;
            if (length == 0)
                continue;
            const double *score = unary + first * tags;
            scores.resize(length * tags);
            for (size_t k = 0; k < tags; ++k)
                scores[k] = start[k] + score[k];
            for (size_t t = 1; t < length; ++t) {
                double *now = &scores[t * tags];
                highest_before(now - tags, transition, tags, now);
                for (size_t k = 0; k < tags; ++k)
                    now[k] += score[t * tags + k];
            }
            const double *last = &scores[(length - 1) * tags];
            size_t k = std::max_element(last, last + tags) - last;
            for (size_t t = length; t-- > 0;) {
                path[first + t] = static_cast<Tag>(k);
                k = t > 0 ? origin_of(&scores[(t - 1) * tags], transition, tags, k) : 0;
            }
        }
    });
}

// For one sequence and every m = 0 .. length: the highest sequence among those that differ from `truth` in exactly m
// places, and its score (minus infinity where there is none). As above with the number of mistakes so far as
// part of the state: O(length^2 tags^2). `paths` is (length + 1, length).
inline void viterbi_by_mistakes(const double *unary, const double *transition, const double *start, const Tag *truth,
                                size_t length, size_t tags, double *scores, Tag *paths) {
    constexpr double kNone = -std::numeric_limits<double>::infinity();
    const size_t layer = (length + 1) * tags;
    std::vector<double> before(layer, kNone), now(layer), best((length + 1) * tags);
    std::vector<Tag> origin(length * layer, 0); // [t][mistakes before t][tag]
    for (size_t k = 0; k < tags; ++k)
        before[(static_cast<Tag>(k) != truth[0] ? tags : 0) + k] = start[k] + unary[k];
    for (size_t t = 1; t < length; ++t) {
        std::fill(now.begin(), now.end(), kNone);
        for (size_t m = 0; m <= t; ++m)
            extend(&before[m * tags], transition, tags, &best[m * tags], &origin[t * layer + m * tags]);
        for (size_t m = 0; m <= t; ++m)
            for (size_t k = 0; k < tags; ++k) {
                const size_t after = m + (static_cast<Tag>(k) != truth[t] ? 1 : 0);
                now[after * tags + k] = best[m * tags + k] + unary[t * tags + k];
            }
        before.swap(now);
    }
    for (size_t m = 0; m <= length; ++m) {
        const double *end = &before[m * tags];
        size_t k = std::max_element(end, end + tags) - end, mistakes = m;
        scores[m] = end[k];
        Tag *path = paths + m * length;
        std::fill(path, path + length, Tag{0});
        if (scores[m] == kNone)
            continue;
        for (size_t t = length; t-- > 0;) {
            path[t] = static_cast<Tag>(k);
            mistakes -= static_cast<Tag>(k) != truth[t] ? 1 : 0;
            if (t > 0)
                k = origin[t * layer + mistakes * tags + k];
        }
    }
}

} // namespace metrimax
