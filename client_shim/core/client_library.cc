#include "client_shim/core/session.h"

// Never destroyed: programs call CUDA from exit handlers and static destructors, and the service
// thread runs until the process ends.
extern "C" __attribute__((visibility("default"))) torpor::shim::ClientCore* torpor_client_core() {
  static auto* const session = new torpor::shim::Session(&torpor::shim::ReadSettings);
  return session;
}
