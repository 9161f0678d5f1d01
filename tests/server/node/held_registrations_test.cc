#include "server/node/held_registrations.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>
#include <vector>

namespace torpor::server {
namespace {

constexpr Duration kLong = std::chrono::minutes(1);

TEST(HeldRegistrations, DeliversInOrderOnceReleased) {
  HeldRegistrations held;
  std::vector<int> delivered;
  held.Take([&] { delivered.push_back(1); });
  held.Take([&] { delivered.push_back(2); });
  EXPECT_TRUE(delivered.empty());
  held.Release();
  held.Take([&] { delivered.push_back(3); });
  EXPECT_EQ(delivered, (std::vector<int>{1, 2, 3}));
}

TEST(HeldRegistrations, WithoutAdoptedExecutorsNobodyWaits) {
  HeldRegistrations held;
  EXPECT_TRUE(held.Await(kLong).empty());
}

TEST(HeldRegistrations, WaitsUntilAllHaveSettled) {
  HeldRegistrations held;
  held.Expect({{10, GpuIndex{0}}, {11, GpuIndex{1}}});
  held.NoteRegistered(10);
  std::thread settles([&] { held.NoteEnded(11); });
  EXPECT_TRUE(held.Await(kLong).empty());
  settles.join();
}

TEST(HeldRegistrations, NamesWhoHasNotSettledInTime) {
  HeldRegistrations held;
  held.Expect({{10, GpuIndex{0}}, {11, GpuIndex{1}}});
  held.NoteRegistered(10);
  EXPECT_EQ(held.Await({}), (std::map<pid_t, GpuIndex>{{11, GpuIndex{1}}}));
}

TEST(HeldRegistrations, ASpareThatRegistersSaysNothingOfTheExecutor) {
  HeldRegistrations held;
  held.Expect({{10, GpuIndex{0}}});
  held.NoteRegistered(12);
  EXPECT_EQ(held.Await({}), (std::map<pid_t, GpuIndex>{{10, GpuIndex{0}}}));
}

}  // namespace
}  // namespace torpor::server
