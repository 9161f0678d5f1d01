#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace torpor {

using Sha256Digest = std::array<std::uint8_t, 32>;

// SHA-256 of a byte range (FIPS 180-4). Implemented here because the client shim names modules
// by content and may link no library; the daemon must compute the same digests.
Sha256Digest Sha256(const void* data, std::size_t size_bytes);

// Lower-case hexadecimal, 64 characters.
std::string ToHex(const Sha256Digest& digest);

}  // namespace torpor
