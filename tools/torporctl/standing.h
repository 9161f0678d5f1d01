#pragma once

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>

// Where a function stands in a queue by required request count, of messages that have
// required_count and is_first_group.
namespace torpor::torporctl {

// "12.0 requests in time required, first group"; empty where the queue's order is another one.
template <typename Message>
std::string StandingText(const Message& message) {
  if (!message.has_required_count()) return {};
  return fmt::format("{:.1f} requests in time required, {} group", message.required_count(),
                     message.is_first_group() ? "first" : "second");
}

template <typename Message>
void AddStanding(const Message& message, nlohmann::ordered_json& json) {
  if (!message.has_required_count()) return;
  json["required_count"] = message.required_count();
  json["is_first_group"] = message.is_first_group();
}

}  // namespace torpor::torporctl
