#pragma once

#include <gtest/gtest.h>

#include <array>
#include <cstdint>

#include "proto/cuda_api/cudart_commands.h"
#include "tests/client_shim/surface/fake_device.h"

namespace torpor::shim {

// A copy of 12 bytes by 2 rows by 2 slices, from byte 8 of row 1 and slice 1 of device memory with
// 64 bytes a row and 5 rows a slice, into `array` at `position` (in bytes, rows and slices).
inline void ExpectBoxIntoArray(const wire::Memcpy3D& sent, const void* array,
                               const std::array<std::uint64_t, 3>& position) {
  EXPECT_EQ(sent.dst_side, wire::MemorySide::kArray);
  EXPECT_EQ(sent.dst, reinterpret_cast<std::uint64_t>(array));
  EXPECT_EQ(sent.dst_position, position);
  EXPECT_EQ(sent.src, kDevice + 8 + std::uint64_t{5 + 1} * 64);
  EXPECT_EQ(sent.src_pitch, 64u);
  EXPECT_EQ(sent.src_rows, 5u);
  EXPECT_EQ(sent.width, 12u);
  EXPECT_EQ(sent.height, 2u);
  EXPECT_EQ(sent.depth, 2u);
}

}  // namespace torpor::shim
