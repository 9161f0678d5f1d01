#pragma once

#include <cstddef>
#include <string_view>

namespace torpor::executor {

inline constexpr std::size_t kMaxCompilerConstantPrefix = 16;

// Whether `name` is nvcc's name of a constant among a module's variables: texts of a program
// ("$str"), names of functions ("__unnamed_1", for assert), or tables of CUDA's mathematical
// functions. Code never writes to such constants. The first kMaxCompilerConstantPrefix characters
// decide.
constexpr bool IsCompilerConstant(std::string_view name) {
  return name.starts_with('$') || name.starts_with("__unnamed_") || name.starts_with("__cudart_");
}

}  // namespace torpor::executor
