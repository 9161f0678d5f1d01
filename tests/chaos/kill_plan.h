#pragma once

#include <random>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "base/clock.h"

namespace torpor::chaos {

enum class Victim { kExecutor, kFunction, kTorpord, kSpare, kPoolOwner, kRouter };

// As in CHAOS_VICTIMS: "executor", "function", "torpord", "spare", "pool_owner", "router".
const char* NameOf(Victim victim);
absl::StatusOr<Victim> VictimOf(const std::string& name);

struct Kill {
  Victim victim = Victim::kExecutor;
  unsigned which = 0;  // of all that there are, modulo their number
  // Whether the node recovers from the kill before.
  bool is_after_recovery = true;
  Duration pause{};  // after the recovery, or else after the kill before
};

// Who is killed, and when: the same seed gives the same kills. The first kill, and about nine of
// ten, come after the recovery. All victims are as likely.
class KillPlan {
 public:
  // `victims` is not empty.
  KillPlan(unsigned seed, std::vector<Victim> victims);

  Kill Next();

 private:
  unsigned Below(unsigned bound);
  Duration UpTo(Duration longest);

  std::mt19937 random_;
  const std::vector<Victim> victims_;
  bool is_first_ = true;
};

}  // namespace torpor::chaos
