#include "emulator/ptx/module.h"

#include <algorithm>

namespace torpor::ptx {

bool Function::HasParameter(std::uint32_t variable) const {
  return std::find(parameters.begin(), parameters.end(), variable) != parameters.end();
}

std::uint32_t Module::FindFunction(std::string_view name) const {
  for (std::uint32_t i = 0; i < functions.size(); ++i) {
    if (functions[i].name == name) return i;
  }
  return kNoIndex;
}

}  // namespace torpor::ptx
