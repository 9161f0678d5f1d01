#include "client_shim/core/quiet_calls.h"

#include <utility>

namespace torpor::shim {
namespace {

thread_local bool is_quiet = false;

}  // namespace

bool CallsAreQuiet() { return is_quiet; }
bool SetCallsQuiet(bool quiet) { return std::exchange(is_quiet, quiet); }

}  // namespace torpor::shim
