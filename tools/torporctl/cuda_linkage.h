#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace torpor::torporctl {

// Why a program's CUDA calls would not reach Torpor, or empty where nothing speaks against it:
// the runtime linked statically (nvcc's default) or another version of it. A cheap look at an ELF
// file; what a script or a plug-in loads later is not seen.
std::string LinkageWarning(std::span<const std::uint8_t> elf);

// The same of a file; empty where it cannot be read.
std::string LinkageWarningOfFile(const std::string& path);

}  // namespace torpor::torporctl
