#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "server/router/header_rules.h"
#include "server/router/request_path.h"

// What is forwarded is always in origin form, and a function's name never holds a slash.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace torpor::server;  // NOLINT
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const RequestPath path = ParseRequestPath(text);
  if (path.function.find_first_of("/?") != std::string::npos) std::abort();
  const bool is_function = path.kind == RequestPath::Kind::kFunction;
  if (is_function != path.upstream_target.starts_with('/')) std::abort();
  for (const std::string_view item : ListItems(text)) {
    if (item.empty() || item.find(',') != std::string_view::npos) std::abort();
  }
  return 0;
}
