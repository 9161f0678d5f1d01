#pragma once

#include <algorithm>
#include <chrono>
#include <utility>

namespace torpor::shim {

// How long to wait between two attempts to connect to a torpord that is expected soon.
class ConnectPauses {
 public:
  static constexpr std::chrono::milliseconds kFirst{10};
  static constexpr std::chrono::milliseconds kLongest{500};

  // The next pause, twice as long as the one before.
  std::chrono::milliseconds Next() { return std::exchange(next_, std::min(2 * next_, kLongest)); }

 private:
  std::chrono::milliseconds next_ = kFirst;
};

}  // namespace torpor::shim
