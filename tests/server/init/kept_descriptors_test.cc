#include "server/init/kept_descriptors.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace torpor::init {
namespace {

UniqueFd OpenNull() { return UniqueFd(open("/dev/null", O_RDONLY | O_CLOEXEC)); }
bool IsOpen(int descriptor) { return fcntl(descriptor, F_GETFD) >= 0; }

TEST(KeptDescriptors, WhatIsRemovedIsClosed) {
  KeptDescriptors kept(2);
  UniqueFd descriptor = OpenNull();
  const int number = descriptor.get();
  ASSERT_EQ(kept.Keep("a", std::move(descriptor)), absl::OkStatus());
  EXPECT_TRUE(IsOpen(number));
  kept.Remove("b");
  EXPECT_TRUE(IsOpen(number));
  kept.Remove("a");
  EXPECT_FALSE(IsOpen(number));
}

TEST(KeptDescriptors, BeyondTheCapacityNothingIsKept) {
  KeptDescriptors kept(1);
  ASSERT_EQ(kept.Keep("a", OpenNull()), absl::OkStatus());
  UniqueFd second = OpenNull();
  const int number = second.get();
  EXPECT_TRUE(absl::IsResourceExhausted(kept.Keep("b", std::move(second))));
  EXPECT_FALSE(IsOpen(number));
  EXPECT_EQ(kept.by_name().size(), 1);
  // In the place of the first there is room.
  EXPECT_EQ(kept.Keep("a", OpenNull()), absl::OkStatus());
}

TEST(KeptDescriptors, NamesThatCannotBeToldAreRefused) {
  KeptDescriptors kept(1);
  EXPECT_TRUE(absl::IsInvalidArgument(kept.Keep("", OpenNull())));
  EXPECT_TRUE(absl::IsInvalidArgument(kept.Keep("a:b", OpenNull())));
}

}  // namespace
}  // namespace torpor::init
