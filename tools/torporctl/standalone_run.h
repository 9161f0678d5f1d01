#pragma once

#include <string>

#include "tools/torporctl/user_program.h"

namespace torpor::torporctl {

// The flags of `torporctl run --standalone`.
struct StandaloneOptions {
  std::string topology;  // file of the emulated node; empty: the machine's GPU, or the default
  int gpus = 1;          // number of GPUs visible to the program
  bool verbose = false;  // print the daemon's log on stderr, not only after a failure
};

// Runs the program against a private torpord in a temporary folder. The daemon ends with this
// process, however the process ends. Forwards signals to the program. Blocks until the program ends
// and returns its exit status, 128 plus the number of a killing signal, or 125 if the daemon does
// not start.
int RunStandalone(const UserProgram& program, const StandaloneOptions& options);

}  // namespace torpor::torporctl
