#pragma once

#include "memory/range_allocator.h"
#include "proto/wire/descriptor_socket.h"
#include "server/controller/model/client_session.h"
#include "server/controller/model/task_loop.h"

namespace torpor::server {

// Makes `block` of a session's file read as zero, in the background; gives the pages of `unused`, a
// range that no process maps, back to the system. Runs `then` on the loop. Logs failures.
void DiscardPages(TaskLoop& loop, const ClientSession& session, wire::SharedMemory what,
                  memory::Block block, memory::Block unused, TaskLoop::Task then);

// Makes `block` of the image read as zero to executors, in the background, and keeps its pages:
// writes zeros, except into `unused`, chunks without an allocation, whose blocks merely count as
// untouched. Runs `then` on the loop. Logs failures.
void ClearImage(TaskLoop& loop, const ClientSession& session, memory::Block block,
                memory::Block unused, TaskLoop::Task then);

}  // namespace torpor::server
