#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "emulator/exec/program.h"

namespace torpor::emulator {

inline constexpr std::uint32_t kLinkedModuleMagic = 0x4b4c5054;  // "TPLK"

// What cuLinkComplete makes and cuModuleLoadData takes: the PTX of all parts, which are linked
// again when they are loaded. A header of 16 bytes tells the size, as a fatbin's does.
std::vector<char> EncodeLinkedModule(std::span<const PtxPart> parts);

// The parts; nothing if the module is damaged. `module` is at least the header, and readable as far
// as that says.
std::optional<std::vector<PtxPart>> DecodeLinkedModule(const void* module);

}  // namespace torpor::emulator
