#pragma once

#include <cstdint>

// Addresses of variables as cudaGetSymbolAddress returned them, on the device in use. An address
// stays valid until ForgetSymbolAddresses (cudaDeviceReset), although the variable may lie
// elsewhere on another GPU. Thread-safe.
namespace torpor::shim {

struct ClientVariable;

// Notes a variable's address and size. Returns false if another variable or another address of the
// variable is in the way.
bool RememberSymbolAddress(const ClientVariable* variable, std::uint64_t address,
                           std::uint64_t bytes);
// Where a variable lies; all zero while the program has not asked.
struct SymbolSpan {
  std::uint64_t begin = 0;
  std::uint64_t bytes = 0;
};
SymbolSpan SymbolSpanOf(const ClientVariable* variable);
void ForgetSymbolAddress(const ClientVariable* variable);
void ForgetSymbolAddresses();

// Bytes from `address` to the end of the variable that contains `address`; 0 outside all variables.
std::uint64_t RoomInSymbol(std::uint64_t address);

}  // namespace torpor::shim
