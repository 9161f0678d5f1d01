#include "memory/touch_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace torpor::memory {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class TouchLogTest : public testing::Test {
 protected:
  TouchLogTest() { log_.Reset(std::vector<Extent>{{0, 10}, {10, 20}, {30, 40}}); }
  TouchLog log_;
};

TEST_F(TouchLogTest, NotesFirstTouchesInTheirOrder) {
  log_.Touch({35, 36});
  log_.Touch({5, 15});
  log_.Touch({30, 40});
  EXPECT_THAT(log_.order(), ElementsAre(30, 0, 10));
  log_.Restart();
  EXPECT_THAT(log_.order(), IsEmpty());
  log_.Touch({19, 20});
  EXPECT_THAT(log_.order(), ElementsAre(10));
}

TEST_F(TouchLogTest, WhatIsNoAllocationIsNotNoted) {
  log_.Touch({20, 30});
  log_.Touch({40, 50});
  log_.Upload({20, 30});
  EXPECT_THAT(log_.order(), IsEmpty());
  EXPECT_THAT(log_.TakeUploaded(), IsEmpty());
}

TEST_F(TouchLogTest, AllocationsComeAndGo) {
  log_.Add({50, 60});
  log_.Remove({10, 20});
  log_.Touch({0, 100});
  EXPECT_THAT(log_.order(), ElementsAre(0, 30, 50));
  EXPECT_THAT(log_.allocations(), ElementsAre(Extent{0, 10}, Extent{30, 40}, Extent{50, 60}));
}

TEST_F(TouchLogTest, UploadsAreToldOnce) {
  log_.Upload({9, 31});
  EXPECT_THAT(log_.TakeUploaded(), ElementsAre(Extent{0, 10}, Extent{10, 20}, Extent{30, 40}));
  log_.Upload({0, 1});
  EXPECT_THAT(log_.TakeUploaded(), ElementsAre(Extent{0, 10}));
  EXPECT_THAT(log_.TakeUploaded(), IsEmpty());
}

TEST_F(TouchLogTest, UploadsAreTakenAsFarAsTheyMayBeLookedThrough) {
  log_.Add({50, 100});
  log_.Upload({9, 60});
  EXPECT_THAT(log_.TakeUploaded(25), ElementsAre(Extent{0, 10}, Extent{10, 20}));
  EXPECT_THAT(log_.TakeUploaded(25), ElementsAre(Extent{30, 40}));
  EXPECT_TRUE(log_.has_uploaded());
  EXPECT_THAT(log_.TakeUploaded(), ElementsAre(Extent{50, 100}));
  EXPECT_FALSE(log_.has_uploaded());
}

TEST_F(TouchLogTest, NotesAreBounded) {
  std::vector<Extent> many;
  for (Bytes i = 0; i < TouchLog::kMaxNoted + 10; ++i) many.push_back({i, i + 1});
  log_.Reset(many);
  log_.Touch({0, many.back().end});
  EXPECT_EQ(log_.order().size(), TouchLog::kMaxNoted);
}

}  // namespace
}  // namespace torpor::memory
