#pragma once

#include <string>
#include <string_view>

#include "emulator/sass/cubin.h"

namespace torpor::sass {

// Names that the head of a kernel's PTX module declares.
//   $parameters  .param .b8[parameter_bytes]: c[0x0][parameter_base + n] is [$parameters + n];
//                declared if there are parameters
//   $shared      .shared: address n of LDS, STS is [$shared + n], static and dynamic
//   $memoryN     .global or .const: Cubin::memories[N]; banks 3 and 4 are such memories, and hold
//                relocated values when a kernel runs
// The body declares local memory and registers. System functions (vprintf and so on) are declared
// as in PTX.
inline constexpr std::string_view kParametersName = "$parameters";
inline constexpr std::string_view kSharedName = "$shared";
std::string MemoryName(std::uint32_t memory);

// Returns a PTX module with `kernel` alone; `body` is the kernel's body without braces. Memories
// are external variables.
std::string KernelPtx(const Cubin& cubin, const CubinKernel& kernel, std::string_view body);

}  // namespace torpor::sass
