#include "client_shim/core/current_core.h"

namespace torpor::shim {
namespace {

thread_local ClientCore* current_core = nullptr;

}  // namespace

ClientCore* CurrentCore() { return current_core; }
void SetCurrentCore(ClientCore* core) { current_core = core; }

}  // namespace torpor::shim
