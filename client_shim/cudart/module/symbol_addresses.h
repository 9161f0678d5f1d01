#pragma once

#include <cstdint>

namespace torpor::shim {

struct Variable;

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

// Bytes from `address` to the end of the variable that has it; 0 if none of the device in use does.
std::uint64_t RoomInSymbol(std::uint64_t address);

}  // namespace torpor::shim
