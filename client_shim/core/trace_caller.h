#pragma once

#include <string>

namespace torpor::shim {

// The innermost code of the calling thread's stack that lies in none of the replacement libraries:
// who made the call that is at hand. "unknown" where the stack cannot be walked.
std::string CallerOutsideOfShim();

// "symbol in library", or "library+0xoffset" where the library tells no symbol.
std::string DescribeCode(const void* address);

}  // namespace torpor::shim
