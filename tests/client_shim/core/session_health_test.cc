#include "client_shim/core/session_health.h"

#include <gtest/gtest.h>

#include <memory>

namespace torpor::shim {
namespace {

TEST(SessionHealthTest, CallsFailBeforeTheSessionIsOpen) {
  const SessionHealth health;
  EXPECT_FALSE(health.IsOpen());
  EXPECT_EQ(health.Check(), cudaErrorInitializationError);
}

TEST(SessionHealthTest, OpensOnce) {
  SessionHealth health;
  int opened = 0;
  const auto open = [&] {
    ++opened;
    return cudaSuccess;
  };
  EXPECT_EQ(health.OpenOnce(open), cudaSuccess);
  EXPECT_EQ(health.OpenOnce(open), cudaSuccess);
  EXPECT_EQ(opened, 1);
  EXPECT_TRUE(health.IsOpen());
  EXPECT_EQ(health.Check(), cudaSuccess);
}

TEST(SessionHealthTest, AFailureToOpenIsTheErrorOfEveryCall) {
  SessionHealth health;
  EXPECT_EQ(health.OpenOnce([] { return cudaErrorNoDevice; }), cudaErrorNoDevice);
  EXPECT_EQ(health.OpenOnce([] { return cudaSuccess; }), cudaErrorNoDevice);
  EXPECT_EQ(health.Check(), cudaErrorNoDevice);
  EXPECT_FALSE(health.IsOpen());
}

TEST(SessionHealthTest, AStickyErrorStays) {
  SessionHealth health;
  health.OpenOnce([] { return cudaSuccess; });
  health.SetSticky(cudaErrorIllegalAddress);
  health.SetStickyIfHealthy(cudaErrorDevicesUnavailable);
  EXPECT_EQ(health.Check(), cudaErrorIllegalAddress);
  EXPECT_EQ(health.OpenOnce([] { return cudaSuccess; }), cudaErrorIllegalAddress);
  EXPECT_TRUE(health.IsOpen());
}

TEST(SessionHealthTest, TheExecutorsPageTellsOfAStickyError) {
  const auto page = std::make_unique<wire::CompletionPage>();
  SessionHealth health;
  health.OpenOnce([&] {
    health.WatchPage(page.get());
    return cudaSuccess;
  });
  EXPECT_EQ(health.Check(), cudaSuccess);
  page->sticky_error = cudaErrorIllegalAddress;
  EXPECT_EQ(health.Check(), cudaErrorIllegalAddress);
  EXPECT_EQ(health.sticky(), cudaErrorIllegalAddress);
}

}  // namespace
}  // namespace torpor::shim
