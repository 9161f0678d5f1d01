#include "emulator/ptx/module.h"

namespace torpor::ptx {

std::uint32_t Module::FindFunction(std::string_view name) const {
  for (std::uint32_t i = 0; i < functions.size(); ++i) {
    if (functions[i].name == name) return i;
  }
  return kNoIndex;
}

}  // namespace torpor::ptx
