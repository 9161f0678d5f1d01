#pragma once

#include <cuda.h>

namespace torpor::emulator {

// Call in a catch block: returns the driver's answer to the exception that is being handled, and
// reports any but std::bad_alloc as an internal error.
CUresult AfterException() noexcept;

}  // namespace torpor::emulator
