#include "tools/sim/systems.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace torpor::sim {
namespace {

TEST(Systems, EachHasAScheduler) {
  EXPECT_EQ(Systems().size(), 15u);
  for (const System& system : Systems()) {
    EXPECT_NE(MakeScheduler(system, 1), nullptr);
    EXPECT_EQ(SystemNamed(system.name)->name, system.name);
  }
}

TEST(Systems, AnUnknownNameIsToldWhatThereIs) {
  EXPECT_THAT(std::string(SystemNamed("torpedo").status().message()),
              testing::HasSubstr("there are torpor, torpor-plus, fifo"));
}

}  // namespace
}  // namespace torpor::sim
