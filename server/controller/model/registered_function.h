#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/ids.h"
#include "scheduler/events.h"
#include "server/config/config.h"
#include "server/controller/model/strike_record.h"

namespace torpor::server {

// A function and its instances. A plain record.
struct RegisteredFunction {
  scheduler::FunctionId id;
  FunctionConfig config;
  std::vector<InstanceId> instances;  // by name; at least one
  // Requests since the daemon started, and among them the failed ones.
  std::uint64_t requests = 0;
  std::uint64_t errors = 0;

  StrikeRecord strikes;

  bool is_removed = false;  // gets no requests, and has no name any more

  bool has_several_instances() const { return instances.size() > 1; }
};

}  // namespace torpor::server
