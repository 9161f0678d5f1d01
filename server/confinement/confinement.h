#pragma once

#include <string>
#include <vector>

#include "server/settings/device_modes.h"

namespace torpor::server {

// What a process is left with.
struct Confinement {
  Seccomp seccomp = Seccomp::kEnforce;  // not kAuto
  // Files, and folders with all in them; those that are not there count as absent. Nothing else can
  // be opened while `seccomp` is kEnforce, and no program started.
  std::vector<std::string> readable;
  std::vector<std::string> writable;  // readable too
};

// Takes from this process, for good, what an executor does not need: capabilities, new privileges
// by programs that it might start, memory dumps, files beyond the given ones (Landlock) and system
// calls beyond a list (seccomp). Threads that run already keep theirs, so call before any is
// started. Returns what the system does not let go of, a sentence each: empty if all is in force.
std::vector<std::string> Confine(const Confinement& confinement);

}  // namespace torpor::server
