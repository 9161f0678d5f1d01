#pragma once

#include <cstdint>

// Memory of the program that becomes shared with executors where it is.
namespace torpor::shim {

inline constexpr std::uint64_t kPageBytes = 4096;

// Puts the pages of the shared mapping at `block` also at `pages`, with what the program has there
// now. Both begin and end with pages. Nobody may write to `pages` meanwhile. False, and nothing is
// changed, if `pages` are not all private, writable memory outside a stack.
bool SharePages(std::uint64_t pages, std::uint64_t bytes, std::uint64_t block);

// Gives `pages` private memory with the same contents, but for those that the program has unmapped.
// False: there is no memory for that.
bool UnsharePages(std::uint64_t pages, std::uint64_t bytes);

}  // namespace torpor::shim
