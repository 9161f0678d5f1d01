#include "server/config/config.h"

namespace torpor::server {

std::vector<InstanceConfig> InstancesOf(const FunctionConfig& function) {
  if (function.instances.empty()) {
    return {{function.name, function.upstream, function.token_file, function.command,
             function.environment}};
  }
  std::vector<InstanceConfig> instances;
  for (const auto& [name, own] : function.instances) {
    InstanceConfig& instance = instances.emplace_back(own);
    if (instance.command.empty()) instance.command = function.command;
    instance.environment.insert(instance.environment.begin(), function.environment.begin(),
                                function.environment.end());
  }
  return instances;
}

std::string FullNameOf(const FunctionConfig& function, const InstanceConfig& instance) {
  return function.instances.empty() ? function.name : function.name + "/" + instance.name;
}

std::string FunctionFolderOf(const Config& config) { return config.run_dir + "/functions"; }

std::string AdminFolderOf(const Config& config) { return config.run_dir + "/admin"; }

NodeAddresses AddressesOf(const Config& config) {
  if (config.addresses.found.device_bytes > 0) return config.addresses.found;
  const auto candidates = AddressCandidates(config.addresses.base, config.addresses.space);
  return candidates.empty() ? NodeAddresses() : candidates.front();
}

}  // namespace torpor::server
