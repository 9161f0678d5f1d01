#include "client_shim/core/current_core.h"
#include "client_shim/core/session/device_session.h"

namespace {

// Never destroyed: programs call CUDA from exit handlers and static destructors, and the service
// threads run until the process ends.
torpor::shim::ClientCore* FirstCore() {
  using torpor::shim::ProcessState;
  static auto* const core =
      &(new ProcessState(&torpor::shim::ReadSettings, &torpor::shim::DeviceSession::Make))->first();
  return core;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) torpor::shim::ClientCore* torpor_client_core() {
  torpor::shim::ClientCore* const current = torpor::shim::CurrentCore();
  return current ? current : FirstCore();
}
