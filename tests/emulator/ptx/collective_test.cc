#include "emulator/ptx/collective.h"

#include <gtest/gtest.h>

#include <string>

#include "emulator/ptx/parser.h"

namespace torpor::ptx {
namespace {

// How many instructions become of a branch that only some lanes take, with `count` shuffles in it.
std::size_t Converged(int count, std::size_t& before) {
  std::string text =
      ".version 9.0\n.target sm_90\n.address_size 64\n"
      ".entry k() { .reg .pred p; .reg .b32 %r<3>; mov.u32 %r0, %tid.x;"
      " setp.lt.u32 p, %r0, 5; @p bra DONE;";
  for (int i = 0; i < count; ++i) text += " shfl.sync.down.b32 %r1, %r0, 1, 31, -1;";
  const auto parsed = Parse(text + " DONE: ret; }");
  EXPECT_TRUE(parsed) << (parsed ? "" : parsed.failure().message);
  if (!parsed) return 0;
  before = parsed->functions[0].instructions.size();
  return ConvergeCollectives(*parsed, 0, BlockShape{}, 0).instructions.size();
}

TEST(CollectiveTest, WaitingIsWrittenOutAtADozenPlacesAtMost) {
  std::size_t before = 0;
  const std::size_t few = Converged(12, before);
  EXPECT_GT(few, before + 12);
  const std::size_t many = Converged(13, before);
  EXPECT_EQ(many, before);
}

}  // namespace
}  // namespace torpor::ptx
