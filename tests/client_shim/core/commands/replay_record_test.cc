#include "client_shim/core/commands/replay_record.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <vector>

#include "client_shim/core/commands/batch_writer.h"
#include "proto/wire/result_hash.h"

namespace torpor::shim {
namespace {

using ::testing::HasSubstr;

constexpr std::size_t kMaxBytes = 1 << 20;
constexpr std::uint64_t kDevice = 0x7000'0000'0000;

// A record whose pinned memory is the test's.
class ReplayRecordTest : public ::testing::Test {
 protected:
  ReplayRecordTest() { slots_.Attach(page_.get()); }

  template <typename Message>
  void Do(const Message& message, const WindowPiece* piece = nullptr) {
    const auto fields = wire::Encoded(message);
    const Command command{Message::kCallId, fields, piece};
    record_.OnCommand(command, ++last_);
    if (Message::kSync) record_.OnCall(last_);
    BatchWriter batch({1 << 20, 1000, std::chrono::hours(1)});
    batch.Append(Message::kCallId, fields, last_);
    const wire::StreamMark mark = record_.MarkBehind(command, last_);
    if (mark.value != 0) batch.Append(wire::StreamMark::kCallId, wire::Encoded(mark), ++last_);
    record_.OnBatch(batch.first_number(), batch.numbered(), batch.commands());
    marks_.push_back(mark);
  }
  void Launch(std::uint64_t parameter = 1) {
    wire::LaunchKernel launch;
    std::vector<std::uint8_t> parameters(sizeof parameter);
    std::memcpy(parameters.data(), &parameter, sizeof parameter);
    launch.parameters = parameters;
    Do(launch);
  }
  void UploadPinned(std::uint64_t offset, std::uint64_t bytes) {
    wire::MemcpyHtoD copy;
    copy.dst = kDevice;
    copy.bytes = bytes;
    copy.payload = wire::Payload::kArena;
    copy.offset = offset;
    Do(copy);
  }
  void Reach(const wire::StreamMark& mark) { page_->slots[mark.slot] = mark.value; }
  std::uint64_t AddressOf(std::uint64_t offset) const { return arena().base + offset; }
  HostArena arena() const {
    return {reinterpret_cast<std::uint64_t>(pinned_.data()), pinned_.size()};
  }

  std::vector<ReplayRecord::Step> Steps(std::uint64_t awaited = 0) const {
    std::vector<ReplayRecord::Step> steps;
    record_.Visit([awaited](std::uint64_t number) { return number == awaited; },
                  {.on_step = [&](const ReplayRecord::Step& step) { steps.push_back(step); },
                   .on_change = [](const JournalChange&) {}});
    return steps;
  }
  template <typename Message>
  static Message Decoded(const std::vector<std::uint8_t>& fields) {
    Message message;
    wire::Reader reader(fields);
    reader(message);
    EXPECT_TRUE(reader.done());
    return message;
  }

  std::unique_ptr<wire::CompletionPage> page_ = std::make_unique<wire::CompletionPage>();
  std::vector<std::uint8_t> pinned_ = std::vector<std::uint8_t>(4 << 20, 5);
  CompletionSlots slots_;
  KeptUploads uploads_{slots_};
  ReplayRecord record_{kMaxBytes, arena(), slots_, uploads_};
  std::uint64_t last_ = 0;
  std::vector<wire::StreamMark> marks_;
};

TEST_F(ReplayRecordTest, PinnedBytesAreThoseOfTheCall) {
  UploadPinned(64, 700'000);
  std::fill(pinned_.begin(), pinned_.end(), 6);
  const auto steps = Steps();
  ASSERT_EQ(steps.size(), 1u);
  ASSERT_EQ(steps[0].fields.size(), 2u) << "in parts that fit commands";
  std::uint64_t at = kDevice;
  for (const auto& fields : steps[0].fields) {
    const auto part = Decoded<wire::MemcpyHtoD>(fields);
    EXPECT_EQ(part.dst, at);
    EXPECT_EQ(part.payload, wire::Payload::kInline);
    EXPECT_EQ(part.data.size(), part.bytes);
    EXPECT_EQ(part.data.front(), 5);
    EXPECT_EQ(part.data.back(), 5);
    at += part.bytes;
  }
  EXPECT_EQ(at, kDevice + 700'000);
  EXPECT_TRUE(record_.obstacle().empty());
}

TEST_F(ReplayRecordTest, PinnedBytesThatEarlierWorkMayWriteAreAnObstacle) {
  Do(wire::MemcpyDtoHArena{kDevice, 1, 100, 0});
  UploadPinned(1000, 8);
  EXPECT_TRUE(record_.obstacle().empty()) << "elsewhere";
  UploadPinned(96, 8);
  EXPECT_THAT(record_.obstacle(), HasSubstr("was under way"));
  EXPECT_TRUE(record_.TrimTo(last_));
  EXPECT_TRUE(record_.obstacle().empty());
}

TEST_F(ReplayRecordTest, CopiesToPinnedMemoryThatTheProgramMayHaveSeenAreLeftOut) {
  Do(wire::MemcpyDtoHArena{kDevice, 1, 100, 0});
  Do(wire::MemcpyDtoHArena{kDevice, 1, 100, 200});
  ASSERT_EQ(marks_[0].slot, marks_[1].slot) << "one for the stream";
  EXPECT_EQ(Steps().size(), 4u);
  Reach(marks_[0]);
  const auto steps = Steps();
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(Decoded<wire::MemcpyDtoHArena>(steps[0].fields[0]).arena_offset, 200u);
  EXPECT_EQ(steps[1].call_id, wire::StreamMark::kCallId);
  Reach(marks_[1]);
  EXPECT_TRUE(Steps().empty());
}

TEST_F(ReplayRecordTest, MarksDoNotGoBack) {
  wire::EventRecord record;
  record.event = 9;
  record.slot = slots_.Allot();
  record.value = slots_.NextValue(record.slot);
  Do(record);
  const wire::StreamMark mark{0, slots_.Allot(), 1};
  Do(mark);
  EXPECT_EQ(Decoded<wire::EventRecord>(Steps()[0].fields[0]).value, record.value);
  page_->slots[record.slot] = record.value;
  page_->slots[mark.slot] = 1;
  const auto steps = Steps();
  ASSERT_EQ(steps.size(), 1u) << "the event itself is recorded again";
  EXPECT_EQ(Decoded<wire::EventRecord>(steps[0].fields[0]).value, 0u);
}

TEST_F(ReplayRecordTest, KernelsWithPinnedMemoryAreAnObstacleUntilTheNextCheckpoint) {
  Launch(AddressOf(0));
  EXPECT_TRUE(record_.obstacle().empty()) << "the program has none yet";
  record_.NotePinned(AddressOf(0), pinned_.size());
  Launch();
  EXPECT_TRUE(record_.obstacle().empty());
  Launch(AddressOf(0) - (1 << 20));
  EXPECT_TRUE(record_.obstacle().empty()) << "other memory of the arena, or two small numbers";
  Launch(AddressOf(pinned_.size() - 1));
  EXPECT_THAT(record_.obstacle(), HasSubstr("pinned or managed memory"));
  Launch();
  EXPECT_TRUE(record_.TrimTo(last_ - 1));
  EXPECT_TRUE(record_.obstacle().empty());
}

TEST_F(ReplayRecordTest, GraphsCountWhenTheyAreLaunched) {
  record_.NotePinned(AddressOf(0), pinned_.size());
  const auto kernel = [](std::uint64_t parameter) {
    wire::LaunchKernel launch;
    std::vector<std::uint8_t> parameters(sizeof parameter);
    std::memcpy(parameters.data(), &parameter, sizeof parameter);
    launch.parameters = parameters;
    return wire::Encoded(launch);
  };
  const auto plain = kernel(1);
  const auto pinned = kernel(AddressOf(8));
  const auto add = [&](std::uint64_t graph, const std::vector<std::uint8_t>& fields) {
    wire::GraphAddNodes nodes;
    nodes.graph = graph;
    nodes.nodes.resize(1);
    nodes.nodes[0].commands.push_back({wire::LaunchKernel::kCallId, fields});
    Do(nodes);
  };
  add(1, plain);
  add(2, pinned);
  Do(wire::GraphLaunch{1, 0});
  EXPECT_TRUE(record_.obstacle().empty());
  Do(wire::GraphLaunch{2, 0});
  EXPECT_THAT(record_.obstacle(), HasSubstr("a graph"));
}

TEST_F(ReplayRecordTest, DownloadsAreComparedByHash) {
  Do(wire::MemcpyDtoH{kDevice, 0, 4, wire::kReplyInline});
  const std::uint64_t first = last_;
  Do(wire::MemcpyDtoH{kDevice, 0, 4, wire::kReplyInline});
  const std::vector<std::uint8_t> bytes{1, 2, 3, 4};
  record_.OnSeen(first, {0, wire::ResultHash(bytes)});
  const auto steps = Steps(/*awaited=*/last_);
  ASSERT_EQ(steps.size(), 2u);
  EXPECT_EQ(Decoded<wire::MemcpyDtoH>(steps[0].fields[0]).window_offset, wire::kReplyHash);
  EXPECT_EQ(Decoded<wire::MemcpyDtoH>(steps[1].fields[0]).window_offset, wire::kReplyInline);
  const auto answer = [](std::uint64_t hash) {
    wire::MemcpyDtoHResult result;
    result.data.resize(sizeof hash);
    std::memcpy(result.data.data(), &hash, sizeof hash);
    return wire::Encoded(result);
  };
  const std::uint32_t call = wire::MemcpyDtoH::kCallId;
  EXPECT_EQ(record_.Compare(first, call, 0, answer(wire::ResultHash(bytes))), "");
  EXPECT_THAT(record_.Compare(first, call, 0, answer(1)),
              HasSubstr("call 134 (command " + std::to_string(first) + ") gave another result"));
  EXPECT_THAT(record_.Compare(first, call, 700, {}), HasSubstr("returned 700"));
  EXPECT_EQ(record_.Compare(last_, call, 700, {}), "") << "the program has not seen that one";
}

TEST_F(ReplayRecordTest, TheHashIsOfTheBytesWhateverTheirWay) {
  const std::vector<std::uint8_t> bytes{1, 2, 3, 4, 5};
  wire::MemcpyDtoHResult inside;
  inside.data = bytes;
  const auto fields = wire::Encoded(wire::MemcpyDtoH{kDevice, 0, bytes.size(), 4096});
  const Command command{wire::MemcpyDtoH::kCallId, fields};
  std::uint64_t offset = 0;
  EXPECT_EQ(ReplayRecord::WindowBytes(command, offset), bytes.size());
  EXPECT_EQ(offset, 4096u);
  EXPECT_EQ(ReplayRecord::HashOf(command, wire::Encoded(inside), {}),
            ReplayRecord::HashOf(command, {}, bytes));
  EXPECT_EQ(ReplayRecord::HashOf({wire::EventElapsedTime::kCallId, {}}, {}, {}), std::nullopt)
      << "no two runs take the same time";
}

TEST_F(ReplayRecordTest, IsFullOfCommandsAndUploads) {
  EXPECT_FALSE(record_.IsFull());
  for (int i = 0; i < 4; ++i) UploadPinned(0, 300'000);
  EXPECT_TRUE(record_.IsFull());
  EXPECT_FALSE(record_.IsOverfull());
  for (int i = 0; i < 4; ++i) UploadPinned(0, 300'000);
  EXPECT_TRUE(record_.IsOverfull());
  EXPECT_TRUE(record_.TrimTo(last_));
  EXPECT_FALSE(record_.IsFull());
}

TEST_F(ReplayRecordTest, WithoutBytesNothingIsRecorded) {
  ReplayRecord off(0, arena(), slots_, uploads_);
  EXPECT_FALSE(off.is_on());
  EXPECT_THAT(off.obstacle(), HasSubstr("TORPOR_REPLAY_BYTES"));
  const auto fields = wire::Encoded(wire::MemcpyDtoHArena{kDevice, 1, 100, 0});
  EXPECT_EQ(off.MarkBehind({wire::MemcpyDtoHArena::kCallId, fields}, 1).value, 0u);
}

}  // namespace
}  // namespace torpor::shim
