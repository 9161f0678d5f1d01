#pragma once

#include "base/units.h"

namespace torpor::memory {

// Bytes that a swap moved, by their origin (BlockOrigin).
struct MovedBytes {
  Bytes uploaded = 0;
  Bytes changed = 0;
  Bytes scratch = 0;

  Bytes total() const { return uploaded + changed + scratch; }
  MovedBytes& operator+=(const MovedBytes& more) {
    uploaded += more.uploaded;
    changed += more.changed;
    scratch += more.scratch;
    return *this;
  }
};

}  // namespace torpor::memory
