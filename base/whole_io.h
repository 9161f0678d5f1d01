#pragma once

#include <cstdint>
#include <span>

namespace torpor {

// Read and write all bytes at `offset` of a file, in as many calls as the system takes. Block.
// Return false after an error, with the reason in errno (ENODATA: the file ends before); a part of
// the bytes may be there then.
bool ReadWhole(int file, std::uint64_t offset, std::span<std::uint8_t> into);
bool WriteWhole(int file, std::uint64_t offset, std::span<const std::uint8_t> bytes);

}  // namespace torpor
