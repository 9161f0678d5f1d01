#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"
#include "tests/e2e/example_fleet.h"

namespace torpor::e2e {

// Requests whose image comes to the GPU, all from the same place.
struct ColdRuns {
  Duration median{};
  double bytes = 0;  // that come for one
  int gpu = 0;       // on which the last one ran
};

// Measures what a request of a function takes from end to end while the node does nothing else: the
// median of nine, in real time. The fleet has started, and nobody else asks it.
class RunMeter {
 public:
  explicit RunMeter(const ExampleFleet& fleet);

  absl::StatusOr<Duration> Resident(std::size_t function) const;
  absl::StatusOr<ColdRuns> FromHost(std::size_t function) const;
  // From GPU 0, which a request of `other` occupies meanwhile.
  absl::StatusOr<ColdRuns> FromPeer(std::size_t function, std::size_t other) const;

 private:
  struct TimedReply {
    Reply reply;
    Duration took{};
  };

  absl::StatusOr<TimedReply> Time(std::size_t function) const;
  // Nothing where the image did not come from a peer after all.
  absl::StatusOr<std::optional<TimedReply>> TimeBeside(std::size_t function,
                                                       std::size_t other) const;
  absl::Status AwaitLease(int gpu, const std::string& function) const;
  absl::Status AwaitSwapsIn(const std::string& path, double count) const;

  const ExampleFleet& fleet_;
  const std::string metrics_address_;
};

}  // namespace torpor::e2e
