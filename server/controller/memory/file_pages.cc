#include "server/controller/memory/file_pages.h"

#include <spdlog/spdlog.h>

#include <utility>

#include "memory/extent_set.h"

namespace torpor::server {

void DiscardPages(TaskLoop& loop, const ClientSession& session, wire::SharedMemory what,
                  memory::Block block, memory::Block unused, TaskLoop::Task then) {
  memory::ExtentSet rest;
  rest.Add({block.offset, block.offset + block.bytes});
  rest.Remove({unused.offset, unused.offset + unused.bytes});
  loop.InBackground(
      [files = session.memory.files, what, unused, rest] {
        absl::Status status;
        if (unused.bytes > 0) status = files->Discard(what, unused.offset, unused.bytes);
        for (const memory::Extent& extent : rest.extents()) {
          status.Update(files->Clear(what, extent.begin, extent.bytes()));
        }
        if (!status.ok()) spdlog::error("{}", status.ToString());
      },
      std::move(then));
}

}  // namespace torpor::server
