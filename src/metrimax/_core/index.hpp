// The whole numbers of the kernels.
#pragma once

#include <cstddef>
#include <cstdint>

namespace metrimax {

using std::size_t;

// A count or a position. Signed: most of them are subtracted from each other.
using Index = std::ptrdiff_t;

// Where something is among the members of a class, or among the examples of the sample. For every example there is one
// or more of these, so they are kept short.
using Place = std::uint32_t;

} // namespace metrimax
