#pragma once

#include <string_view>

namespace torpor {

// Logs the broken invariant and aborts. For bugs of this code only: errors caused by a
// client or a file are reported by a Status.
[[noreturn]] void CheckFailed(std::string_view condition, const char* file, int line);

}  // namespace torpor

#define TORPOR_CHECK(condition) \
  (static_cast<bool>(condition) ? void(0) : ::torpor::CheckFailed(#condition, __FILE__, __LINE__))
