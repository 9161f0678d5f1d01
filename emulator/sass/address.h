#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "emulator/sass/emitter.h"

// Addresses in memory instructions.
namespace torpor::sass {

// An address in PTX: "[?+16]" and the value of the ?, or "[16]" without a value.
struct Address {
  std::string text;
  std::optional<Value> base;
};

std::string Bracketed(std::int64_t offset);

// The address of a generic load or store.
Address GenericAddress(Emitter& to, const MachineInstruction& instruction);

// The addresses of instructions with a known space; atomics on generic memory use GlobalAddress.
// `uniform` is the first bit of the uniform register's number: 32 in loads, 64 in others.
Address GlobalAddress(Emitter& to, const MachineInstruction& instruction, unsigned uniform);
Address SharedAddress(Emitter& to, const MachineInstruction& instruction, unsigned uniform);
Address LocalAddress(Emitter& to, const MachineInstruction& instruction, unsigned uniform);

}  // namespace torpor::sass
