#include "emulator/exec/runtime/matrix_tile.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "emulator/exec/runtime/block_runner.h"
#include "emulator/exec/runtime/device_reader.h"

namespace torpor::emulator {
namespace {

void CheckTile(WarpContext* context, std::uint64_t address, std::uint64_t stride,
               std::uint32_t lines, std::uint32_t line_bytes) {
  const Warp& warp = *static_cast<const Warp*>(context);
  const std::uint64_t bytes = stride * (lines - 1) + line_bytes;
  const bool aligned = (address | stride) % std::min(line_bytes, 16U) == 0;
  // Strides have 32 bits and lines are few: the product does not wrap.
  if (aligned && MayAccess(warp, address, bytes)) return;
  if (aligned) {
    warp.runner->Fail(ExecError::kIllegalAddress, "illegal address " + Hex(address) + " of a tile",
                      0);
  } else {
    warp.runner->Fail(ExecError::kMisalignedAddress,
                      "misaligned address or stride of a tile at " + Hex(address), 0);
  }
  warp.runner->Escape();
}

template <std::size_t kBytes>
void CopyLines(std::uint8_t* to, std::uint64_t to_stride, const std::uint8_t* from,
               std::uint64_t from_stride, std::uint32_t lines) {
  for (std::uint32_t i = 0; i < lines; ++i) {
    std::memcpy(to + i * to_stride, from + i * from_stride, kBytes);
  }
}

void Copy(std::uint8_t* to, std::uint64_t to_stride, const std::uint8_t* from,
          std::uint64_t from_stride, std::uint32_t lines, std::uint32_t line_bytes) {
  switch (line_bytes) {
    case 8:
      return CopyLines<8>(to, to_stride, from, from_stride, lines);
    case 16:
      return CopyLines<16>(to, to_stride, from, from_stride, lines);
    case 32:
      return CopyLines<32>(to, to_stride, from, from_stride, lines);
    case 64:
      return CopyLines<64>(to, to_stride, from, from_stride, lines);
    default:
      return CopyLines<128>(to, to_stride, from, from_stride, lines);
  }
}

// `from` is `lines` lines of elements; `to` gets line l's element e at to + e * step + l * stride.
template <typename Element>
void Transpose(std::uint8_t* to, std::uint64_t stride, std::uint64_t step, const std::uint8_t* from,
               std::uint64_t from_stride, std::uint32_t lines, std::uint32_t line_bytes) {
  for (std::uint32_t line = 0; line < lines; ++line) {
    for (std::uint32_t e = 0; e < line_bytes / sizeof(Element); ++e) {
      std::memcpy(to + e * step + line * stride, from + line * from_stride + e * sizeof(Element),
                  sizeof(Element));
    }
  }
}

void TransposeElements(std::uint32_t bytes, std::uint8_t* to, std::uint64_t stride,
                       std::uint64_t step, const std::uint8_t* from, std::uint64_t from_stride,
                       std::uint32_t lines, std::uint32_t line_bytes) {
  if (bytes == 2) {
    Transpose<std::uint16_t>(to, stride, step, from, from_stride, lines, line_bytes);
  } else if (bytes == 4) {
    Transpose<std::uint32_t>(to, stride, step, from, from_stride, lines, line_bytes);
  } else {
    Transpose<std::uint64_t>(to, stride, step, from, from_stride, lines, line_bytes);
  }
}

}  // namespace

// Faults in the copies below end the block by a jump, so no object here owns resources.
void LoadTile(WarpContext* context, std::uint64_t address, std::uint64_t stride,
              std::uint8_t* fragment, std::uint32_t lines, std::uint32_t line_bytes,
              std::uint32_t transposed_bytes, std::uint32_t copies) {
  CheckTile(context, address, stride, lines, line_bytes);
  const auto* const memory = reinterpret_cast<const std::uint8_t*>(address);
  if (transposed_bytes != 0) {
    return TransposeElements(transposed_bytes, fragment, transposed_bytes,
                             std::uint64_t{lines} * transposed_bytes, memory, stride, lines,
                             line_bytes);
  }
  Copy(fragment, line_bytes, memory, stride, lines, line_bytes);
  const std::size_t bytes = std::size_t{lines} * line_bytes;
  for (std::uint32_t i = 1; i < copies; ++i) std::memcpy(fragment + i * bytes, fragment, bytes);
}

void StoreTile(WarpContext* context, std::uint64_t address, std::uint64_t stride,
               const std::uint8_t* fragment, std::uint32_t lines, std::uint32_t line_bytes,
               std::uint32_t transposed_bytes, std::uint32_t /*copies*/) {
  CheckTile(context, address, stride, lines, line_bytes);
  auto* const memory = reinterpret_cast<std::uint8_t*>(address);
  if (transposed_bytes == 0) return Copy(memory, stride, fragment, line_bytes, lines, line_bytes);
  // The fragment's lines are the memory's elements.
  const std::uint32_t fragment_lines = line_bytes / transposed_bytes;
  const std::uint32_t fragment_line_bytes = lines * transposed_bytes;
  TransposeElements(transposed_bytes, memory, transposed_bytes, stride, fragment,
                    fragment_line_bytes, fragment_lines, fragment_line_bytes);
}

}  // namespace torpor::emulator
