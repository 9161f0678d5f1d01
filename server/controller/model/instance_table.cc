#include "server/controller/model/instance_table.h"

#include <algorithm>
#include <cstdint>

#include "base/secret.h"

namespace torpor::server {

RegisteredFunction& InstanceTable::AddFunction(const FunctionConfig& config) {
  const scheduler::FunctionId id{next_function_++};
  RegisteredFunction& function = functions_[id];
  function.id = id;
  function.config = config;
  by_name_[config.name] = &function;
  return function;
}

FunctionInstance& InstanceTable::AddInstance(RegisteredFunction& function,
                                             const InstanceConfig& described) {
  const InstanceId id{next_instance_++};
  FunctionInstance& instance = instances_[id];
  instance.id = id;
  instance.function = &function;
  instance.name = described.name;
  instance.full_name = FullNameOf(function.config, described);
  instance.upstream = described.upstream;
  instance.shards = {id};
  for (int gpu = 1; gpu < function.config.gpus; ++gpu) {
    instance.shards.push_back(InstanceId{next_instance_++});
  }
  for (const InstanceId shard : instance.shards) leads_[shard] = id;
  function.instances.push_back(id);
  return instance;
}

void InstanceTable::Leave(RegisteredFunction& function) {
  function.is_removed = true;
  by_name_.erase(function.config.name);
}

void InstanceTable::Remove(const FunctionInstance& instance) {
  std::erase(instance.function->instances, instance.id);
  for (const InstanceId shard : instance.shards) leads_.erase(shard);
  instances_.erase(InstanceId(instance.id));
}

void InstanceTable::Remove(const RegisteredFunction& function) {
  functions_.erase(scheduler::FunctionId(function.id));
}

FunctionInstance* InstanceTable::FindById(InstanceId id) {
  const auto found = instances_.find(id);
  return found == instances_.end() ? nullptr : &found->second;
}

RegisteredFunction* InstanceTable::FindFunction(const std::string& name) {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : found->second;
}

FunctionInstance* InstanceTable::Find(const std::string& full_name) {
  for (auto& [id, instance] : instances_) {
    if (!instance.is_leaving && instance.full_name == full_name) return &instance;
  }
  return nullptr;
}

FunctionInstance* InstanceTable::FindByToken(const std::string& token) {
  FunctionInstance* found = nullptr;
  for (auto& [id, instance] : instances_) {
    const bool has_token = !instance.is_leaving && !instance.token.empty();
    if (has_token && SecretsEqual(instance.token, token)) found = &instance;
  }
  return found;
}

bool InstanceTable::HasSibling(const FunctionInstance& instance) const {
  const std::vector<InstanceId>& all = instance.function->instances;
  return std::any_of(all.begin(), all.end(), [&](InstanceId other) {
    return other != instance.id && !At(other).is_leaving;
  });
}

const TenantConfig* InstanceTable::FindTenant(const std::string& name) const {
  const auto found = tenants_.find(name);
  return found == tenants_.end() ? nullptr : &found->second;
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
