#include "memory/tenant_places.h"

#include <gtest/gtest.h>

namespace torpor::memory {
namespace {

constexpr std::size_t kSlot = 8;

class TenantPlacesTest : public testing::Test {
 protected:
  TenantPlacesTest() { places_.AddSegment({16, 16}); }

  void Leave(PlaceRun run) {
    for (std::size_t place = run.first; place < run.end(); ++place) places_.Leave(place);
  }

  TenantPlaces places_{kSlot};
};

TEST_F(TenantPlacesTest, AreTakenInRows) {
  EXPECT_EQ(places_.Take(3), (PlaceRun{16, 3}));
  EXPECT_EQ(places_.Take(20), (PlaceRun{19, 13})) << "all that is left";
  EXPECT_EQ(places_.Take(1), std::nullopt);
  EXPECT_EQ(places_.with_pages(), 16u);
}

TEST_F(TenantPlacesTest, TheFirstRowThatIsLongEnoughComesFirst) {
  const PlaceRun all = *places_.Take(16);
  Leave({all.first + 1, 2});
  Leave({all.first + 5, 4});
  Leave({all.first + 12, 4});
  EXPECT_EQ(places_.Take(3), (PlaceRun{all.first + 5, 3}));
  EXPECT_EQ(places_.Take(9), (PlaceRun{all.first + 12, 4})) << "the longest";
}

TEST_F(TenantPlacesTest, APlaceIsFreeOnceTheLastBlockHasLeft) {
  const PlaceRun run = *places_.Take(1);
  places_.Use(run.first);
  places_.Leave(run.first);
  EXPECT_TRUE(places_.is_used(run.first));
  places_.Leave(run.first);
  EXPECT_FALSE(places_.is_used(run.first));
}

TEST_F(TenantPlacesTest, PagesGoBySlots) {
  const PlaceRun run = *places_.Take(12);
  Leave({run.first, 7});
  EXPECT_TRUE(places_.TakeUnusedSlots().empty()) << "the slot's last place is in use";
  places_.Leave(run.first + 7);
  EXPECT_EQ(places_.TakeUnusedSlots(), (std::vector<PlaceRun>{{16, 8}}));
  EXPECT_TRUE(places_.TakeUnusedSlots().empty()) << "taken already";
  EXPECT_EQ(places_.Take(8), (PlaceRun{28, 4})) << "nobody takes a slot whose pages go";
  places_.Return({16, 8});
  EXPECT_EQ(places_.with_pages(), 8u);
  EXPECT_EQ(places_.Take(8), (PlaceRun{16, 8}));
}

TEST_F(TenantPlacesTest, HaveSeveralSegments) {
  places_.Take(16);
  places_.AddSegment({64, 8});
  EXPECT_EQ(places_.Take(8), (PlaceRun{64, 8}));
  EXPECT_EQ(places_.segments(), (std::vector<PlaceRun>{{16, 16}, {64, 8}}));
}

}  // namespace
}  // namespace torpor::memory
