#include "memory/trace/allocation_trace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace torpor::memory {
namespace {

using ::testing::HasSubstr;
using Kind = TraceEvent::Kind;

constexpr std::string_view kHead = "torpor-allocation-trace 1\n";

std::string ErrorOf(const std::string& lines) {
  const auto trace = ParseTrace(std::string(kHead) + lines, "t.trace");
  return trace.ok() ? "" : std::string(trace.status().message());
}

TEST(AllocationTrace, ReadsWhatItWrites) {
  const AllocationTrace trace = {{Kind::kLoad, 7, 0, 0},
                                 {Kind::kAllocate, 7, 0, 20 * kMiB},
                                 {Kind::kIdle, 0, 0, 0},
                                 {Kind::kFree, 7, 0, 0},
                                 {Kind::kEvict, 7, 0, 0}};
  const std::string text = FormatTrace(trace);
  EXPECT_EQ(text,
            "torpor-allocation-trace 1\nload 7\nalloc 7 0 20971520\nidle\nfree 7 0\nevict 7\n");
  const auto read = ParseTrace(text, "t.trace");
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(*read, trace);
}

TEST(AllocationTrace, SkipsCommentsAndBlanks) {
  const auto trace =
      ParseTrace(std::string(kHead) + "\n# all\n  load\t3 # a request\r\n", "t.trace");
  ASSERT_TRUE(trace.ok());
  EXPECT_EQ(*trace, (AllocationTrace{{Kind::kLoad, 3, 0, 0}}));
}

TEST(AllocationTrace, LinesMayEndAsOnWindows) {
  EXPECT_TRUE(ParseTrace("torpor-allocation-trace 1\r\nload 3\r\n", "t.trace").ok());
}

TEST(AllocationTrace, MessagesQuoteLittleAndNoControlCharacters) {
  EXPECT_EQ(ErrorOf("\x1b[2J" + std::string(1000, 'x') + "\n"),
            "t.trace:2: \"\\x1b[2J" + std::string(36, 'x') +
                "...\" is no event; there are load, evict, alloc, free and idle");
}

TEST(AllocationTrace, SaysWhatIsWrongAndWhere) {
  EXPECT_THAT(std::string(ParseTrace("load 1\n", "t.trace").status().message()),
              HasSubstr("t.trace:1: the first line should be \"torpor-allocation-trace 1\""));
  EXPECT_EQ(ErrorOf("load\n"), "t.trace:2: should be \"load FUNCTION\"");
  EXPECT_EQ(ErrorOf("load 1\nalloc 1 2\n"), "t.trace:3: should be \"alloc FUNCTION BLOCK BYTES\"");
  EXPECT_THAT(ErrorOf("load 4294967296\n"), HasSubstr("not a number from 0 to 4294967295"));
  EXPECT_THAT(ErrorOf("load -1\n"), HasSubstr("\"-1\" is not a number"));
  EXPECT_THAT(ErrorOf("load 1\nalloc 1 1 0\n"), HasSubstr("at least one byte"));
  EXPECT_THAT(ErrorOf("move 1\n"), HasSubstr("\"move\" is no event"));
}

TEST(AllocationTrace, RefusesWhatCannotHappen) {
  EXPECT_EQ(ErrorOf("alloc 1 1 8\n"), "t.trace:2: function 1 is not loaded");
  EXPECT_EQ(ErrorOf("load 1\nevict 1\nevict 1\n"), "t.trace:4: function 1 is not loaded");
  EXPECT_EQ(ErrorOf("load 1\nalloc 1 5 8\nalloc 1 5 8\n"),
            "t.trace:4: block 5 of function 1 is there already");
  EXPECT_EQ(ErrorOf("free 1 5\n"), "t.trace:2: block 5 of function 1 is not allocated");
}

}  // namespace
}  // namespace torpor::memory
