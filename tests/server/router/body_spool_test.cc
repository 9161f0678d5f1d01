#include "server/router/body_spool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <filesystem>
#include <thread>

#include "tests/base/temporary_folder.h"

namespace torpor::server {
namespace {

namespace asio = boost::asio;
using ::testing::HasSubstr;

class BodySpoolTest : public testing::Test {
 protected:
  BodySpoolTest() {
    config_.spool_dir = folder_.path("spool");
    config_.request_memory = 100;
    config_.spool_limit = 1000;
  }

  const TemporaryFolder folder_;
  RouterConfig config_;
  RequestMetrics metrics_;
  asio::io_context io_;
};

TEST_F(BodySpoolTest, BothPlacesHaveTheirLimits) {
  BodySpool spool(io_, config_, metrics_);
  EXPECT_TRUE(spool.TakeMemory(100));
  EXPECT_FALSE(spool.TakeMemory(1));
  EXPECT_TRUE(spool.TakeDisk(999));
  EXPECT_FALSE(spool.TakeDisk(2));
  EXPECT_TRUE(spool.TakeDisk(1));
  EXPECT_EQ(spool.used(), (BodyBytes{.memory = 100, .disk = 1000}));
  spool.GiveBack({.memory = 40, .disk = 1000});
  EXPECT_TRUE(spool.TakeMemory(40));
  EXPECT_EQ(spool.used(), (BodyBytes{.memory = 100, .disk = 0}));
}

TEST_F(BodySpoolTest, TheAccountsAreInTheMetrics) {
  BodySpool spool(io_, config_, metrics_);
  spool.TakeMemory(7);
  spool.TakeDisk(8);
  const std::string text = metrics_.Render();
  EXPECT_THAT(text, HasSubstr("torpor_request_body_bytes{place=\"memory\"} 7\n"));
  EXPECT_THAT(text, HasSubstr("torpor_request_body_bytes{place=\"disk\"} 8\n"));
  EXPECT_THAT(text, HasSubstr("torpor_request_body_limit_bytes{place=\"memory\"} 100\n"));
  EXPECT_THAT(text, HasSubstr("torpor_request_body_limit_bytes{place=\"disk\"} 1000\n"));
}

TEST_F(BodySpoolTest, ALowerLimitHoldsForWhatComes) {
  BodySpool spool(io_, config_, metrics_);
  spool.TakeMemory(80);
  config_.request_memory = 50;
  spool.Configure(config_);
  EXPECT_FALSE(spool.TakeMemory(1));
  spool.GiveBack({.memory = 40});
  EXPECT_TRUE(spool.TakeMemory(10));
}

TEST_F(BodySpoolTest, WorkRunsOnAnotherThreadAndItsResultComesBack) {
  BodySpool spool(io_, config_, metrics_);
  std::thread::id worked_on;
  absl::Status result;
  const auto run = [&]() -> asio::awaitable<void> {
    std::function<absl::Status()> work = [&] {
      worked_on = std::this_thread::get_id();
      return absl::UnavailableError("full");
    };
    result = co_await spool.OnDisk(std::move(work));
  };
  asio::co_spawn(io_, run, [](const std::exception_ptr&) {});
  io_.run();
  EXPECT_EQ(result, absl::UnavailableError("full"));
  EXPECT_NE(worked_on, std::this_thread::get_id());
}

TEST_F(BodySpoolTest, TheFolderIsThereFromTheStart) {
  { const BodySpool spool(io_, config_, metrics_); }
  EXPECT_TRUE(std::filesystem::is_directory(config_.spool_dir));
}

}  // namespace
}  // namespace torpor::server
