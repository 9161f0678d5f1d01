#include "emulator/exec/codegen/builder/function_source.h"

#include "emulator/ptx/collective.h"
#include "emulator/ptx/tile_loads.h"

namespace torpor::emulator {
namespace {

std::int64_t LocalStride(const KernelLayout& layout, std::uint32_t function) {
  const auto found = layout.local_bytes.find(function);
  return found == layout.local_bytes.end() ? 0 : found->second;
}

}  // namespace

FunctionSource::FunctionSource(const ptx::Module& module, std::uint32_t index,
                               const KernelLayout& layout, const ptx::BlockShape& block_shape)
    : module(module),
      layout(layout),
      block_shape(block_shape),
      local_stride(LocalStride(layout, index)),
      function(ptx::ConvergeCollectives(module, index, block_shape, local_stride)),
      flow(ptx::BuildControlFlow(function)),
      lanes(module, function, flow, block_shape, local_stride),
      fragments(ptx::PlaceFragments(function, flow, lanes)),
      tile_loads(ptx::FindTileLoads(function, flow)) {}

}  // namespace torpor::emulator
