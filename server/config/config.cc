#include "server/config/config.h"

namespace torpor::server {

std::vector<InstanceConfig> InstancesOf(const FunctionConfig& function) {
  if (function.instances.empty()) {
    return {{function.name, function.upstream, function.token_file}};
  }
  std::vector<InstanceConfig> instances;
  for (const auto& [name, instance] : function.instances) instances.push_back(instance);
  return instances;
}

std::string FullNameOf(const FunctionConfig& function, const InstanceConfig& instance) {
  return function.instances.empty() ? function.name : function.name + "/" + instance.name;
}

NodeAddresses AddressesOf(const Config& config) {
  if (config.addresses.found.device_bytes > 0) return config.addresses.found;
  const auto candidates = AddressCandidates(config.addresses.base, config.addresses.space);
  return candidates.empty() ? NodeAddresses() : candidates.front();
}

}  // namespace torpor::server
