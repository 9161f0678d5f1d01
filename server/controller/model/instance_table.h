#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "base/ids.h"
#include "server/config/config.h"
#include "server/controller/model/client_session.h"
#include "server/controller/model/function_instance.h"

namespace torpor::server {

// All functions of the node and their instances. References stay valid until Remove. On the
// controller's thread.
class InstanceTable {
 public:
  InstanceTable() = default;
  InstanceTable(const InstanceTable&) = delete;
  InstanceTable& operator=(const InstanceTable&) = delete;

  // The id must be known.
  FunctionInstance& At(InstanceId id) { return instances_.at(id); }
  const FunctionInstance& At(InstanceId id) const { return instances_.at(id); }
  FunctionInstance& Of(const ClientSession& session) { return At(session.instance); }
  const FunctionInstance& Of(const ClientSession& session) const { return At(session.instance); }

  // --- Changes ---
  // The name must be free. Functions count from 1, instances and their secondary shards, too.
  RegisteredFunction& AddFunction(const FunctionConfig& config);
  FunctionInstance& AddInstance(RegisteredFunction& function, const InstanceConfig& described);
  // The function gives its name up.
  void Leave(RegisteredFunction& function);
  void Remove(const FunctionInstance& instance);
  // Removes a function that has left and has no instance.
  void Remove(const RegisteredFunction& function);

  // Returns null if no instance has the id.
  FunctionInstance* FindById(InstanceId id);
  // Leaving instances and removed functions are not found by name or token. Returns null if no
  // function has the name.
  RegisteredFunction* FindFunction(const std::string& name);
  // Returns null if no instance has the full name.
  FunctionInstance* Find(const std::string& full_name);
  // Returns null if no instance has the token. `token` must not be empty.
  FunctionInstance* FindByToken(const std::string& token);

  // By name, without removed functions.
  const std::map<std::string, RegisteredFunction*>& functions() const { return by_name_; }

  // Sets the limits of tenants. A tenant without an entry has the node's limits.
  void SetTenants(std::map<std::string, TenantConfig> tenants) { tenants_ = std::move(tenants); }
  // Returns null if the configuration says nothing of the tenant.
  const TenantConfig* FindTenant(const std::string& name) const;

  // Whether an instance of the function beside this one stays, and so may serve in its place.
  bool HasSibling(const FunctionInstance& instance) const;

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
  std::map<scheduler::FunctionId, RegisteredFunction> functions_;
  std::map<std::string, RegisteredFunction*> by_name_;
  std::uint64_t next_function_ = 1;
  std::uint64_t next_instance_ = 1;  // or shard
  std::map<InstanceId, FunctionInstance> instances_;
  std::map<InstanceId, InstanceId> leads_;  // by shard
  std::map<std::string, TenantConfig> tenants_;
};

}  // namespace torpor::server
