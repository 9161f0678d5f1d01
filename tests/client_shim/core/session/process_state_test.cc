#include "client_shim/core/session/process_state.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "tests/client_shim/surface/fake_client_core.h"

namespace torpor::shim {
namespace {

class ProcessStateTest : public ::testing::Test {
 protected:
  // Makes sessions without a daemon and notes them.
  std::unique_ptr<ClientCore> Make(int device, int index) {
    made_.emplace_back(device, index);
    auto core = std::make_unique<FakeClientCore>();
    cores_.push_back(core.get());
    return core;
  }

  std::vector<std::pair<int, int>> made_;  // device and index
  std::vector<FakeClientCore*> cores_;
  ProcessState process_{
      [] { return Settings{}; },
      [this](ProcessState&, int device, int index) { return Make(device, index); }};
};

TEST_F(ProcessStateTest, HandlesAreUniqueAndTellTheirKind) {
  const std::uint64_t stream = process_.MintHandle(HandleKind::kStream);
  const std::uint64_t event = process_.MintHandle(HandleKind::kEvent);
  EXPECT_EQ(KindOf(stream), HandleKind::kStream);
  EXPECT_EQ(KindOf(event), HandleKind::kEvent);
  EXPECT_NE(stream & 0xffff, event & 0xffff);
}

TEST_F(ProcessStateTest, ADevicesSessionIsMadeOnce) {
  process_.devices().ShowAll(std::vector<wire::DeviceDescription>(2));
  EXPECT_EQ(process_.OfDevice(0), &process_.first());
  EXPECT_EQ(&process_.OfIndex(0), &process_.first());
  EXPECT_EQ(process_.OfDevice(2), nullptr);
  EXPECT_EQ(process_.OfDevice(-1), nullptr);
  ClientCore* const second = process_.OfDevice(1);
  EXPECT_EQ(second, cores_.at(1));
  EXPECT_EQ(process_.OfDevice(1), second);
  EXPECT_EQ(made_, (std::vector<std::pair<int, int>>{{0, 0}, {1, 1}}));
}

TEST_F(ProcessStateTest, IndicesAreTheFunctions) {
  process_.devices().Choose({2, 0}, std::vector<wire::DeviceDescription>(3));
  EXPECT_EQ(&process_.OfIndex(2), &process_.first());
  ClientCore* const second = process_.OfDevice(1);
  EXPECT_EQ(&process_.OfIndex(0), second);
  process_.OfIndex(1);
  EXPECT_EQ(made_, (std::vector<std::pair<int, int>>{{0, 0}, {1, 0}, {-1, 1}}));
}

TEST_F(ProcessStateTest, OnlyOpenSessionsAreFound) {
  process_.devices().ShowAll(std::vector<wire::DeviceDescription>(2));
  EXPECT_EQ(process_.FindOpen(0), &process_.first());
  EXPECT_EQ(process_.FindOpen(1), nullptr);
  ClientCore* const second = process_.OfDevice(1);
  EXPECT_EQ(process_.FindOpen(1), second);
  cores_.at(1)->failure = cudaErrorUnknown;
  EXPECT_EQ(process_.FindOpen(1), nullptr);
  cores_.at(1)->failure = cudaSuccess;
  cores_.at(0)->failure = cudaErrorUnknown;
  EXPECT_EQ(process_.FindOpen(1), nullptr) << "the program has not begun";
}

TEST_F(ProcessStateTest, ThePrimarySessionAsksForTheProcess) {
  const Log log;
  const SessionHealth health;
  MemoryRequests requests(health, log);
  process_.SetPrimary(*cores_.at(0), requests);
  EXPECT_EQ(&process_.primary(), cores_.at(0));
  EXPECT_EQ(&process_.primary_memory(), &requests);
}

TEST_F(ProcessStateTest, WithoutTheVariableNothingIsChosen) {
  EXPECT_EQ(process_.ChooseDevices(Settings{}, Log()), cudaSuccess);
  EXPECT_TRUE(process_.devices().descriptions().empty());
}

}  // namespace
}  // namespace torpor::shim
