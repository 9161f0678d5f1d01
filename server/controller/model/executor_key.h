#pragma once

#include <compare>

#include "base/ids.h"

namespace torpor::server {

// Names the executor on a GPU that serves a domain's sessions.
struct ExecutorKey {
  GpuIndex gpu;
  DomainId domain;

  friend auto operator<=>(const ExecutorKey&, const ExecutorKey&) = default;  // NOLINT
};

}  // namespace torpor::server
