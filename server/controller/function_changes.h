#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>

#include "server/config/config.h"
#include "server/controller/admin_requests.h"
#include "server/controller/instance_health.h"
#include "server/controller/model/event_sink.h"
#include "server/controller/model/instance_lives.h"
#include "server/controller/model/instance_table.h"
#include "server/controller/model/session_table.h"
#include "server/controller/requests.h"
#include "server/controller/session_closing.h"

namespace torpor::server {

// The node's functions, instances and tenants, as they are at the start and as they change while
// the node runs. A function or an instance that is removed gets no request from then on; what runs
// there ends, then its sessions are closed, and last the scheduler forgets it. On the controller's
// thread.
class FunctionChanges {
 public:
  // The arguments must outlive the object. `lives`, who may be null, learns of instances that are
  // gone.
  FunctionChanges(InstanceTable& instances, const SessionTable& sessions, Requests& requests,
                  SessionClosing& closing, InstanceHealth& health, AdminRequests& admin,
                  const scheduler::Scheduler& scheduler, EventSink& events, TaskLoop& loop,
                  InstanceLives* lives, bool keeps_replicas)
      : instances_(instances),
        sessions_(sessions),
        requests_(requests),
        closing_(closing),
        health_(health),
        admin_(admin),
        scheduler_(scheduler),
        events_(events),
        loop_(loop),
        lives_(lives),
        keeps_replicas_(keeps_replicas) {}

  // Makes the configuration's functions and tenants the node's; `tokens`: by FullNameOf. The
  // configuration is valid, and leaves alone what Compare calls fixed.
  void Apply(const Config& config, const std::map<std::string, std::string>& tokens);

  // Goes on with removals, after all that is under way on the loop. Call after any change that
  // could matter.
  void AdvanceSoon();

 private:
  void SetTenants(const std::map<std::string, TenantConfig>& tenants);
  scheduler::TenantId TenantOf(const std::string& name) const;
  void Add(const FunctionConfig& config, const std::map<std::string, std::string>& tokens);
  void Change(RegisteredFunction& function, const FunctionConfig& config,
              const std::map<std::string, std::string>& tokens);
  // Tells the scheduler the function's objective, priority, limits and tenant.
  void Feed(const RegisteredFunction& function);
  void AddInstance(RegisteredFunction& function, const InstanceConfig& described,
                   const std::map<std::string, std::string>& tokens);
  void Remove(RegisteredFunction& function);
  void Remove(FunctionInstance& instance);
  // Returns whether the instance is gone.
  bool AdvanceRemoval(FunctionInstance& instance);

  InstanceTable& instances_;
  const SessionTable& sessions_;
  Requests& requests_;
  SessionClosing& closing_;
  InstanceHealth& health_;
  AdminRequests& admin_;
  const scheduler::Scheduler& scheduler_;
  EventSink& events_;
  TaskLoop& loop_;
  InstanceLives* const lives_;
  const bool keeps_replicas_;
  std::map<std::string, scheduler::TenantId> tenants_;  // those that there are
  std::uint64_t next_tenant_ = 1;
  std::set<InstanceId> leaving_;
  bool is_posted_ = false;
};

}  // namespace torpor::server
