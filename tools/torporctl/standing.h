#pragma once

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>

// A function's standing in the RRC queue, from messages with the fields required_count and
// is_first_group.
namespace torpor::torporctl {

// Returns, for example, "12.0 requests in time required, first group"; empty under policies without
// RRC.
template <typename Message>
std::string StandingText(const Message& message) {
  if (!message.has_required_count()) return {};
  return fmt::format("{:.1f} requests in time required, {} group", message.required_count(),
                     message.is_first_group() ? "first" : "second");
}

// Adds the two fields to `json`, under policies with RRC.
template <typename Message>
void AddStanding(const Message& message, nlohmann::ordered_json& json) {
  if (!message.has_required_count()) return;
  json["required_count"] = message.required_count();
  json["is_first_group"] = message.is_first_group();
}

}  // namespace torpor::torporctl
