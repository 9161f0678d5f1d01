#pragma once

#include <cstdint>

// Sharing the program's memory with executors in place, by remapping pages.
namespace torpor::shim {

inline constexpr std::uint64_t kPageBytes = 4096;

// Maps the pages of the shared mapping `block` at `pages` too, with the present contents of
// `pages`. Addresses and size are multiples of kPageBytes. No thread may write to `pages`
// meanwhile. Returns false, without any change, unless `pages` are all private, writable memory
// outside of stacks.
bool SharePages(std::uint64_t pages, std::uint64_t bytes, std::uint64_t block);

// Replaces `pages` by private memory with the same contents; pages unmapped by the program stay
// unmapped. Returns false if memory runs out.
bool UnsharePages(std::uint64_t pages, std::uint64_t bytes);

}  // namespace torpor::shim
