#pragma once

#include <string>

#include "tools/torporctl/user_program.h"

namespace torpor::torporctl {

struct StandaloneOptions {
  std::string topology;  // file of the emulated node; empty: the machine's GPU, or the default
  int gpus = 1;          // that the program sees
  bool verbose = false;  // the daemon's log goes to stderr; else it is shown after a failure
};

// Runs the program against a torpord of its own, which lives in a temporary folder and ends with
// us, however we end. Signals are forwarded to the program. The result is its exit status, 128
// and the signal's number where it was killed, 125 where the daemon does not start.
int RunStandalone(const UserProgram& program, const StandaloneOptions& options);

}  // namespace torpor::torporctl
