#include "client_shim/core/memory/payload_ring.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <vector>

#include "proto/wire/session_window.h"

namespace torpor::shim {
namespace {

constexpr std::uint64_t kBegin = 4096;
constexpr std::uint64_t kRingBytes = 1024;
constexpr std::uint64_t kMax = kRingBytes / 4;  // of one piece

class PayloadRingTest : public ::testing::Test {
 protected:
  PayloadRingTest()
      : page_(std::make_unique<wire::CompletionPage>()), window_(kBegin + kRingBytes) {
    slots_.Attach(page_.get());
    ring_.Attach(window_.data(), kBegin, kBegin + kRingBytes);
  }

  WindowPiece Take(std::uint64_t bytes) {
    WindowPiece piece;
    EXPECT_TRUE(ring_.Acquire(bytes, piece));
    return piece;
  }
  bool IsFull() {
    WindowPiece piece;
    return !ring_.Acquire(kMax, piece);
  }
  std::vector<WindowPiece> Fill() {
    std::vector<WindowPiece> pieces = {Take(kMax), Take(kMax), Take(kMax), Take(kMax)};
    EXPECT_TRUE(IsFull());
    return pieces;
  }
  // What the executor does when it has read the piece.
  void Complete(const WindowPiece& piece) { page_->slots[piece.slot].store(piece.value); }

  std::unique_ptr<wire::CompletionPage> page_;
  std::vector<std::uint8_t> window_;
  CompletionSlots slots_;
  PayloadRing ring_{slots_};
};

TEST_F(PayloadRingTest, APieceIsPartOfTheWindowAndHasASlot) {
  const WindowPiece piece = Take(100);
  EXPECT_EQ(piece.offset, kBegin);
  EXPECT_EQ(piece.data, window_.data() + kBegin);
  EXPECT_EQ(piece.bytes, 100u);
  EXPECT_NE(piece.slot, 0u);
  EXPECT_GT(piece.value, slots_.Value(piece.slot));
}

TEST_F(PayloadRingTest, PiecesAreAlignedAndApart) {
  std::set<std::uint32_t> slots;
  std::uint64_t end = kBegin;
  for (int i = 0; i < 4; ++i) {
    const WindowPiece piece = Take(65);
    EXPECT_EQ(piece.offset % 64, 0u);
    EXPECT_GE(piece.offset, end);
    end = piece.offset + piece.bytes;
    EXPECT_TRUE(slots.insert(piece.slot).second);
  }
}

TEST_F(PayloadRingTest, OnePieceIsAtMostAQuarter) { EXPECT_EQ(Take(kRingBytes).bytes, kMax); }

TEST_F(PayloadRingTest, RoomComesBackWhenTheExecutorHasRead) {
  const std::vector<WindowPiece> pieces = Fill();
  Complete(pieces[0]);
  EXPECT_TRUE(IsFull()) << "a piece that was not sent yet cannot have been read";
  ring_.Submitted(pieces[0]);
  EXPECT_EQ(Take(kMax).offset, pieces[0].offset);
}

TEST_F(PayloadRingTest, RoomComesBackOldestFirst) {
  const std::vector<WindowPiece> pieces = Fill();
  ring_.Release(pieces[1]);
  EXPECT_TRUE(IsFull());
  ring_.Release(pieces[0]);
  EXPECT_EQ(Take(kMax).offset, pieces[0].offset);
  EXPECT_EQ(Take(kMax).offset, pieces[1].offset);
  EXPECT_TRUE(IsFull());
}

TEST_F(PayloadRingTest, AnEmptyRingBeginsAtItsBegin) {
  ring_.Release(Take(kMax));
  EXPECT_EQ(Take(kMax).offset, kBegin);
}

TEST_F(PayloadRingTest, SlotsAreGivenBackWithTheirPieces) {
  for (int i = 0; i < 10'000; ++i) ring_.Release(Take(1));
}

TEST_F(PayloadRingTest, OthersCannotTakeAllSlots) {
  std::vector<std::uint32_t> others;
  while (const std::uint32_t slot = slots_.Allot()) others.push_back(slot);
  EXPECT_EQ(others.size(), wire::kCompletionSlots - CompletionSlots::kKeptForRing - 1);
  Fill();
}

TEST_F(PayloadRingTest, WhatADeadExecutorHeldIsFreeButNotWhatIsBeingFilled) {
  const std::vector<WindowPiece> pieces = Fill();
  for (std::size_t i = 0; i < 3; ++i) ring_.Submitted(pieces[i]);
  ring_.DropSubmitted();
  for (int i = 0; i < 3; ++i) Take(kMax);
  EXPECT_TRUE(IsFull());
}

TEST_F(PayloadRingTest, ReleasingTwiceHarmsNobody) {
  const WindowPiece piece = Take(kMax);
  ring_.Release(piece);
  ring_.Release(piece);
  EXPECT_EQ(Fill().size(), 4u);
}

}  // namespace
}  // namespace torpor::shim
