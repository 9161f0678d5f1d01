#include "server/daemon/kept_sessions.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <map>
#include <string>

#include "tests/server/daemon/fake_service_manager.h"

namespace torpor::server {
namespace {

constexpr SessionFiles::Sizes kSizes = {.image = kGiB, .host_arena = kGiB, .window = kMiB};
constexpr SessionId kSession{7};

class KeptSessionsTest : public testing::Test {
 protected:
  KeptSessionsTest() { setenv("FDSTORE", "5", 1); }
  ~KeptSessionsTest() override { unsetenv("FDSTORE"); }

  // What the manager has been told to keep and not to remove; it goes on keeping that.
  std::map<std::string, UniqueFd> TakeKept() {
    std::map<std::string, UniqueFd> copies;
    while (true) {
      FakeServiceManager::Message message = manager_.Receive();
      const std::size_t at = message.text.find("FDNAME=");
      if (at == std::string::npos) break;
      const std::string name = message.text.substr(at + 7);
      if (message.text.starts_with("FDSTOREREMOVE=1")) {
        kept_.erase(name);
      } else {
        kept_[name] = std::move(message.descriptor);
      }
    }
    for (const auto& [name, descriptor] : kept_) copies[name] = UniqueFd(dup(descriptor.get()));
    return copies;
  }

  const FakeServiceManager manager_;
  std::map<std::string, UniqueFd> kept_;
};

TEST_F(KeptSessionsTest, TenantsFilesAreKeptByTheirNames) {
  {
    const auto file = SessionFiles::CreateTenantFile(kGiB).value();
    ASSERT_TRUE(file->Write(5, std::array<std::uint8_t, 1>{7}).ok());
    ASSERT_EQ(KeptSessions({}).KeepTenantFile("a", *file), absl::OkStatus());
  }
  KeptSessions next(TakeKept());
  EXPECT_EQ(next.TakeTenantFile("b", kGiB), nullptr);
  const auto file = next.TakeTenantFile("a", kGiB);
  ASSERT_TRUE(file);
  std::array<std::uint8_t, 1> read{};
  ASSERT_TRUE(file->Read(5, read).ok());
  EXPECT_EQ(read[0], 7);
  next.RemoveUntaken();
  EXPECT_EQ(TakeKept().count("tenant-a"), 1u) << "goes on being kept";
  EXPECT_EQ(KeptSessions(TakeKept()).TakeTenantFile("a", 2 * kGiB), nullptr) << "another size";
  next.RemoveTenantFile("a");
  EXPECT_TRUE(TakeKept().empty());
}

TEST_F(KeptSessionsTest, TheNextTorpordTakesTheFiles) {
  {
    const auto files = SessionFiles::Create(kSizes).value();
    files->checkpoint().Commit(42);
    ASSERT_EQ(KeptSessions({}).Keep(kSession, *files), absl::OkStatus());
  }
  std::map<std::string, UniqueFd> kept = TakeKept();
  EXPECT_EQ(kept.count("session-7-image"), 1u);
  KeptSessions next(std::move(kept));
  const auto files = next.Take(kSession, kSizes);
  ASSERT_TRUE(files.ok()) << files.status();
  EXPECT_EQ((*files)->checkpoint().saved_command(), 42u);
  EXPECT_TRUE(absl::IsNotFound(next.Take(kSession, kSizes).status())) << "once";
  next.RemoveUntaken();
  EXPECT_EQ(TakeKept().size(), 4u) << "what was taken goes on being kept";
  next.Remove(kSession);
  EXPECT_TRUE(TakeKept().empty());
}

TEST_F(KeptSessionsTest, WhatNobodyTakesIsLetGoOf) {
  const auto files = SessionFiles::Create(kSizes).value();
  ASSERT_EQ(KeptSessions({}).Keep(kSession, *files), absl::OkStatus());
  KeptSessions next(TakeKept());
  next.RemoveUntaken();
  EXPECT_TRUE(TakeKept().empty());
}

TEST_F(KeptSessionsTest, AllFilesOfASessionAreKeptOrNone) {
  const auto files = SessionFiles::Create(kSizes).value();
  KeptSessions kept({});
  ASSERT_EQ(kept.Keep(kSession, *files), absl::OkStatus());
  EXPECT_TRUE(absl::IsResourceExhausted(kept.Keep(SessionId{8}, *files)));
  EXPECT_EQ(TakeKept().size(), 4u);
}

}  // namespace
}  // namespace torpor::server
