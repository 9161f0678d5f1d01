#include "emulator/driver/context/current_context.h"

namespace torpor::emulator {

std::vector<CurrentContext>& ContextStack() {
  thread_local std::vector<CurrentContext> stack;
  return stack;
}

}  // namespace torpor::emulator
