#include "server/executor/session_memory/session_window.h"

#include <gtest/gtest.h>

#include "tests/server/executor/gpu/fake_cuda.h"
#include "tests/server/executor/image/fake_image.h"

namespace torpor::executor {
namespace {

// A node's other GPUs never see most sessions' bulk bytes.
TEST(SessionWindow, OnlyTheCompletionPageIsPinnedUntilTheRingIsUsed) {
  FakeCuda cuda;
  const auto device = *Device::Open(cuda.driver(), 0);
  const auto window = *SessionWindow::Open(*device, NewFile(16 * kMiB));
  const auto* const page = reinterpret_cast<const std::uint8_t*>(window->Slot(0));
  EXPECT_TRUE(cuda.IsRegistered(page));
  EXPECT_EQ(cuda.registered_pieces(), 1u);
  EXPECT_EQ(window->Payload(0, 8), nullptr) << "the page is no payload";
  EXPECT_EQ(cuda.registered_pieces(), 1u);
  const std::uint8_t* const payload = window->Payload(wire::kCompletionPageBytes, 8);
  ASSERT_NE(payload, nullptr);
  EXPECT_TRUE(cuda.IsRegistered(payload));
  EXPECT_TRUE(cuda.IsRegistered(window->Payload(16 * kMiB - 1, 1)));
  EXPECT_EQ(cuda.registered_pieces(), 2u) << "copies must not span more";
}

}  // namespace
}  // namespace torpor::executor
