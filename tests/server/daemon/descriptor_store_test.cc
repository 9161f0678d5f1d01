#include "server/daemon/descriptor_store.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

#include "tests/server/daemon/fake_service_manager.h"

namespace torpor::server {
namespace {

using ::testing::HasSubstr;

UniqueFd NewFile() { return UniqueFd(memfd_create("image", MFD_CLOEXEC)); }

ino_t FileOf(const UniqueFd& descriptor) {
  struct stat status {};
  EXPECT_EQ(fstat(descriptor.get(), &status), 0);
  return status.st_ino;
}

class DescriptorStoreTest : public ::testing::Test {
 protected:
  DescriptorStoreTest() { setenv("FDSTORE", "2", 1); }
  ~DescriptorStoreTest() override { unsetenv("FDSTORE"); }
};

TEST_F(DescriptorStoreTest, TheManagerGetsTheFileAndItsName) {
  const FakeServiceManager manager;
  DescriptorStore store;
  const UniqueFd file = NewFile();
  ASSERT_TRUE(store.is_available());
  ASSERT_EQ(store.Keep("image-42", file.get()), absl::OkStatus());
  const FakeServiceManager::Message kept = manager.Receive();
  EXPECT_EQ(kept.text, "FDSTORE=1\nFDNAME=image-42");
  EXPECT_EQ(FileOf(kept.descriptor), FileOf(file));
  store.Remove("image-42");
  EXPECT_EQ(manager.Receive().text, "FDSTOREREMOVE=1\nFDNAME=image-42");
}

TEST_F(DescriptorStoreTest, OnlyWhatIsKeptIsRemoved) {
  const FakeServiceManager manager;
  DescriptorStore store;
  store.Remove("image-42");
  EXPECT_EQ(manager.Receive().text, "nothing");
}

TEST_F(DescriptorStoreTest, WithoutAManagerThatKeepsThereIsNone) {
  const UniqueFd file = NewFile();
  EXPECT_FALSE(DescriptorStore().is_available());
  const FakeServiceManager manager;
  unsetenv("FDSTORE");  // as for a manager that only hears of READY=1
  DescriptorStore store;
  EXPECT_FALSE(store.is_available());
  EXPECT_TRUE(absl::IsFailedPrecondition(store.Keep("image-42", file.get())));
  EXPECT_EQ(manager.Receive().text, "nothing");
}

TEST_F(DescriptorStoreTest, MoreThanTheManagerKeepsIsAnErrorThatNamesTheSetting) {
  const FakeServiceManager manager;
  const UniqueFd file = NewFile();
  DescriptorStore store;
  ASSERT_EQ(store.Keep("image-1", file.get()), absl::OkStatus());
  ASSERT_EQ(store.Keep("image-2", file.get()), absl::OkStatus());
  const absl::Status status = store.Keep("image-3", file.get());
  EXPECT_TRUE(absl::IsResourceExhausted(status));
  EXPECT_THAT(std::string(status.message()), HasSubstr("--store-max"));
  store.Remove("image-1");
  EXPECT_EQ(store.Keep("image-3", file.get()), absl::OkStatus());
}

TEST_F(DescriptorStoreTest, WhatEarlierProcessesKeptCounts) {
  const FakeServiceManager manager;
  std::map<std::string, UniqueFd> kept;
  kept["image-1"] = NewFile();
  kept["image-2"] = NewFile();
  DescriptorStore store(kept);
  EXPECT_TRUE(absl::IsResourceExhausted(store.Keep("image-3", kept["image-1"].get())));
  store.Remove("image-2");
  EXPECT_EQ(manager.Receive().text, "FDSTOREREMOVE=1\nFDNAME=image-2");
}

TEST_F(DescriptorStoreTest, NamesAreCheckedAndUsedOnce) {
  const FakeServiceManager manager;
  const UniqueFd file = NewFile();
  DescriptorStore store;
  for (const char* name : {"", "a:b", "a\nREADY=1", "\xc3\xa4"}) {
    EXPECT_TRUE(absl::IsInvalidArgument(store.Keep(name, file.get()))) << name;
  }
  EXPECT_TRUE(absl::IsInvalidArgument(store.Keep(std::string(256, 'x'), file.get())));
  ASSERT_EQ(store.Keep("image-1", file.get()), absl::OkStatus());
  EXPECT_TRUE(absl::IsAlreadyExists(store.Keep("image-1", file.get())));
}

TEST_F(DescriptorStoreTest, AManagerThatIsGoneIsAnError) {
  setenv("NOTIFY_SOCKET", "/nowhere/socket", 1);
  const UniqueFd file = NewFile();
  DescriptorStore store;
  EXPECT_TRUE(absl::IsUnavailable(store.Keep("image-1", file.get())));
  unsetenv("NOTIFY_SOCKET");
}

// Makes two files the descriptors 3 and 4, as a manager does; those that the test program has
// there are lost, so this is for a process of its own.
void ReceiveTwo(const char* names, pid_t pid) {
  const UniqueFd first(fcntl(NewFile().get(), F_DUPFD_CLOEXEC, 10));
  const UniqueFd second(fcntl(NewFile().get(), F_DUPFD_CLOEXEC, 10));
  dup2(first.get(), 3);
  dup2(second.get(), 4);
  setenv("LISTEN_FDS", "2", 1);
  setenv("LISTEN_FDNAMES", names, 1);
  setenv("LISTEN_PID", std::to_string(pid).c_str(), 1);
}

// Ends the process, with status 0 if all is so, else with the number of the first that is not.
[[noreturn]] void Conclude(std::initializer_list<bool> facts) {
  int number = 1;
  for (const bool fact : facts) {
    if (!fact) _exit(number);
    ++number;
  }
  _exit(0);
}

TEST(DescriptorStoreDeathTest, WhatWasKeptComesBackByNameAndOnce) {
  EXPECT_EXIT(
      {
        ReceiveTwo("image-1:window-1", getpid());
        const auto kept = DescriptorStore::TakeKept();
        Conclude({kept.size() == 2, kept.at("image-1").get() == 3, kept.at("window-1").get() == 4,
                  fcntl(3, F_GETFD) == FD_CLOEXEC, getenv("LISTEN_FDS") == nullptr,
                  getenv("LISTEN_FDNAMES") == nullptr, getenv("LISTEN_PID") == nullptr,
                  DescriptorStore::TakeKept().empty()});
      },
      ::testing::ExitedWithCode(0), "");
}

TEST(DescriptorStoreDeathTest, WhatHasNoNameIsClosed) {
  EXPECT_EXIT(
      {
        ReceiveTwo("image-1", getpid());
        const auto kept = DescriptorStore::TakeKept();
        Conclude({kept.size() == 1, fcntl(4, F_GETFD) == -1});
      },
      ::testing::ExitedWithCode(0), "");
}

TEST(DescriptorStoreDeathTest, AnotherProcesssDescriptorsAreLeftAlone) {
  EXPECT_EXIT(
      {
        ReceiveTwo("image-1:window-1", getppid());
        Conclude({DescriptorStore::TakeKept().empty(), fcntl(3, F_GETFD) == 0});
      },
      ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace torpor::server
