#pragma once

#include <string>

namespace torpor::shim {

// Describes the caller of the present CUDA call: the innermost code on the calling thread's stack
// outside of the replacement libraries. "unknown" if the stack cannot be walked.
std::string CallerOutsideOfShim();

// Returns "symbol in library", or "library+0xoffset" if the library has no symbol at `address`.
std::string DescribeCode(const void* address);

}  // namespace torpor::shim
