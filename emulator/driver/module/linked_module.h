#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "emulator/exec/program.h"

namespace torpor::emulator {

inline constexpr std::uint32_t kLinkedModuleMagic = 0x4b4c5054;  // "TPLK"

// Encodes the result of cuLinkComplete, an input of cuModuleLoadData: the PTX of all parts, to be
// linked again at loading. A header of 16 bytes holds the size, as in a fatbin.
std::vector<char> EncodeLinkedModule(std::span<const PtxPart> parts);

// Returns the size of an encoded module, as its header says.
Bytes LinkedModuleBytes(const void* module);

// Returns the parts, or nullopt if the module is damaged. `module` must hold the header and as many
// bytes as the header says.
std::optional<std::vector<PtxPart>> DecodeLinkedModule(const void* module);

}  // namespace torpor::emulator
