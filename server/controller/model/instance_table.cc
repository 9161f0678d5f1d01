#include "server/controller/model/instance_table.h"

#include <algorithm>
#include <cstdint>

#include "base/secret.h"

namespace torpor::server {

InstanceTable::InstanceTable(const std::map<std::string, FunctionConfig>& functions,
                             const std::map<std::string, std::string>& tokens) {
  std::uint64_t next_function = 1;
  std::uint64_t next_id = 1;
  for (const auto& [name, config] : functions) {
    RegisteredFunction& function = functions_[name];
    function.id = scheduler::FunctionId{next_function++};
    function.config = config;
    for (const InstanceConfig& described : InstancesOf(config)) {
      const InstanceId id{next_id++};
      function.instances.push_back(id);
      FunctionInstance& instance = instances_[id];
      instance.id = id;
      instance.function = &function;
      instance.name = described.name;
      instance.full_name = FullNameOf(config, described);
      instance.upstream = described.upstream;
      const auto token = tokens.find(instance.full_name);
      if (token != tokens.end()) instance.token = token->second;
    }
  }
  for (auto& [id, instance] : instances_) {
    instance.shards = {id};
    for (int gpu = 1; gpu < instance.config().gpus; ++gpu) {
      instance.shards.push_back(InstanceId{next_id++});
    }
    for (const InstanceId shard : instance.shards) leads_[shard] = id;
  }
}

RegisteredFunction* InstanceTable::FindFunction(const std::string& name) {
  const auto found = functions_.find(name);
  return found == functions_.end() ? nullptr : &found->second;
}

FunctionInstance* InstanceTable::Find(const std::string& full_name) {
  for (auto& [id, instance] : instances_) {
    if (instance.full_name == full_name) return &instance;
  }
  return nullptr;
}

FunctionInstance* InstanceTable::FindByToken(const std::string& token) {
  FunctionInstance* found = nullptr;
  for (auto& [id, instance] : instances_) {
    if (!instance.token.empty() && SecretsEqual(instance.token, token)) found = &instance;
  }
  return found;
}

Shard InstanceTable::ShardOf(InstanceId shard) {
  FunctionInstance& instance = instances_.at(leads_.at(shard));
  const auto found = std::find(instance.shards.begin(), instance.shards.end(), shard);
  return {&instance, static_cast<int>(found - instance.shards.begin())};
}

InstanceId InstanceTable::ShardOf(const ClientSession& session) const {
  return At(session.instance).shards.at(static_cast<std::size_t>(session.device_index));
}

}  // namespace torpor::server
