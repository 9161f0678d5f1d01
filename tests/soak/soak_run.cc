#include "tests/soak/soak_run.h"

#include <cstdio>
#include <cstdlib>
#include <random>

namespace torpor::soak {
namespace {

std::string Environment(const char* name, const std::string& otherwise) {
  const char* const value = std::getenv(name);
  return value == nullptr || *value == '\0' ? otherwise : value;
}

}  // namespace

SoakRun SoakRun::FromEnvironment() {
  return {std::chrono::seconds(std::stol(Environment("SOAK_SECONDS", "600"))),
          static_cast<unsigned>(
              std::stoul(Environment("SOAK_SEED", std::to_string(std::random_device()())))),
          Environment("SOAK_SETTINGS", "")};
}

void Say(const std::string& text) {
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
}

}  // namespace torpor::soak
