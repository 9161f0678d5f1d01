#include "client_shim/core/current_core.h"
#include "client_shim/core/session.h"

namespace {

// Never destroyed: programs call CUDA from exit handlers and static destructors, and the service
// thread runs until the process ends.
torpor::shim::ClientCore* FirstCore() {
  static auto* const session = new torpor::shim::Session(&torpor::shim::ReadSettings);
  return session;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) torpor::shim::ClientCore* torpor_client_core() {
  torpor::shim::ClientCore* const current = torpor::shim::CurrentCore();
  return current ? current : FirstCore();
}
