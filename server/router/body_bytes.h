#pragma once

#include "base/units.h"

namespace torpor::server {

// Room for bodies of requests, by its place: what is in use, or the limits.
struct BodyBytes {
  Bytes memory = 0;
  Bytes disk = 0;

  bool operator==(const BodyBytes&) const = default;
};

}  // namespace torpor::server
