#include "client_shim/core/trace/trace_caller.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <array>

namespace torpor::shim {
namespace {

// What qsort calls has qsort's library for its caller: all else on this stack is in the folder of
// the test's program, as the core is.
std::string* caller_of_compare = nullptr;
int Compare(const void*, const void*) {
  *caller_of_compare = CallerOutsideOfShim();
  return 0;
}

TEST(CallerOutsideOfShim, IsTheInnermostFrameInAnotherFolder) {
  std::string caller;
  caller_of_compare = &caller;
  std::array<int, 2> numbers{2, 1};
  qsort(numbers.data(), numbers.size(), sizeof numbers[0], &Compare);
  caller_of_compare = nullptr;
  EXPECT_NE(caller.find("libc.so.6"), std::string::npos) << caller;
}

TEST(DescribeCode, IsASymbolWhereThereIsOne) {
  const auto* const entry = reinterpret_cast<const char*>(&drand48);  // no sanitizer replaces it
  EXPECT_EQ(DescribeCode(entry), "drand48 in libc.so.6");
}

TEST(DescribeCode, OfNoCodeIsUnknown) { EXPECT_EQ(DescribeCode(nullptr), "unknown"); }

}  // namespace
}  // namespace torpor::shim
