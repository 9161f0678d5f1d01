#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "emulator/sass/emitter.h"

// Where instructions access memory.
namespace torpor::sass {

// "[?+16]" and what the ? is; "[16]" and nothing.
struct Address {
  std::string text;
  std::optional<Value> base;
};

std::string Bracketed(std::int64_t offset);

// Of generic loads and stores.
Address GenericAddress(Emitter& to, const Instruction& instruction);

// `uniform` is the bit at which the number of the warp's register is: 32 of loads, 64 of others.
// Of global memory, and of generic memory where that is updated.
Address GlobalAddress(Emitter& to, const Instruction& instruction, unsigned uniform);
Address SharedAddress(Emitter& to, const Instruction& instruction, unsigned uniform);
Address LocalAddress(Emitter& to, const Instruction& instruction, unsigned uniform);

}  // namespace torpor::sass
