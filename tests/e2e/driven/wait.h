#pragma once

#include <cstdio>

#include "tests/e2e/programs/check.h"

// Tells the test that drives the program to go on, and waits until it writes to the pipe.
inline void Wait(const char* pipe) {
  std::puts("waiting");
  std::fflush(stdout);
  std::FILE* const file = std::fopen(pipe, "r");
  REQUIRE(file != nullptr);
  std::fclose(file);
}
