#include "tests/e2e/run_environment.h"

#include <cstdio>
#include <cstdlib>
#include <random>

namespace torpor::e2e {

std::string Environment(const char* name, const std::string& otherwise) {
  const char* const value = std::getenv(name);
  return value == nullptr || *value == '\0' ? otherwise : value;
}

std::string RandomSeed() { return std::to_string(std::random_device()()); }

void Say(const std::string& text) {
  std::fputs(text.c_str(), stdout);
  std::fflush(stdout);
}

}  // namespace torpor::e2e
