#pragma once

#include "server/controller/model/event_sink.h"
#include "server/controller/model/instance_table.h"
#include "server/controller/model/session_table.h"
#include "server/controller/model/task_loop.h"

namespace torpor::server {

// Knows which instances can serve requests, and tells the scheduler. An instance is serving with a
// session that can take a lease and an upstream, unproven without a session, and down without an
// upstream or for a while after its server has refused a request: for kFirstPause, and for twice as
// long after every further refusal up to kLongestPause. On the controller's thread.
class InstanceHealth {
 public:
  static constexpr Duration kFirstPause = std::chrono::seconds(1);
  static constexpr Duration kLongestPause = std::chrono::seconds(16);

  // The arguments must outlive the object.
  InstanceHealth(InstanceTable& instances, const SessionTable& sessions, EventSink& events,
                 TaskLoop& loop)
      : instances_(instances), sessions_(sessions), events_(events), loop_(loop) {}

  // To be called after a change of the instance's upstream or of its sessions that can take a
  // lease, and when it is to be removed.
  void Check(FunctionInstance& instance);
  // Forgets the refusals of the instance's server, for a new process or another server. Checks,
  // too.
  void Forgive(FunctionInstance& instance);
  // The instance's server took no connection, or broke off before an answer.
  void OnRefused(FunctionInstance& instance);
  void OnAnswered(FunctionInstance& instance) { instance.standing.refused_for = {}; }

 private:
  scheduler::Health HealthOf(const FunctionInstance& instance) const;

  InstanceTable& instances_;
  const SessionTable& sessions_;
  EventSink& events_;
  TaskLoop& loop_;
};

}  // namespace torpor::server
