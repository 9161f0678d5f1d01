#include "server/executor/session/batch_runner.h"

#include <driver_types.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>
#include <thread>

#include "tests/server/executor/session/batch_test.h"

namespace torpor::executor {
namespace {

using ::testing::ElementsAre;

using BatchRunnerTest = BatchTest;

TEST_F(BatchRunnerTest, LaunchesInOrderAndAnswersOnce) {
  LoadKernel();
  const std::uint64_t one = 1;
  const std::uint64_t two = 2;
  const wire::Reply reply =
      Call(BatchBuilder().Add(Launch(one)).Add(Launch(two)).Add(wire::DeviceSynchronize{}));
  EXPECT_EQ(reply.call_id, wire::DeviceSynchronize::kCallId);
  EXPECT_EQ(reply.status, 0);
  EXPECT_THAT(s_.cuda.launches(), ElementsAre(1, 2));
  EXPECT_TRUE(s_.memory->image().dirty());
}

// The fake runs the stream that was created last first, if nothing says otherwise.
TEST_F(BatchRunnerTest, AFenceHoldsBackOtherStreams) {
  LoadKernel();
  s_.cuda.HoldStreams();
  const std::uint64_t one = 1;
  const std::uint64_t two = 2;
  wire::LaunchKernel earlier = Launch(one);
  wire::LaunchKernel later = Launch(two);
  earlier.stream = 8;
  later.stream = 9;
  Call(BatchBuilder()
           .Add(wire::StreamCreate{8, CU_STREAM_NON_BLOCKING, 0})
           .Add(wire::StreamCreate{9, CU_STREAM_NON_BLOCKING, 0})
           .Add(earlier)
           .Add(later)
           .Add(wire::DeviceSynchronize{}));
  EXPECT_THAT(s_.cuda.launches(), ElementsAre(2, 1));
  Call(BatchBuilder()
           .Add(earlier)
           .Add(wire::StreamFence{8})
           .Add(later)
           .Add(wire::DeviceSynchronize{}));
  EXPECT_THAT(s_.cuda.launches(), ElementsAre(2, 1, 1, 2));
}

TEST_F(BatchRunnerTest, TheFirstAsynchronousErrorIsToldOnce) {
  wire::LaunchKernel unknown;
  unknown.kernel = 77;
  EXPECT_EQ(ErrorOf(unknown), cudaErrorInvalidDeviceFunction);
  EXPECT_EQ(Call(BatchBuilder().Add(wire::DeviceSynchronize{})).async_error, cudaSuccess);
}

TEST_F(BatchRunnerTest, ForeignMemoryIsRefused) {
  wire::Memset fill;
  fill.element_bytes = 1;
  fill.count = 16;
  for (const std::uint64_t address :
       {std::uint64_t{0}, base() - 1, base() + 4 * kMiB - 15, ~std::uint64_t{0} - 7}) {
    fill.dst = address;
    EXPECT_EQ(ErrorOf(fill), cudaErrorInvalidValue) << std::hex << address;
  }
  fill.dst = base();
  fill.count = ~std::uint64_t{0};
  fill.element_bytes = 4;
  EXPECT_EQ(ErrorOf(fill), cudaErrorInvalidValue) << "the product overflows";
}

TEST_F(BatchRunnerTest, PinnedMemoryOfTheArenaIsTheDevicesToo) {
  constexpr Bytes kPinned = 8 * kKiB;
  ASSERT_TRUE(s_.session->MapHost({4 * kKiB, 4 * kKiB + kPinned}).ok());
  wire::Memset fill;
  fill.dst = s_.identity.host_base + 4 * kKiB;
  fill.element_bytes = 1;
  fill.count = kPinned;
  fill.value = 7;
  EXPECT_EQ(ErrorOf(fill), cudaSuccess);
  EXPECT_EQ(*s_.memory->Arena(4 * kKiB + kPinned - 1, 1), 7);
  fill.count = kPinned + 1;
  EXPECT_EQ(ErrorOf(fill), cudaErrorInvalidValue) << "one byte beyond";
  fill.dst -= 1;
  fill.count = 1;
  EXPECT_EQ(ErrorOf(fill), cudaErrorInvalidValue) << "never allocated";
}

TEST_F(BatchRunnerTest, PayloadsOutsideTheirMemoryAreRefusedButMarked) {
  wire::MemcpyHtoD copy;
  copy.dst = base();
  copy.bytes = 64;
  copy.payload = wire::Payload::kWindow;
  copy.offset = s_.identity.window_bytes - 63;
  copy.slot = 4;
  copy.value = 11;
  EXPECT_EQ(ErrorOf(copy), cudaErrorInvalidValue);
  copy.offset = 0;  // the completion page
  copy.value = 12;
  EXPECT_EQ(ErrorOf(copy), cudaErrorInvalidValue);
  copy.payload = wire::Payload::kInline;  // with no bytes
  copy.value = 13;
  EXPECT_EQ(ErrorOf(copy), cudaErrorInvalidValue);
  copy.payload = static_cast<wire::Payload>(9);
  copy.value = 14;
  EXPECT_EQ(ErrorOf(copy), cudaErrorInvalidValue);
}

TEST_F(BatchRunnerTest, TwoDimensionalExtentsAreCheckedWhole) {
  wire::Memcpy2D copy;
  copy.dst = base();
  copy.src = base() + kMiB;
  copy.dst_pitch = copy.src_pitch = 1024;
  copy.width = 512;
  copy.height = 1024;
  EXPECT_EQ(ErrorOf(copy), cudaSuccess);
  copy.height = 4096;
  EXPECT_EQ(ErrorOf(copy), cudaErrorInvalidValue);
  copy.height = ~std::uint64_t{0};
  EXPECT_EQ(ErrorOf(copy), cudaErrorInvalidValue);
  copy.height = 2;
  copy.width = 2048;
  EXPECT_EQ(ErrorOf(copy), cudaErrorInvalidValue) << "wider than the pitch";
}

TEST_F(BatchRunnerTest, AKernelGetsAllItsParametersOrNothing) {
  LoadKernel();
  const std::uint64_t value = 1;
  wire::LaunchKernel launch = Launch(value);
  launch.parameters = launch.parameters.first(7);
  EXPECT_EQ(ErrorOf(launch), cudaErrorInvalidValue);
  EXPECT_TRUE(s_.cuda.launches().empty());
}

TEST_F(BatchRunnerTest, GarbageEndsTheStream) {
  BatchBuilder good;
  good.Add(wire::DeviceSynchronize{});
  std::vector<std::uint8_t> frame = good.Frame(kLease);
  EXPECT_FALSE(s_.Run({}).ok());
  EXPECT_FALSE(s_.Run({frame.begin(), frame.end() - 1}).ok());
  frame.push_back(0);
  EXPECT_FALSE(s_.Run(frame).ok()) << "bytes after the last command";
  EXPECT_FALSE(s_.Run(good.Frame(6)).ok()) << "another lease";
  BatchBuilder unknown;
  unknown.AddRaw(63, {});
  EXPECT_FALSE(s_.Run(unknown.Frame(kLease)).ok());
  BatchBuilder malformed;
  malformed.AddRaw(wire::LaunchKernel::kCallId, std::vector<std::uint8_t>(8));
  EXPECT_FALSE(s_.Run(malformed.Frame(kLease)).ok());
  frame = good.Frame(kLease);
  const std::uint32_t lie = 0x7ffffff8;
  std::memcpy(frame.data() + sizeof(wire::BatchHeader) + 4, &lie, sizeof lie);
  EXPECT_FALSE(s_.Run(frame).ok());
}

TEST_F(BatchRunnerTest, NumbersOfCommandsGrow) {
  BatchBuilder two;
  two.Add(wire::DeviceSynchronize{}).Add(wire::DeviceSynchronize{});
  ASSERT_TRUE(s_.Run(two.Frame(kLease, 5)).ok());
  ASSERT_TRUE(s_.Run(two.Frame(kLease)).ok()) << "without numbers";
  EXPECT_FALSE(s_.Run(two.Frame(kLease, 6)).ok()) << "6 was the last";
  ASSERT_TRUE(s_.Run(two.Frame(kLease, 9)).ok()) << "a replay leaves some out";
}

TEST_F(BatchRunnerTest, ACheckpointSavesTheMemoryUnderTheLease) {
  wire::Memset fill;
  fill.dst = s_.identity.device_base;
  fill.value = 7;
  fill.element_bytes = 1;
  fill.count = 8;
  wire::EventCreate create;
  create.event = 30;
  wire::EventRecord record;
  record.event = 30;
  DeviceImage& image = s_.memory->image();
  BatchBuilder batch;
  batch.Add(fill).Add(create).Add(record);
  batch.AddRaw(static_cast<std::uint32_t>(wire::ProtocolCall::kCheckpoint), {});
  batch.Add(wire::DeviceSynchronize{});
  s_.replies.replies.clear();
  ASSERT_TRUE(s_.Run(batch.Frame(kLease, 11)).ok());
  ASSERT_EQ(s_.replies.replies.size(), 2u);
  wire::CheckpointReply saved;
  wire::Reader reader(s_.replies.replies[0].result);
  reader(saved);
  ASSERT_TRUE(reader.done());
  EXPECT_EQ(saved.saved_command, 13u);
  EXPECT_EQ(saved.events.size(), 1u);
  EXPECT_EQ(image.checkpoint().saved_command(), 13u);
  EXPECT_TRUE(image.checkpoint().is_whole());
  EXPECT_EQ(image.HostWord(fill.dst), 0x0707'0707'0707'0707u);
  // The lease goes on, and its end saves what comes later.
  ASSERT_TRUE(s_.Run(BatchBuilder().Add(fill).Frame(kLease, 15)).ok());
  EXPECT_EQ(image.checkpoint().saved_command(), 13u);
  ASSERT_TRUE(s_.session->EndLease({kLease}, SteadyClock().Now() + std::chrono::seconds(1)).ok());
  ASSERT_TRUE(s_.session->SwapOut({}, s_.stream, s_.findings).ok());
  EXPECT_EQ(image.checkpoint().saved_command(), 15u);
}

TEST_F(BatchRunnerTest, AWriteBackInPartsIsNoCheckpointBeforeItsEnd) {
  wire::Memset fill;
  fill.dst = s_.identity.device_base;
  fill.element_bytes = 1;
  fill.value = 7;
  fill.count = 4 * kMiB;
  ASSERT_TRUE(s_.Run(BatchBuilder().Add(fill).Frame(kLease, 1)).ok());
  ASSERT_TRUE(s_.session->EndLease({kLease}, SteadyClock().Now() + std::chrono::seconds(1)).ok());
  const memory::Checkpoint checkpoint = s_.memory->image().checkpoint();
  SwapOutOptions part;
  part.max_bytes = kMiB;
  for (int i = 0; i < 4; ++i) {
    EXPECT_EQ(checkpoint.saved_command(), 0u);
    ASSERT_TRUE(s_.session->SwapOut(part, s_.stream, s_.findings).ok());
    EXPECT_EQ(checkpoint.is_whole(), i == 3);
  }
  EXPECT_EQ(checkpoint.saved_command(), 1u);
}

TEST_F(BatchRunnerTest, AStickyErrorStaysAndIsReportedOnce) {
  LoadKernel();
  s_.cuda.Break(CUDA_ERROR_ILLEGAL_ADDRESS);
  wire::Reply reply = Call(BatchBuilder().Add(wire::DeviceGetLimit{}));
  EXPECT_EQ(reply.status, cudaErrorIllegalAddress);
  EXPECT_EQ(reply.async_error, cudaErrorIllegalAddress);
  EXPECT_EQ(reply.async_error_is_sticky, 1u);
  reply = Call(BatchBuilder().Add(wire::DeviceGetLimit{}));
  EXPECT_EQ(reply.async_error, cudaErrorIllegalAddress);
  EXPECT_EQ(s_.events.count, 1);
}

// Somebody else repeats the work.
TEST_F(BatchRunnerTest, WorkThatFailingHardwareEndsIsNotAnswered) {
  LoadKernel();
  s_.cuda.Break(CUDA_ERROR_ECC_UNCORRECTABLE);
  const std::size_t before = s_.replies.replies.size();
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(s_.Run(BatchBuilder().Add(wire::DeviceGetLimit{}).Frame(kLease)).ok());
  }
  EXPECT_EQ(s_.replies.replies.size(), before);
  EXPECT_EQ(s_.events.count, 1);
}

TEST_F(BatchRunnerTest, ADrainTellsWhenEventsCompleted) {
  wire::EventCreate create;
  create.event = 30;
  wire::EventRecord record;
  record.event = 30;
  BatchBuilder batch;
  batch.Add(create).Add(record);
  batch.AddRaw(static_cast<std::uint32_t>(wire::ProtocolCall::kDrain), {});
  const wire::Reply reply = Call(batch);
  wire::DrainReply drained;
  wire::Reader reader(reply.result);
  reader(drained);
  ASSERT_TRUE(reader.done());
  ASSERT_EQ(drained.events.size(), 1u);
  EXPECT_EQ(drained.events[0].event, 30u);
  EXPECT_GT(drained.events[0].completed_ns, 0);

  wire::EventImport import;
  import.event = 30;
  import.completed_ns = drained.events[0].completed_ns - 2'000'000;
  wire::EventCreate create_end;
  create_end.event = 31;
  wire::EventRecord record_end;
  record_end.event = 31;
  wire::EventElapsedTime elapsed;
  elapsed.start = 30;
  elapsed.end = 31;
  const wire::Reply answer =
      Call(BatchBuilder().Add(import).Add(create_end).Add(record_end).Add(elapsed));
  EXPECT_EQ(answer.status, 0);
}

TEST_F(BatchRunnerTest, VariablesGoToTheImageAndComeBack) {
  LoadKernel({"counter"}, UsingModule());
  wire::ModuleBindGlobals bind;
  bind.module = 1;
  bind.address = base();
  EXPECT_EQ(ErrorOf(bind), cudaSuccess);
  const std::uint64_t value = 42;
  wire::MemcpyToSymbol write;
  write.module = 1;
  write.variable = "counter";
  write.bytes = sizeof value;
  write.data = {reinterpret_cast<const std::uint8_t*>(&value), sizeof value};
  EXPECT_EQ(ErrorOf(write), cudaSuccess);
  write.variable_offset = 1;
  EXPECT_EQ(ErrorOf(write), cudaErrorInvalidSymbol);
  ASSERT_TRUE(s_.session->EndLease({kLease}, SteadyClock().Now() + std::chrono::seconds(1)).ok());
  ASSERT_TRUE(s_.session->SwapOut({.drop = true}, s_.stream, s_.findings).ok());

  s_.cuda.SetVariable(0);  // another function's work on this GPU would do that to a shared one
  ASSERT_TRUE(s_.session->SwapIn({{{0, 4096}}}, /*is_whole=*/false).ok());
  EXPECT_EQ(s_.cuda.variable(), 42u);
}

TEST_F(BatchRunnerTest, ASwapInThatFailsLeavesNothing) {
  LoadKernel({"counter"}, UsingModule());
  s_.cuda.SetVariable(42);
  EXPECT_EQ(ErrorOf(wire::ModuleBindGlobals{1, base()}), cudaSuccess);
  ASSERT_TRUE(s_.session->EndLease({kLease}, SteadyClock().Now() + std::chrono::seconds(1)).ok());
  ASSERT_TRUE(s_.session->SwapOut({.drop = true}, s_.stream, s_.findings).ok());
  s_.cuda.RefuseDeviceCopies(true);
  EXPECT_FALSE(s_.session->SwapIn({{{0, 4096}}}, /*is_whole=*/false).ok());
  EXPECT_EQ(s_.cuda.mapped_chunks(), 0u);
  EXPECT_FALSE(s_.memory->image().Contains(base(), 1));
  s_.cuda.RefuseDeviceCopies(false);
  s_.cuda.SetVariable(0);
  ASSERT_TRUE(s_.session->SwapIn({{{0, 4096}}}, /*is_whole=*/false).ok());
  EXPECT_EQ(s_.cuda.variable(), 42u);
}

// Modules whose code uses no variables are shared, what a session sets of a kernel is not.
TEST_F(BatchRunnerTest, AKernelsAttributesAreTheSessionsOwn) {
  LoadKernel();
  const std::vector<std::uint8_t> fatbin = EmptyFatbin();
  const Sha256Digest digest = Sha256(fatbin.data(), fatbin.size());
  const auto others = s_.modules->Load(digest, s_.memory->tenant(), {}, false)->module;
  ASSERT_EQ(s_.cuda.modules_loaded(), 1u);
  LoadedKernel* const theirs = others->FindKernel("record");
  const auto their_value = [&](CUfunction_attribute attribute) {
    int value = 0;
    s_.cuda.driver().FuncGetAttribute(&value, attribute, theirs->function);
    return value;
  };
  const auto our_value = [&](CUfunction_attribute attribute) {
    const wire::Reply reply = Call(BatchBuilder().Add(wire::FuncGetAttributes{2}));
    wire::FuncGetAttributesResult result;
    wire::Reader reader(reply.result);
    reader(result);
    return result.values.at(attribute);
  };
  constexpr auto kLimit = CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
  constexpr auto kWidth = CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH;
  EXPECT_EQ(ErrorOf(wire::FuncSetAttribute{2, kLimit, 100}), cudaSuccess);
  ASSERT_EQ(others->RaiseSharedLimit(*theirs, 200), CUDA_SUCCESS);
  EXPECT_EQ(our_value(kLimit), 100);
  EXPECT_EQ(s_.cuda.modules_loaded(), 1u) << "a limit that only grows can be shared";

  EXPECT_EQ(ErrorOf(wire::FuncSetAttribute{2, kWidth, 2}), cudaSuccess);
  EXPECT_EQ(our_value(kWidth), 2);
  EXPECT_NE(their_value(kWidth), 2);
  EXPECT_EQ(our_value(kLimit), 100);
  EXPECT_EQ(ErrorOf(wire::FuncSetAttribute{2, kWidth, 4}), cudaSuccess);
  EXPECT_EQ(s_.cuda.modules_loaded(), 2u);
  const std::uint64_t value = 3;
  EXPECT_EQ(ErrorOf(Launch(value)), cudaSuccess);
  EXPECT_EQ(s_.cuda.launches().back(), 3u);
  EXPECT_EQ(ErrorOf(wire::FuncSetAttribute{9, kWidth, 4}), cudaErrorInvalidDeviceFunction);
}

TEST_F(BatchRunnerTest, AVariablesAddressOfAnotherGpuIsTranslated) {
  constexpr std::uint64_t kThere = 0x7'1234'5000;
  LoadKernel({"counter"});
  const std::uint64_t value = 42;
  wire::MemcpyHtoD write;
  write.dst = kThere;
  write.bytes = sizeof value;
  write.data = {reinterpret_cast<const std::uint8_t*>(&value), sizeof value};
  EXPECT_EQ(ErrorOf(write), cudaErrorInvalidValue);

  wire::SymbolPublish publish{1, "counter", kThere};
  EXPECT_EQ(ErrorOf(publish), cudaSuccess);
  EXPECT_EQ(ErrorOf(write), cudaSuccess);
  EXPECT_EQ(s_.cuda.variable(), 42u);
  write.dst = kThere + 1;  // beyond its end
  EXPECT_EQ(ErrorOf(write), cudaErrorInvalidValue);

  wire::SymbolAddress ask;
  ask.module = 1;
  ask.variable = "counter";
  wire::SymbolAddressResult here;
  const wire::Reply reply = Call(BatchBuilder().Add(ask));
  wire::Reader reader(reply.result);
  reader(here);
  EXPECT_EQ(ErrorOf(Launch(kThere + 4)), cudaSuccess);
  EXPECT_EQ(s_.cuda.launches().back(), here.address + 4);

  publish.variable = "nobody";
  EXPECT_NE(ErrorOf(publish), cudaSuccess);
}

TEST_F(BatchRunnerTest, AnEndedLeaseRefusesAndASwapNeedsItsEnd) {
  EXPECT_TRUE(absl::IsFailedPrecondition(
      s_.session->SwapOut({.drop = true}, s_.stream, s_.findings).status()));
  EXPECT_TRUE(absl::IsFailedPrecondition(s_.session->BeginLease({6})));
  EXPECT_TRUE(absl::IsFailedPrecondition(s_.session->EndLease({6}, TimePoint::max())));
  ASSERT_TRUE(s_.session->EndLease({kLease}, SteadyClock().Now() + std::chrono::seconds(1)).ok());
  EXPECT_FALSE(s_.Run(BatchBuilder().Add(wire::DeviceSynchronize{}).Frame(kLease)).ok());
}

TEST_F(BatchRunnerTest, ALeaseThatDoesNotComeToRestTimesOut) {
  LoadKernel();
  s_.cuda.HoldStreams();
  const std::uint64_t value = 1;
  ASSERT_TRUE(s_.Run(BatchBuilder().Add(Launch(value)).Frame(kLease)).ok());
  EXPECT_TRUE(absl::IsDeadlineExceeded(s_.session->EndLease({kLease}, SteadyClock().Now())));
  s_.cuda.Release();
}

// Holds up the batch that sends a reply.
struct HeldReplies final : ReplySink {
  void Send(std::span<const std::uint8_t>) override {
    reached.set_value();
    released.get_future().wait();
  }
  std::promise<void> reached;
  std::promise<void> released;
};

TEST_F(BatchRunnerTest, ALeaseWhoseBatchStillRunsTimesOut) {
  HeldReplies replies;
  const auto frame = BatchBuilder().Add(wire::DeviceSynchronize{}).Frame(kLease);
  std::thread client([&] { EXPECT_TRUE(s_.session->RunFrame(frame, replies).ok()); });
  replies.reached.get_future().wait();
  EXPECT_TRUE(absl::IsDeadlineExceeded(s_.session->EndLease({kLease}, SteadyClock().Now())));
  replies.released.set_value();
  client.join();
}

TEST_F(BatchRunnerTest, OneStreamAtATimeAndOnlyWithTheKey) {
  wire::Attach attach;
  attach.session_id = 1;
  EXPECT_TRUE(absl::IsPermissionDenied(s_.session->Attach(attach, [] {})));
  attach.session_key = s_.identity.key;
  ASSERT_TRUE(s_.session->Attach(attach, [] {}).ok());
  EXPECT_TRUE(absl::IsAlreadyExists(s_.session->Attach(attach, [] {})));
  s_.session->Detach();
  EXPECT_TRUE(s_.session->Attach(attach, [this] { s_.session->Detach(); }).ok());
}

TEST_F(BatchRunnerTest, ANewStreamBeginsWithoutObjects) {
  LoadKernel();
  ASSERT_TRUE(s_.session->ResetObjects().ok());
  const std::uint64_t value = 1;
  EXPECT_EQ(ErrorOf(Launch(value)), cudaErrorInvalidDeviceFunction);
}

TEST(ReadAttachTest, TakesOneAttachAndNothingElse) {
  const auto id = static_cast<std::uint32_t>(wire::ProtocolCall::kAttach);
  BatchBuilder one;
  one.Add(id, wire::Attach{7, {}});
  EXPECT_EQ(ReadAttach(one.Frame(0))->session_id, 7u);
  BatchBuilder two = one;
  two.Add(id, wire::Attach{7, {}});
  EXPECT_FALSE(ReadAttach(two.Frame(0)).ok());
  BatchBuilder other;
  other.Add(wire::DeviceSynchronize{});
  EXPECT_FALSE(ReadAttach(other.Frame(0)).ok());
  EXPECT_FALSE(ReadAttach({}).ok());
}

}  // namespace
}  // namespace torpor::executor
