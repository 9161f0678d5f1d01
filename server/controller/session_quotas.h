#pragma once

#include "absl/status/status.h"
#include "server/controller/model/function_instance.h"
#include "server/controller/model/instance_table.h"

namespace torpor::server {

// How many sessions there may be at one time: of an instance, of a tenant's functions, and on the
// node. Closing sessions count until their memory is free. On the controller's thread.
class SessionQuotas {
 public:
  // `instances` must outlive the object. `of_node`: maximum of sessions on the node.
  SessionQuotas(const InstanceTable& instances, int of_node)
      : instances_(instances), of_node_(of_node) {}

  // Whether `instance` may have one more session. ResourceExhausted, with a reason for users, if
  // not.
  absl::Status Admit(const FunctionInstance& instance) const;

 private:
  const InstanceTable& instances_;
  const int of_node_;
};

}  // namespace torpor::server
