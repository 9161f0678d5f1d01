#include "server/router/header_rules.h"

#include <algorithm>
#include <array>

namespace torpor::server {
namespace {

constexpr std::array<std::string_view, 8> kHopByHop = {
    "Connection", "Keep-Alive", "Proxy-Connection",  "TE",
    "Trailer",    "Upgrade",    "Transfer-Encoding", "Content-Length"};

constexpr std::array<std::string_view, 4> kNeverRemoved = {"Host", "Content-Type", "X-Request-Id",
                                                           "Authorization"};

char ToLower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

}  // namespace

bool EqualsIgnoringCase(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, {}, ToLower, ToLower);
}

std::vector<std::string_view> ListItems(std::string_view value) {
  constexpr std::string_view kBlanks = " \t";
  std::vector<std::string_view> items;
  while (!value.empty()) {
    const std::size_t comma = std::min(value.find(','), value.size());
    std::string_view item = value.substr(0, comma);
    value.remove_prefix(std::min(comma + 1, value.size()));
    item.remove_prefix(std::min(item.find_first_not_of(kBlanks), item.size()));
    item = item.substr(0, item.find_last_not_of(kBlanks) + 1);
    if (!item.empty()) items.push_back(item);
  }
  return items;
}

bool IsHopByHop(std::string_view field_name) {
  return std::ranges::any_of(kHopByHop, [&](std::string_view hop_by_hop) {
    return EqualsIgnoringCase(field_name, hop_by_hop);
  });
}

bool ConnectionMayRemove(std::string_view field_name) {
  return std::ranges::none_of(
      kNeverRemoved, [&](std::string_view kept) { return EqualsIgnoringCase(field_name, kept); });
}

bool IsRequestId(std::string_view text) {
  constexpr std::size_t kMaxLength = 128;
  return !text.empty() && text.size() <= kMaxLength && std::ranges::all_of(text, [](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' ||
           c == '_' || c == '.' || c == ':';
  });
}

}  // namespace torpor::server
