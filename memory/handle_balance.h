#pragma once

#include <optional>

#include "memory/handle_pool.h"

namespace torpor::memory {

// How much of a GPU's free memory should be in small handles.
struct HandleBalance {
  double start_share = 1.0 / 8;  // of all memory, at start
  double low_share = 1.0 / 16;   // with less there are too few small ones
  double high_share = 1.0 / 4;   // with more there are too many
};

// What a pool of that size begins with: all of it, but for less than a small handle.
HandleCounts StartCounts(Bytes pool_bytes, const HandleSizes& sizes, const HandleBalance& balance);

// Handles that an idle pool should release, and those of the same memory to create in their place.
struct HandleExchange {
  HandleCounts release;
  HandleCounts create;
};

// The next exchange that brings what is free into balance: one large handle, split or joined;
// nothing where it is in balance or nothing helps. No exchange is undone by the one after it. The
// driver takes some 0.2 ms for each handle: this is for a thread in the background, never for one
// on whose answer a request waits.
std::optional<HandleExchange> NextExchange(HandleCounts free, const HandleSizes& sizes,
                                           const HandleBalance& balance);

}  // namespace torpor::memory
