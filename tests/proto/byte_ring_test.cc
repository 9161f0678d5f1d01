#include "proto/wire/byte_ring.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>
#include <thread>
#include <vector>

#include "proto/wire/doorbell.h"
#include "proto/wire/record_reader.h"

namespace torpor::wire {
namespace {

constexpr std::size_t kMaxRecord = 1000;

// A ring of 64 bytes with both ends in the process.
class ByteRingTest : public testing::Test {
 protected:
  static std::vector<std::uint8_t> Bytes(std::size_t count, std::uint8_t first = 0) {
    std::vector<std::uint8_t> bytes(count);
    std::iota(bytes.begin(), bytes.end(), first);
    return bytes;
  }
  static std::vector<std::uint8_t> Record(const std::vector<std::uint8_t>& content) {
    const auto length = static_cast<RecordLength>(content.size());
    std::vector<std::uint8_t> record(sizeof length);
    std::memcpy(record.data(), &length, sizeof length);
    record.insert(record.end(), content.begin(), content.end());
    return record;
  }
  std::vector<std::uint8_t> Take(std::size_t count) {
    std::vector<std::uint8_t> bytes(count);
    bytes.resize(reader_.Take(bytes));
    return bytes;
  }

  RingCursors cursors_{};
  std::vector<std::uint8_t> memory_ = std::vector<std::uint8_t>(64);
  RingWriter writer_{cursors_, memory_};
  RingReader reader_{cursors_, memory_};
  RecordReader records_{RingReader(cursors_, memory_), kMaxRecord};
};

TEST_F(ByteRingTest, BytesWrapAround) {
  for (std::uint8_t round = 0; round < 50; ++round) {
    const auto bytes = Bytes(41, round);
    ASSERT_EQ(writer_.Write(bytes), 41u);
    ASSERT_EQ(Take(41), bytes) << int{round};
  }
}

TEST_F(ByteRingTest, AFullRingTakesWhatFits) {
  EXPECT_EQ(writer_.Write(Bytes(100)), 64u);
  EXPECT_EQ(writer_.Room(), 0u);
  EXPECT_EQ(writer_.Write(Bytes(1)), 0u);
  EXPECT_EQ(Take(10), Bytes(10));
  EXPECT_EQ(writer_.Room(), 10u);
  EXPECT_EQ(writer_.Write(Bytes(100)), 10u);
  EXPECT_EQ(reader_.RoomLeft(), 0u);
}

TEST_F(ByteRingTest, AnEmptyRingGivesNothing) {
  EXPECT_EQ(reader_.Available(), 0u);
  EXPECT_EQ(Take(5).size(), 0u);
  EXPECT_FALSE(reader_.is_broken());
}

TEST_F(ByteRingTest, AHostileWriterCannotMakeTheReaderLeaveTheRing) {
  for (const std::uint64_t lie :
       {std::uint64_t{65}, std::uint64_t{1} << 40, std::numeric_limits<std::uint64_t>::max()}) {
    RingReader reader(cursors_, memory_);
    cursors_.written = lie;
    std::vector<std::uint8_t> sink(200);
    EXPECT_EQ(reader.Take(sink), 0u);
    EXPECT_TRUE(reader.is_broken());
    cursors_.written = 8;
    EXPECT_EQ(reader.Take(sink), 0u) << "once broken, for ever";
  }
}

TEST_F(ByteRingTest, AWriterThatGoesBackIsBroken) {
  ASSERT_EQ(writer_.Write(Bytes(20)), 20u);
  ASSERT_EQ(Take(20).size(), 20u);
  cursors_.written = 10;
  EXPECT_EQ(reader_.Available(), 0u);
  EXPECT_TRUE(reader_.is_broken());
}

TEST_F(ByteRingTest, AHostileReaderCannotMakeTheWriterOverwrite) {
  ASSERT_EQ(writer_.Write(Bytes(64)), 64u);
  cursors_.taken = 200;  // more than was ever written
  EXPECT_EQ(writer_.Write(Bytes(10)), 0u);
  EXPECT_TRUE(writer_.is_broken());
  cursors_.taken = 64;
  EXPECT_EQ(writer_.Room(), 0u);
}

TEST_F(ByteRingTest, RecordsComeWholeAndInOrder) {
  std::span<const std::uint8_t> record;
  EXPECT_EQ(records_.Next(record), RecordReader::Step::kNeedMore);
  writer_.Write(Record(Bytes(9)));
  writer_.Write(Record({}));
  writer_.Write(Record(Bytes(3, 7)));
  ASSERT_EQ(records_.Next(record), RecordReader::Step::kRecord);
  EXPECT_EQ(std::vector(record.begin(), record.end()), Bytes(9));
  ASSERT_EQ(records_.Next(record), RecordReader::Step::kRecord);
  EXPECT_TRUE(record.empty());
  ASSERT_EQ(records_.Next(record), RecordReader::Step::kRecord);
  EXPECT_EQ(std::vector(record.begin(), record.end()), Bytes(3, 7));
  EXPECT_EQ(records_.Next(record), RecordReader::Step::kNeedMore);
}

TEST_F(ByteRingTest, ARecordMayBeLongerThanTheRing) {
  const auto content = Bytes(kMaxRecord);
  const auto record = Record(content);
  std::span<const std::uint8_t> got;
  std::size_t at = 0;
  RecordReader::Step step = RecordReader::Step::kNeedMore;
  while (step == RecordReader::Step::kNeedMore) {
    // In odd pieces, so that the length itself comes in parts.
    const std::size_t piece = std::min<std::size_t>(3, record.size() - at);
    at += writer_.Write(std::span(record).subspan(at, piece));
    step = records_.Next(got);
  }
  ASSERT_EQ(step, RecordReader::Step::kRecord);
  EXPECT_EQ(std::vector(got.begin(), got.end()), content);
}

TEST_F(ByteRingTest, ATooLongRecordIsMalformed) {
  const auto length = static_cast<RecordLength>(kMaxRecord + 1);
  writer_.Write({reinterpret_cast<const std::uint8_t*>(&length), sizeof length});
  std::span<const std::uint8_t> record;
  EXPECT_EQ(records_.Next(record), RecordReader::Step::kMalformed);
  EXPECT_EQ(records_.Next(record), RecordReader::Step::kMalformed);
}

TEST_F(ByteRingTest, ACursorOutsideTheRingIsMalformed) {
  cursors_.written = 1000;
  std::span<const std::uint8_t> record;
  EXPECT_TRUE(records_.HasBytes()) << "nobody may sleep on a broken ring";
  EXPECT_EQ(records_.Next(record), RecordReader::Step::kMalformed);
}

TEST_F(ByteRingTest, ARecordDoesNotChangeOnceItIsHandedOut) {
  writer_.Write(Record(Bytes(8)));
  std::span<const std::uint8_t> record;
  ASSERT_EQ(records_.Next(record), RecordReader::Step::kRecord);
  std::fill(memory_.begin(), memory_.end(), std::uint8_t{0xff});
  EXPECT_EQ(std::vector(record.begin(), record.end()), Bytes(8));
}

// One thread writes records, the other reads, and both sleep whenever there is nothing to do.
TEST_F(ByteRingTest, TwoThreadsWakeEachOther) {
  constexpr std::uint32_t kRecords = 20'000;
  WaitWord reader_waits{0};
  WaitWord writer_waits{0};
  std::thread writer([&] {
    AdaptiveSpin spin;
    for (std::uint32_t i = 0; i < kRecords; ++i) {
      std::vector<std::uint8_t> content(4 + i % 150);
      std::memcpy(content.data(), &i, sizeof i);
      const auto record = Record(content);
      std::span<const std::uint8_t> rest = record;
      while (!rest.empty()) {
        rest = rest.subspan(writer_.Write(rest));
        if (TakeWaits(reader_waits, kWaitsForRecord) != 0) WakeSleepers(reader_waits);
        const auto is_ready = [&] { return rest.empty() || writer_.Room() > 0; };
        spin.Wait(is_ready, [&] { SleepOnce(writer_waits, kWaitsForRoom, is_ready); });
      }
    }
  });
  AdaptiveSpin spin;
  for (std::uint32_t i = 0; i < kRecords; ++i) {
    std::span<const std::uint8_t> record;
    while (records_.Next(record) == RecordReader::Step::kNeedMore) {
      if (TakeWaits(writer_waits, kWaitsForRoom) != 0) WakeSleepers(writer_waits);
      const auto is_ready = [&] { return records_.HasBytes(); };
      spin.Wait(is_ready, [&] { SleepOnce(reader_waits, kWaitsForRecord, is_ready); });
    }
    if (TakeWaits(writer_waits, kWaitsForRoom) != 0) WakeSleepers(writer_waits);
    std::uint32_t number = 0;
    ASSERT_EQ(record.size(), 4 + i % 150);
    std::memcpy(&number, record.data(), sizeof number);
    ASSERT_EQ(number, i);
  }
  writer.join();
}

TEST(DoorbellTest, OnlyAWaitThatWasAnnouncedIsTaken) {
  WaitWord word{kWaitsForRecord | kPollsForRecord};
  EXPECT_EQ(TakeWaits(word, kWaitsForRoom), 0u);
  EXPECT_EQ(TakeWaits(word, kWaitsForRecord | kWaitsForRoom), kWaitsForRecord);
  EXPECT_EQ(TakeWaits(word, kWaitsForRecord | kWaitsForRoom), 0u);
  EXPECT_EQ(word.load(), kPollsForRecord);
}

TEST(DoorbellTest, NobodySleepsWhoIsReady) {
  WaitWord word{0};
  SleepOnce(word, kWaitsForRecord, [] { return true; });
  EXPECT_EQ(word.load(), 0u);
}

TEST(AdaptiveSpinTest, LongWaitsAreSleptThrough) {
  AdaptiveSpin spin;
  int sleeps = 0;
  bool is_ready = false;
  spin.Wait([&] { return is_ready; }, [&] { is_ready = ++sleeps == 3; });
  EXPECT_EQ(sleeps, 3);
  spin.Wait([&] { return is_ready; }, [&] { ++sleeps; });
  EXPECT_EQ(sleeps, 3) << "ready at once";
}

}  // namespace
}  // namespace torpor::wire
