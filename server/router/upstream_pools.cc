#include "server/router/upstream_pools.h"

#include "server/config/setting_values.h"

namespace torpor::server {

UpstreamPool* UpstreamPools::Find(const std::string& address) {
  const auto known = pools_.find(address);
  if (known != pools_.end()) return &known->second;
  const absl::StatusOr<HostAndPort> parsed = ParseHostAndPort(address);
  return parsed.ok() ? &pools_.try_emplace(address, io_, *parsed).first->second : nullptr;
}

void UpstreamPools::CloseIdle() {
  for (auto& [address, pool] : pools_) pool.CloseIdle();
}

}  // namespace torpor::server
