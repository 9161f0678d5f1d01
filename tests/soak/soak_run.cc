#include "tests/soak/soak_run.h"

#include "tests/e2e/run_environment.h"

namespace torpor::soak {

SoakRun SoakRun::FromEnvironment() {
  return {std::chrono::seconds(std::stol(e2e::Environment("SOAK_SECONDS", "600"))),
          static_cast<unsigned>(std::stoul(e2e::Environment("SOAK_SEED", e2e::RandomSeed()))),
          e2e::Environment("SOAK_SETTINGS", "")};
}

}  // namespace torpor::soak
