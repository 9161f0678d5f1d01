#pragma once

#include "absl/status/statusor.h"
#include "base/unique_fd.h"

namespace torpor::server {

// Both ends are closed on exec.
struct Pipe {
  UniqueFd reader;
  UniqueFd writer;
};

absl::StatusOr<Pipe> OpenPipe();

}  // namespace torpor::server
