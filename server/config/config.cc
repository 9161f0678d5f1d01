#include "server/config/config.h"

#include <algorithm>
#include <set>
#include <string>

namespace torpor::server {
namespace {

int CountDomains(const Config& config) {
  bool has_shared = false;
  std::set<std::string> tenants;
  int functions = 0;
  for (const auto& [name, function] : config.functions) {
    const Isolation isolation = IsolationOf(function, config.isolation);
    has_shared |= isolation == Isolation::kShared;
    if (isolation == Isolation::kTenant) tenants.insert(function.tenant);
    if (isolation == Isolation::kFunction) ++functions;
  }
  return functions + static_cast<int>(tenants.size()) + (has_shared ? 1 : 0);
}

// With `translate` chunks are so small that exporting all would take a GPU minutes.
bool MayHavePoolOwners(const Config& config) {
  return config.device.address_mode == AddressMode::kMap;
}

}  // namespace

Isolation IsolationOf(const FunctionConfig& function, Isolation of_node) {
  switch (function.isolation) {
    case FunctionIsolation::kAsNode:
      return of_node;
    case FunctionIsolation::kShared:
      return Isolation::kShared;
    case FunctionIsolation::kTenant:
      return Isolation::kTenant;
    case FunctionIsolation::kFunction:
      return Isolation::kFunction;
  }
  return of_node;
}

int ExecutorsPerGpu(const Config& config) {
  if (!MayHavePoolOwners(config)) return 1;
  if (config.executors_per_gpu > 0) return config.executors_per_gpu;
  return std::clamp(CountDomains(config), 1, kMaxExecutorsUnasked);
}

bool HasPoolOwners(const Config& config) {
  return MayHavePoolOwners(config) && (config.device.spare_executor || ExecutorsPerGpu(config) > 1);
}

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

std::string GpuFolderOf(const Config& config) { return config.run_dir + "/gpus"; }

std::string FunctionFolderOf(const Config& config) { return config.run_dir + "/functions"; }

std::string AdminFolderOf(const Config& config) { return config.run_dir + "/admin"; }

NodeAddresses AddressesOf(const Config& config) {
  if (config.addresses.found.device_bytes > 0) return config.addresses.found;
  const auto candidates = AddressCandidates(config.addresses.base, config.addresses.space);
  return candidates.empty() ? NodeAddresses() : candidates.front();
}

}  // namespace torpor::server
