#include "server/controller/model/instance_table.h"

#include <algorithm>
#include <cstdint>

namespace torpor::server {

InstanceTable::InstanceTable(const std::map<std::string, FunctionConfig>& functions) {
  std::uint64_t next_id = 1;
  for (const auto& [name, function] : functions) {
    const InstanceId id{next_id++};
    FunctionInstance& instance = instances_[id];
    instance.id = id;
    instance.config = function;
  }
  for (auto& [id, instance] : instances_) {
    instance.shards = {id};
    for (int gpu = 1; gpu < instance.config.gpus; ++gpu) {
      instance.shards.push_back(InstanceId{next_id++});
    }
    for (const InstanceId shard : instance.shards) leads_[shard] = id;
  }
}

FunctionInstance* InstanceTable::Find(const std::string& function) {
  for (auto& [id, instance] : instances_) {
    if (instance.config.name == function) return &instance;
  }
  return nullptr;
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
