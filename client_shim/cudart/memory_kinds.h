#pragma once

#include <cstdint>

namespace torpor::shim {

struct Variable;

// What memory a pointer of the program names.
enum class Side { kPageable, kArena, kDevice };

struct Place {
  Side side = Side::kPageable;
  std::uint64_t room = ~std::uint64_t{0};  // bytes from the pointer to its allocation's end
  bool is_wild = false;                    // a device address that no allocation contains
  int device = 0;                          // for which it was allocated
};

Place PlaceOf(const void* pointer);

// The address of a variable, which cudaGetSymbolAddress gave away: the same until
// ForgetSymbolAddresses (cudaDeviceReset), although the variable lies elsewhere on another GPU.
// False: another variable has it.
bool RememberSymbolAddress(const Variable* variable, std::uint64_t address, std::uint64_t bytes);
// All zero if it was not given away.
struct SymbolSpan {
  std::uint64_t begin = 0;
  std::uint64_t bytes = 0;
};
SymbolSpan SymbolSpanOf(const Variable* variable);
void ForgetSymbolAddress(const Variable* variable);
void ForgetSymbolAddresses();

// Offset of a pinned address in the host arena.
std::uint64_t ArenaOffset(const void* pointer);

}  // namespace torpor::shim
