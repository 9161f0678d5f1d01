#include "tools/torporctl/user_program.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "tools/torporctl/private_folder.h"

namespace torpor::torporctl {
namespace {

using ::testing::ElementsAre;
using ::testing::Pair;

class UserProgramTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (const char* name : kVariables) {
      const char* const value = getenv(name);
      saved_.emplace_back(name, value == nullptr ? "" : value);
    }
    std::string name = ::testing::TempDir() + "program-XXXXXX";
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override {
    for (const auto& [name, value] : saved_) SetEnvironment({{name, value}});
    std::filesystem::remove_all(folder_);
  }

  std::string Touch(const std::string& name, mode_t mode) {
    std::string path = (folder_ / name).string();
    std::ofstream stream(path);
    chmod(path.c_str(), mode);
    return path;
  }

  static constexpr const char* kVariables[] = {"PATH", "LD_LIBRARY_PATH", "LD_PRELOAD", "TMPDIR"};
  std::vector<std::pair<std::string, std::string>> saved_;
  std::filesystem::path folder_;
};

TEST_F(UserProgramTest, ProgramsAreFoundInThePathAsAShellDoes) {
  const std::string path = Touch("tool", 0755);
  setenv("PATH", ("/nowhere:" + folder_.string() + ":/bin").c_str(), 1);
  EXPECT_EQ(FindUserProgram({"tool", "-x"})->path, path);
  EXPECT_EQ(FindUserProgram({path})->path, path);
  EXPECT_TRUE(absl::IsNotFound(FindUserProgram({"no-such-tool"}).status()));
  EXPECT_TRUE(absl::IsNotFound(FindUserProgram({"./tool"}).status()));
  EXPECT_TRUE(absl::IsNotFound(FindUserProgram({folder_.string()}).status()));
}

TEST_F(UserProgramTest, WhatMayNotBeRunIsToldApart) {
  if (geteuid() == 0) {
    // Root may read everything, but runs only what somebody may run.
    const std::string path = Touch("data", 0644);
    EXPECT_TRUE(absl::IsPermissionDenied(FindUserProgram({path}).status()));
  }
}

TEST_F(UserProgramTest, OnlyClientLibrariesThatExistArePreloaded) {
  const std::string runtime = Touch("libcudart.so.13", 0644);
  setenv("LD_LIBRARY_PATH", "/users/own", 1);
  setenv("LD_PRELOAD", "/users/preload.so", 1);
  EXPECT_THAT(ClientEnvironment(folder_.string(), "/run/s", "secret"),
              ElementsAre(Pair("LD_LIBRARY_PATH", folder_.string() + ":/users/own"),
                          Pair("LD_PRELOAD", runtime + ":/users/preload.so"),
                          Pair("TORPOR_SOCKET", "/run/s"), Pair("TORPOR_TOKEN", "secret")));
}

TEST_F(UserProgramTest, WithoutClientLibrariesNothingIsPreloaded) {
  unsetenv("LD_LIBRARY_PATH");
  unsetenv("LD_PRELOAD");
  EXPECT_THAT(ClientEnvironment("/client", "/run/s", ""),
              ElementsAre(Pair("LD_LIBRARY_PATH", "/client"), Pair("LD_PRELOAD", ""),
                          Pair("TORPOR_SOCKET", "/run/s"), Pair("TORPOR_TOKEN", "")));
}

TEST_F(UserProgramTest, APrivateFolderIsOursAndGoesWithItsObject) {
  setenv("TMPDIR", folder_.string().c_str(), 1);
  std::string path;
  {
    const auto made = PrivateFolder::Create();
    ASSERT_TRUE(made.ok()) << made.status();
    path = made->path();
    struct stat status {};
    ASSERT_EQ(stat(path.c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777, 0700u);
    std::ofstream(path + "/inside") << "x";
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST_F(UserProgramTest, AbandonedFoldersAreRemovedAndLivingOnesStay) {
  setenv("TMPDIR", folder_.string().c_str(), 1);
  const auto living = PrivateFolder::Create();
  const std::string abandoned = (folder_ / "torpor-run-killed").string();
  std::filesystem::create_directory(abandoned);
  for (const std::string& path : {living->path(), abandoned}) {
    std::filesystem::last_write_time(
        path, std::filesystem::file_time_type::clock::now() - std::chrono::hours(1));
  }
  const auto next = PrivateFolder::Create();
  EXPECT_FALSE(std::filesystem::exists(abandoned));
  EXPECT_TRUE(std::filesystem::exists(living->path()));
}

}  // namespace
}  // namespace torpor::torporctl
