#include "proto/cuda_api/cudart_dispatch.h"

#include <gtest/gtest.h>

#include "proto/cuda_api/fake_cudart_handler.h"
#include "tests/proto/cuda_api/field_filler.h"

namespace torpor::cuda_api {
namespace {

template <typename... Commands>
struct EveryCommand {
  static void Dispatch(FakeCudartHandler& handler) { (DispatchOne<Commands>(handler), ...); }

  template <typename Command>
  static void DispatchOne(FakeCudartHandler& handler) {
    EXPECT_TRUE(IsCudartCall(Command::kCallId));
    wire::FieldFiller filler(Command::kCallId);
    Command command;
    filler(command);
    std::vector<std::uint8_t> fields = wire::Encoded(command);
    CallOutcome outcome;
    handler.call_ids.clear();
    ASSERT_TRUE(DispatchCudart(handler.handlers(), Command::kCallId, fields, outcome).ok());
    EXPECT_EQ(handler.call_ids, std::vector{Command::kCallId});
    EXPECT_EQ(outcome.is_sync, Command::kSync);

    fields.resize(fields.size() + wire::kAlignment);
    EXPECT_FALSE(DispatchCudart(handler.handlers(), Command::kCallId, fields, outcome).ok());
    EXPECT_EQ(handler.call_ids.size(), 1u) << "a malformed command reached the handler";
  }
};

TEST(CudartDispatchTest, EveryCommandReachesItsMethod) {
  FakeCudartHandler handler;
  wire::EveryCudartCommand<EveryCommand>::Dispatch(handler);
}

TEST(CudartDispatchTest, UnknownCallsAreRefused) {
  FakeCudartHandler handler;
  CallOutcome outcome;
  for (const std::uint32_t id : {0u, 63u, 127u, 1023u, 1024u, ~0u}) {
    EXPECT_FALSE(IsCudartCall(id));
    EXPECT_FALSE(DispatchCudart(handler.handlers(), id, {}, outcome).ok());
  }
  EXPECT_TRUE(handler.call_ids.empty());
}

class ElapsedTimeHandler : public FakeCudartHandler {
 public:
  CallStatus EventElapsedTime(const wire::EventElapsedTime& command,
                              wire::EventElapsedTimeResult& result) override {
    result.milliseconds = static_cast<float>(command.end - command.start);
    return answer;
  }
};

TEST(CudartDispatchTest, AnAnsweredCommandsResultIsEncoded) {
  ElapsedTimeHandler handler;
  CallOutcome outcome;
  const std::vector<std::uint8_t> fields =
      wire::Encoded(wire::EventElapsedTime{.start = 2, .end = 5});
  ASSERT_TRUE(
      DispatchCudart(handler.handlers(), wire::EventElapsedTime::kCallId, fields, outcome).ok());
  EXPECT_TRUE(outcome.is_sync);
  wire::EventElapsedTimeResult result;
  wire::Reader reader(outcome.result);
  reader(result);
  ASSERT_TRUE(reader.done());
  EXPECT_EQ(result.milliseconds, 3.0f);
}

TEST(CudartDispatchTest, AFailedCommandHasNoResult) {
  ElapsedTimeHandler handler;
  handler.answer = CallFailed(600, "not ready");
  CallOutcome outcome;
  outcome.result = {1, 2, 3};
  const std::vector<std::uint8_t> fields =
      wire::Encoded(wire::EventElapsedTime{.start = 2, .end = 5});
  ASSERT_TRUE(
      DispatchCudart(handler.handlers(), wire::EventElapsedTime::kCallId, fields, outcome).ok());
  EXPECT_EQ(outcome.status.code, 600);
  EXPECT_EQ(outcome.status.message, "not ready");
  EXPECT_TRUE(outcome.result.empty());
}

class LaunchHandler : public FakeCudartHandler {
 public:
  CallStatus LaunchKernel(const wire::LaunchKernel& command) override {
    parameters = command.parameters;
    grid = command.grid;
    return {};
  }
  std::span<const std::uint8_t> parameters;
  std::array<std::uint32_t, 3> grid{};
};

TEST(CudartDispatchTest, ALaunchBorrowsItsParameters) {
  const std::array<std::uint8_t, 12> bytes{1, 2, 3};
  const wire::LaunchKernel launch{.kernel = 1, .grid = {4, 5, 6}, .parameters = bytes};
  const std::vector<std::uint8_t> fields = wire::Encoded(launch);
  LaunchHandler handler;
  CallOutcome outcome;
  ASSERT_TRUE(DispatchCudart(handler.handlers(), launch.kCallId, fields, outcome).ok());
  EXPECT_EQ(handler.grid, launch.grid);
  ASSERT_EQ(handler.parameters.size(), bytes.size());
  EXPECT_GE(handler.parameters.data(), fields.data());
  EXPECT_LE(handler.parameters.data() + bytes.size(), fields.data() + fields.size());
  EXPECT_FALSE(outcome.is_sync);
}

}  // namespace
}  // namespace torpor::cuda_api
