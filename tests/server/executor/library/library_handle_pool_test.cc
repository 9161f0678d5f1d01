#include "server/executor/library/library_handle_pool.h"

#include <gtest/gtest.h>

namespace torpor::executor {
namespace {

// A library with memory for so many handles, which point into `handles`.
constexpr int handles[8] = {};
int room = 0;
int made = 0;

using Handle = const int*;
struct Functions {
  int (*create)(Handle* handle) = nullptr;
  int (*destroy)(Handle handle) = nullptr;
};

constexpr Functions kLibrary = {
    [](Handle* handle) { return room > 0 ? (--room, *handle = &handles[++made], 0) : 1; },
    [](Handle) { return ++room, 0; }};

using Pool = LibraryHandlePool<Functions, Handle, &Functions::create, &Functions::destroy>;

class LibraryHandlePoolTest : public testing::Test {
 protected:
  void SetUp() override { room = made = 0; }
};

TEST_F(LibraryHandlePoolTest, IdleHandlesAreTakenAgain) {
  room = 2;
  Pool pool(kLibrary);
  EXPECT_EQ(pool.Take(), &handles[1]);
  EXPECT_EQ(pool.Take(), &handles[2]);
  pool.Return(&handles[1]);
  EXPECT_EQ(pool.Take(), &handles[1]);
  EXPECT_EQ(pool.Take(), nullptr) << "no memory";
}

TEST_F(LibraryHandlePoolTest, AMissingLibraryHasNoHandles) {
  Pool pool(Functions{});
  EXPECT_EQ(pool.Take(), nullptr);
}

TEST_F(LibraryHandlePoolTest, RoomIsMadeForAHandleOnce) {
  int asked = 0;
  Pool pool(kLibrary, [&] { return room = ++asked == 1 ? 1 : 0, asked < 3; });
  EXPECT_EQ(pool.Take(), &handles[1]);
  EXPECT_EQ(asked, 1);
  EXPECT_EQ(pool.Take(), nullptr) << "what was freed does not suffice";
  EXPECT_EQ(pool.Take(), nullptr) << "nothing was freed";
  EXPECT_EQ(asked, 3);
}

}  // namespace
}  // namespace torpor::executor
