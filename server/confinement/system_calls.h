#pragma once

#include "absl/status/status.h"
#include "server/settings/device_modes.h"

namespace torpor::server {

// Lets this thread, and threads to come, make the system calls of a list alone (seccomp): what
// executors, CUDA libraries and the emulator's compiler need. Others fail with EPERM, or are logged
// by the kernel with kLog; kOff changes nothing. Requires no_new_privs.
absl::Status RestrictSystemCalls(Seccomp mode);

}  // namespace torpor::server
