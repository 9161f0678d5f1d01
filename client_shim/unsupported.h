#pragma once

// Free of CUDA's headers: the generated entries that include this file redeclare CUDA's functions.
namespace torpor::shim {

// The body of every export without a line in the call table: writes a line on stderr once a symbol
// and returns the library's "not supported" error. Each replacement library defines its own
// function.
int Unsupported(const char* symbol);

}  // namespace torpor::shim
