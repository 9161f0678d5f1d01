#pragma once

// Without CUDA's headers: the generated entries that use it redeclare CUDA's functions.
namespace torpor::shim {

// What every export that has no line in the call table does: a line on stderr, once a symbol,
// and the library's "not supported" error, which is the return value. Each replacement library
// defines its own.
int Unsupported(const char* symbol);

}  // namespace torpor::shim
