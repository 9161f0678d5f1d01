#include "client_shim/core/memory/kept_uploads.h"

#include <gtest/gtest.h>

#include <array>
#include <memory>

#include "client_shim/core/memory/payload_ring.h"

namespace torpor::shim {
namespace {

// A ring of one kibibyte, of which a piece has a quarter, with an executor that is the test.
class KeptUploadsTest : public ::testing::Test {
 protected:
  KeptUploadsTest() {
    slots_.Attach(page_.get());
    ring_.SetBeforeReuse([this](std::uint64_t offset) { uploads_.BeforeReuse(offset); });
    ring_.Attach(window_.data(), 0, window_.size());
  }

  WindowPiece Send(std::uint64_t number, std::uint8_t byte, bool may_be_saved = true) {
    WindowPiece piece;
    EXPECT_TRUE(ring_.Acquire(256, piece));
    std::fill_n(piece.data, piece.bytes, byte);
    uploads_.NoteSent(number, piece, may_be_saved);
    ring_.Submitted(piece);
    return piece;
  }
  void Read(const WindowPiece& piece, bool is_saved) {
    auto& bits = page_->saved_uploads[piece.slot / 64];
    const std::uint64_t bit = std::uint64_t{1} << piece.slot % 64;
    bits = is_saved ? bits | bit : bits & ~bit;
    page_->slots[piece.slot] = piece.value;
  }
  // Uses the places of all pieces that were read.
  void Reuse() {
    WindowPiece piece;
    ASSERT_TRUE(ring_.Acquire(256, piece));
    std::fill_n(piece.data, piece.bytes, 0);
    ring_.Release(piece);
  }
  int FirstByteOf(std::uint64_t number) const {
    const auto bytes = uploads_.Find(number);
    if (!bytes) return -1;
    EXPECT_EQ(bytes->size(), 256u);
    return bytes->front();
  }

  std::unique_ptr<wire::CompletionPage> page_ = std::make_unique<wire::CompletionPage>();
  std::array<std::uint8_t, 1024> window_{};
  CompletionSlots slots_;
  PayloadRing ring_{slots_};
  KeptUploads uploads_{slots_};
};

TEST_F(KeptUploadsTest, BytesAreCopiedWhenTheirPlaceIsUsedAgain) {
  const WindowPiece piece = Send(1, 11);
  EXPECT_EQ(FirstByteOf(1), 11) << "in the window";
  EXPECT_EQ(uploads_.bytes(), 0u);
  Read(piece, /*is_saved=*/false);
  Reuse();
  EXPECT_EQ(FirstByteOf(1), 11);
  EXPECT_EQ(uploads_.bytes(), 256u);
  uploads_.TrimTo(1);
  EXPECT_EQ(FirstByteOf(1), -1);
  EXPECT_EQ(uploads_.bytes(), 0u);
}

TEST_F(KeptUploadsTest, WhatTheImageHasForGoodIsNotKept) {
  const WindowPiece piece = Send(1, 11);
  const WindowPiece other = Send(2, 12, /*may_be_saved=*/false);
  Read(piece, /*is_saved=*/true);
  Read(other, /*is_saved=*/true);
  EXPECT_EQ(FirstByteOf(1), -1);
  EXPECT_EQ(FirstByteOf(2), 12) << "the bit is a former upload's";
  Reuse();
  EXPECT_EQ(FirstByteOf(1), -1);
  EXPECT_EQ(FirstByteOf(2), 12);
}

// The word of the executor counts once the mark is there: before, it is about an earlier piece.
TEST_F(KeptUploadsTest, AnUploadThatWasNotReadIsKept) {
  const WindowPiece piece = Send(1, 11);
  page_->saved_uploads[piece.slot / 64] = ~std::uint64_t{0};
  EXPECT_EQ(FirstByteOf(1), 11);
}

TEST_F(KeptUploadsTest, PinnedBytesAreKeptAtOnce) {
  const std::span<std::uint8_t> room = uploads_.Keep(5, 256);
  std::fill(room.begin(), room.end(), 9);
  EXPECT_EQ(FirstByteOf(5), 9);
  EXPECT_EQ(uploads_.bytes(), 256u);
  uploads_.TrimTo(4);
  EXPECT_EQ(FirstByteOf(5), 9);
}

}  // namespace
}  // namespace torpor::shim
