#include "server/controller/memory/file_pages.h"

#include <spdlog/spdlog.h>

#include <utility>

#include "memory/extent_set.h"

namespace torpor::server {
namespace {

// Returns the parts of `block` outside of `unused`.
memory::ExtentSet RestOf(memory::Block block, memory::Block unused) {
  memory::ExtentSet rest;
  rest.Add({block.offset, block.offset + block.bytes});
  rest.Remove({unused.offset, unused.offset + unused.bytes});
  return rest;
}

void LogFailure(const absl::Status& status) {
  if (!status.ok()) spdlog::error("{}", status.ToString());
}

}  // namespace

void DiscardPages(TaskLoop& loop, const ClientSession& session, wire::SharedMemory what,
                  memory::Block block, memory::Block unused, TaskLoop::Task then) {
  loop.InBackground(
      [files = session.memory.files, what, unused, rest = RestOf(block, unused)] {
        absl::Status status;
        if (unused.bytes > 0) status = files->Discard(what, unused.offset, unused.bytes);
        for (const memory::Extent& extent : rest.extents()) {
          status.Update(files->Clear(what, extent.begin, extent.bytes()));
        }
        LogFailure(status);
      },
      std::move(then));
}

void ClearImage(TaskLoop& loop, const ClientSession& session, memory::Block block,
                memory::Block unused, TaskLoop::Task then) {
  loop.InBackground(
      [files = session.memory.files, unused, rest = RestOf(block, unused)] {
        absl::Status status = files->MarkUntouched(unused.offset, unused.bytes);
        for (const memory::Extent& extent : rest.extents()) {
          status.Update(files->Clear(wire::SharedMemory::kImage, extent.begin, extent.bytes()));
        }
        LogFailure(status);
      },
      std::move(then));
}

}  // namespace torpor::server
