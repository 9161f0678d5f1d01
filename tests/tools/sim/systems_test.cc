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

TEST(Systems, WhatProfilesSayNothingOfIsNotSimulated) {
  Profiles profiles = PaperProfiles();
  for (const System& system : Systems()) EXPECT_TRUE(CheckKnown(system, profiles).ok());
  profiles.models[1].native = {};
  profiles.models[2].blocks = 0;
  EXPECT_TRUE(CheckKnown(*SystemNamed("torpor"), profiles).ok());
  EXPECT_THAT(std::string(CheckKnown(*SystemNamed("keep-alive"), profiles).message()),
              testing::HasSubstr("keep-alive needs native_ms, native_gb and cold_start_s of model "
                                 "densenet-201"));
  EXPECT_THAT(std::string(CheckKnown(*SystemNamed("block"), profiles).message()),
              testing::HasSubstr("blocks of model inception-v3"));
}

}  // namespace
}  // namespace torpor::sim
