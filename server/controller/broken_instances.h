#pragma once

#include <set>
#include <string>

#include "server/controller/model/instance_lives.h"
#include "server/controller/model/instance_table.h"
#include "server/controller/model/session_table.h"
#include "server/controller/requests.h"

namespace torpor::server {

// Finds instances whose processes can never use a GPU again, and tells whoever can start other
// ones: each broken session once, when no request runs on the instance. On the controller's thread.
class BrokenInstances {
 public:
  // The references must outlive the object. `lives`: nullptr, or likewise.
  BrokenInstances(InstanceTable& instances, const SessionTable& sessions, const Requests& requests,
                  InstanceLives* lives)
      : instances_(instances), sessions_(sessions), requests_(requests), lives_(lives) {}

  // The instance has a process whose session does not go on with this torpord.
  void OnRefused(const FunctionInstance& instance, const std::string& why);
  // Looks at all sessions. To be called every second or so.
  void Check();

 private:
  InstanceTable& instances_;
  const SessionTable& sessions_;
  const Requests& requests_;
  InstanceLives* const lives_;
  std::set<SessionId> told_;  // of those that there are
};

}  // namespace torpor::server
