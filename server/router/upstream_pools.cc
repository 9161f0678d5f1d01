#include "server/router/upstream_pools.h"

#include "server/config/setting_values.h"

namespace torpor::server {

std::shared_ptr<UpstreamPool> UpstreamPools::Find(const std::string& address) {
  const auto known = pools_.find(address);
  if (known != pools_.end()) return known->second;
  const absl::StatusOr<HostAndPort> parsed = ParseHostAndPort(address);
  if (!parsed.ok()) return nullptr;
  return pools_.emplace(address, std::make_shared<UpstreamPool>(io_, *parsed)).first->second;
}

void UpstreamPools::Keep(const std::set<std::string>& addresses) {
  std::erase_if(pools_, [&](const auto& pool) { return !addresses.contains(pool.first); });
}

void UpstreamPools::CloseIdle() {
  for (const auto& [address, pool] : pools_) pool->CloseIdle();
}

}  // namespace torpor::server
