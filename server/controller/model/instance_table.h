#pragma once

#include <map>
#include <string>

#include "base/ids.h"
#include "server/controller/model/client_session.h"
#include "server/controller/model/function_instance.h"

namespace torpor::server {

// All functions of the node and their instances. References stay valid for the table's life. On the
// controller's thread.
class InstanceTable {
 public:
  // Functions, and instances in their order, count from 1; further shards count on from there.
  // `tokens`: by FullNameOf.
  explicit InstanceTable(const std::map<std::string, FunctionConfig>& functions,
                         const std::map<std::string, std::string>& tokens = {});
  InstanceTable(const InstanceTable&) = delete;
  InstanceTable& operator=(const InstanceTable&) = delete;

  // The id must be known.
  FunctionInstance& At(InstanceId id) { return instances_.at(id); }
  const FunctionInstance& At(InstanceId id) const { return instances_.at(id); }
  FunctionInstance& Of(const ClientSession& session) { return At(session.instance); }
  const FunctionInstance& Of(const ClientSession& session) const { return At(session.instance); }

  // Returns null if no function has the name.
  RegisteredFunction* FindFunction(const std::string& name);
  // Returns null if no instance has the full name.
  FunctionInstance* Find(const std::string& full_name);
  // Returns null if no instance has the token. `token` must not be empty.
  FunctionInstance* FindByToken(const std::string& token);

  const std::map<std::string, RegisteredFunction>& functions() const { return functions_; }

  // The id of any shard must be known.
  Shard ShardOf(InstanceId shard);
  // Returns the id of the shard's instance, also the id of its lead shard.
  InstanceId LeadOf(InstanceId shard) const { return leads_.at(shard); }
  // Returns the session's shard.
  InstanceId ShardOf(const ClientSession& session) const;

  auto begin() { return instances_.begin(); }
  auto end() { return instances_.end(); }
  auto begin() const { return instances_.begin(); }
  auto end() const { return instances_.end(); }

 private:
  std::map<std::string, RegisteredFunction> functions_;  // by name
  std::map<InstanceId, FunctionInstance> instances_;
  std::map<InstanceId, InstanceId> leads_;  // by shard
};

}  // namespace torpor::server
