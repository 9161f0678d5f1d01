#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace torpor::torporctl {

// Returns the reason if a program's CUDA calls would miss Torpor: a statically linked runtime
// (nvcc's default), or another version of the runtime. Returns an empty string otherwise. Looks
// only at the ELF file `elf`; libraries loaded later, by a script or a plug-in, stay unknown.
std::string LinkageWarning(std::span<const std::uint8_t> elf);

// Checks the file at `path`. Returns an empty string for an unreadable file.
std::string LinkageWarningOfFile(const std::string& path);

}  // namespace torpor::torporctl
