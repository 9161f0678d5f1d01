#include "server/broker/function_messages.h"

namespace torpor::server {

v1::TorpordMessage::Functions ToMessage(const std::map<std::string, FunctionConfig>& functions) {
  v1::TorpordMessage::Functions message;
  for (const auto& [name, function] : functions) {
    v1::TorpordMessage::Function& added = *message.add_functions();
    added.set_name(name);
    for (const InstanceConfig& instance : InstancesOf(function)) {
      v1::TorpordMessage::Instance& described = *added.add_instances();
      described.set_name(instance.name);
      described.set_upstream(instance.upstream);
    }
    added.set_upstream_timeout_ns(function.upstream_timeout.count());
    added.set_run_limit_ns(function.run_limit.count());
    added.set_deadline_ns(function.deadline.count());
    added.set_second_tries(function.second_tries);
    added.set_saves_requests(function.saves_requests());
  }
  return message;
}

std::map<std::string, FunctionConfig> FromMessage(const v1::TorpordMessage::Functions& message) {
  std::map<std::string, FunctionConfig> functions;
  for (const v1::TorpordMessage::Function& described : message.functions()) {
    FunctionConfig& function = functions[described.name()];
    function.name = described.name();
    for (const v1::TorpordMessage::Instance& instance : described.instances()) {
      function.instances[instance.name()] = {
          .name = instance.name(), .upstream = instance.upstream(), .token_file = ""};
    }
    function.upstream_timeout = std::chrono::nanoseconds(described.upstream_timeout_ns());
    function.run_limit = std::chrono::nanoseconds(described.run_limit_ns());
    function.deadline = std::chrono::nanoseconds(described.deadline_ns());
    function.second_tries = described.second_tries();
    if (described.saves_requests()) function.durability = Durability::kRequest;
  }
  return functions;
}

}  // namespace torpor::server
