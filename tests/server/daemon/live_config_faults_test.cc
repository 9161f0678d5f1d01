#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

#include "server/daemon/live_config.h"
#include "tests/base/disk_faults.h"
#include "tests/server/links/test_server.h"

namespace torpor::server {
namespace {

using ::testing::HasSubstr;

constexpr Duration kOldDeadline = std::chrono::seconds(2);
constexpr Duration kNewDeadline = std::chrono::seconds(3);

class LiveConfigFaultsTest : public testing::Test {
 protected:
  LiveConfigFaultsTest() {
    std::ofstream(folder_.path("config.yaml"))
        << "version: v1\nstate_dir: state\nfunctions:\n"
           "  - {name: digits, memory_limit: 1GiB, token_file: token, deadline: 80ms}\n";
  }
  absl::Status Load(SimulatedDisk& disk) {
    auto live = LiveConfig::Load({.load =
                                      [this] {
                                        ConfigSources sources;
                                        sources.file = folder_.path("config.yaml");
                                        return LoadConfig(sources);
                                      },
                                  .check = [](const Config&) { return absl::OkStatus(); },
                                  .apply =
                                      [this](const Config& config, bool) {
                                        running_ = config;
                                        return absl::OkStatus();
                                      },
                                  .disk = [&disk](const Config&) { return &disk; }});
    if (!live.ok()) return live.status();
    live_ = *std::move(live);
    running_ = live_->at_start();
    return absl::OkStatus();
  }
  absl::Status Set(const std::string& deadline) {
    return live_
        ->Change({.kind = ConfigRequest::Kind::kSet,
                  .function = "digits",
                  .settings = {{"deadline", deadline}}})
        .status();
  }
  Duration deadline() const { return running_.functions.at("digits").deadline; }
  std::string changes() const { return folder_.path("state") + "/changes.json"; }

  const TemporaryFolder folder_;
  std::unique_ptr<LiveConfig> live_;
  Config running_;
};

TEST_F(LiveConfigFaultsTest, ChangesAreOldOrNewWhateverTheDiskDoes) {
  const auto change = [this](SimulatedDisk& disk) {
    if (absl::Status loaded = Load(disk); !loaded.ok()) return loaded;
    absl::Status status = Set("3s");
    const std::string why(status.message());
    if (status.ok()) {
      EXPECT_EQ(deadline(), kNewDeadline);
    } else if (why.starts_with("not applied: cannot ")) {
      EXPECT_EQ(deadline(), kOldDeadline);
    } else {
      EXPECT_THAT(why, HasSubstr("applied, but may be lost with the next restart: cannot "));
      EXPECT_EQ(deadline(), kNewDeadline);
    }
    return status;
  };
  const int operations = TryAllFaults({.prepare =
                                           [this](SimulatedDisk& disk) {
                                             ASSERT_TRUE(Load(disk).ok());
                                             ASSERT_TRUE(Set("2s").ok());
                                           },
                                       .write = change,
                                       .check =
                                           [this](SimulatedDisk& disk, bool is_new) {
                                             const absl::Status status = Load(disk);
                                             ASSERT_TRUE(status.ok()) << status;
                                             EXPECT_TRUE(deadline() == kNewDeadline ||
                                                         (!is_new && deadline() == kOldDeadline));
                                           }});
  EXPECT_EQ(operations, 6);  // with the read
}

TEST_F(LiveConfigFaultsTest, AChangeThatWasRefusedCanBeMadeAgain) {
  SimulatedDisk disk;
  ASSERT_TRUE(Load(disk).ok());
  disk.FailAt(2, ENOSPC);
  EXPECT_EQ(Set("3s"), absl::UnavailableError(
                           "not applied: cannot write " + changes() +
                           ".new: No space left on device; make room in state_dir, or mend its "
                           "disk, and change it again"));
  ASSERT_TRUE(Set("3s").ok());
  ASSERT_TRUE(Load(disk).ok());
  EXPECT_EQ(deadline(), kNewDeadline);
}

TEST_F(LiveConfigFaultsTest, ChangesThatCannotBeReadAreNotTakenForNone) {
  SimulatedDisk disk;
  ASSERT_TRUE(Load(disk).ok());
  ASSERT_TRUE(Set("2s").ok());
  disk.FailAt(1, EIO);
  EXPECT_EQ(Load(disk),
            absl::UnavailableError("cannot read " + changes() + ": Input/output error"));
  disk.Find(changes())->clear();
  EXPECT_THAT(std::string(Load(disk).message()), HasSubstr("changes.json: not JSON"));
}

}  // namespace
}  // namespace torpor::server
