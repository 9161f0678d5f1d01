#pragma once

#include <string>
#include <string_view>

#include "emulator/sass/cubin.h"

namespace torpor::sass {

// The names by which a kernel's PTX knows what the head of its module declares.
//   $parameters  .param .b8[parameter_bytes]: c[0x0][parameter_base + n] is [$parameters + n];
//                declared if there are parameters
//   $shared      .shared: address n of LDS, STS is [$shared + n], static and dynamic
//   $memoryN     .global or .const: Cubin::memories[N]; banks 3 and 4 are such memories, and hold
//                what their relocations tell when a kernel runs
// Local memory and registers are declared in the body. Functions of the system (vprintf and so on)
// are declared as PTX declares them.
inline constexpr std::string_view kParametersName = "$parameters";
inline constexpr std::string_view kSharedName = "$shared";
std::string MemoryName(std::uint32_t memory);

// A module of PTX with `kernel` alone, whose body, without braces, is `body`. Memories are external
// variables.
std::string KernelPtx(const Cubin& cubin, const Kernel& kernel, std::string_view body);

}  // namespace torpor::sass
