#pragma once

#include <cstdint>

namespace torpor::server {

// What torpord and a router of another version must have in common to go on together. Counts up
// with each change of proto/torpor/v1/router.proto that they cannot survive.
inline constexpr std::uint32_t kRoutingProtocol = 2;

}  // namespace torpor::server
