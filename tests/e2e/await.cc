#include "tests/e2e/await.h"

#include <fmt/format.h>

#include <thread>

namespace torpor::e2e {
namespace {

// Short beside what is measured, long enough that the processes asked get on with their work.
constexpr Duration kPause = std::chrono::milliseconds(2);

}  // namespace

absl::Status Await(const std::string& what, const std::function<bool()>& is_so, Duration patience) {
  const TimePoint give_up = SteadyClock().Now() + patience;
  while (!is_so()) {
    if (SteadyClock().Now() >= give_up) {
      return absl::DeadlineExceededError(
          fmt::format("after {:g} s it still is not so: {}", ToSeconds(patience), what));
    }
    std::this_thread::sleep_for(kPause);
  }
  return absl::OkStatus();
}

}  // namespace torpor::e2e
