#include <gtest/gtest.h>
#include <sys/fsuid.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <future>
#include <string>
#include <thread>

#include "tests/client_shim/core/session/session_fixture.h"

namespace torpor::shim {
namespace {

UniqueFd ListenAt(const std::string& path) {
  UniqueFd listener(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  EXPECT_EQ(bind(listener.get(), reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  EXPECT_EQ(listen(listener.get(), 1), 0);
  return listener;
}

TEST_F(SessionTest, OpensAndTellsWhoItIs) {
  settings_.token = "secret";
  ASSERT_EQ(Start(), cudaSuccess);
  const auto hello = daemon_.Await<wire::Hello>();
  EXPECT_EQ(hello.token, "secret");
  EXPECT_EQ(hello.process_id, static_cast<std::uint64_t>(getpid()));
  EXPECT_EQ(daemon_.Await<wire::HelloAck>().error, 0);
  EXPECT_EQ(session_->session().devices.at(0).name, "Fake GPU");
}

TEST_F(SessionTest, WithoutADaemonThereIsNoDevice) {
  settings_.socket = daemon_.folder() + "/nobody.sock";
  EXPECT_EQ(Start(), cudaErrorNoDevice);
  EXPECT_EQ(Launch(), cudaErrorNoDevice);
  EXPECT_EQ(Synchronize(), cudaErrorNoDevice);
}

TEST_F(SessionTest, ADaemonThatDiesBeforeItsAnswerMayHaveASuccessor) {
  settings_.socket = daemon_.folder() + "/between.sock";
  UniqueFd dying = ListenAt(settings_.socket);
  auto started = std::async(std::launch::async, [this] { return Start(); });
  UniqueFd connection(accept4(dying.get(), nullptr, nullptr, SOCK_CLOEXEC));
  dying.Reset();
  connection.Reset();
  const std::string successor = settings_.socket + ".next";
  ASSERT_EQ(symlink(daemon_.socket().c_str(), successor.c_str()), 0);
  ASSERT_EQ(rename(successor.c_str(), settings_.socket.c_str()), 0);
  EXPECT_EQ(started.get(), cudaSuccess);
}

TEST_F(SessionTest, ADeadDaemonWithoutASuccessorIsGivenUp) {
  settings_.socket = daemon_.folder() + "/dead.sock";
  settings_.connect_timeout = std::chrono::milliseconds(50);
  ListenAt(settings_.socket).Reset();
  EXPECT_EQ(Start(), cudaErrorNoDevice);
}

TEST_F(SessionTest, ASocketOfOthersMeansNoDeviceAndSaysWhy) {
  constexpr uid_t kNobody = 65534;
  ASSERT_EQ(chmod(daemon_.socket().c_str(), 0), 0);
  settings_.log = LogLevel::kWarn;
  ::testing::internal::CaptureStderr();
  // Root may open everything: this thread is somebody else to the file system for a moment.
  const int before = setfsuid(kNobody);
  const cudaError_t error = Start();
  setfsuid(static_cast<uid_t>(before));
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(error, cudaErrorNoDevice);
  EXPECT_NE(said.find(daemon_.socket()), std::string::npos) << said;
  EXPECT_NE(said.find("Permission denied"), std::string::npos) << said;
}

class RefusingDaemonTest : public SessionTest {
 protected:
  RefusingDaemonTest() : SessionTest(Refusing()) {}
  static FakeDaemon::Script Refusing() {
    FakeDaemon::Script script;
    script.hello_error = cudaErrorInsufficientDriver;
    script.hello_message = "the driver is too old";
    return script;
  }
};
TEST_F(RefusingDaemonTest, ARefusalIsTheErrorOfEveryCall) {
  EXPECT_EQ(Start(), cudaErrorInsufficientDriver);
  EXPECT_EQ(Launch(), cudaErrorInsufficientDriver);
}

class SeveralDevicesTest : public SessionTest {
 protected:
  SeveralDevicesTest() : SessionTest(Three()) {}
  static FakeDaemon::Script Three() {
    FakeDaemon::Script script;
    script.devices = 3;
    return script;
  }
};
TEST_F(SeveralDevicesTest, ASecondarySessionNamesThePrimaryAndItsKey) {
  ASSERT_EQ(Start(), cudaSuccess);
  EXPECT_EQ(session_->OfDevice(0), session_);
  EXPECT_EQ(session_->OfDevice(3), nullptr);
  EXPECT_EQ(session_->OfDevice(-1), nullptr);
  ClientCore* const secondary = session_->OfDevice(1);
  ASSERT_NE(secondary, nullptr);
  EXPECT_EQ(secondary, session_->OfDevice(1));
  EXPECT_EQ(secondary->device(), 1);
  EXPECT_FALSE(secondary->IsOpen());
  EXPECT_EQ(session_->FindOpen(1), nullptr);
  EXPECT_EQ(secondary->Start(), cudaSuccess);
  EXPECT_EQ(session_->FindOpen(1), secondary);
  const auto hello = daemon_.Await<wire::DeviceHello>();
  EXPECT_EQ(hello.device, 1);
  EXPECT_EQ(hello.primary_session, session_->session().session_id);
  EXPECT_EQ(hello.primary_key, session_->session().session_key);
  EXPECT_NE(session_->MintHandle(HandleKind::kStream), secondary->MintHandle(HandleKind::kStream));
}

TEST_F(SeveralDevicesTest, TheProgramsDevicesAreThoseThatAreVisible) {
  settings_.visible_devices = "2,0";
  ASSERT_EQ(Start(), cudaSuccess);
  ASSERT_EQ(session_->devices().size(), 2u);
  EXPECT_EQ(session_->devices()[0].uuid[0], 2);
  EXPECT_EQ(session_->OfDevice(0), session_);
  EXPECT_EQ(session_->device(), 0);
  EXPECT_EQ(session_->OfDevice(2), nullptr);
  // To the daemon the function's device 0 comes first.
  ClientCore* const second = session_->OfDevice(1);
  ASSERT_NE(second, nullptr);
  EXPECT_EQ(second->device(), 1);
  EXPECT_EQ(second->Start(), cudaSuccess);
  daemon_.Await<wire::Hello>();
  const auto secondary = daemon_.Await<wire::DeviceHello>();
  EXPECT_EQ(secondary.device, 2);
  EXPECT_EQ(secondary.primary_session, second->session().session_id);
  EXPECT_EQ(session_->FindOpen(0), second);
  EXPECT_EQ(session_->FindOpen(1), nullptr);
  EXPECT_EQ(session_->FindOpen(2), session_);
}

TEST_F(SeveralDevicesTest, WhatAllShareBelongsToThePrimarySession) {
  settings_.visible_devices = "1";
  ASSERT_EQ(Start(), cudaSuccess);
  EXPECT_EQ(session_->session().session_id, 43u);
  std::uint64_t pinned = 0;
  ASSERT_EQ(session_->HostAlloc(100, pinned), cudaSuccess);
  std::memset(reinterpret_cast<void*>(pinned), 1, 100);
  EXPECT_EQ(session_->HostFree(pinned), cudaSuccess);
  // Other processes' memory of a device that is hidden here is to the program on its first one.
  ClientCore::MemoryHandle handle;
  handle.owner_session = 7;
  handle.address = FakeDaemon::kForeignBase;
  ClientCore::Allocation opened;
  ASSERT_EQ(session_->OpenMemory(handle, opened), cudaSuccess);
  EXPECT_EQ(opened.device, 0);
  EXPECT_EQ(session_->CloseMemory(opened.begin), cudaSuccess);
}

TEST_F(SeveralDevicesTest, WhereNoneIsVisibleThereIsNoDeviceAndNoSession) {
  settings_.visible_devices = "";
  EXPECT_EQ(Start(), cudaErrorNoDevice);
  EXPECT_FALSE(session_->IsOpen());
  EXPECT_EQ(daemon_.Count<wire::Hello>(), 0u);
  wire::InquiryReply reply;
  EXPECT_EQ(session_->Inquire(reply), cudaSuccess);
  EXPECT_EQ(reply.devices.size(), 3u);
}

class SilentDaemonTest : public SessionTest {
 protected:
  SilentDaemonTest() : SessionTest(Silent()) {
    settings_.connect_timeout = std::chrono::milliseconds(50);
  }
  static FakeDaemon::Script Silent() {
    FakeDaemon::Script script;
    script.answers_hello = false;
    return script;
  }
};
TEST_F(SilentDaemonTest, ADaemonThatNeverAnswersIsGivenUp) {
  EXPECT_EQ(Start(), cudaErrorNoDevice);
}

class DyingDaemonTest : public SessionTest {
 protected:
  DyingDaemonTest() : SessionTest(Dying()) {}
  static FakeDaemon::Script Dying() {
    FakeDaemon::Script script;
    script.dies_before_ack = true;
    return script;
  }
};
// The send finds the connection broken, before any poll.
TEST_F(DyingDaemonTest, ADaemonThatDiesBeforeTheAcknowledgementIsLost) {
  Start();  // tells of it already or not yet
  EXPECT_EQ(Launch(), cudaErrorDevicesUnavailable);
  std::uint64_t address = 0;
  EXPECT_EQ(session_->Malloc(16, address), cudaErrorDevicesUnavailable);
}

TEST_F(SessionTest, AForkedChildFailsAndLeavesTheParentAlone) {
  ASSERT_EQ(Start(), cudaSuccess);
  ASSERT_EQ(Synchronize(), cudaSuccess);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    std::uint64_t address = 0;
    const bool refused = session_->Start() == cudaErrorInitializationError &&
                         Launch() == cudaErrorInitializationError &&
                         Synchronize() == cudaErrorInitializationError &&
                         session_->Malloc(1, address) == cudaErrorInitializationError;
    _exit(refused ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(Synchronize(), cudaSuccess);
}

TEST_F(SessionTest, AForkedChildMayStillInquire) {
  ASSERT_EQ(Start(), cudaSuccess);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    wire::InquiryReply reply;
    const bool is_told = session_->Inquire(reply) == cudaSuccess && reply.devices.size() == 1;
    _exit(is_told && !session_->FindOpen(0) ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST_F(SessionTest, WhoHasOnlyInquiredMayForkChildrenWithSessions) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP()
      << "AddressSanitizer's allocator may be locked at the fork; ThreadSanitizer lets a forked "
         "process start no threads";
#endif
  // In a process where no test has opened a session.
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto fork_after_inquiry = [this] {
    MakeSession();
    wire::InquiryReply reply;
    const bool is_told = session_->Inquire(reply) == cudaSuccess;
    const pid_t child = fork();
    if (child == 0) _exit(session_->Start() == cudaSuccess && Synchronize() == cudaSuccess ? 0 : 1);
    int status = -1;
    waitpid(child, &status, 0);
    _exit(is_told && status == 0 ? 0 : 1);
  };
  EXPECT_EXIT(fork_after_inquiry(), ::testing::ExitedWithCode(0), "");
}

TEST_F(SessionTest, AnInvalidMessageEndsTheSession) {
  ASSERT_EQ(Start(), cudaSuccess);
  daemon_.Await<wire::HelloAck>();
  daemon_.SendRaw("nonsense");
  while (session_->Start() == cudaSuccess) std::this_thread::yield();
  EXPECT_EQ(session_->Start(), cudaErrorDevicesUnavailable);
}

TEST_F(SessionTest, ALostDaemonFailsEveryCallAndHangsNone) {
  std::future<cudaError_t> call = CallWithoutLease();
  daemon_.Stop();
  EXPECT_EQ(call.get(), cudaErrorDevicesUnavailable);
  std::uint64_t address = 0;
  EXPECT_EQ(session_->Malloc(16, address), cudaErrorDevicesUnavailable);
  EXPECT_EQ(session_->Start(), cudaErrorDevicesUnavailable);
}

}  // namespace
}  // namespace torpor::shim
