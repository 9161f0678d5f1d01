#include <gtest/gtest.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <string>
#include <thread>

#include "tests/client_shim/session_fixture.h"

namespace torpor::shim {
namespace {

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

class TwoDevicesTest : public SessionTest {
 protected:
  TwoDevicesTest() : SessionTest(Two()) {}
  static FakeDaemon::Script Two() {
    FakeDaemon::Script script;
    script.devices = 2;
    return script;
  }
};
TEST_F(TwoDevicesTest, AFurtherDevicesSessionNamesTheFirstAndItsKey) {
  ASSERT_EQ(Start(), cudaSuccess);
  EXPECT_EQ(session_->OfDevice(0), session_.get());
  EXPECT_EQ(session_->OfDevice(2), nullptr);
  EXPECT_EQ(session_->OfDevice(-1), nullptr);
  ClientCore* const further = session_->OfDevice(1);
  ASSERT_NE(further, nullptr);
  EXPECT_EQ(further, session_->OfDevice(1));
  EXPECT_EQ(further->device(), 1);
  EXPECT_FALSE(further->IsOpen());
  // The fake daemon gives it the addresses that the first has already.
  EXPECT_EQ(further->Start(), cudaErrorMemoryAllocation);
  const auto hello = daemon_.Await<wire::DeviceHello>();
  EXPECT_EQ(hello.device, 1);
  EXPECT_EQ(hello.first_session, session_->session().session_id);
  EXPECT_EQ(hello.first_key, session_->session().session_key);
  EXPECT_NE(session_->MintHandle(HandleKind::kStream), further->MintHandle(HandleKind::kStream));
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
// It is the send that finds the connection broken, before anybody polls it.
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

TEST_F(SessionTest, ANonsenseMessageEndsTheSession) {
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
