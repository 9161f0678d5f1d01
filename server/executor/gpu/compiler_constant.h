#pragma once

#include <cstddef>
#include <string_view>

namespace torpor::executor {

inline constexpr std::size_t kMaxCompilerConstantPrefix = 16;

// Whether nvcc calls a constant of its own so, which lies among variables: texts of a program
// ("$str"), names of its functions ("__unnamed_1", for assert), or tables of CUDA's mathematical
// functions. Code uses them and never writes to them. The first kMaxCompilerConstantPrefix
// characters tell.
constexpr bool IsCompilerConstant(std::string_view name) {
  return name.starts_with('$') || name.starts_with("__unnamed_") || name.starts_with("__cudart_");
}

}  // namespace torpor::executor
