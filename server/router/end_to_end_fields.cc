#include "server/router/end_to_end_fields.h"

#include <algorithm>
#include <vector>

#include "server/router/header_rules.h"

namespace torpor::server {

namespace http = boost::beast::http;

void CopyEndToEnd(const http::fields& from, http::fields& to) {
  std::vector<std::string_view> removed;
  for (const auto& field : from) {
    if (field.name() != http::field::connection) continue;
    for (const std::string_view item : ListItems(View(field.value()))) removed.push_back(item);
  }
  for (const auto& field : from) {
    const std::string_view name = View(field.name_string());
    const bool is_removed =
        ConnectionMayRemove(name) && std::ranges::any_of(removed, [&](std::string_view other) {
          return EqualsIgnoringCase(name, other);
        });
    if (!IsHopByHop(name) && !is_removed) {
      to.insert(field.name(), field.name_string(), field.value());
    }
  }
}

}  // namespace torpor::server
